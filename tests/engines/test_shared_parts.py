"""A plan costs what it is made of: parts that are read twice, level upon level, are not looked at 2^29 times."""

from __future__ import annotations

from time import process_time

import pytest

from streamproof.engines.base import Settings, engine
from streamproof.engines.local.rules import is_settled
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse

SCHEMA = Schema.of({"v": "int64"})
TIMES = 29


def doubled(kind: str) -> Plan:
    """Every stream twice in the next one."""
    plan: Plan = nodes.Ref(f"e{TIMES}")
    for n in range(TIMES, 0, -1):
        below: Plan = nodes.Source("S") if n == 1 else nodes.Ref(f"e{n - 1}")
        plan = nodes.Let(((f"e{n}", _twice(kind, below)),), plan)
    return plan


def _twice(kind: str, below: Plan) -> Plan:
    match kind:
        case "join":
            return nodes.Join(below, below, parse("l.v = r.v"), (("v", parse("l.v")),))
        case "clip":
            return nodes.Clip(below, nodes.Shift(below, 100), parse("l.v = r.v"))
        case "without":
            return nodes.AntiJoin(below, nodes.Shift(below, 100), parse("l.v = r.v"))
        case _:
            return nodes.Select(below, (("v", parse("v * 1 + v * 0")),))


@pytest.mark.parametrize("name", ["local", "duckdb"])
@pytest.mark.parametrize("kind", ["join", "clip", "without", "select"])
def test_doubling_costs_no_more_than_what_is_written(kind: str, name: str) -> None:
    begun = process_time()
    typed = check(doubled(kind), {"S": SCHEMA})
    events = History.from_rows(SCHEMA, [(0, 1, {"v": 7})])
    batches = engine(name).run(typed, {"S": [events.to_batch()]}, Settings())
    assert [row.payload for row in History.from_batches(typed.schema, batches).to_rows()] == [{"v": 7}]
    assert process_time() - begun < 20


def test_whether_rows_may_still_change_is_seen_at_once() -> None:
    begun = process_time()
    assert not is_settled(check(doubled("join"), {"S": SCHEMA}))
    assert process_time() - begun < 5
