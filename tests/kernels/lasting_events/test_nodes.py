"""The nodes of event-driven queries against the evaluator: rows, and what a streaming engine promises on the way."""

from __future__ import annotations

import numpy as np
import pytest

from streamproof.engines.base import Settings
from streamproof.engines.local.graph import Graph
from streamproof.engines.local.processor import context_of
from streamproof.events.batch import Batch
from streamproof.events.schema import Schema
from streamproof.kernels.delta import Delta
from streamproof.kernels.lasting_events.kernel import DuringKernel
from streamproof.kernels.settling import Settling
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.driving import Drift, During, Pairing, Transition
from streamproof.plan.expr import Col, literal
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from tests.kernels.lasting_events.random_nodes import random_node_case
from tests.reference.choices import RandomChoices
from tests.reference.judge import judge
from tests.reference.servers import open_engine


def judged(name: str, seeds: range) -> None:
    with open_engine(name, None) as engine:
        for seed in seeds:
            verdict = judge(random_node_case(RandomChoices(seed)), engine, mode="plain" if seed % 2 else "rewritten")
            assert verdict.agrees is not False, f"seed {seed}: {verdict.text}"


def test_local_agrees_with_the_evaluator() -> None:
    judged("local", range(40))


def test_local_agrees_with_the_evaluator_where_it_forgets_at_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Usually state is tidied up now and then; here always, so that what is forgotten too early shows."""
    monkeypatch.setattr(DuringKernel, "_settle_now_and_then", lambda self: (self._settle(), self._collect()))
    monkeypatch.setattr(Settling, "settle_now_and_then", lambda self: self._tidy())
    judged("local", range(100, 150))


def test_duckdb_agrees_with_the_evaluator() -> None:
    judged("duckdb", range(25))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("local", 2000), ("duckdb", 600), ("postgres", 200), ("spark", 40)])
def test_engines_agree_with_the_evaluator(name: str, count: int) -> None:
    judged(name, range(5000, 5000 + count))


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
