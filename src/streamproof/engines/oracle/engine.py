"""The oracle: a typed plan becomes a program of SQL over histories, run on one database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from streamproof.engines.base import Capabilities, Settings
from streamproof.engines.inputs import Loaded
from streamproof.engines.oracle.compiler import Compiler
from streamproof.engines.oracle.database import Database, from_storage, rows_of, to_storage
from streamproof.engines.oracle.dialect import Dialect
from streamproof.engines.oracle.program import Program
from streamproof.engines.oracle.rules import RULES, compile_node
from streamproof.engines.results import Whole
from streamproof.errors import InputError, did_you_mean
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import INT64, Schema
from streamproof.events.validate import Validator
from streamproof.plan import nodes
from streamproof.plan.check import Typed, walk

Given = TypeVar("Given")


class Oracle:
    """An engine over a database."""

    def __init__(
        self,
        name: str,
        dialect: Callable[[], Dialect],
        connect: Callable[[], Database],
        *,
        options: frozenset[str] = frozenset(),
    ) -> None:
        """``options`` are those of ``streamproof run`` that it is made with."""
        self.name = name
        self._dialect = dialect
        self._connect = connect
        self._options = options

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(inputs=self.over, sql=self.show_sql, options=self._options)

    def reach(self) -> None:
        """Connect once, so that a server that is not there is told of before anything runs."""
        self._connect().close()

    def supports(self) -> dict[str, bool | str]:
        """Every node."""
        return RULES.supports() | {"Let": True, "Ref": True, "EventQuery": True}

    def run(self, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Iterator[Batch]:
        """The whole result in one batch, complete."""
        tables = {}
        for source in _sources(plan):
            rows = [batch.rows for batch in _given(inputs, source)]
            tables[source.node.name] = pa.concat_tables(rows) if rows else source.schema.arrow_rows.empty_table()
        yield History.from_table(plan.schema, self.run_history(plan, tables, settings)).to_batch()

    def over(
        self, plan: Typed, inputs: Mapping[str, Loaded], settings: Settings, validators: Mapping[str, Validator]
    ) -> Whole:
        """The result over inputs, each of which is added up once; so is the result."""
        wanted = {source.node.name: _given(inputs, source) for source in _sources(plan)}
        histories = {name: part.checked(validators.get(name)).history() for name, part in wanted.items()}
        return Whole(History.from_table(plan.schema, self.run_history(plan, histories, settings)))

    def run_history(
        self, plan: Typed, tables: Mapping[str, pa.Table | History], settings: Settings | None = None
    ) -> pa.Table:
        """The result's rows (le, re, w = 1, payload) from tables with le, re, perhaps w, and the payload."""
        settings = settings or Settings()
        most = settings.limits.events_listed
        ready = {s.node.name: _stored(s.schema, _given(tables, s), most) for s in _sources(plan)}
        program = self._program(plan, settings)
        database = self._connect()
        try:
            program.run(database, ready)
            found = database.fetch(_final(program, plan.schema), rows_of(plan.schema))
        finally:
            database.close()
        return _typed(found, plan.schema)

    def run_many(
        self, plan: Typed, inputs: Sequence[Mapping[str, pa.Table | History]], settings: Settings | None = None
    ) -> list[pa.Table]:
        """The results over several inputs, which have nothing to do with each other, in one program.

        Each input is a group of its own from the start, as if the plan stood inside a group_apply.
        Law: ``run_many(p, [a, b]) == [run_history(p, a), run_history(p, b)]``, unless one of them is an error.
        """
        settings = settings or Settings()
        most = settings.limits.events_listed
        ready = {
            s.node.name: pa.concat_tables(
                [_stored(s.schema, _given(tables, s), most, group=n) for n, tables in enumerate(inputs)]
            )
            for s in _sources(plan)
        }
        program = self._program(plan, settings)
        columns = (("g", INT64), *rows_of(plan.schema))
        database = self._connect()
        try:
            program.run(database, ready)
            query = f"SELECT {', '.join(name for name, _ in columns)} FROM {program.result}"
            found = database.fetch(query, columns)
        finally:
            database.close()
        group = found.column(0).to_numpy()
        return [_typed(found.filter(pa.array(group == n)).drop_columns("g"), plan.schema) for n in range(len(inputs))]

    def show_sql(self, plan: Typed, settings: Settings) -> str:
        """All the SQL of a plan, in order, with comments that name the nodes."""
        return self._program(plan, settings).show()

    def run_script(self, statements: str, query: str, schema: Schema) -> pa.Table:
        """The rows of a query after statements, in text, on a database that knows nothing else."""
        database = self._connect()
        try:
            database.execute(f"{statements}\nCREATE TEMP TABLE script_has_ended AS SELECT 1;")
            return _typed(database.fetch(query, rows_of(schema)), schema)
        finally:
            database.close()

    def program(self, plan: Typed, settings: Settings) -> Program:
        """The steps of a plan, without any data."""
        return self._program(plan, settings)

    def _program(self, plan: Typed, settings: Settings) -> Program:
        compiler = Compiler(self._dialect(), settings)
        return compiler.program(compile_node(compiler, plan))


class _SourceNode:
    node: nodes.Source
    schema: Schema


def _sources(plan: Typed) -> list[_SourceNode]:
    return [part for part in walk(plan) if isinstance(part.node, nodes.Source)]  # type: ignore[misc]  # narrowed


def _given(inputs: Mapping[str, Given], source: _SourceNode) -> Given:
    name = source.node.name
    if name not in inputs:
        raise InputError(f'no input is given for the source "{name}"', fix=did_you_mean(name, inputs))
    return inputs[name]


def _stored(schema: Schema, given: pa.Table | History, most: int, *, group: int = 0) -> pa.Table:
    """Events with their copies as single rows, all in one group, in storage types."""
    rows = (given if isinstance(given, History) else History.from_table(schema, given)).expand(most=most)
    columns = [to_storage(rows.column(n), kind) for n, (_, kind) in enumerate(rows_of(schema))]
    groups = pa.array(np.full(rows.num_rows, group, np.int64))
    return pa.Table.from_arrays([groups, *columns], names=["g", *(name for name, _ in rows_of(schema))])


def _final(program: Program, schema: Schema) -> str:
    return f"SELECT {', '.join(name for name, _ in rows_of(schema))} FROM {program.result}"


def _typed(found: pa.Table, schema: Schema) -> pa.Table:
    columns = [from_storage(found.column(n), kind) for n, (_, kind) in enumerate(rows_of(schema))]
    le, re, *payload = columns
    ones = pa.array(np.ones(found.num_rows, np.int64))
    return pa.Table.from_arrays([le, re, ones, *payload], schema=schema.arrow_rows)
