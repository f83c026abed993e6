"""Expressions in Python: `Column` overloads the operators and builds the plain tree of `plan.expr`.

>>> col("v") * 2 > 5
Column('v * 2 > 5')
>>> (col("k") == "a") & ~col("v").is_null()
Column("k = 'a' and not v is null")

`col`, `lit`, `sql`, `when` and `call` begin one. One rule for text: where an expression is expected (``where``,
``select``, a function's argument, a condition), text is SQL-flavoured; beside an operator, text is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import ClassVar, NoReturn, TypeAlias

from streamproof.arguments import Knows, door, doors
from streamproof.errors import PlanError
from streamproof.events.schema import Type, parse_type
from streamproof.plan.expr import NULL_LITERAL, Apply, Call, Case, Cast, Col, Expr, Lit, Side, cast_to, literal
from streamproof.plan.nodes import Direction
from streamproof.plan.parse import check_free, parse
from streamproof.plan.text import to_text

Expression: TypeAlias = "Column | Expr | int | float | str | bool | Decimal | date | datetime | None"
"""What stands where an expression is expected. Text is read as SQL-flavoured text."""

Operand: TypeAlias = Expression
"""What stands beside an operator. Text is a constant."""

_TREE = (Col, Lit, Call, Apply, Cast, Case)


@doors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column(Knows):
    """An expression over the payload. ``expr`` is the plain tree, with ordinary equality.

    Law: ``col(n).expr == parse(n)`` for every plain name ``n``.
    """

    expr: Expr

    # equality builds an expression, so a column cannot be a key in a set or dict
    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # the documented way to make a class unhashable

    def __repr__(self) -> str:
        return f"Column({to_text(self.expr)!r})"

    def __bool__(self) -> NoReturn:
        raise PlanError(
            "a column is neither true nor false: it stands for the values of all events",
            at=repr(self),
            fix="combine conditions with &, | and ~ (not and, or, not, in), each in parentheses; "
            "for a < v < b write v.between(a, b)",
        )

    # --- arithmetic ---

    def __add__(self, other: Operand) -> Column:
        return _call("add", self, other)

    def __radd__(self, other: Operand) -> Column:
        return _call("add", other, self)

    def __sub__(self, other: Operand) -> Column:
        return _call("sub", self, other)

    def __rsub__(self, other: Operand) -> Column:
        return _call("sub", other, self)

    def __mul__(self, other: Operand) -> Column:
        return _call("mul", self, other)

    def __rmul__(self, other: Operand) -> Column:
        return _call("mul", other, self)

    def __truediv__(self, other: Operand) -> Column:
        return _call("div", self, other)

    def __rtruediv__(self, other: Operand) -> Column:
        return _call("div", other, self)

    def __floordiv__(self, other: Operand) -> Column:
        return _call("floordiv", self, other)

    def __rfloordiv__(self, other: Operand) -> Column:
        return _call("floordiv", other, self)

    def __mod__(self, other: Operand) -> Column:
        return _call("mod", self, other)

    def __rmod__(self, other: Operand) -> Column:
        return _call("mod", other, self)

    def __pow__(self, other: Operand) -> Column:
        return _call("power", self, other)

    def __rpow__(self, other: Operand) -> Column:
        return _call("power", other, self)

    def __neg__(self) -> Column:
        return _call("neg", self)

    def __abs__(self) -> Column:
        return _call("abs", self)

    # --- comparison ---

    def __eq__(self, other: Operand) -> Column:  # type: ignore[override]  # builds an expression
        return _call("eq", self, other)

    def __ne__(self, other: Operand) -> Column:  # type: ignore[override]  # builds an expression
        return _call("ne", self, other)

    def __lt__(self, other: Operand) -> Column:
        return _call("lt", self, other)

    def __le__(self, other: Operand) -> Column:
        return _call("lte", self, other)

    def __gt__(self, other: Operand) -> Column:
        return _call("gt", self, other)

    def __ge__(self, other: Operand) -> Column:
        return _call("gte", self, other)

    def same_as(self, other: Operand) -> Column:
        """Equality where null equals null; never null itself."""
        return _call("same", self, other)

    def between(self, low: Operand, high: Operand) -> Column:
        """At least ``low`` and at most ``high``.

        >>> col("v").between(1, 2)
        Column('v >= 1 and v <= 2')
        """
        return (self >= low) & (self <= high)

    def isin(self, *values: Operand) -> Column:
        """Equal to one of the values.

        >>> col("k").isin("a", "b")
        Column("k in ('a', 'b')")
        """
        if not values:
            raise PlanError("isin needs at least one value", at=f"{self!r}.isin()", fix="give it the allowed values")
        return _call("in", self, *values)

    def is_null(self) -> Column:
        """Whether the value is null; never null itself."""
        return _call("is_null", self)

    def is_not_null(self) -> Column:
        """Whether the value is not null; never null itself."""
        return ~self.is_null()

    # --- logic ---

    def __and__(self, other: Operand) -> Column:
        return _call("and", self, other)

    def __rand__(self, other: Operand) -> Column:
        return _call("and", other, self)

    def __or__(self, other: Operand) -> Column:
        return _call("or", self, other)

    def __ror__(self, other: Operand) -> Column:
        return _call("or", other, self)

    def __invert__(self) -> Column:
        return _call("not", self)

    # --- text ---

    def like(self, pattern: Operand) -> Column:
        """Matches a pattern: ``%`` is any text, ``_`` one character, a backslash escapes."""
        return _call("like", self, pattern)

    def contains(self, part: Operand) -> Column:
        """Whether ``part`` occurs in the text."""
        return _call("contains", self, part)

    def starts_with(self, part: Operand) -> Column:
        """Whether the text begins with ``part``."""
        return _call("starts_with", self, part)

    def ends_with(self, part: Operand) -> Column:
        """Whether the text ends with ``part``."""
        return _call("ends_with", self, part)

    # --- types and order ---

    def cast(self, to: str | Type) -> Column:
        """The value as another type; one that does not fit is an error.

        >>> col("v").cast("float64")
        Column('cast(v as double)')
        """
        return Column(cast_to(self.expr, _type(to)))

    def try_cast(self, to: str | Type) -> Column:
        """The value as another type; one that does not fit becomes null."""
        return Column(cast_to(self.expr, _type(to), strict=False))

    def asc(self) -> Ordering:
        """Smallest first, for `top`."""
        return Ordering(self.expr, "asc")

    def desc(self) -> Ordering:
        """Greatest first, for `top`."""
        return Ordering(self.expr, "desc")


@dataclass(frozen=True, slots=True)
class Ordering:
    """An expression to rank by, and which end comes first."""

    expr: Expr
    direction: Direction


def to_expr(value: Expression) -> Expr:
    """The plain tree of whatever stands for an expression; text is parsed.

    >>> to_expr("v").name, to_expr(col("v")).name, to_expr(5).value
    ('v', 'v', 5)
    """
    return parse(value) if isinstance(value, str) else to_operand(value)


def to_operand(value: Operand) -> Expr:
    """The plain tree of what stands beside an operator; text is a constant."""
    if isinstance(value, Column):
        return value.expr
    return value if isinstance(value, _TREE) else literal(value)


def _call(fn: str, *args: Operand) -> Column:
    return Column(Call(fn, tuple(map(to_operand, args))))


def _type(to: str | Type) -> Type:
    return to if isinstance(to, Type) else parse_type(to)


@doors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Choice(Column):
    """What `when` gives: itself an expression (null where no condition holds), open for further branches."""

    def when(self, condition: Expression, value: Operand) -> Choice:
        """One more branch, tried after the earlier ones."""
        return Choice(Case((*self._branches, (to_expr(condition), to_operand(value))), NULL_LITERAL))

    def otherwise(self, value: Operand) -> Column:
        """The value where no condition holds."""
        return Column(Case(self._branches, to_operand(value)))

    @property
    def _branches(self) -> tuple[tuple[Expr, Expr], ...]:
        assert isinstance(self.expr, Case)
        return self.expr.branches


@dataclass(frozen=True, slots=True)
class SideColumns:
    """One of two inputs in a condition over both: ``left.v``, or ``left("two words")``.

    >>> left.k == right.k
    Column('l.k = r.k')
    """

    _side: Side

    def __call__(self, name: str) -> Column:
        return Column(Col(name, self._side))

    def __getattr__(self, name: str) -> Column:
        if name.startswith("__"):  # copying and documentation tools ask for these
            raise AttributeError(name)
        return Column(Col(name, self._side))


left = SideColumns("l")
right = SideColumns("r")


@door
def col(name: str) -> Column:
    """The payload column ``name``, whatever characters it has; ``le`` is the event's start.

    >>> col("two words") + 1
    Column('"two words" + 1')
    """
    return Column(Col(name))


@door
def lit(value: Operand) -> Column:
    """A constant, where text would otherwise be read as an expression."""
    return Column(to_operand(value))


@door
def sql(text: str) -> Column:
    """An expression from SQL-flavoured text, to go on with in Python.

    >>> sql("a + b") * 2
    Column('(a + b) * 2')
    """
    return Column(parse(text))


@door
def when(condition: Expression, value: Operand) -> Choice:
    """``value`` where the condition holds; go on with ``.when(…)`` or ``.otherwise(…)``."""
    return Choice(Case(((to_expr(condition), to_operand(value)),), NULL_LITERAL))


@door
def call(function: str, *args: Expression) -> Column:
    """A user-defined function by its registered name.

    >>> call("is_prime", "v") & (col("v") > 100)
    Column('is_prime(v) and v > 100')
    """
    try:
        check_free(function)
    except PlanError as error:
        raise error.located(f'call("{function}", …)') from None
    return Column(Apply(function, tuple(map(to_expr, args))))


@door
def asc(expression: Expression) -> Ordering:
    """Smallest first, for `top`."""
    return Ordering(to_expr(expression), "asc")


@door
def desc(expression: Expression) -> Ordering:
    """Greatest first, for `top`."""
    return Ordering(to_expr(expression), "desc")
