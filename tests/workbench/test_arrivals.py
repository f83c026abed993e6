"""advance_time is judged too: by its rule, event by event, in live runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamproof.events.advance import Advance
from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.plan import nodes
from streamproof.workbench import intent as I  # noqa: N812
from streamproof.workbench.arrivals import arrived, let_through
from streamproof.workbench.case import Case
from streamproof.workbench.runner import SuiteResult, VerifyOptions, run_suite
from streamproof.workbench.suite import Suite

EVENTS: list[Event] = [
    Insert("a", 10, 30, {}),
    Insert("late", 5, 20, {}),
    Insert("gone", 1, 9, {}),
    Retract("a", 10, 30, 4, {}),
    Cti(12),
    Retract("late", 5, 20, 15, {}),
]


def test_late_events_are_dropped_or_changed() -> None:
    drop = nodes.AdvanceTime(nodes.Source("S"), every=1)
    assert let_through(drop, EVENTS) == []
    adjust = nodes.AdvanceTime(nodes.Source("S"), every=1, late="adjust", delay=1)
    assert let_through(adjust, EVENTS) == [(9, 15, {})]


def test_what_arrives_takes_the_place_of_the_operator() -> None:
    case = next(_cases())
    plain = arrived(case)
    assert not any(isinstance(node, nodes.AdvanceTime) for node in nodes.walk(plain.plan))
    assert set(plain.streams) == set(nodes.sources(plain.plan))


def test_a_bug_in_advance_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run().verdict == "holds"
    monkeypatch.setattr(Advance, "delay", property(lambda self: 0, lambda self, delay: None), raising=False)
    found = _run()
    assert found.verdict == "fails"
    assert found.found[0].case.size <= 5


def _scenario() -> I.Intent:
    unsealed = I.events(liveliness="never", disorder="highly")
    return I.stream(columns={"v": "int64"}).advance_time().then("where").over(unsealed).called("advanced")


def _cases() -> Iterator[Case]:
    return iter(_scenario().concrete(4, seed=2))


def _run() -> SuiteResult:
    return run_suite(Suite("advanced", (_scenario(),), cases=48), VerifyOptions(engines=("local",), most=1))
