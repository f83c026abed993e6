"""What would take a database's memory is refused by name before it is taken."""

from __future__ import annotations

from time import process_time

import pytest

from streamproof.engines.base import Engine, Settings, engine
from streamproof.errors import StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.limits import Limits
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.plan.windows import Hopping, Snapshot

SCHEMA = Schema.of({"k": "int64", "v": "int64"})
S = nodes.Source("S")
SELF = nodes.Join(S, S, parse("l.k = r.k"), (("k", parse("l.k")),))
TWICE = nodes.Join(SELF, SELF, parse("l.k = r.k"), (("k", parse("l.k")),))
MEDIAN = nodes.Aggregation(S, Snapshot(), (("m", Aggregate("median", Col("v"))),))
SPREADING: dict[str, Plan] = {
    "join": SELF,
    "join of joins": TWICE,
    "followed_by": nodes.FollowedBy(S, nodes.Shift(S, 1), parse("l.k = r.k"), (("k", parse("l.k")),)),
    "anti_join": nodes.AntiJoin(S, S, parse("l.k = r.k")),
    "median over snapshots": MEDIAN,
    "count over hopping windows": nodes.Aggregation(S, Hopping(1000, 1), (("n", Aggregate("count")),)),
    "chop": nodes.Chop(S, 1),
}
LIMITS = Limits(events_listed=50_000)


def lasting(events: int, w: int = 1) -> list[Batch]:
    """Events that all live at one instant."""
    rows = [(n, 1000 + n, w, {"k": 1, "v": n}) for n in range(events)]
    return [Batch.from_rows(SCHEMA, rows, frontier=FOREVER)]


def refused(judged: Engine, plan: Plan, given: list[Batch], limits: Limits = LIMITS) -> StreamproofError:
    started = process_time()
    with pytest.raises(StreamproofError) as raised:
        list(judged.run(check(plan, {"S": SCHEMA}), {"S": given}, Settings(limits=limits)))
    assert raised.value.name == "limit_exceeded", str(raised.value)
    assert raised.value.at
    assert raised.value.fix
    assert process_time() - started < 10
    return raised.value


@pytest.mark.parametrize("plan", SPREADING.values(), ids=SPREADING.keys())
@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_rows_that_multiply_have_a_limit(name: str, plan: Plan, request: pytest.FixtureRequest) -> None:
    judged: Engine = request.getfixturevalue(name)
    error = refused(judged, plan, lasting(400))
    assert "one by one; the limit events_listed is 50,000" in error.what
    typed, settings = check(plan, {"S": SCHEMA}), Settings(limits=LIMITS)
    few = History.from_batches(typed.schema, judged.run(typed, {"S": lasting(6)}, settings))
    assert few == History.from_batches(typed.schema, engine("local").run(typed, {"S": lasting(6)}, settings))


def test_equal_events_are_not_listed_without_end(duckdb: Engine) -> None:
    error = refused(duckdb, nodes.Where(S, parse("v >= 0")), lasting(2, w=2**40), Limits())
    assert error.what == (
        "2,199,023,255,552 events would have to be listed one by one; the limit events_listed is 50,000,000"
    )


def test_a_database_has_its_share_of_memory() -> None:
    small = engine("duckdb", memory="60MB", threads=1)
    error = refused(small, SELF, lasting(5000), Limits())
    assert error.what == "DuckDB needs more memory for this step than it may have"
    assert 'give it more than 60MB: on(plan, "duckdb", memory="8GB")' in str(error)
    typed = check(SELF, {"S": SCHEMA})
    assert len(History.from_batches(typed.schema, small.run(typed, {"S": lasting(5)}, Settings()))) == 25


def test_memory_that_is_none() -> None:
    with pytest.raises(StreamproofError, match="DuckDB cannot be opened"):
        list(engine("duckdb", memory="much").run(check(S, {"S": SCHEMA}), {"S": lasting(1)}, Settings()))
