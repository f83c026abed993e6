"""The compiler: visits a typed plan and collects the steps of its program.

Every relation is a temporary table with the columns g (the group, 0 outside of group_apply), le, re and the payload
c0, c1, …; one row is one event. A node that several others read is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from streamproof.engines.base import Settings
from streamproof.engines.oracle.database import Columns, python_value, rows_of
from streamproof.engines.oracle.dialect import Dialect, Sql
from streamproof.engines.oracle.expressions import Env, translate
from streamproof.engines.oracle.program import Check, Create, Program, ProgramStep, Record, Remark
from streamproof.errors import StreamproofError
from streamproof.events.history import Row
from streamproof.events.schema import INT64, Schema, Type
from streamproof.plan.check import Typed
from streamproof.plan.expr import LIFE_END, LIFE_START, Col, Expr, Side
from streamproof.plan.labels import label

Reason: TypeAlias = "tuple[str, Callable[[Row, Record], StreamproofError]]"
"""A condition on rows, and the error of a row that fulfils it."""


@dataclass(frozen=True, slots=True)
class EventTable:
    """A table of events: g, le, re and the payload."""

    table: str
    schema: Schema

    @property
    def payload(self) -> list[str]:
        return [f"c{n}" for n in range(len(self.schema.columns))]

    @property
    def keys(self) -> list[tuple[str, Type]]:
        """The payload columns with their types, to sort by."""
        return [(f"c{n}", kind) for n, (_, kind) in enumerate(self.schema)]

    def env(self) -> Env:
        """What an expression over one input reads."""
        return side_env(self.schema)


def side_env(schema: Schema, *, prefix: str = "", side: Side | None = None) -> Env:
    """The columns of one input, with a prefix where there are two."""
    found = {Col(name, side): Sql(f"{prefix}c{n}", kind, atom=True) for n, (name, kind) in enumerate(schema)}
    times = {Col(time, side): Sql(f"{prefix}{time[1:]}", INT64, atom=True) for time in (LIFE_START, LIFE_END)}
    return Env({**found, **times})


@dataclass(slots=True)
class Compiler:
    """The steps so far, and which table holds which node."""

    dialect: Dialect
    settings: Settings
    steps: list[ProgramStep] = field(default_factory=list)
    done: dict[int, EventTable] = field(default_factory=dict)  # by the identity of typed nodes
    tables: int = 0
    note: str = ""  # the node whose steps are being written

    def name(self, word: str) -> str:
        """A fresh name of a table."""
        self.tables += 1
        return f"{word}_{self.tables}"

    def create(self, word: str, query: str, *, spreads: bool = False) -> str:
        """A new table from a query. ``spreads``: it may have many more rows than what it reads, and so a limit."""
        table = self.name(word)
        self.steps.append(Create(table, query, self.note, self.settings.limits.events_listed if spreads else None))
        return table

    def relation(self, word: str, query: str, schema: Schema, *, spreads: bool = False) -> EventTable:
        """A new relation from a query that gives g, le, re, c0, c1, …"""
        return EventTable(self.create(word, query, spreads=spreads), schema)

    def check(self, source: EventTable, *reasons: Reason, more: tuple[str, ...] = ()) -> None:
        """Refuse events for which a condition holds: the first in order is named.

        ``more`` are columns that the errors read besides the event.
        """
        columns: Columns = (("why", INT64), *rows_of(source.schema), *((name, INT64) for name in more))
        order = ", ".join(self.dialect.ordered(key, kind) for key, kind in [("le", INT64), ("re", INT64), *source.keys])
        why = " ".join(f"WHEN {condition} THEN {n}" for n, (condition, _) in enumerate(reasons))
        names = listed(f"CASE {why} END AS why", (name for name, _ in columns[1:]))
        wrong = " OR ".join(f"({condition})" for condition, _ in reasons)
        query = f"SELECT {names} FROM {source.table} WHERE {wrong} ORDER BY {order} LIMIT 1"

        def error(record: Record) -> StreamproofError:
            which = record["why"]
            assert isinstance(which, int)
            return reasons[which][1](event(source.schema, record), record)

        self.steps.append(Check(query, columns, error, self.note))

    def sql(self, expr: Expr, env: Env) -> Sql:
        return translate(expr, env, self.dialect)

    def visit(self, typed: Typed, rule: Callable[[Compiler, Typed], EventTable]) -> EventTable:
        """The relation of a node, computed once."""
        if id(typed) not in self.done:
            outer, self.note = self.note, label(typed.node)
            found = self.done[id(typed)] = rule(self, typed)
            columns = ", ".join(f"c{n} = {name}" for n, name in enumerate(typed.schema.names))
            self.steps.append(Remark(f"{found.table}: {columns}", self.note))
            self.note = outer
        return self.done[id(typed)]

    def program(self, result: EventTable) -> Program:
        return Program(tuple(self.steps), result.table)


def event(schema: Schema, record: Record) -> Row:
    """The event that a check found, for people."""
    payload = {name: python_value(record[f"c{n}"], kind) for n, (name, kind) in enumerate(schema)}
    le, re = record["le"], record["re"]
    assert isinstance(le, int)
    assert isinstance(re, int)
    return Row(le, re, payload)


def listed(*parts: str | Iterable[str]) -> str:
    """A select list from single items and sequences of them."""
    return ", ".join(_flat(parts))


def _flat(parts: Sequence[str | Iterable[str]]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        else:
            yield from part
