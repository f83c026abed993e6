"""The oracles: databases and the evaluator say the same, errors by name, and what is too large is not judged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import streamproof as sp
from streamproof.errors import PlanError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.workbench.bench import Workbench, open_bench, open_oracle
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.concretise import concrete_group
from streamproof.workbench.modules import all_modules
from streamproof.workbench.oracle import MOST_ROWS, EvaluatorOracle
from streamproof.workbench.promises import WELL, broken_promise
from streamproof.workbench.suite import load_suite
from streamproof.workbench.verdict import TOO_LARGE, Failure

SCHEMA = Schema.of({"v": "int64"})
FAILS = sp.source("S").select({"a": "9223372036854775807 + v"}).plan


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    with open_bench(["duckdb", "evaluator", "spark-chain"], oracle="evaluator") as opened:
        yield opened


@pytest.mark.parametrize("name", ["duckdb", "evaluator", "spark-chain"])
def test_the_fuzz_holds(bench: Workbench, name: str) -> None:
    (anything,) = load_suite("fuzz").scenarios
    cases = [case for number in range(25) for case in concrete_group(anything, number, seed=8, size=1)]
    assert len({repr(case.plan) for case in cases}) > 20
    assert [v.text for v in bench.judges[name].verdicts(cases) if v.is_found] == []


def test_the_evaluator_is_no_judge_of_what_is_too_large(bench: Workbench) -> None:
    stream = CaseStream.inserting(SCHEMA, [(0, 10, {"v": 1})] * (MOST_ROWS + 1))
    case = Case(sp.source("S").plan, {"S": stream})
    assert EvaluatorOracle(all_modules()).expected(case) is TOO_LARGE
    assert bench.judges["duckdb"].verdict(case).word == "undecided"


def test_databases_raise_every_error_by_its_name(bench: Workbench) -> None:
    """What runs over whole inputs, in order, may neither miss an error nor raise another one."""
    judge = bench.judges["duckdb"]
    case = Case(FAILS, {"S": CaseStream.inserting(SCHEMA, [(1, 2, {"v": 1})])})
    assert judge.verdict(case).word == "holds"
    missed = judge.compared(case, Failure("overflow"), History.from_rows(Schema.of({"a": "int64"}), []))
    assert missed.kind == "overflow → rows"
    assert judge.compared(case, Failure("overflow"), Failure("bad_input")).kind == "overflow → bad_input"
    assert bench.judges["spark-chain"].compared(case, Failure("overflow"), Failure("bad_input")).word == "holds"


def test_an_unknown_oracle_is_refused() -> None:
    with pytest.raises(PlanError, match='unknown oracle "evaluate"') as found, open_oracle("evaluate"):
        pass
    assert 'did you mean "evaluator"' in (found.value.fix or "")


def test_outputs_are_also_held_to_the_validator(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Batch.from_rows(SCHEMA, [(3, 5, 1, {"v": 1})], frontier=FOREVER)]
    assert not broken_promise(rows)
    monkeypatch.setattr("streamproof.workbench.promises._illegal", lambda *_: WELL)
    early = [Batch.from_rows(SCHEMA, [], frontier=9), *rows]
    assert broken_promise(early).kind == "events"
