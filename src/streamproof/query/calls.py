"""What the methods of a stream share: errors that name the call, and arguments brought into their one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from streamproof.arguments import check_kinds, check_names, show_call
from streamproof.errors import PlanError, StreamproofError
from streamproof.plan.expr import Col, Expr
from streamproof.plan.nodes import Named
from streamproof.query.column import Expression, to_expr

P = ParamSpec("P")
R = TypeVar("R")


def names_the_call(method: Callable[P, R]) -> Callable[P, R]:
    """Errors of the method say which call they come from.

    >>> from streamproof.query.stream import source
    >>> source("S").hopping(10, hop=0)
    Traceback (most recent call last):
    ...
    streamproof.errors.PlanError: hop must be positive, got 0
      at: .hopping(10, hop=0)
      fix: give a hop of at least 1 tick; for a tumbling window leave hop out
    """

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = check_names(method, args, kwargs)
        try:
            made = method(*args, **kwargs)
        except StreamproofError as error:  # what the method itself says is more to the point
            raise _located(error, show_call(method, args, kwargs)) from None
        except (TypeError, AttributeError, ValueError):
            check_kinds(method, bound, args, kwargs)
            raise
        check_kinds(method, bound, args, kwargs)
        return made

    return call


def _located(error: StreamproofError, call: str) -> StreamproofError:
    if error.at is None or error.at in call:
        error.at = call
    elif not error.at.startswith("."):  # a call inside a lambda has named itself already
        error.at = f"{call}: {error.at}"
    return error


def named_expressions(exprs: Mapping[str, Expression]) -> Named:
    """Named expressions as nodes hold them."""
    return tuple((name, to_expr(expr)) for name, expr in exprs.items())


def kept_and_named(keep: tuple[str | Mapping[str, Expression], ...], exprs: Mapping[str, Expression]) -> Named:
    """Columns to keep by name, mappings and keywords, in the order they were given."""
    columns: list[tuple[str, Expr]] = []
    for part in keep:
        if isinstance(part, str):
            columns.append((part, Col(part)))
        elif isinstance(part, Mapping):
            columns.extend(named_expressions(part))
        else:
            raise PlanError(
                f"{part!r} has no name", fix='keep columns by name ("v"), and name new ones: select("v", x="v * 2")'
            )
    return (*columns, *named_expressions(exprs))
