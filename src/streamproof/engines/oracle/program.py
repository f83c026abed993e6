"""A program: the steps that compute a plan, in order. Most are SQL; user modules and exact sums run in Python.

A program is made before any data is seen, so it can be shown without being run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

from streamproof.engines.oracle.database import Columns, Database
from streamproof.errors import StreamproofError
from streamproof.events.schema import INT64
from streamproof.plan.limits import too_many_rows

Record: TypeAlias = "dict[str, object]"


class ProgramStep(Protocol):
    """One step of a program."""

    @property
    def note(self) -> str:
        """The node it belongs to."""
        ...

    def run(self, database: Database, inputs: Mapping[str, pa.Table]) -> None: ...

    def show(self) -> str:
        """The step as SQL, with a comment where Python takes over."""
        ...


@dataclass(frozen=True, slots=True)
class Load:
    """The events of a source, one row each."""

    table: str
    source: str
    columns: Columns
    note: str

    def run(self, database: Database, inputs: Mapping[str, pa.Table]) -> None:
        database.load(self.table, self.columns, inputs[self.source])

    def show(self) -> str:
        names = ", ".join(f"{name} {kind}" for name, kind in self.columns)
        return f"-- loaded: {self.table}({names})"


@dataclass(frozen=True, slots=True)
class Create:
    """A temporary table with the rows of a query."""

    table: str
    query: str
    note: str
    most: int | None = None  # rows, where a query may give many more than it reads

    def run(self, database: Database, inputs: Mapping[str, pa.Table]) -> None:
        if self.most is None:
            database.create(self.table, self.query)
        elif database.create(self.table, f"SELECT * FROM ({self.query}) AS bounded LIMIT {self.most + 1}") > self.most:
            raise too_many_rows(self.most, at=self.note)

    def show(self) -> str:
        return f"CREATE TEMP TABLE {self.table} AS\n{self.query};"


@dataclass(frozen=True, slots=True)
class Remark:
    """For readers: which table holds the node, and the names of its columns."""

    text: str
    note: str

    def run(self, database: Database, inputs: Mapping[str, pa.Table]) -> None:
        pass

    def show(self) -> str:
        return comment(self.text)


@dataclass(frozen=True, slots=True)
class Check:
    """A query that must give no row; the first row it gives is the error."""

    query: str
    columns: Columns
    error: Callable[[Record], StreamproofError]
    note: str

    def run(self, database: Database, inputs: Mapping[str, pa.Table]) -> None:
        found = database.fetch(self.query, self.columns)
        if found.num_rows:
            raise self.error(found.slice(0, 1).to_pylist()[0])

    def show(self) -> str:
        return f"-- must give no row\n{self.query};"


@dataclass(frozen=True, slots=True)
class Compute:
    """Rows that SQL selects, worked on in Python, and loaded as a new table."""

    query: str
    columns: Columns
    work: Callable[[pa.Table], pa.Table]
    table: str
    made: Columns
    note: str
    what: str

    def run(self, database: Database, inputs: Mapping[str, pa.Table]) -> None:
        database.load(self.table, self.made, self.work(database.fetch(self.query, self.columns)))

    def show(self) -> str:
        return f"{self.query};\n-- in Python: {self.what}, loaded as {self.table}({_names(self.made)})"


@dataclass(frozen=True, slots=True)
class ComputeLists:
    """Lists of floats that SQL collects, worked on in Python, and loaded as a new table."""

    query: str
    keys: int
    work: Callable[[pa.Table, list[pa.Array]], pa.Table]
    table: str
    made: Columns
    note: str
    what: str

    def run(self, database: Database, inputs: Mapping[str, pa.Table]) -> None:
        database.load(self.table, self.made, self.work(*database.fetch_lists(self.query, self.keys)))

    def show(self) -> str:
        return f"{self.query};\n-- in Python: {self.what}, loaded as {self.table}({_names(self.made)})"


@dataclass(frozen=True, slots=True)
class Repeat:
    """A table replaced by a query over itself as long as another query gives a row."""

    table: str
    query: str
    again: str  # gives a row while there is more to do
    note: str

    def run(self, database: Database, inputs: Mapping[str, pa.Table]) -> None:
        while database.fetch(self.again, (("more", INT64),)).num_rows:
            for statement in self._statements():
                database.execute(statement)

    def _statements(self) -> tuple[str, ...]:
        following = f"{self.table}_next"
        return (
            f"CREATE TEMP TABLE {following} AS {self.query}",
            f"DROP TABLE {self.table}",
            f"ALTER TABLE {following} RENAME TO {self.table}",
        )

    def show(self) -> str:
        return f"-- repeated while this gives a row: {self.again}\n" + "\n".join(f"{s};" for s in self._statements())


@dataclass(frozen=True, slots=True)
class Program:
    """The steps, and the table that holds the result."""

    steps: tuple[ProgramStep, ...]
    result: str

    def run(self, database: Database, inputs: Mapping[str, pa.Table]) -> None:
        for step in self.steps:
            try:
                step.run(database, inputs)
            except StreamproofError as error:
                raise error.located(step.note) from None

    def show(self) -> str:
        """All the SQL, in order, each part under the node it belongs to."""
        parts, last = [], None
        for step in self.steps:
            heading = f"{comment(step.note)}\n" if step.note != last else ""
            parts.append(heading + step.show())
            last = step.note
        return "\n\n".join([*parts, f"SELECT * FROM {self.result};"])


def comment(text: str) -> str:
    """Any text as one line of SQL comment: what would end the line or move a cursor is escaped.

    >>> comment("a\\nDROP TABLE t")
    '-- a\\\\nDROP TABLE t'
    """
    plain = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return "-- " + re.sub(r"\s+", " ", plain)


def _names(columns: Columns) -> str:
    return ", ".join(name for name, _ in columns)
