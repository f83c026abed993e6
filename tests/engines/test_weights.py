"""Weights never wrap: whatever combines them gives the exact result, or the error ``overflow``.

The expected result of an operator over events that are there w times is a polynomial in w: its rows, counts and sums of
whole numbers are known from the evaluator, by definition, for a few small w, and so they are for any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from math import isclose, prod

import pytest

from streamproof.engines.base import Engine, Settings, engine
from streamproof.engines.local.graph import Graph
from streamproof.engines.local.processor import context_of
from streamproof.errors import StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Emission
from streamproof.kernels.delta import Delta
from streamproof.plan import event_nodes, nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import Typed, check
from streamproof.plan.expr import Col
from streamproof.plan.limits import Limits
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.plan.windows import CountStart, Hopping, Snapshot, Tumbling, Window
from streamproof.query.eql import eql
from streamproof.workbench.evaluator.evaluate import evaluate
from streamproof.workbench.modules import all_modules

SCHEMA = Schema.of({"k": "int64", "v": "int64", "f": "float64", "d": "decimal(9,2)"}, unit="s")
NODES: dict[str, type[nodes.Join]] = {
    "join": nodes.Join, "left_outer": nodes.LeftOuter, "full_outer": nodes.FullOuter, "followed_by": nodes.FollowedBy,
}  # fmt: skip
WEIGHTS = (2**15, 2**30, 2**31 - 1, 2**32 + 1, 2**61, 2**63 - 1)
S, T = nodes.Source("S"), nodes.Source("T")


def rows(name: str, w: int) -> list[tuple[int, int, int, dict[str, object]]]:
    """Events that overlap, touch and repeat, as often as ``w`` says."""
    given = [(0, 10, 1, 1, 7), (4, 20, 2, 1, -3), (20, 21, 1, 1, 7), (30, 31, 1, 2, 5)]
    other = [(2, 8, 1, 1, 4), (18, 40, 1, 2, 5)]
    return [
        (le, re, min(times * w, 2**63 - 1), {"k": k, "v": v, "f": v / 2, "d": Decimal(v)})
        for le, re, times, k, v in (given if name == "S" else other)
    ]


def _plans() -> Iterator[tuple[str, Plan]]:
    both = (("a", parse("l.v")), ("b", parse("r.v")))
    for name, kind in NODES.items():
        yield name, kind(S, T, parse("l.k = r.k"), both)
        yield f"{name} with a condition", kind(S, T, parse("l.k = r.k and l.v < r.v"), both)
    square = nodes.Join(S, S, parse("l.k = r.k"), (("k", parse("l.k")), ("v", parse("l.v"))))
    yield "self-join", square
    few = nodes.Select(nodes.Where(S, parse("v = 5")), (("k", parse("k")),))
    once = nodes.Join(few, few, parse("l.k = r.k"), (("k", parse("l.k")),))
    yield "self-join twice", nodes.Join(once, once, parse("l.k = r.k"), (("k", parse("l.k")),))
    yield "join of all with all", nodes.Join(S, T, parse("1 = 1"), both)
    yield "anti_join", nodes.AntiJoin(S, T, parse("l.k = r.k"))
    yield "anti_join with a condition", nodes.AntiJoin(S, T, parse("l.k = r.k and l.v < r.v"))
    yield "clip", nodes.Clip(S, T, parse("l.k = r.k"))
    yield "union", nodes.Union((S, T))
    yield "self-union", nodes.Union((S, S, S, S))
    yield "where", nodes.Where(S, parse("v > 0"))
    yield "select", nodes.Select(S, (("x", parse("1")),))
    yield "shift", nodes.Shift(S, 3)
    yield "to_point", nodes.ToPoint(S)
    yield "chop", nodes.Chop(S, 5)
    yield "coalesce", nodes.Coalesce(S)
    yield "distinct", nodes.Distinct(nodes.Select(S, (("k", parse("k")),)))
    yield "stitch", nodes.Stitch(nodes.Select(S, (("k", parse("k")),)))
    yield "session", nodes.Session(S, 5, key=("k",))
    yield "extend", nodes.Extend(S, 3)
    yield "alter_duration", nodes.AlterDuration(S, parse("v + 4"))
    yield "point_at_end", nodes.PointAtEnd(S)
    yield "advance_time", nodes.AdvanceTime(S, every=1)
    yield "let", nodes.Let((("m", nodes.Shift(S, 1)),), nodes.Union((nodes.Ref("m"), nodes.Ref("m"))))
    yield from _event_nodes()
    yield "count of a join", nodes.Aggregation(square, Snapshot(), (("n", Aggregate("count")),))
    yield "sum per group", nodes.GroupApply(S, ("k",), _agg(nodes.GroupInput(), Tumbling(10), "sum", "v"))
    windows: dict[str, Window] = {
        "snapshot": Snapshot(), "tumbling": Tumbling(10), "hopping": Hopping(10, 5), "count_start": CountStart(2),
    }  # fmt: skip
    for shown, window in windows.items():
        yield f"count, {shown}", nodes.Aggregation(S, window, (("n", Aggregate("count")),))
        for fn in ("sum", "avg", "min", "max", "first", "last", "var_pop", "stdev_pop", "median", "count_distinct"):
            for column in ("v", "f", "d"):
                if column == "v" or fn in ("sum", "avg"):
                    yield f"{fn} of {column}, {shown}", _agg(S, window, fn, column)
        yield f"sum of points, {shown}", _agg(nodes.ToPoint(S), window, "sum", "v")
        yield f"topk, {shown}", nodes.TopK(S, window, 1, ((parse("v"), "desc"),), rank="rank")
        yield f"udo, {shown}", nodes.Udo(S, window, "passthrough", (("v", Col("v")),))
        yield f"uda, {shown}", nodes.Uda(S, window, "median", Col("f"), "m")


def _event_nodes() -> Iterator[tuple[str, Plan]]:
    """What looks at starts, one event after the other."""
    yield "transition", event_nodes.Transition(S, parse("v > 0"), ("k",))
    yield "drift", event_nodes.Drift(S, parse("v"), parse("3"), "any", ("k",))
    yield "pairing", event_nodes.Pairing(S, T, ("k",), "fifo", 9)
    yield "pairing, the last first", event_nodes.Pairing(T, S, (), "lifo")
    seen = (("n", Aggregate("count")), ("t", Aggregate("sum", Col("v"))))
    for trigger in event_nodes.TRIGGERS:
        hop = 3 if trigger == "hop" else None
        yield f"during, {trigger}", event_nodes.During(S, T, seen, trigger, ("k",), hop=hop)
        yield f"during, {trigger} without a key", event_nodes.During(T, S, seen, trigger, hop=hop)
    yield "on arrival", eql("SELECT count(*), sum(v) FROM S ON ARRIVAL WINDOW 5s GROUP BY k").plan


def _agg(source: Plan, window: Window, fn: str, column: str) -> Plan:
    return nodes.Aggregation(source, window, (("x", Aggregate(fn, Col(column))),))


PLANS = dict(_plans())
LISTING = ("stitch", "uda", "udo", "pairing")  # they see each event by itself


def typed(plan: Plan) -> Typed:
    return check(plan, {"S": SCHEMA, "T": SCHEMA}, registry=all_modules())


def batches(w: int) -> dict[str, list[Batch]]:
    return {name: [Batch.from_rows(SCHEMA, rows(name, w), frontier=FOREVER)] for name in ("S", "T")}


# --- what is expected -------------------------------------------------------------------------------------------------

DEGREE = 4


def cells(history: History) -> list[list[object]]:
    """Lifetime, payload and weight of each row, in order; rows of values that depend on how often events are there
    come in the order of lifetimes."""
    found = [[row["le"], row["re"], *list(row.values())[3:], row["w"]] for row in history.rows.to_pylist()]
    return sorted(found, key=lambda row: (row[0], row[1], [(x is None, str(x)) for x in row[2:] if not _counts(x)]))


def _counts(value: object) -> bool:
    return isinstance(value, int) and not -100 < value < 0


@cache
def expected_of(name: str) -> Expected:
    """What an operator gives, for any weight."""
    return Expected(PLANS[name])


class Expected:
    """The result for any weight, from the results for small ones."""

    def __init__(self, plan: Plan) -> None:
        self.known = []
        for w in range(1, DEGREE + 2):
            histories = {
                name: [(le, re, payload) for le, re, times, payload in rows(name, w) for _ in range(times)]
                for name in nodes.sources(plan)
            }
            made = evaluate(typed(plan), histories, registry=all_modules())
            self.known.append(cells(History.from_rows(typed(plan).schema, made)))

    def at(self, w: int) -> list[list[object]]:
        return [[_extended(values, w) for values in zip(*row, strict=True)] for row in zip(*self.known, strict=True)]


def _extended(values: tuple[object, ...], w: int) -> object:
    """The polynomial through values for 1, 2, 3, … at w."""
    if values[0] is None or isinstance(values[0], str | bool) or len(set(values)) == 1:
        return values[0]
    exact = [Fraction(value) for value in values]  # type: ignore[arg-type]  # numbers
    at = range(1, len(exact) + 1)
    found = sum(
        y * prod((Fraction(w - other, x - other) for other in at if other != x), start=Fraction(1))
        for x, y in zip(at, exact, strict=True)
    )
    return int(found) if isinstance(values[0], int) else found


def agree(expected: list[list[object]], actual: list[list[object]]) -> bool:
    return len(expected) == len(actual) and all(
        _same(a, b) for one, other in zip(expected, actual, strict=True) for a, b in zip(one, other, strict=True)
    )


def _same(expected: object, actual: object) -> bool:
    if isinstance(expected, int) or expected is None or actual is None:
        return expected == actual
    return isclose(expected, actual, rel_tol=1e-12, abs_tol=1e-12)  # type: ignore[arg-type]  # numbers


def refused(name: str, w: int, run: Callable[[], History], *, listed: bool) -> bool:
    """Whether a run is refused by name; if not, its result is the exact one."""
    try:
        found = run()
    except StreamproofError as raised:
        error = raised
    else:
        expected = expected_of(name).at(w)
        assert agree(expected, cells(found)), (expected, cells(found))
        return False
    assert error.name in (("overflow", "limit_exceeded") if listed else ("overflow",)), str(error)
    assert error.at
    assert error.fix
    return True


# --- the engines ------------------------------------------------------------------------------------------------------


def in_pieces(plan: Plan, w: int, *, emission: Emission, cautious: bool) -> History:
    """Row by row, the last rows first, some of them taken back and given again."""
    graph = Graph(typed(plan), context_of(Settings(registry=all_modules()), emission))
    made = []
    for name in sorted(graph.sources):
        for row in reversed(rows(name, w)):
            steps = [row, (*row[:2], -row[2], row[3]), row] if cautious else [row]
            for step in steps:
                change = Delta.from_batch(Batch.from_rows(SCHEMA, [step], frontier=BEGINNING))
                made.append(graph.push(name, change).to_batch(typed(plan).schema))
    for name in sorted(graph.sources):
        made.append(graph.push(name, Delta.empty(SCHEMA, frontier=FOREVER)).to_batch(typed(plan).schema))
    return History.from_batches(typed(plan).schema, made)


def whole(judged: Engine, plan: Plan, w: int, limits: Limits | None = None) -> History:
    given = {name: parts for name, parts in batches(w).items() if name in nodes.sources(plan)}
    made = judged.run(typed(plan), given, Settings(registry=all_modules(), limits=limits or Limits()))
    return History.from_batches(typed(plan).schema, made)


@pytest.mark.parametrize("name", PLANS)
def test_weights_are_exact_or_overflow(name: str) -> None:
    plan, local = PLANS[name], engine("local")
    for w in WEIGHTS:
        runs: list[Callable[[], History]] = [
            lambda w=w: whole(local, plan, w),  # type: ignore[misc]
            lambda w=w: in_pieces(plan, w, emission="speculative", cautious=False),  # type: ignore[misc]
            lambda w=w: in_pieces(plan, w, emission="final", cautious=True),  # type: ignore[misc]
        ]
        gone = [refused(name, w, run, listed=name.startswith(LISTING)) for run in runs]
        if w == WEIGHTS[0]:
            assert not any(gone)
        if w == WEIGHTS[-1]:
            assert all(gone), "more than 2^62 events"


def test_every_node_is_here() -> None:
    found = {type(node) for plan in PLANS.values() for node in nodes.walk(plan)}
    assert found == set(event_nodes.NODES), "a plan for each node"
