"""``run --engine spark --mode stream``: the same rows as the oracle, a folder to go on with, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamproof.cli.run import refuse_mode
from streamproof.errors import InputError
from streamproof.events.physical import to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from tests.cli.conftest import Done

PLAN = {"op": "agg", "in": {"op": "source", "name": "S"}, "window": {"type": "tumbling", "size": 10},
        "aggs": {"n": ["count"], "s": ["sum", "v"]}}  # fmt: skip


@pytest.mark.parametrize(
    ("engine", "mode", "checkpoint", "text"),
    [
        ("local", "stream", None, "the engine local has no modes"),
        ("spark", "batch", Path("c"), "only a stream has a checkpoint"),
        ("duckdb", None, Path("c"), "only a stream has a checkpoint"),
    ],
)
def test_what_is_refused(engine: str, mode: str | None, checkpoint: Path | None, text: str) -> None:
    with pytest.raises(InputError) as raised:
        refuse_mode(engine, mode, checkpoint)  # type: ignore[arg-type]  # words as they come from the command line
    assert text in str(raised.value)


def test_a_stream_gives_the_rows_of_the_oracle(run: Callable[..., Done], lay: Callable[..., Path]) -> None:
    events = [{"id": f"e{n}", "le": n * 7 % 40, "re": n * 7 % 40 + 3, "payload": {"v": n}} for n in range(40)]
    given = lay("plan.json", PLAN), "--input", f"S={lay('S.jsonl', events)}", "--json"
    wanted = run("run", *given)
    streamed = run("run", *given, "--engine", "spark", "--mode", "stream")
    assert (streamed.code, wanted.code) == (0, 0), streamed.err
    assert sorted(streamed.out.splitlines()) == sorted(wanted.out.splitlines())
    assert len(wanted.rows) == 5


def test_a_stream_gives_events(run: Callable[..., Done], lay: Callable[..., Path], tmp_path: Path) -> None:
    """Inserts, retractions and CTIs as they came out, here and in a folder; they add up to the history."""
    first = [{"id": f"e{n}", "le": n, "re": n + 1, "payload": {"v": n}} for n in range(12)]
    late = [{"kind": "insert", "id": "late", "le": 2, "re": 3, "payload": {"v": 90}}]
    place = tmp_path / "S"
    place.mkdir()
    for number, events in enumerate((first, late)):
        lay(f"S/{number}.jsonl", [{"kind": "insert", **event} for event in events])
    given = lay("plan.json", PLAN), "--input", f"S={place}", "--engine", "spark", "--mode", "stream"
    done = run("run", *given, "--emit", "events")
    assert done.code == 0, done.err
    assert {row["kind"] for row in done.rows} == {"insert", "retract", "cti"}
    assert done.rows[-1] == {"kind": "cti", "t": "inf"}
    added_up = to_history([PhysicalStream.from_dicts(done.rows, schema=Schema.of({"n": "int64", "s": "int64"}))])
    assert sorted(line["payload"]["s"] for line in run("run", *given, "--json").rows) == [21, 135]
    assert [row.payload["s"] for row in added_up.to_rows()] == [135, 21]
    kept = run("run", *given, "--emit", "events", "--out", "kept")
    assert f"{len(done.rows)} events in kept" in kept.err


def test_spark_is_the_default(
    run: Callable[..., Done], lay: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (
        lay("plan.json", PLAN),
        "--input",
        f"S={lay('S.jsonl', [{'id': 'e', 'le': 1, 're': 3, 'payload': {'v': 2}}])}",
    )
    on_duckdb = run("run", *given)
    monkeypatch.delenv("STREAMPROOF_ENGINE")
    by_default = run("run", *given)
    assert (by_default.code, by_default.out) == (0, on_duckdb.out)
    assert "does not use SQL" in run("run", *given, "--show-sql").err
