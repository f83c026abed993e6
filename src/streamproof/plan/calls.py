"""Which user modules a plan calls."""

from __future__ import annotations

from collections.abc import Iterator

from streamproof.plan.aggregates import Aggregate
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit, user_functions
from streamproof.plan.nodes import Node, Uda, Udo, parameters


def functions_of(node: Node) -> Iterator[Apply]:
    """The calls of user-defined functions in a node's own expressions.

    >>> from streamproof.plan.nodes import Source, Where
    >>> from streamproof.plan.parse import parse
    >>> [call.fn for call in functions_of(Where(Source("S"), parse("near(x, y) and z > 1")))]
    ['near']
    """
    return (call for expr in _expressions(parameters(node)) for call in user_functions(expr))


def calls_modules(node: Node) -> bool:
    """Whether a node calls any user module."""
    return isinstance(node, Uda | Udo) or any(True for _ in functions_of(node))


def _expressions(value: object) -> Iterator[Expr]:
    """Every expression somewhere in a node's parameters."""
    match value:
        case Col() | Lit() | Call() | Apply() | Cast() | Case():
            yield value
        case Aggregate(arg=arg) if arg is not None:
            yield arg
        case dict():
            for part in value.values():
                yield from _expressions(part)
        case tuple():
            for part in value:
                yield from _expressions(part)
