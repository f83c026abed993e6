"""``run --engine spark --mode stream``: the same rows as the oracle, a folder to go on with, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from streamproof.cli.spark_stream import refuse_mode
from streamproof.errors import InputError
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
