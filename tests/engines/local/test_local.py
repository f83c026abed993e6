"""The local engine: worked cases, random plans against the evaluator, and going on from a savepoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.job import on
from streamproof.engines.local import in_turn
from streamproof.engines.local.graph import Graph
from streamproof.engines.local.graph_state import restore, save
from streamproof.errors import InputError, StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.compare import same_bag, same_snapshots
from streamproof.events.history import History
from streamproof.events.physical import to_batches
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER, read_tick
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta
from streamproof.language.notation import from_document
from streamproof.plan import nodes
from streamproof.plan.check import Typed, check
from streamproof.workbench.case import Case
from streamproof.workbench.draw.plans import seeded_case
from streamproof.workbench.modules import all_modules
from tests.reference.judging import evaluator_judges, run_anyhow

CASES = json.loads((Path(__file__).parents[2] / "data/algebra.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("case", [c for c in CASES if c["level"] == "cht"], ids=lambda case: case["id"])
def test_worked_case(case: dict[str, Any]) -> None:
    job = on(from_document(case["query"]), "local", horizon=case.get("horizon"))
    if "error" in case["expected"]:
        with pytest.raises(StreamproofError) as raised:
            job.run(case["streams"])
        assert raised.value.name == case["expected"]["error"]
        return
    run = job.run(case["streams"])
    rows = [(read_tick(row["le"]), read_tick(row["re"]), row["payload"]) for row in case["expected"]["cht"]]
    same = same_bag if case["compare"] == "exact" else same_snapshots
    assert same(History.from_rows(run.schema, rows), run.history)


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_random_plans_mean_what_the_evaluator_says(start: int) -> None:
    with evaluator_judges("local") as judge:
        for number in range(start, start + 100):
            verdict = judge.verdict(run_anyhow(seeded_case(number), number))
            assert not verdict.is_found, f"case {number}: {verdict}"


def typed_case(number: int) -> tuple[Typed, dict[str, list[Batch]], Case]:
    case = seeded_case(number)
    inputs = {
        name: list(to_batches(PhysicalStream.from_events(stream.events, schema=stream.schema)))
        for name, stream in case.streams.items()
    }
    return check(case.plan, case.schemas, registry=all_modules()), inputs, case


def output(typed: Typed, inputs: dict[str, list[Batch]], case: Case, *, cut: int | None) -> History:
    """The whole output; with a cut, the graph is saved there, and a new one goes on from the savepoint."""

    def fresh() -> Graph:
        return Graph(typed, Context(all_modules(), limits=case.limits, horizon=case.horizon))

    graph = fresh()
    pushes = [(name, Delta.from_batch(batch)) for name, batch in in_turn({n: inputs[n] for n in graph.sources})]
    pushes += [(name, Delta.empty(schema, frontier=FOREVER)) for name, schema in graph.schemas.items()]
    batches = []
    for number, (name, delta) in enumerate(pushes):
        if number == cut:
            state = save(graph)
            graph = fresh()
            restore(graph, state)
        batches.append(graph.push(name, delta).to_batch(typed.schema))
    return History.from_batches(typed.schema, batches)


def test_a_restored_query_goes_on_to_the_same_output() -> None:
    compared = 0
    for number in range(150):
        try:
            typed, inputs, case = typed_case(number)
            whole = output(typed, inputs, case, cut=None)
        except StreamproofError:
            continue
        assert output(typed, inputs, case, cut=1 + number % 3) == whole, f"case {number}"
        compared += 1
    assert compared > 100


def test_a_savepoint_of_another_plan_is_refused() -> None:
    schema = Schema.of({"v": "int64"})
    plans = (nodes.Source("S"), nodes.Coalesce(nodes.Source("S")))
    graphs = [Graph(check(plan, {"S": schema}), Context(Settings().registry)) for plan in plans]
    with pytest.raises(InputError, match="belongs to another plan"):
        restore(graphs[1], save(graphs[0]))
    with pytest.raises(InputError, match="not a savepoint"):
        restore(graphs[0], b"something else")


def test_a_long_stream_needs_no_more_state_than_a_short_one() -> None:
    """Steady CTIs: what has passed is forgotten."""
    schema = Schema.of({"k": "string", "v": "int64"})
    plan = from_document({
        "op": "group_apply", "in": {"op": "source", "name": "S"}, "key": ["k"],
        "apply": {
            "op": "agg", "in": {"op": "group_input"}, "window": {"type": "snapshot"}, "aggs": {"m": ["max", "v"]},
        },
    })  # fmt: skip
    graph = Graph(check(plan, {"S": schema}), Context(Settings().registry))
    sizes = []
    for start in range(0, 20_000, 100):
        rows = [(start + n, start + n + 50, 1, {"k": f"k{start + n}", "v": n}) for n in range(100)]
        graph.push("S", Delta.from_batch(Batch.from_rows(schema, rows, frontier=start)))
        sizes.append(graph.live_rows())
    assert max(sizes[10:]) <= 2 * max(sizes[:10])


def test_what_comes_and_goes_within_a_push_is_never_seen() -> None:
    """An error of a row that cancels within one change is no error."""
    cast = from_document({"op": "select", "in": {"op": "source", "name": "S"}, "exprs": {"x": "cast(k as double)"}})
    gone = [
        {"kind": "insert", "id": "a", "le": 1, "re": 9, "payload": {"k": "b"}},
        {"kind": "retract", "id": "a", "le": 1, "re": 9, "re_new": 4, "payload": {"k": "b"}},
        {"kind": "retract", "id": "a", "le": 1, "re": 4, "re_new": 1, "payload": {"k": "b"}},
    ]
    assert len(on(cast, "local").run({"S": gone}).history) == 0
    with pytest.raises(StreamproofError, match="'b' is not a float64"):
        on(cast, "local").run({"S": gone[:1]})


def test_rows_that_only_one_side_of_a_multicast_makes_are_never_seen() -> None:
    source = {"op": "source", "name": "S"}
    plan = {"op": "select", "in": {"op": "lasj", "left": source, "right": source, "on": "true"},
            "exprs": {"x": "cast(k as double)"}}  # fmt: skip
    events = [{"kind": "insert", "id": "a", "le": 0, "re": 1, "payload": {"k": "b"}}]
    assert len(on(from_document(plan), "local").run({"S": events}).history) == 0


@pytest.mark.parametrize("aggregate", [["count"], ["avg", "v"], ["max", "v"], ["median", "v"]])
@pytest.mark.parametrize("le", [1 - FOREVER, FOREVER - 3])
def test_a_window_that_leaves_time_is_an_error(aggregate: list[str], le: int) -> None:
    window = {"type": "tumbling", "size": 9}
    plan = {"op": "agg", "in": {"op": "source", "name": "S"}, "window": window, "aggs": {"x": aggregate}}
    events = [{"kind": "insert", "id": "a", "le": le, "re": le + 1, "payload": {"v": 1}}]
    with pytest.raises(StreamproofError, match="leaves the range") as raised:
        on(from_document(plan), "local").run({"S": events})
    assert raised.value.name == "overflow"


def test_pieces_of_what_never_began_have_no_first_one_with_a_horizon_either() -> None:
    plan = from_document({"op": "chop", "in": {"op": "source", "name": "S"}, "period": 2})
    events = [{"kind": "insert", "id": "a", "le": "-inf", "re": 1, "payload": {}}]
    with pytest.raises(StreamproofError, match="has no end of pieces") as raised:
        on(plan, "local", horizon=5).run({"S": events})
    assert raised.value.name == "unbounded_windows"
