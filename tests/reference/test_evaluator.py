"""The evaluator against the worked cases, and the laws of the algebra."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.errors import StreamproofError
from streamproof.events.event import Insert
from streamproof.events.schema import FLOAT64, INT64, Schema
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.expr import Call, Col, literal
from streamproof.plan.nodes import Plan
from streamproof.plan.windows import Hopping, Snapshot, Tumbling
from streamproof.workbench.case import CaseStream
from streamproof.workbench.evaluator.casts import cast
from streamproof.workbench.evaluator.evaluate import evaluate
from streamproof.workbench.evaluator.fold import fold
from streamproof.workbench.evaluator.values import Row
from tests.reference.cases import WorkedCase, worked_cases
from tests.reference.compare import difference
from tests.reference.drawn import streams


def _run(case: WorkedCase) -> list[Row]:
    schemas = case.schemas
    histories = {name: fold(events, schemas[name].names) for name, events in case.streams.items()}
    return evaluate(check(case.plan, schemas), histories, horizon=case.horizon)


def _cut_alike(a: Sequence[Row], b: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Both cut at all endpoints of both, so that equal instants are equal rows."""
    cuts = sorted({end for le, re, _ in [*a, *b] for end in (le, re)})

    def cut(rows: Sequence[Row]) -> list[Row]:
        return [(x, y, payload) for le, re, payload in rows for x, y in pairwise(cuts) if le <= x and y <= re]

    return cut(a), cut(b)


@pytest.mark.parametrize("case", worked_cases(), ids=lambda case: case.name)
def test_worked_case(case: WorkedCase) -> None:
    if case.error is not None:
        with pytest.raises(StreamproofError) as caught:
            _run(case)
        assert caught.value.name == case.error
        return
    assert case.rows is not None
    expected, actual = list(case.rows), _run(case)
    if case.compare == "snapshot":
        expected, actual = _cut_alike(expected, actual)
    assert difference(expected, actual) is None


# --- laws -------------------------------------------------------------------------------------------------------------

KEYED_SCHEMA = Schema.of({"k": "string", "v": "int64"})
KEYED = streams(schema=KEYED_SCHEMA, far=False)  # near the horizon
S, R = nodes.Source("S"), nodes.Source("R")
SAME_KEY = Call("eq", (Col("k", "l"), Col("k", "r")))
COUNT = (("n", Aggregate("count")),)


def _rows(plan: Plan, left: CaseStream, right: CaseStream | None = None) -> list[Row]:
    histories = {"S": left.rows, "R": (right or left).rows}
    return evaluate(check(plan, dict.fromkeys("SR", KEYED_SCHEMA)), histories, horizon=40)


def _same(a: Plan, b: Plan, left: CaseStream, right: CaseStream | None = None) -> None:
    assert difference(_rows(a, left, right), _rows(b, left, right)) is None


@given(KEYED, st.integers(-9, 9), st.integers(-9, 9))
def test_shifts_add_up(stream: CaseStream, x: int, y: int) -> None:
    _same(nodes.Shift(nodes.Shift(S, x), y), nodes.Shift(S, x + y), stream)


@given(KEYED, st.integers(1, 9), st.integers(-9, 9))
def test_stitch_undoes_chop_of_lifetimes_that_never_touch(stream: CaseStream, period: int, offset: int) -> None:
    apart = nodes.Coalesce(nodes.Where(nodes.AlterDuration(S, 3), Call("gt", (Col("le"), literal(-100)))))
    _same(nodes.Stitch(nodes.Chop(apart, period, offset)), apart, stream)


@given(KEYED)
def test_coalesce_of_distinct_is_coalesce(stream: CaseStream) -> None:
    _same(nodes.Coalesce(nodes.Distinct(S)), nodes.Coalesce(S), stream)


@given(KEYED)
def test_coalesce_twice_is_once(stream: CaseStream) -> None:
    _same(nodes.Coalesce(nodes.Coalesce(S)), nodes.Coalesce(S), stream)


@given(KEYED, KEYED)
def test_anti_join_and_cover_are_the_whole(left: CaseStream, right: CaseStream) -> None:
    """What the right side covers and what it does not cover make up the left side, instant by instant."""
    alone = nodes.AntiJoin(S, R, SAME_KEY)
    covered = nodes.AntiJoin(S, alone, _same_event())
    whole = nodes.Union((alone, covered))
    a, b = _cut_alike(_rows(nodes.Distinct(whole), left, right), _rows(nodes.Distinct(S), left, right))
    assert difference(a, b) is None


def _same_event() -> Call:
    return Call("and", tuple(Call("same", (Col(name, "l"), Col(name, "r"))) for name in ("k", "v")))


@given(KEYED, KEYED)
def test_join_is_symmetric(left: CaseStream, right: CaseStream) -> None:
    select = (("a", Col("v", "l")), ("b", Col("v", "r")))
    swapped = (("a", Col("v", "r")), ("b", Col("v", "l")))
    _same(nodes.Join(S, R, SAME_KEY, select), nodes.Join(R, S, SAME_KEY, swapped), left, right)


@given(KEYED)
def test_tumbling_is_hopping_by_its_size(stream: CaseStream) -> None:
    plain = nodes.AlterDuration(nodes.Where(S, Call("gt", (Col("le"), literal(-100)))), 4)
    tumbling, hopping = (nodes.Aggregation(plain, w, COUNT) for w in (Tumbling(5, 1), Hopping(5, 5, 1)))
    _same(tumbling, hopping, stream)


@given(KEYED)
def test_snapshot_counts_sum_to_the_length_of_all_lifetimes(stream: CaseStream) -> None:
    rows = [row for row in stream.rows if row[1] < FOREVER]
    finite = CaseStream(stream.schema, tuple(Insert(str(n), *row) for n, row in enumerate(rows)))
    counted = _rows(nodes.Aggregation(S, Snapshot(), COUNT), finite)
    assert sum((re - le) * row["n"] for le, re, row in counted) == sum(re - le for le, re, _ in rows)


@given(KEYED)
def test_groups_are_filters(stream: CaseStream) -> None:
    """A group's result is the apply branch over the events of its key."""
    counts = nodes.Aggregation(nodes.GroupInput(), Snapshot(), COUNT)
    grouped = nodes.GroupApply(S, ("k",), counts)
    only = nodes.Where(S, Call("eq", (Col("k"), literal("a"))))
    alone = nodes.Select(nodes.Aggregation(only, Snapshot(), COUNT), (("k", literal("a")), ("n", Col("n"))))
    _same(nodes.Where(grouped, Call("eq", (Col("k"), literal("a")))), alone, stream)


@pytest.mark.parametrize("value", [1e300, -1e300, 2.0**63, 9.3e18])
def test_a_float_beyond_int64_is_an_overflow(value: float) -> None:
    with pytest.raises(StreamproofError) as raised:
        cast(value, FLOAT64, INT64)
    assert raised.value.name == "overflow"
