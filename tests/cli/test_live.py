"""``run --engine local``: part by part, interrupted and resumed, with late events and failures put aside."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from streamproof.cli.live import LiveRun
from streamproof.events.files import ColumnMapping, read
from streamproof.events.physical import to_history
from streamproof.events.stream import PhysicalStream
from streamproof.events.validate import Validator
from tests.cli.conftest import Done

Run = Callable[..., Done]
Lay = Callable[..., Path]
SOURCE = {"op": "source", "name": "S"}
COUNTS = {"op": "agg", "in": SOURCE, "window": {"type": "tumbling", "size": 10}, "aggs": {"n": ["count", None]}}
LATE = {"op": "advance_time", "in": SOURCE, "every": 1}
UNSORTED = [
    {"kind": "insert", "id": f"e{n}", "le": n * 7 % 40, "re": n * 7 % 40 + 3, "payload": {"v": n}} for n in range(40)
]
BROKEN = """
import streamproof as sp

@sp.udf("picky", takes=["int64"], returns="int64")
def picky(v):
    if v == 3:
        raise ValueError("not three")
    return v
"""


@pytest.fixture
def local(run: Run, lay: Lay) -> Run:
    """Run a plan over the unsorted events on the local engine."""

    def call(plan: object, *arguments: object, events: object = UNSORTED) -> Done:
        files = lay("p.json", plan), lay("s.jsonl", events)
        return run("run", files[0], "--input", f"S={files[1]}", "--engine", "local", *arguments)

    return call


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("emission", ["speculative", "eager", "final"])
def test_no_batch_size_and_no_emission_changes_the_history(local: Run, size: int, emission: str) -> None:
    expected = local(COUNTS, "--json").rows
    assert local(COUNTS, "--json", "--batch-size", size, "--emission", emission).rows == expected


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
def test_events_are_written_as_they_come_and_read_back_legal(local: Run, ending: str) -> None:
    done = local(COUNTS, "--emit", "events", "--batch-size", 4, "--out", f"out.{ending}")
    assert done.code == 0, done
    stream = Validator().check(read(f"out.{ending}").stream())
    rows = [json.dumps(row) for row in local(COUNTS, "--json").rows]
    assert history_lines(stream) == rows
    assert local(COUNTS, "--emit", "events", "--out", f"out.{ending}").code == 2  # it exists


def history_lines(stream: PhysicalStream) -> list[str]:
    return [json.dumps(json.loads(line)) for line in to_history(stream).to_json_lines().splitlines()]


def interrupt_after(pushes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while the n-th part is at work."""
    plain, seen = LiveRun._pass_on, [0]

    def pass_on(self: LiveRun, sink: object) -> None:
        seen[0] += 1
        if seen[0] == pushes:
            signal.raise_signal(signal.SIGINT)
        plain(self, sink)  # type: ignore[arg-type]  # passed through

    monkeypatch.setattr(LiveRun, "_pass_on", pass_on)


@pytest.mark.parametrize("pushes", [1, 5, 13])
def test_an_interrupted_run_goes_on_to_the_same_events(
    local: Run, pushes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = local(COUNTS, "--emit", "events", "--batch-size", 3).out
    with monkeypatch.context() as patched:
        interrupt_after(pushes, patched)
        first = local(COUNTS, "--emit", "events", "--batch-size", 3, "--savepoint", "state.bin")
    assert first.code == 130
    assert f"interrupted after {min(40, 3 * pushes)} events" in first.err
    assert "--from-savepoint state.bin goes on" in first.err
    second = local(COUNTS, "--emit", "events", "--batch-size", 3, "--from-savepoint", "state.bin")
    assert second.code == 0, second
    assert first.out + second.out == whole


def test_an_interrupted_history_is_whole_after_resuming(local: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = local(COUNTS, "--json").rows
    with monkeypatch.context() as patched:
        interrupt_after(4, patched)
        assert local(COUNTS, "--json", "--batch-size", 2, "--savepoint", "state.bin").code == 130
    assert local(COUNTS, "--json", "--batch-size", 7, "--from-savepoint", "state.bin").rows == whole


def test_a_savepoint_of_other_inputs_is_refused(local: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        interrupt_after(2, patched)
        local(COUNTS, "--batch-size", 2, "--savepoint", "state.bin")
    grown = local(COUNTS, "--json", "--from-savepoint", "state.bin", events=[*UNSORTED, {"kind": "cti", "t": 100}])
    assert grown.code == 0, grown
    other = local(COUNTS, "--json", "--from-savepoint", "state.bin", events=UNSORTED[1:])
    assert other.rows[0]["what"] == 'the input "S" is not the one that the savepoint was taken over'
    missing = local(COUNTS, "--json", "--from-savepoint", "nothing.bin")
    assert missing.rows[0]["what"] == "there is no savepoint nothing.bin"


def test_late_events_go_to_a_file(local: Run) -> None:
    done = local(LATE, "--json", "--late-file", "late.jsonl")
    late = [json.loads(line) for line in Path("late.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(late) + len(done.rows) == 40
    assert late[0] == {"source": "S", **UNSORTED[6]}
    assert f"{len(late)} late events in late.jsonl" in done.err
    assert f"events that came too late for advance_time: {len(late)} dropped, 0 adjusted" in done.err


def test_a_source_without_ctis_is_noted_unless_quiet(local: Run) -> None:
    assert "input S has no CTIs, so no result was sealed before its end" in local(COUNTS).err
    assert "no CTIs" not in local(COUNTS, "--quiet").err


def test_metrics_as_text_and_as_json(local: Run) -> None:
    text = local(COUNTS, "--metrics", "--json").rows[-1]
    assert isinstance(text["metrics"], dict)
    assert (text["metrics"]["events_in"], text["metrics"]["cti"]) == (40, "inf")
    assert "input S: 40 events, CTI inf" in local(COUNTS, "--metrics").err


def test_failing_modules_end_the_run_or_are_put_aside(local: Run, lay: Lay) -> None:
    lay("broken.py", BROKEN)
    plan = {"op": "select", "in": SOURCE, "exprs": {"p": "picky(v)"}}
    failed = local(plan, "--json", "--modules", "broken")
    assert (failed.code, failed.rows[0]["error"]) == (2, "module_failed")
    arguments = ("--json", "--modules", "broken", "--on-module-error", "dead-letter", "--module-letters", "m.jsonl")
    done = local(plan, *arguments)
    assert (done.code, len(done.rows)) == (0, 39), done
    assert "not three" in Path("m.jsonl").read_text(encoding="utf-8")
    assert "1 call of modules failed and were left out; they are in m.jsonl" in done.err


def test_of_a_file_without_ids_no_event_need_be_remembered(lay: Lay) -> None:
    plain, named = lay("a.csv", "t,v\n1,2\n3,4\n"), lay("b.csv", "t,v,id\n1,2,x\n3,4,x\n")
    lines, odd = lay("a.jsonl", [{"le": 1, "re": 2, "payload": {"v": 1}}]), lay("b.jsonl", UNSORTED)
    at = ColumnMapping(start="t")
    assert [read(plain, mapping=at).makes_ids, read(lines).makes_ids] == [True, True]
    assert [read(named, mapping=ColumnMapping(start="t", id="id")).makes_ids, read(odd).makes_ids] == [False, False]
    validator = Validator()
    validator.forgetful = read(plain, mapping=at).makes_ids
    assert len(validator.check(read(plain, mapping=at).stream())) == 3
    assert validator.live == 0


def test_duplicate_ids_of_a_file_are_still_found(run: Run, lay: Lay) -> None:
    named = lay("b.csv", "t,v,id\n1,2,x\n3,4,x\n")
    arguments = ("--input", f"S={named}", "--map", "start=t,id=id", "--engine", "local", "--json")
    assert run("run", lay("p.json", COUNTS), *arguments).rows[0]["error"] == "duplicate_id"
