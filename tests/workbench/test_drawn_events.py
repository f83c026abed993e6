"""Nodes of event-driven queries as the workbench draws them, above any plan, against the evaluator."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from streamproof.plan import nodes
from streamproof.workbench.case import Case
from streamproof.workbench.draw.choices import RandomChoices
from streamproof.workbench.draw.dense import UNITS, random_schema, random_stream
from streamproof.workbench.draw.event_nodes import EVENT_NODES
from streamproof.workbench.draw.plans import PlanMaker, shape_of
from tests.reference.judging import evaluator_judges, rewritten, run_anyhow


def drawn_case(seed: int) -> Case:
    choices = RandomChoices(seed)
    unit = choices.pick(UNITS)
    streams = {name: random_stream(choices, random_schema(choices, unit), most=10) for name in ("S", "R")}
    horizon = choices.integer(5, 30) if choices.chance(25) else None
    maker = PlanMaker(choices, tuple((nodes.Source(n), shape_of(stream)) for n, stream in streams.items()), horizon)
    op = choices.pick((*EVENT_NODES, "during", "during"))
    made = maker.operators.put(op, [maker.plan(choices.integer(0, 2)) for _ in range(EVENT_NODES[op][0])])
    if choices.chance(40):
        made = maker.operators.put(choices.pick(("where", "select", "distinct", "agg")), [made])
    return Case(made[0], {name: streams[name] for name in nodes.sources(made[0])}, horizon)


def judged(name: str, seeds: Iterable[int]) -> None:
    with evaluator_judges(name) as judge:
        for seed in seeds:
            case = run_anyhow(drawn_case(seed), seed)
            verdict = judge.verdict(case if seed % 2 else rewritten(case))
            assert not verdict.is_found, f"seed {seed}: {verdict.text}"


def test_local_agrees() -> None:
    judged("local", [*range(20), 1058])  # the last: what an empty scope gives, where a count was made a sum


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("local", 500), ("duckdb", 200)])
def test_engines_agree(name: str, count: int) -> None:
    judged(name, range(1000, 1000 + count))
