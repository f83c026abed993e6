"""The processor: sharing, late starts, composition, stopping and savepoints change no result."""

from __future__ import annotations

import pytest

from streamproof.engines.local.processor import Processor
from streamproof.errors import InputError, PlanError, RunError, StreamproofError
from streamproof.events.event import Cti, Insert, Retract
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.plan import nodes
from streamproof.plan.nodes import Plan
from streamproof.query.aggregates import count
from streamproof.query.stream import source
from streamproof.workbench.case import Case
from tests.engines.local.running import (
    Push,
    alone,
    more_plans,
    processor_of,
    pushes,
    settings_of,
    without_errors,
)

V = Schema.of({"v": "int64"})
S = source("S")


def those_that_run(case: Case, number: int, parts: list[Push]) -> list[Plan]:
    plans = [case.plan, *more_plans(case, number, 2)]
    return [plan for plan in plans if not isinstance(alone(case, plan, parts), str)]


def test_a_shared_run_equals_separate_runs() -> None:
    """Events and all: whatever other queries do beside it, a query gives the same output."""
    shared = 0
    for number, case in without_errors(0, 25):
        parts = pushes(case, number)
        plans = those_that_run(case, number, parts)
        processor = processor_of(case)
        queries = [processor.start(plan) for plan in plans]
        for name, part in parts:
            processor.push(name, part)
        processor.finish()
        for plan, query in zip(plans, queries, strict=True):
            by_itself = alone(case, plan, parts)
            assert not isinstance(by_itself, str)
            assert query.events() == by_itself.events(), f"case {number}"
            shared += query.metrics.shared
    assert shared > 150


def test_a_late_query_sees_what_is_live_and_what_comes() -> None:
    """It equals the same plan over the events that could still change at its start, and all that came after."""
    compared = 0
    for number, case in without_errors(100, 30):
        parts = pushes(case, number)
        plan = case.plan
        if any(isinstance(node, nodes.AdvanceTime) for node in nodes.walk(plan)):
            continue
        processor = processor_of(case)
        for name in case.streams:
            processor.start(nodes.Source(name))
        half = len(parts) // 2
        for name, part in parts[:half]:
            processor.push(name, part)
        rest = [*live_parts(processor), *parts[half:]]
        expected = alone(case, plan, rest)
        if isinstance(expected, str):
            continue
        query = processor.start(plan)
        for name, part in parts[half:]:
            processor.push(name, part)
        processor.finish()
        assert query.history == expected.history, f"case {number}"
        compared += 1
    assert compared > 12


def live_parts(processor: Processor) -> list[Push]:
    """The live events of every source, with its CTI."""
    found = []
    for name, inlet in processor.inlets.items():
        (entry,) = inlet.entries.values()
        assert entry.validator is not None
        live = entry.validator.remembered
        cti = PhysicalStream.from_events([Cti(entry.frontier)], schema=inlet.schema)
        found.append((name, PhysicalStream.concat([*([] if live is None else [live]), cti], schema=inlet.schema)))
    return found


def test_a_query_over_a_query_equals_one_plan() -> None:
    compared = 0
    for number, case in without_errors(200, 25):
        parts = pushes(case, number)
        expected = alone(case, nodes.Coalesce(case.plan), parts)
        if isinstance(expected, str):
            continue
        processor = processor_of(case)
        processor.start(case.plan, name="inner")
        upper = processor.start(nodes.Coalesce(nodes.Source("inner")), name="upper")
        late = None
        for step, (name, part) in enumerate(parts):
            if step == len(parts) // 2:
                late = processor.start(nodes.Source("inner"), name="late")
            processor.push(name, part)
        processor.finish()
        assert upper.history == expected.history, f"case {number}"
        assert late is None or set(late.history.rows["re"].to_pylist()) <= set(
            processor.queries["inner"].history.rows["re"].to_pylist()
        )
        compared += 1
    assert compared > 12


def test_a_late_reader_of_a_query_sees_its_live_output_and_what_comes() -> None:
    processor = Processor()
    processor.source("S", V)
    inner = processor.start(S, name="inner")
    processor.push("S", [Insert("a", 1, 3, {"v": 1}), Insert("b", 2, 9, {"v": 2}), Cti(5)])
    late = processor.start(source("inner").shift(100), name="late")
    processor.push("S", [Retract("b", 2, 9, 6, {"v": 2}), Insert("c", 7, 8, {"v": 3})])
    assert [(row.le, row.re) for row in late.history.to_rows()] == [(102, 106), (107, 108)]
    assert len(inner.history) == 3


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_restored_processor_goes_on_to_the_same_output(cut: int) -> None:
    compared = 0
    for number, case in without_errors(300, 12):
        parts = pushes(case, number)
        plans = those_that_run(case, number, parts)
        first, whole = processor_of(case), processor_of(case)
        for plan in plans:
            first.start(plan)
            whole.start(plan)
        for name, part in parts[:cut]:
            first.push(name, part)
        second = Processor.restore(first.savepoint(), settings_of(case))
        for name, part in parts[cut:]:
            second.push(name, part)
        for name, part in parts:
            whole.push(name, part)
        second.finish()
        whole.finish()
        for name, query in whole.queries.items():
            assert second.queries[name].events() == query.events(), f"case {number}"
            assert second.queries[name].history == query.history, f"case {number}"
        compared += 1
    assert compared > 6


def test_late_starts_and_stops_survive_a_savepoint() -> None:
    processor = Processor()
    processor.source("S", V)
    processor.start(S.where("v > 1").union(S.shift(1)), name="first")
    processor.push("S", [Insert("a", 1, 9, {"v": 2}), Cti(5)])
    processor.start(S.shift(1).union(S.where("v > 1")), name="second")
    processor.stop("first")
    copy = Processor.restore(processor.savepoint())
    for one in (processor, copy):
        one.push("S", Insert("b", 6, 7, {"v": 3}))
        one.finish()
    assert copy.queries["second"].history == processor.queries["second"].history
    assert len(copy.queries["second"].history) == 4


def test_equal_operators_run_once_and_are_freed_with_their_last_reader() -> None:
    processor = Processor()
    processor.source("S", V)
    busy = S.where("v > 1").tumbling(10).aggregate(n=count())
    one = processor.start(busy, name="one")
    processor.start(busy.where("n > 5"), name="two")
    assert [step.name for step in processor.graph.steps] == [
        "source(S)", "where(v > 1)", "agg(tumbling(size=10), n=count())", "where(n > 5)",
    ]  # fmt: skip
    assert one.metrics.shared == 3
    assert processor.explain().splitlines()[2:] == [
        "#2 agg(tumbling(size=10), n=count()) ← #1   shared by one, two",
        "#3 where(n > 5) ← #2                        for two",
    ]
    one.close()
    assert len(processor.graph.steps) == 4
    processor.stop("two")
    assert processor.graph.steps == []


def test_groups_are_shared_between_queries() -> None:
    processor = Processor()
    processor.source("S", Schema.of({"k": "string", "v": "int64"}))
    counts = S.group_by("k").apply(lambda g: g.tumbling(10).aggregate(n=count()))
    sums = S.group_by("k").apply(lambda g: g.tumbling(10).aggregate(m=count()).where("m > 1"))
    first, second = processor.start(counts), processor.start(sums)
    for n, key in enumerate("aab"):
        processor.push("S", Insert(f"e{n}", n, n + 1, {"k": key, "v": n}))
    processor.finish()
    assert [row.payload for row in first.history.to_rows()] == [{"k": "a", "n": 2}, {"k": "b", "n": 1}]
    assert [row.payload for row in second.history.to_rows()] == [{"k": "a", "m": 2}]
    assert second.metrics.shared == 3  # the source, its columns, and the way into the groups


def test_a_query_that_is_read_cannot_stop_first() -> None:
    processor = Processor()
    processor.source("S", V)
    processor.start(S, name="inner")
    processor.start(source("inner"), name="upper")
    with pytest.raises(InputError, match='the query "upper" reads the output of "inner"') as raised:
        processor.stop("inner")
    assert raised.value.fix == 'stop "upper" first'


def test_a_late_query_must_read_a_source_as_it_is_read_already() -> None:
    processor = Processor()
    processor.source("S", V)
    processor.start(S.advance_time(every=1), name="first")
    processor.push("S", Insert("a", 1, 2, {"v": 1}))
    with pytest.raises(PlanError, match='the source "S" is running') as raised:
        processor.start(S, name="second")
    assert "the same advance_time" in str(raised.value.fix)
    assert "second" not in processor.queries
    late = processor.start(S.advance_time(every=1), name="second")
    assert len(late.history) == 1


def test_names_are_unique_and_unknown_ones_are_refused() -> None:
    processor = Processor()
    processor.source("S", V)
    with pytest.raises(PlanError, match='"S" is the name of a source or a query already'):
        processor.start(S, name="S")
    with pytest.raises(PlanError, match='no source or running query is called "T"'):
        processor.start(source("T"))
    with pytest.raises(InputError, match='there is no source "T"'):
        processor.push("T", Cti(1))


def test_after_a_failed_operator_nothing_goes_on_as_if_all_were_well() -> None:
    processor = Processor()
    processor.source("S", Schema.of({"s": "string"}))
    query = processor.start(S.where("cast(s as bigint) > 1"))
    savepoint = query.savepoint()
    with pytest.raises(StreamproofError):
        processor.push("S", Insert("a", 1, 2, {"s": "x"}))
    with pytest.raises(RunError, match="the queries failed before"):
        processor.push("S", Insert("b", 1, 2, {"s": "2"}))
    query.restore(savepoint)
    processor.push("S", Insert("b", 1, 2, {"s": "2"}))
    assert query.history == History.from_rows(Schema.of({"s": "string"}), [(1, 2, {"s": "2"})])
