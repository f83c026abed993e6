"""The nodes of event-driven queries against the evaluator: rows, and what a streaming engine promises on the way."""

from __future__ import annotations

import numpy as np
import pytest

from streamproof.engines.base import Settings
from streamproof.engines.local.graph import Graph
from streamproof.engines.local.processor import context_of
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.kernels.delta import Delta
from streamproof.kernels.event_driven.during import DuringKernel
from streamproof.kernels.state import Settling
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition, Trigger
from streamproof.plan.expr import Col, literal
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.workbench.draw.choices import RandomChoices
from streamproof.workbench.evaluator.evaluate import evaluate
from streamproof.workbench.promises import broken_promise
from tests.kernels.event_driven.random_nodes import random_node_case
from tests.reference.compare import difference
from tests.reference.judging import evaluator_judges, rewritten, run_anyhow


def judged(name: str, seeds: range, dsn: str | None = None) -> None:
    with evaluator_judges(name, dsn) as judge:
        for seed in seeds:
            case = run_anyhow(random_node_case(RandomChoices(seed)), seed)
            verdict = judge.verdict(case if seed % 2 else rewritten(case))
            assert not verdict.is_found, f"seed {seed}: {verdict.text}"


def test_local_agrees_with_the_evaluator() -> None:
    judged("local", range(40))


def test_local_agrees_with_the_evaluator_where_it_forgets_at_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Usually state is tidied up now and then; here always, so that what is forgotten too early shows."""
    monkeypatch.setattr(DuringKernel, "_settle_now_and_then", lambda self: (self.settle(), self.collect()))
    monkeypatch.setattr(Settling, "settle_now_and_then", lambda self: (self.settle(), self.collect()))
    judged("local", range(100, 150))


def test_duckdb_agrees_with_the_evaluator() -> None:
    judged("duckdb", range(25))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("local", 2000), ("duckdb", 600), ("postgres", 200), ("spark-batch", 40)])
def test_engines_agree_with_the_evaluator(name: str, count: int, request: pytest.FixtureRequest) -> None:
    dsn = request.getfixturevalue("postgres_dsn") if name == "postgres" else None
    judged(name, range(5000, 5000 + count), dsn)


SCHEMA = Schema.of({"k": "int64", "v": "int64"})
S, R = nodes.Source("S"), nodes.Source("R")
COUNT = (("n", Aggregate("count")),)


@pytest.mark.parametrize(
    "plan",
    [
        Transition(S, parse("v > 5"), ("k",)),
        Drift(S, Col("v"), literal(3), "any", ("k",)),
        Pairing(S, R, ("k",), "fifo"),
        Pairing(S, R, ("k",), "lifo", 20),
        During(nodes.AlterDuration(S, 30), R, COUNT, "end", ("k",)),
        During(nodes.AlterDuration(S, 30), R, COUNT, "hop", ("k",), hop=7, reach=10),
        During(nodes.AlterDuration(S, 30), R, COUNT, "arrival", ("k",), reach=10),
        During(S, R, COUNT, "start", ("k",), reach=25),
        During(S, R, (("x", Aggregate("last", Col("v"))),), "start", ("k",), latest=True),
    ],
    ids=lambda plan: f"{plan.op} {getattr(plan, 'trigger', '')}",
)
def test_state_is_bounded_by_what_is_live(plan: Plan) -> None:
    """However long it runs, with CTIs the state stays as small as what may still change."""
    typed = check(plan, {"S": SCHEMA, "R": SCHEMA})
    graph = Graph(typed, context_of(Settings(), "speculative"))
    chance = np.random.default_rng(1)
    held = []
    for step in range(40):
        low = 100 * step
        for name in graph.sources:
            times = np.sort(chance.integers(low, low + 100, 50))
            rows = [(int(t), int(t) + 1, 1, {"k": int(t) % 5, "v": int(t) % 13}) for t in times]
            graph.push(name, Delta.from_batch(Batch.from_rows(SCHEMA, rows, frontier=low + 100)))
        held.append(graph.live_rows())
    assert max(held[20:]) <= max(held[:20]) + 60
    assert max(held) < 400


@pytest.mark.parametrize("reach", [4, None])
@pytest.mark.parametrize("trigger", ["start", "hop", "arrival"])
def test_results_that_tell_the_end_wait_for_it(
    trigger: Trigger, reach: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In step with time and settled at every batch: what a CTI seals never changes, and all ends are right."""
    monkeypatch.setattr(DuringKernel, "_settle_now_and_then", lambda self: (self.settle(), self.collect()))
    lasting = nodes.Select(Pairing(S, nodes.Source("E"), ("k",), "fifo"), (("k", Col("k")),))
    hop = 3 if trigger == "hop" else None
    plan = During(lasting, R, COUNT, trigger, ("k",), (), reach, hop, begin="begin", end="end")
    typed = check(plan, {"S": SCHEMA, "R": SCHEMA, "E": SCHEMA})
    for seed in range(6):
        chance, graph = np.random.default_rng(seed), Graph(typed, context_of(Settings(horizon=90), "speculative"))
        output, rows = [], {name: [] for name in graph.sources}
        for low in range(0, 80, 10):
            for name in chance.permutation(list(graph.sources)).tolist():
                times = np.sort(chance.integers(low, low + 10, 2 if name == "R" else 1))
                came = [(int(t), int(t) + 1, {"k": int(chance.integers(2)), "v": 0}) for t in times]
                rows[name] += came
                signed = [(le, re, 1, payload) for le, re, payload in came]
                batch = Batch.from_rows(SCHEMA, signed, frontier=low + 10)
                output.append(graph.push(name, Delta.from_batch(batch)).to_batch(typed.schema))
        for name in graph.sources:
            output.append(graph.push(name, Delta.empty(SCHEMA, frontier=FOREVER)).to_batch(typed.schema))
        assert not broken_promise(output)
        found = [(row.le, row.re, row.payload) for row in History.from_batches(typed.schema, output).to_rows()]
        assert difference(evaluate(typed, rows, horizon=90), found) is None, f"seed {seed}"


AGGS = tuple((fn, Aggregate(fn, None if fn == "count" else Col("v"))) for fn in ("count", "sum", "min", "max", "avg"))


@pytest.mark.parametrize("duration", [5, 60, 700])
def test_slices_keep_what_overlapping_events_need(duration: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many events over the same data, settled at every batch: all that is left of past data are slices."""
    monkeypatch.setattr(DuringKernel, "_settle_now_and_then", lambda self: (self.settle(), self.collect()))
    typed = check(During(nodes.AlterDuration(S, duration), R, AGGS, "end", ("k",)), {"S": SCHEMA, "R": SCHEMA})
    graph = Graph(typed, context_of(Settings(), "speculative"))
    chance = np.random.default_rng(duration)
    begins, data = (np.sort(chance.integers(0, 1000, (count, 1)), axis=0) for count in (120, 400))
    begins, data = (
        np.column_stack([t, chance.integers(0, 2, len(t)), chance.integers(-9, 9, len(t))]) for t in (begins, data)
    )
    output = []
    for low in range(0, 2000, 100):
        for name, rows in (("S", begins), ("R", data)):
            part = rows[(rows[:, 0] >= low) & (rows[:, 0] < low + 100)]
            made = [(int(t), int(t) + 1, 1, {"k": int(k), "v": int(v)}) for t, k, v in part]
            output.append(graph.push(name, Delta.from_batch(Batch.from_rows(SCHEMA, made, frontier=low + 100))))
    found = History.from_batches(typed.schema, [delta.to_batch(typed.schema) for delta in output])
    expected = []
    for t, k, v in begins.tolist():
        seen = [x for s, key, x in data.tolist() if key == k and t <= s < t + duration]
        if seen:
            results = (len(seen), sum(seen), min(seen), max(seen), sum(seen) / len(seen))
            expected.append(
                (t + duration, {"k": k, "v": v, **dict(zip((name for name, _ in AGGS), results, strict=True))})
            )
    assert sorted((row.le, repr(row.payload)) for row in found.to_rows()) == sorted((t, repr(p)) for t, p in expected)
    assert graph.live_rows() == 0
