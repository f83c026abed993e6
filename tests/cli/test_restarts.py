"""``--from-savepoint``: what differs from the interrupted run is refused; damage and kills lose and double nothing."""

from __future__ import annotations

import inspect
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamproof.cli.replay import replay
from streamproof.cli.run import run as run_command
from streamproof.disorder.replaying import Recording, Replay
from streamproof.disorder.targets import FolderTarget
from streamproof.errors import InputError
from tests.cli.conftest import Done
from tests.cli.test_live import interrupt_after

Run = Callable[..., Done]
Lay = Callable[..., Path]
PLAN = {"op": "agg", "in": {"op": "source", "name": "S"}, "window": {"type": "tumbling", "size": 10},
        "aggs": {"n": ["count", None], "t": ["sum", "v"]}}  # fmt: skip
OTHER = {**PLAN, "window": {"type": "tumbling", "size": 20}}
ROWS = "at,v,x\n" + "".join(f"{n * 7 % 90},{n},{n * 3 % 90}\n" for n in range(60))
GIVEN = {"--map": "start=at,unit=s", "--batch-size": 5}

# option → what it is at first, what it is then, and the words of the refusal; None where it may change
CHANGES: dict[str, tuple[Any, Any, str | None]] = {
    "plan": (PLAN, OTHER, "belongs to another plan"),
    "input": ("s.csv", "other.csv", 'the input "S" is not the one that the savepoint was taken over'),
    "emit": ("cht", "events", 'emit="cht", this run has emit="events"'),
    "horizon": (None, 50, "horizon=null, this query has horizon=50"),
    "map": ("start=at,unit=s", "start=x,unit=s", 'mapping.start="at", this run has inputs.S.mapping.start="x"'),
    "max_windows": (None, 7, "limits.windows_per_event=1000000"),
    "emission": ("final", "speculative", 'emission="final", this query has emission="speculative"'),
    "on_error": (None, "drop", None),
    "batch_size": (5, 7, None),
    "on_module_error": (None, "dead-letter", None),
    "modules": (None, "json", None),  # only those that the plan calls count
}  # fmt: skip
WHERE_THINGS_GO = {
    "out", "overwrite", "json", "rejects", "dead_letters", "late_file", "module_letters", "metrics", "quiet", "limit",
    "savepoint", "from_savepoint", "show_sql",
}  # fmt: skip
OF_OTHER_ENGINES = {"engine", "mode", "checkpoint", "growing", "dsn"}


def test_every_option_is_claimed_or_may_change() -> None:
    named = set(inspect.signature(run_command).parameters)
    assert named - WHERE_THINGS_GO - OF_OTHER_ENGINES - set(CHANGES) == set(), "say in CHANGES whether it may change"


def arguments(lay: Lay, changed: str | None, value: object) -> list[object]:
    lay("s.csv", ROWS), lay("other.csv", ROWS.replace("7,1,3", "7,1000,3"))
    plan = value if changed == "plan" else PLAN
    place = value if changed == "input" else "s.csv"
    options = {**GIVEN, **({f"--{changed.replace('_', '-')}": value} if changed not in (None, "plan", "input") else {})}
    told = [part for name, given in options.items() if given is not None for part in (name, given)]
    return ["run", lay("p.json", plan), "--input", f"S={place}", "--engine", "local", "--json", *told]


@pytest.mark.parametrize("name", CHANGES)
def test_what_differs_is_refused(name: str, run: Run, lay: Lay, monkeypatch: pytest.MonkeyPatch) -> None:
    before, now, words = CHANGES[name]
    whole = run(*arguments(lay, name, before))
    with monkeypatch.context() as patched:
        interrupt_after(4, patched)
        assert run(*arguments(lay, name, before), "--savepoint", "state.bin").code == 130
    done = run(*arguments(lay, name, now), "--from-savepoint", "state.bin")
    if words is None:
        assert (done.code, done.rows) == (0, whole.rows), done
        return
    assert done.code == 2
    assert words in done.rows[0]["what"]
    assert done.rows[0]["fix"]


def test_damaged_states_of_runs_and_replays_are_refused(run: Run, lay: Lay, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        interrupt_after(4, patched)
        run(*arguments(lay, None, None), "--savepoint", "state.bin")
    whole, draw = Path("state.bin").read_bytes(), random.Random(5)
    for number in range(20):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        Path("state.bin").write_bytes([bytes(damaged), whole[: draw.randrange(len(whole))], whole + b"x"][number % 3])
        done = run(*arguments(lay, None, None), "--from-savepoint", "state.bin")
        assert done.code == 2
        assert any(word in done.rows[0]["what"] for word in ("is damaged", "not an interrupted run"))
    recording = Recording(lay("r.csv", "t,v\n" + "".join(f"{n},{n}\n" for n in range(40))), unit="ms")
    place = Path("place.bin")
    Replay(recording, FolderTarget(Path("out"), recording), speed=None, limit=8, state=place).run()
    whole = place.read_bytes()
    for bit in draw.sample(range(8 * len(whole)), 300):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        place.write_bytes(damaged)
        with pytest.raises(InputError):
            Replay(recording, FolderTarget(Path("out"), recording, overwrite=True), speed=None, state=place).run()


# option of replay → a changed value and the words, or None where it may change
REPLAYED: dict[str, tuple[Any, str | None]] = {
    "file": ("other.csv", "belongs to another replay"),
    "to": ("elsewhere", "taken with to="),
    "time": ("v", "time="),
    "unit": ("s", "taken with unit="),
    "separator": (";", "separator="),
    "rows_per_file": (7, "rows_per_file=4"),
    "as_fast_as_possible": (False, "as_fast_as_possible=true"),
    "speed": (2.0, "--speed would not be honoured"),  # counts only where rows keep their pace
    "every": (2.0, "--every would not be honoured"),
    "limit": (None, None),
}
NOT_OF_ROWS = {"key", "resume", "overwrite", "json"}  # the key of Kafka's messages is part of where they go


def test_every_option_of_a_replay_is_claimed_or_may_change() -> None:
    assert set(inspect.signature(replay).parameters) - NOT_OF_ROWS == set(REPLAYED)


@pytest.mark.parametrize("name", REPLAYED)
def test_a_replay_that_differs_is_refused(name: str, run: Run, lay: Lay) -> None:
    text = "t,v\n" + "".join(f"{n},{n}\n" for n in range(12))
    lay("r.csv", text), lay("other.csv", text)
    told: dict[str, Any] = {"to": "out", "as_fast_as_possible": True, "rows_per_file": 4, "resume": "place.bin"}

    def call(file: str, **options: Any) -> Done:
        given = [f"--{key.replace('_', '-')}" + ("" if value is True else f"={value}")
                 for key, value in options.items() if value not in (False, None)]  # fmt: skip
        return run("replay", file, "--json", *given)

    assert call("r.csv", **told, limit=8).code == 0
    value, words = REPLAYED[name]
    if name == "as_fast_as_possible":
        del told["rows_per_file"]  # which goes with it
    done = call(value if name == "file" else "r.csv", **{**told, **({} if name == "file" else {name: value})})
    if words is None:
        assert done.code == 0, done
        written = [line for part in sorted(Path("out").glob("part-*")) for line in part.read_text().splitlines()[1:]]
        assert written == text.splitlines()[1:]
        return
    assert done.code == 2
    assert words in done.out + done.err


def test_a_replay_notices_another_file_and_a_lost_part(
    lay: Lay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "t,v\n" + "".join(f"{n},{n}\n" for n in range(40))
    path, place = lay("r.csv", text), Path("place.bin")

    def play(limit: int | None = None) -> None:
        recording = Recording(path, unit="ms")
        target = FolderTarget(Path("out"), recording, overwrite=True)
        Replay(recording, target, speed=None, rows_per_file=4, limit=limit, state=place).run()

    play(8)
    lay("r.csv", text.replace("3,3", "3,9"))
    with pytest.raises(InputError, match="is not the file that was played before"):
        play()
    lay("r.csv", text + "40,40\n")  # grown at its end
    Path("out/part-000000000004.csv").unlink()
    with pytest.raises(InputError, match=r"part-000000000004\.csv was delivered, and is not in out any more"):
        play()


def test_late_events_are_in_their_file_once(run: Run, lay: Lay, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = {"op": "advance_time", "in": {"op": "source", "name": "S"}, "every": 1}
    late = ("--late-file", "late.jsonl")
    run(*arguments(lay, "plan", plan), *late)
    whole = Path("late.jsonl").read_text()
    Path("late.jsonl").unlink()
    with monkeypatch.context() as patched:
        interrupt_after(6, patched)
        assert run(*arguments(lay, "plan", plan), *late, "--savepoint", "state.bin").code == 130
    for _ in range(2):  # the second time, as after a run that came to nothing
        assert run(*arguments(lay, "plan", plan), *late, "--from-savepoint", "state.bin").code == 0
        assert Path("late.jsonl").read_text() == whole
    Path("late.jsonl").unlink()
    gone = run(*arguments(lay, "plan", plan), *late, "--from-savepoint", "state.bin")
    assert "late.jsonl is gone, or shorter" in gone.rows[0]["what"]


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_while_going_on_nothing_is_lost_or_doubled(
    kills: int, run: Run, lay: Lay, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [*arguments(lay, "batch_size", 1), "--emit", "events"]
    lay("s.csv", ROWS + "".join(f"{n},{n},0\n" for n in range(90, 1500)))
    assert run(*events, "--out", "whole.jsonl").code == 0
    with monkeypatch.context() as patched:
        interrupt_after(300, patched)
        assert run(*events, "--out", "first.jsonl", "--savepoint", "state.bin").code == 130
    state, draw = Path("state.bin").read_bytes(), random.Random(1)
    command = [sys.executable, "-c", "from streamproof.cli.main import main; main()", *map(str, events)]
    command += ["--from-savepoint", "state.bin", "--savepoint", "state.bin", "--out", "rest.jsonl"]
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ})
        time.sleep(draw.uniform(0.2, 1.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if Path("rest.jsonl").exists():  # it was done before
            break
        assert Path("state.bin").read_bytes() == state
    if not Path("rest.jsonl").exists():
        assert run(*events, "--from-savepoint", "state.bin", "--out", "rest.jsonl").code == 0
    assert Path("first.jsonl").read_text() + Path("rest.jsonl").read_text() == Path("whole.jsonl").read_text()


def test_a_folder_may_grow_at_its_end_only(run: Run, lay: Lay, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("in").mkdir()
    for number in (1, 2):
        lay(f"in/{number}.csv", ROWS)
    command = arguments(lay, "input", "in")
    with monkeypatch.context() as patched:
        interrupt_after(4, patched)
        assert run(*command, "--savepoint", "state.bin").code == 130
    lay("in/3.csv", ROWS)
    assert run(*command, "--from-savepoint", "state.bin").rows == run(*command).rows
    lay("in/0.csv", ROWS.replace("7,1,3", "7,1000,3"))
    done = run(*command, "--from-savepoint", "state.bin")
    assert (done.code, 'the input "S" is not the one' in done.rows[0]["what"]) == (2, True)
