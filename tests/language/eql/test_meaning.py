"""Random queries over random streams, on engines, against the meaning straight from the definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.engines.base import Settings
from streamproof.engines.local.graph import Graph
from streamproof.engines.local.processor import context_of
from streamproof.errors import PlanError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.kernels.delta import Delta
from streamproof.language.eql import dumps, loads
from streamproof.plan.check import check
from streamproof.workbench.case import Case
from streamproof.workbench.draw.choices import RandomChoices
from streamproof.workbench.judge import Judge
from tests.language.eql.queries import SCHEMAS, near, random_query_case
from tests.reference.drawn import DrawnChoices, folded
from tests.reference.eql import World, ordered_rows
from tests.reference.judging import evaluator_judges, run_anyhow


def wrong(case: Case, judge: Judge) -> str | None:
    """What an engine says otherwise than the definition."""
    plan: Any = loads(dumps(case.plan))
    typed = check(plan, case.schemas)
    histories = {name: folded(stream) for name, stream in case.streams.items()}
    rows = World(plan.query, case.schemas, histories).results()
    expected = ordered_rows(plan.query, rows, typed.schema.names)
    run = run_anyhow(replace(case, plan=plan), case.fingerprint)
    (verdict,) = judge.verdicts([run], [History.from_rows(typed.schema, expected)])
    return verdict.text or None if isinstance(verdict.actual, History) else str(verdict.actual)


@st.composite
def cases(draw: Any) -> Case:
    return random_query_case(DrawnChoices(draw))


@given(cases())
@settings(max_examples=25, deadline=None)
def test_local_streams_what_the_definition_says(case: Case) -> None:
    with evaluator_judges("local") as judge:
        assert wrong(case, judge) is None, dumps(case.plan)


CLOCKS = (
    "AT TIME(EVERY 3s) @ ARRIVE(A) WITHIN 1s WINDOW 2s",
    "AT TIME(CRON '*/4 * * * * *') @ BECOMES(A: v > 1) WITHIN 2s",
    "AT TIME('1970-01-01T00:00:03Z') @ ARRIVE(A)",
    "AT TIME('1970-01-01T00:00:03Z') @ ARRIVE(A) WITHIN 3s WINDOW 4s",
    "AT LASTING(TIME(EVERY 5s), +2s) @ ARRIVE(B)",
    "AT LASTING(TIME(EVERY 7s), +3s) EVERY 1s WINDOW 5s",
    "AT ARRIVE(A) @ (LASTING(TIME(EVERY 5s), +2s) EVERY 1s) WITHIN 4s WINDOW 2s",
    "DURING LASTING(TIME(EVERY 5s), +3s) @ LASTING(ARRIVE(A), +9s) OPEN",
    "DURING LASTING(TIME(EVERY 5s), +3s) @ LASTING(ARRIVE(A), +2s)",
    "DURING LASTING(ARRIVE(A), +6s) @ LASTING(TIME(EVERY 2s), +1s) EMIT EMPTY",
    "DURING LASTING(ARRIVE(A), TIME(EVERY 5s))",
)


@pytest.mark.parametrize("drive", CLOCKS)
@pytest.mark.parametrize("name", ["local", "duckdb"])
def test_clocks_tick_wherever_something_looks(drive: str, name: str) -> None:
    """Far from the data of the query too, where another stream makes the instants."""
    plan = loads(f"SELECT count(*) FROM C {drive}")
    with evaluator_judges(name) as judge:
        for seed in range(4):
            choices = RandomChoices(seed)
            case = Case(plan, {stream: near(choices, SCHEMAS[stream]) for stream in plan.query.streams()})
            assert wrong(case, judge) is None, f"seed {seed}"


@pytest.mark.parametrize("drive", [
    "AT ARRIVE(A: v >= B.v or v = C.v)",
    "AT BECOMES(A: v > C.v and v <> B.v) WINDOW 4s",
    "DURING LASTING(ARRIVE(A: v + B.v > C.v), ARRIVE(B: v <= A.v + C.v))",
])  # fmt: skip
@pytest.mark.parametrize("name", ["local", "duckdb"])
def test_conditions_see_the_latest_values_of_several_streams(drive: str, name: str) -> None:
    plan = loads(f"SELECT count(*) FROM C {drive}")
    with evaluator_judges(name) as judge:
        for seed in range(2):
            choices = RandomChoices(seed)
            case = Case(plan, {stream: near(choices, SCHEMAS[stream]) for stream in plan.query.streams()})
            assert wrong(case, judge) is None, f"seed {seed}"


@pytest.mark.parametrize("drive", [
    "AT TIME(EVERY 5s)",
    "AT LASTING(TIME(EVERY 5s), +2s) EVERY 1s",
    "AT LASTING(TIME(EVERY 5s), +2s) EVERY 1s WINDOW 5s EMIT EMPTY",
    "AT ARRIVE(A) @ (LASTING(TIME(EVERY 5s), +2s) EVERY 1s)",
    "DURING LASTING(TIME(EVERY 5s), +2s) EMIT EMPTY",
    "DURING LASTING(TIME(EVERY 5s), ARRIVE(B) MAX 3s) EMIT EMPTY",
])  # fmt: skip
def test_what_would_never_stop_is_refused(drive: str) -> None:
    with pytest.raises(PlanError, match="never stops"):
        check(loads(f"SELECT count(*) FROM C {drive}"), SCHEMAS)


def test_the_oracle_says_what_the_definition_says() -> None:
    with evaluator_judges("duckdb") as judge:
        for seed in range(12):
            case = random_query_case(RandomChoices(seed))
            assert wrong(case, judge) is None, f"seed {seed}: {dumps(case.plan)}"


def test_results_of_an_open_event_are_given_at_once_and_corrected_when_it_ends() -> None:
    schema = Schema.of({"v": "int64"})
    typed = check(
        loads("SELECT count(*) FROM D DURING LASTING(ARRIVE(B), ARRIVE(E)) CONTINUOUS"), dict.fromkeys("DBE", schema)
    )
    graph = Graph(typed, context_of(Settings(), "speculative"))

    def push(name: str, *times: int, frontier: int) -> tuple[list[tuple[int, int, Any, Any]], int]:
        batch = Batch.from_rows(schema, [(t, t + 1, 1, {"v": 0}) for t in times], frontier=frontier)
        found = graph.push(name, Delta.from_batch(batch))
        rows = zip(found.le.tolist(), found.w.tolist(), *(c.to_pylist() for c in found.columns[1:]), strict=True)
        return sorted(rows, key=str), found.frontier

    push("B", 1, frontier=6)
    push("E", frontier=6)
    assert push("D", 3, 5, frontier=6) == ([(3, 1, None, 1), (5, 1, None, 2)], 1)  # the event may still end
    corrected = [(3, -1, None, 1), (3, 1, 6, 1), (5, -1, None, 2), (5, 1, 6, 2)]
    assert push("E", 6, frontier=20)[0] == corrected
    push("D", frontier=20)
    assert push("B", frontier=20) == ([], 20)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "duckdb", "postgres", "spark-batch"])
def test_every_engine_says_what_the_definition_says(name: str, request: pytest.FixtureRequest) -> None:
    dsn = request.getfixturevalue("postgres_dsn") if name == "postgres" else None
    with evaluator_judges(name, dsn) as judge:
        for seed in range(1000, 1030 if name == "spark-batch" else 1200):
            case = random_query_case(RandomChoices(seed))
            assert wrong(case, judge) is None, f"seed {seed}: {dumps(case.plan)}"
