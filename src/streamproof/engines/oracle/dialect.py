"""What differs between the two databases: names of types, ways to write values, and each built-in function.

Payload columns are called c0, c1, … in SQL, so no name of a plan or of a stream ever becomes an identifier; values of
plans go through `quote` alone. Dates are stored as days and timestamps as microseconds since 1970, both as BIGINT:
calendar arithmetic is then the same on every database and never meets the limits of its own types.

>>> quote("it's")
"'it''s'"
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final, Protocol, TypeAlias

from streamproof.errors import ErrorName, PlanError
from streamproof.events.schema import INT64, Kind, Type
from streamproof.plan.expr import Value

EPOCH_DAY: Final = date(1970, 1, 1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MARK: Final = "streamproof"  # our own errors inside SQL start with this word: streamproof|name|text


@dataclass(frozen=True, slots=True)
class Sql:
    """An expression in SQL and its type. An atom may be written twice: it is a column or a constant."""

    text: str
    type: Type
    atom: bool = False
    constant: bool = False
    value: Value = None  # of a constant
    risky: bool = False  # it may raise


Rule: TypeAlias = "Callable[[Dialect, tuple[Sql, ...], Type], str]"
"""From typed arguments and the type of the result to the text of a call."""


class Dialect(Protocol):
    """One database's SQL."""

    name: str
    functions: dict[str, Rule]
    casts: dict[tuple[Kind, Kind], Callable[[Dialect, Sql, Type, bool], str]]

    def type_name(self, kind: Type) -> str:
        """The storage type of a payload column."""
        ...

    def text(self, value: str) -> str:
        """A string constant."""
        ...

    def ordered(self, text: str, kind: Type) -> str:
        """The expression as something to compare and sort by: strings by code point."""
        ...

    def decimal_to_float(self, text: str) -> str:
        """The float nearest to a decimal."""
        ...

    def opaque(self, value: Sql) -> str:
        """A constant that the planner does not evaluate ahead of its CASE."""
        ...

    def let(self, value: Sql, body: Callable[[str], str]) -> str:
        """``body`` of a value that is written more than once in it, and evaluated once."""
        ...

    def fail(self, name: ErrorName, value: str, to: Type) -> str:
        """An expression of a type that raises an error about a value, where it is evaluated."""
        ...

    def series(self, count: str) -> str:
        """In a select list: one row for each of 0 … count − 1."""
        ...

    def whole_division(self, a: str, b: str) -> str:
        """a // b for BIGINT that are not negative."""
        ...

    def floor_by(self, text: str, by: int) -> str:
        """A BIGINT divided by a positive constant, rounded down."""
        ...

    def aggregate(self, fn: str, arg: Sql, order: list[tuple[str, Type]]) -> str:
        """A built-in aggregate; ``order`` are the sort keys of first and last."""
        ...

    def values_of(self, arg: str) -> str:
        """The aggregate that collects the floats of a group into a list."""
        ...


def quote(text: str) -> str:
    """A string as a SQL constant, the only door for text of a plan into SQL."""
    if "\x00" in text:
        raise PlanError("the character U+0000 cannot stand in a SQL constant", fix="remove it", name="bad_input")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PlanError(f"{text!r} is not Unicode text", fix="remove the lone surrogate", name="bad_input") from None
    return "'" + text.replace("'", "''") + "'"


def literal(dialect: Dialect, value: Value, kind: Type) -> str:
    """A constant of a type.

    >>> class Plain:
    ...     def type_name(self, kind): return "BIGINT"
    >>> literal(Plain(), -3, INT64)
    "CAST('-3' AS BIGINT)"
    """
    if value is None:
        return f"CAST(NULL AS {dialect.type_name(kind)})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return dialect.text(value)
    return f"CAST({quote(stored_text(value))} AS {dialect.type_name(kind)})"


def stored_text(value: int | float | Decimal | date | datetime) -> str:
    """A value as the database reads it: dates as days, times as microseconds.

    >>> stored_text(date(1970, 1, 3)), stored_text(2.5), stored_text(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    ('2', '2.5', '1000000')
    """
    if isinstance(value, datetime):
        since = value - EPOCH
        return str((since.days * 86400 + since.seconds) * 10**6 + since.microseconds)
    if isinstance(value, date):
        return str((value - EPOCH_DAY).days)
    return format(value, "f") if isinstance(value, Decimal) else repr(value)


def whole(value: int) -> str:
    """An integer as a BIGINT constant.

    >>> whole(5), whole(-5)
    ('CAST(5 AS BIGINT)', 'CAST(-5 AS BIGINT)')
    """
    return f"CAST({value} AS BIGINT)"


def order_keys(dialect: Dialect, keys: list[tuple[str, Type]], *, descending: bool = False) -> str:
    """Sort keys in our one order: nulls last, or exactly its reverse."""
    way = "DESC NULLS FIRST" if descending else "ASC NULLS LAST"
    return ", ".join(f"{dialect.ordered(text, kind)} {way}" for text, kind in keys)


def lifetime_order(payload: list[tuple[str, Type]]) -> list[tuple[str, Type]]:
    """The order of events: le, re, then the payload."""
    return [("le", INT64), ("re", INT64), *payload]
