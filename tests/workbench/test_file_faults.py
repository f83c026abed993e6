"""What happens between two runs is drawn: a defect in what refuses it is found, and what is refused changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamproof.engines.local import savepoint
from streamproof.engines.spark import sinks
from streamproof.engines.spark.stream import ledger, spool
from streamproof.workbench import file_faults
from streamproof.workbench import intent as I  # noqa: N812
from streamproof.workbench.bench import Workbench, open_bench
from streamproof.workbench.case import Case
from streamproof.workbench.concretise import concrete_group
from streamproof.workbench.faults import CHANGES, OF_INPUT, OF_OUTPUT
from streamproof.workbench.shipped_suites import everything

SUMS = I.stream().aggregate(I.window("tumbling")).over(I.events(pattern="dense")).called("sums")


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    with open_bench(["local", "spark-buckets"]) as opened:
        yield opened


def changed(case: Case, what: str) -> Case:
    return replace(case, schedule=replace(case.schedule, cuts=3, restart=True, live=True, changed=what))


def over_files(case: Case, what: str) -> Case:
    return replace(case, schedule=replace(case.schedule, files=what, cuts=3))


def found(bench: Workbench, name: str, cases: list[Case]) -> list[str]:
    return [verdict.text for verdict in bench.judges[name].verdicts(cases) if verdict.is_found]


def drawn(count: int) -> list[Case]:
    return [case for number in range(count) for case in concrete_group(SUMS, number, seed=4, size=1)]


def nothing(*_: Any, **__: Any) -> None:
    """What does not look."""


def only_younger(known: ledger.FileLedger, listing: ledger.Listing) -> list[Path]:
    """New files, and none that is older than one that was taken."""
    taken = {entry.name for entry in known.entries}
    newest = max((file.stat().st_mtime for file in listing.files if file.name in taken), default=0.0)
    return [file for file in listing.files if file.name not in taken and file.stat().st_mtime >= newest]


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_changed_is_refused_or_harmless(bench: Workbench, what: str) -> None:
    for intent in everything()[::12]:
        assert found(bench, "local", [changed(case, what) for case in concrete_group(intent, 2, seed=5, size=1)]) == []


@pytest.mark.parametrize("what", [*OF_INPUT, *OF_OUTPUT])
def test_what_happens_to_files_is_refused_or_harmless(bench: Workbench, what: str) -> None:
    for intent in everything()[::14]:
        cases = [over_files(case, what) for case in concrete_group(intent, 2, seed=5, size=1)]
        assert found(bench, "spark-buckets", cases) == []


PLANTED: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "emission": (savepoint, "refuse_other", nothing, "local"),
    "horizon": (savepoint, "refuse_other", nothing, "local"),
    "late": (ledger.FileLedger, "new", only_younger, "spark-buckets"),
    "grown": (ledger, "_refuse_changed", nothing, "spark-buckets"),
    "replaced": (ledger, "_refuse_changed", nothing, "spark-buckets"),
    "renamed": (ledger.FileLedger, "_refuse_renamed", nothing, "spark-buckets"),
    "half": (file_faults, "refuse_unfinished", nothing, "spark-buckets"),
    "killed": (spool, "_remove_unfinished", nothing, "spark-buckets"),
    "gone": (sinks, "refuse_other_place", nothing, "spark-buckets"),
    "emptied": (sinks, "refuse_other_place", nothing, "spark-buckets"),
    "older": (sinks, "refuse_other_place", nothing, "spark-buckets"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_defect_in_what_refuses_is_found(bench: Workbench, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, name, bug, engine = PLANTED[what]
    alter = changed if engine == "local" else over_files
    cases = [alter(case, what) for case in drawn(12)]
    assert found(bench, engine, cases) == []
    monkeypatch.setattr(place, name, bug)
    assert found(bench, engine, cases)
