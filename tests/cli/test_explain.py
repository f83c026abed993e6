"""``explain``: the stages of a stream on Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Done

COUNT = {"op": "agg", "in": {"op": "group_input"}, "window": {"type": "tumbling", "size": 10}, "aggs": {"n": ["count"]}}
PLAN = {"op": "agg", "in": {"op": "group_apply", "in": {"op": "source", "name": "S"}, "key": ["k"], "apply": COUNT},
        "window": {"type": "tumbling", "size": 20}, "aggs": {"m": ["max", "n"]}}  # fmt: skip


def test_stages_are_shown_with_their_keys(run: Callable[..., Done], lay: Callable[..., Path]) -> None:
    events = lay("S.jsonl", [{"id": "e", "le": 1, "re": 3, "payload": {"k": "a"}}])
    done = run("explain", lay("plan.json", PLAN), "--as", "stages", "--input", f"S={events}")
    assert done.out.splitlines() == [
        "stage 1: S by k, in buckets: group_apply(k)",
        "stage 2: stage 1, in one bucket: agg(tumbling(size=20), m=max(n))",
        "fused into one stage, it has one bucket: agg(tumbling(size=20), m=max(n)) lets rows meet that no column of "
        "the sources keeps together",
    ]


def test_stages_need_the_columns(run: Callable[..., Done], lay: Callable[..., Path]) -> None:
    done = run("explain", lay("plan.json", PLAN), "--as", "stages")
    assert done.code != 0
    assert "stages depend on the columns of the sources" in done.err
    assert "give --input NAME=FILE for each source" in done.err
