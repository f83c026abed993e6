"""A plan of the user's own is run in every way that a run may go, and judged each time."""

from __future__ import annotations

import pytest

import streamproof as sp
from streamproof.cli.demo_proof import planted_bug
from streamproof.errors import InputError
from streamproof.events.stream import PhysicalStream
from streamproof.generate import Facets, generated
from streamproof.workbench.concretise import RUNS
from streamproof.workbench.runner import VerifyOptions
from streamproof.workbench.schedule import DEFAULTS
from streamproof.workbench.subjects import LocalSubject
from streamproof.workbench.user_plan import verify_plan

FOLLOWS = sp.source("S").followed_by(sp.source("R"), "l.k = r.k", select={"k": "l.k"}).plan


def streams() -> dict[str, PhysicalStream]:
    facets = Facets(keys=2, duration=(2, 6), overlap=4, pattern="random", speculation="mixed", disorder=(0.3, 3))
    return {name: generated({"k": "int64"}, 40, seed, facets) for name, seed in (("S", 1), ("R", 1))}


def test_every_way_of_a_run_is_drawn() -> None:
    result = verify_plan(FOLLOWS, streams(), VerifyOptions(cases=40))
    (tally,) = result.tallies.values()
    assert (result.verdict, tally.cases) == ("holds", 40)
    assert set(tally.laws) == set(LocalSubject.laws)
    assert set(RUNS) <= set(DEFAULTS)


def test_a_bug_is_found_by_a_plan_of_ones_own() -> None:
    with planted_bug():
        result = verify_plan(FOLLOWS, streams(), VerifyOptions(cases=10, shrink_seconds=5))
    assert (result.verdict, result.stopped) == ("fails", "after a difference")


def test_an_input_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match='no input is given for the source "R"'):
        verify_plan(FOLLOWS, {"S": streams()["S"]})
