"""What a case should give, said by one of two that share no code with what they judge.

- `SqlOracle`: the plan as SQL over the canonical histories of its streams, in DuckDB or PostgreSQL.
- `EvaluatorOracle`: the plan by definition, in loops over lists; slow, and as plain as can be.

>>> from streamproof.workbench.draw.plans import seeded_case
>>> from streamproof.workbench.modules import all_modules
>>> len(EvaluatorOracle(all_modules()).expected(seeded_case(5)))
2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, Protocol

import pyarrow as pa

from streamproof.engines.base import Settings
from streamproof.errors import StreamproofError
from streamproof.events.history import History
from streamproof.plan import nodes
from streamproof.plan.check import Typed, check
from streamproof.plan.modules import Registry
from streamproof.workbench.case import Case, Row
from streamproof.workbench.evaluator.evaluate import RULES, Rule, TooManyRows, evaluate
from streamproof.workbench.evaluator.fold import fold
from streamproof.workbench.verdict import TOO_LARGE, Failure, Outcome

MOST_ROWS: Final = 600  # of an operator's result: the evaluator compares every row with every other


class CaseOracle(Protocol):
    """Says what cases should give."""

    @property
    def name(self) -> str: ...

    registry: Registry

    def expected(self, case: Case, tables: Mapping[str, pa.Table] | None = None) -> Outcome:
        """What the plan gives over the histories of the streams, or over these tables."""
        ...

    def outcomes(self, cases: Sequence[Case]) -> list[Outcome]:
        """What cases give."""
        ...


class SqlEngine(Protocol):
    """What is asked of a database that judges."""

    name: str

    def reach(self) -> None: ...

    def run_history(
        self, plan: Typed, tables: Mapping[str, pa.Table], settings: Settings | None = None
    ) -> pa.Table: ...

    def run_many(
        self, plan: Typed, inputs: Sequence[Mapping[str, pa.Table | History]], settings: Settings | None = None
    ) -> list[pa.Table]: ...


class SqlOracle:
    """Runs the SQL of a plan in a database."""

    def __init__(self, engine: SqlEngine, registry: Registry) -> None:
        self.engine, self.registry = engine, registry

    @property
    def name(self) -> str:
        return self.engine.name

    def expected(self, case: Case, tables: Mapping[str, pa.Table] | None = None) -> Outcome:
        typed = check(case.plan, case.schemas, registry=self.registry)
        given = tables or {name: stream.history.rows for name, stream in case.streams.items()}
        try:
            return History.from_table(typed.schema, self.engine.run_history(typed, given, self._settings(case)))
        except StreamproofError as error:
            return Failure(error.name, str(error))

    def outcomes(self, cases: Sequence[Case]) -> list[Outcome]:
        """What cases give; those of one plan that follow each other are run together."""
        groups = groupby(cases, key=lambda case: (id(case.plan), case.horizon))
        return [outcome for _, group in groups for outcome in self._together(list(group))]

    def _together(self, cases: Sequence[Case]) -> list[Outcome]:
        """What cases of one plan give: in one program, or one by one where that is an error."""
        if len(cases) == 1:
            return [self.expected(cases[0])]
        typed = check(cases[0].plan, cases[0].schemas, registry=self.registry)
        histories = [{name: stream.history for name, stream in case.streams.items()} for case in cases]
        try:
            found = self.engine.run_many(typed, histories, self._settings(cases[0]))
            return [History.from_table(typed.schema, rows) for rows in found]
        except StreamproofError:
            return [self.expected(case) for case in cases]

    def _settings(self, case: Case) -> Settings:
        return Settings(horizon=case.horizon, limits=case.limits, registry=self.registry, optimise=False)


class EvaluatorOracle:
    """Evaluates plans by definition, streams folded event by event; other ``rules`` are for judging the judge."""

    name = "evaluator"

    def __init__(self, registry: Registry, rules: Mapping[type[nodes.Node], Rule] = RULES) -> None:
        self.registry, self._rules = registry, rules

    def expected(self, case: Case, tables: Mapping[str, pa.Table] | None = None) -> Outcome:
        typed = check(case.plan, case.schemas, registry=self.registry)
        try:
            rows = evaluate(
                typed, _folded(case) if tables is None else _read(case, tables), horizon=case.horizon,
                limits=case.limits, registry=self.registry, most_rows=MOST_ROWS, rules=self._rules,
            )  # fmt: skip
        except TooManyRows:
            return TOO_LARGE
        except StreamproofError as error:
            return Failure(error.name, str(error))
        return History.from_rows(typed.schema, rows)

    def outcomes(self, cases: Sequence[Case]) -> list[Outcome]:
        return [self.expected(case) for case in cases]


def _folded(case: Case) -> dict[str, list[Row]]:
    return {name: fold(stream.events, stream.schema.names) for name, stream in case.streams.items()}


def _read(case: Case, tables: Mapping[str, pa.Table]) -> dict[str, list[Row]]:
    histories = {name: History.from_table(case.schemas[name], table) for name, table in tables.items()}
    return {name: [(row.le, row.re, dict(row.payload)) for row in one.to_rows()] for name, one in histories.items()}
