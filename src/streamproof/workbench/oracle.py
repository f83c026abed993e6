"""What a case should give: its plan as SQL over the canonical histories of its streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Protocol

import pyarrow as pa

from streamproof.engines.base import Settings
from streamproof.errors import StreamproofError
from streamproof.events.history import History
from streamproof.plan.check import Typed, check
from streamproof.plan.modules import Registry
from streamproof.workbench.case import Case
from streamproof.workbench.verdict import Failure, Outcome


class SqlEngine(Protocol):
    """What is asked of the engine that judges."""

    name: str

    def reach(self) -> None: ...

    def run_history(
        self, plan: Typed, tables: Mapping[str, pa.Table], settings: Settings | None = None
    ) -> pa.Table: ...

    def run_many(
        self, plan: Typed, inputs: Sequence[Mapping[str, pa.Table | History]], settings: Settings | None = None
    ) -> list[pa.Table]: ...


class Oracle:
    """Says what cases should give."""

    def __init__(self, engine: SqlEngine, registry: Registry) -> None:
        self.engine, self.registry = engine, registry

    @property
    def name(self) -> str:
        return self.engine.name

    def settings(self, case: Case) -> Settings:
        return Settings(horizon=case.horizon, limits=case.limits, registry=self.registry, optimise=False)

    def typed(self, case: Case) -> Typed:
        return check(case.plan, case.schemas, registry=self.registry)

    def expected(self, case: Case, tables: Mapping[str, pa.Table] | None = None) -> Outcome:
        """What the plan gives over the histories of the streams, or over these tables."""
        typed = self.typed(case)
        given = tables or {name: stream.history.rows for name, stream in case.streams.items()}
        try:
            return History.from_table(typed.schema, self.engine.run_history(typed, given, self.settings(case)))
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
        typed = self.typed(cases[0])
        histories = [{name: stream.history for name, stream in case.streams.items()} for case in cases]
        try:
            found = self.engine.run_many(typed, histories, self.settings(cases[0]))
            return [History.from_table(typed.schema, rows) for rows in found]
        except StreamproofError:
            return [self.expected(case) for case in cases]
