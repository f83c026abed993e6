"""How many windows one event may fall into: counted in all, however the stream is cut and whichever kernel runs it."""

from __future__ import annotations

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.local.graph import Graph
from streamproof.errors import StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.limits import Limits
from streamproof.plan.windows import Hopping, Tumbling

SCHEMA = Schema.of({"v": "int64"})
COUNT, MEDIAN = Aggregate("count"), Aggregate("median", Col("v"))  # over panes, and over members
TENS = {
    "panes": nodes.Aggregation(nodes.Source("S"), Tumbling(10), (("n", COUNT),)),
    "members": nodes.Aggregation(nodes.Source("S"), Tumbling(10), (("n", MEDIAN),)),
    "chop": nodes.Chop(nodes.Source("S"), 10),
}
Row = tuple[int, int, int]
Push = tuple[list[Row], int]
every_way = pytest.mark.parametrize("plan", TENS.values(), ids=TENS.keys())


def pushed(plan: nodes.Node, pushes: list[Push], *, limit: int, horizon: int | None = None) -> set[tuple[int, int]]:
    """The lifetimes that come out in the end."""
    typed = check(plan, {"S": SCHEMA})
    graph = Graph(typed, Context(Settings().registry, Limits(limit), horizon=horizon))
    made = []
    for rows, frontier in pushes:
        batch = Batch.from_rows(SCHEMA, [(le, re, w, {"v": 1}) for le, re, w in rows], frontier=frontier)
        made.append(graph.push("S", Delta.from_batch(batch)).to_batch(typed.schema))
    return {(row.le, row.re) for row in History.from_batches(typed.schema, made).to_rows()}


def tens(until: int) -> list[Push]:
    """The frontier, ten by ten."""
    return [([], t) for t in range(10, until + 1, 10)]


def refused(plan: nodes.Node, pushes: list[Push], *, limit: int, horizon: int | None = None) -> str:
    with pytest.raises(StreamproofError) as raised:
        pushed(plan, pushes, limit=limit, horizon=horizon)
    assert raised.value.name == "limit_exceeded"
    return str(raised.value)


@every_way
def test_under_a_horizon_all_windows_count_though_they_come_one_by_one(plan: nodes.Node) -> None:
    pushes: list[Push] = [([(5, FOREVER, 1)], 0), *tens(50)]
    text = refused(plan, pushes, limit=2, horizon=40)
    assert "one event falls into 3 windows; the limit windows_per_event is 2" in text
    assert "[5, inf)" in text
    assert len(pushed(plan, pushes, limit=4, horizon=40)) == 4


@every_way
def test_an_event_that_lasts_is_not_refused_for_its_age(plan: nodes.Node) -> None:
    pushes: list[Push] = [([(5, FOREVER, 1)], 0), *tens(100)]
    assert len(pushed(plan, pushes, limit=2)) == 10


@every_way
def test_an_event_that_lasts_is_refused_where_too_many_windows_come_at_once(plan: nodes.Node) -> None:
    at_once = 9 if isinstance(plan, nodes.Chop) else 10  # a piece is out when it begins
    assert f"falls into {at_once} windows" in refused(plan, [([(5, FOREVER, 1)], 0), ([], 100)], limit=at_once - 1)


@every_way
def test_once_it_ends_all_its_windows_count(plan: nodes.Node) -> None:
    pushes: list[Push] = [([(5, FOREVER, 1)], 0), *tens(50), ([(5, FOREVER, -1), (5, 55, 1)], 60)]
    assert "falls into 6 windows" in refused(plan, pushes, limit=5)


@every_way
def test_what_is_taken_back_does_not_count(plan: nodes.Node) -> None:
    pushes: list[Push] = [
        ([(5, FOREVER, 1)], 0), *(([(t, t + 1, 1)], 0) for t in range(10, 60, 10)),
        ([(5, FOREVER, -1), (5, 8, 1)], FOREVER),
    ]  # fmt: skip
    assert len(pushed(plan, pushes, limit=1)) == 6


@every_way
def test_an_end_that_moves_counts_for_nothing_by_itself(plan: nodes.Node) -> None:
    pushes: list[Push] = [([(5, FOREVER, 1)], 0), ([(5, FOREVER, -1), (5, 8, 1), (77, 78, 1)], FOREVER)]
    assert len(pushed(plan, pushes, limit=1)) == 2


@pytest.mark.parametrize("aggregate", [COUNT, MEDIAN], ids=["panes", "members"])
def test_windows_that_are_due_after_the_event_has_ended_count(aggregate: Aggregate) -> None:
    plan = nodes.Aggregation(nodes.Source("S"), Hopping(30, 10), (("n", aggregate),))
    pushes: list[Push] = [([(5, 6, 1)], 0), *tens(30)]
    assert "[5, 6)" in refused(plan, pushes, limit=2)
    assert len(pushed(plan, pushes, limit=3)) == 3
