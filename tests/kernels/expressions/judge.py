"""The columnar evaluation against the reference, which evaluates one row after the other in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from streamproof.errors import PlanError, RunError
from streamproof.events.schema import INT64
from streamproof.kernels.expressions.columns import Columns
from streamproof.kernels.expressions.compile import compile_expression
from streamproof.plan.expr import LIFE_END, LIFE_START, Call, Case, Col, Expr, transform
from streamproof.plan.text import to_text
from streamproof.plan.typing import bind, type_of
from streamproof.workbench.draw.choices import Choices
from streamproof.workbench.evaluator.expressions import meaning
from tests.kernels.expressions.generate import ANY, COLUMNS, SCOPE, Maker, value

Rows = list[dict[str, Any]]


class Failed(str):
    """The name of an error, where a column was expected."""


def random_case(choices: Choices, *, depth: int = 4) -> tuple[Expr, Rows] | None:
    """A well-typed expression and rows to evaluate it on; None where the dice made a type that does not exist."""
    expr = Maker(choices).of(choices.pick(ANY), depth)
    try:
        expr = bind(expr, SCOPE)
    except PlanError:
        return None
    kinds = COLUMNS | {LIFE_START: INT64, LIFE_END: INT64}
    count = choices.integer(0, 8)
    return expr, [{name: value(choices, kind) for name, kind in kinds.items()} for _ in range(count)]


def columns_of_rows(rows: Rows, *, skip: int = 0) -> Columns:
    """Rows as columns. With ``skip``, each is a slice of a longer array, as engines hand them out."""
    kinds = COLUMNS | {LIFE_START: INT64, LIFE_END: INT64}
    padded = rows[:1] * skip + rows if rows else []
    arrays = {Col(name): pa.array([row[name] for row in padded], kind.arrow) for name, kind in kinds.items()}
    sliced = {name: array[len(padded) - len(rows) :] for name, array in arrays.items()}
    return Columns(sliced, len(rows))


def computed(expr: Expr, columns: Columns) -> list[Any] | Failed:
    """What the columnar evaluation says. The type and the length are checked here."""
    try:
        array = compile_expression(expr, SCOPE)(columns)
    except RunError as error:
        return Failed(error.name)
    assert array.type == type_of(expr, SCOPE).arrow, to_text(expr)
    assert len(array) == columns.rows
    array.validate(full=True)
    result: list[Any] = array.to_pylist()
    return result


def expected(expr: Expr, rows: Rows) -> tuple[list[Any], set[str]]:
    """What the reference says: the values and the names of errors, of which a column reports one."""
    mean = meaning(transform(expr, _explicit), SCOPE)
    values, errors = [], set()
    for row in rows:
        try:
            values.append(mean(_reader(row)))
        except RunError as error:
            errors.add(error.name)
    return values, errors


def _reader(row: dict[str, Any]) -> Callable[[Col], Any]:
    return lambda column: row[column.name]


def _explicit(expr: Expr) -> Expr:
    """Coalesce as the case that it means: later arguments are evaluated only where the earlier are null."""
    match expr:
        case Call("coalesce", (*firsts, last)):
            return Case(tuple((Call("not", (Call("is_null", (arg,)),)), arg) for arg in firsts), last)
    return expr


def difference(expr: Expr, rows: Rows, *, skip: int = 0) -> str | None:
    """How the two disagree, in words; None if they agree."""
    try:
        values, errors = expected(expr, rows)
    except (ArithmeticError, ValueError):
        return None  # outside of what the reference defines
    found = computed(expr, columns_of_rows(rows, skip=skip))
    if errors or isinstance(found, Failed):
        return (
            None
            if isinstance(found, Failed) and found in errors
            else f"{to_text(expr)}: {found!r}, not {errors or values}"
        )
    for row, mine, theirs in zip(rows, found, values, strict=True):
        if not alike(mine, theirs):
            return f"{to_text(expr)} is {mine!r}, not {theirs!r} on {row}"
    return None


def alike(mine: Any, theirs: Any) -> bool:
    """The same value, bit for bit but for the sign of zero."""
    if isinstance(theirs, float) and isinstance(mine, float):
        return mine == theirs or (math.isnan(mine) and math.isnan(theirs))
    return type(mine) is type(theirs) and bool(mine == theirs)
