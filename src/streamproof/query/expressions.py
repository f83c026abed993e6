"""The words to begin an expression with: col, lit, sql, when, call, left and right, asc and desc.

>>> when("v > 5", "high").otherwise("low")
Column("case when v > 5 then 'high' else 'low' end")

A condition is an expression, so text is SQL-flavoured there; the value that `when` gives is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamproof.arguments import door, doors
from streamproof.errors import PlanError
from streamproof.plan.expr import NULL_LITERAL, Apply, Case, Col, Expr, Side
from streamproof.plan.parse import check_free, parse
from streamproof.query.column import Column, Expression, Operand, Ordering, to_expr, to_operand


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
class Input:
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


left = Input("l")
right = Input("r")


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
