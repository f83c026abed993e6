"""Which columns inside a group are still the group's key.

All events of a group have one key, so a column that was only passed on, renamed, filtered or joined is known to hold
it, wherever it came from. A column that anything is computed for is not.

>>> from streamproof.events.schema import Schema
>>> from streamproof.plan.check import Typed
>>> from streamproof.plan.expr import Col
>>> group = Typed(nodes.GroupInput(), Schema.of({"k": "string", "v": "int64"}))
>>> renamed = Typed(nodes.Select(group.node, (("a", Col("k")), ("b", Col("v")))), group.schema, (group,))
>>> carried(renamed, {"k": "k"})
{'a': 'k'}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from streamproof.plan import nodes
from streamproof.plan.expr import Call, Col, Expr, Side

if TYPE_CHECKING:
    from streamproof.plan.check import Typed

Carried: TypeAlias = "Mapping[str, str]"
"""The key column that a column holds, by name."""


def carried(branch: Typed, key: Carried) -> dict[str, str]:
    """The columns of a branch that hold the key of the group, given which columns of the group do."""
    known: dict[int, dict[str, str]] = {}  # what is read twice is looked at once

    def of(part: Typed) -> dict[str, str]:
        if id(part) not in known:
            known[id(part)] = _carried(part, key, of)
        return known[id(part)]

    return of(branch)


def _carried(part: Typed, key: Carried, of: Callable[[Typed], dict[str, str]]) -> dict[str, str]:
    node = part.node
    if isinstance(node, nodes.GroupInput):
        return dict(key)
    source, *others = map(of, part.inputs[:1] if isinstance(node, nodes.GroupApply) else part.inputs)
    if node.keeps_payload:
        return source
    if isinstance(node, nodes.Union):
        return {name: held for name, held in source.items() if all(other.get(name) == held for other in others)}
    if isinstance(node, nodes.Select):
        return _named(node.exprs, {None: source})
    if isinstance(node, nodes.Join):
        return _joined(node, source, *others)
    if isinstance(node, nodes.GroupApply):  # its own key, and what its branch passes on of the outer one
        own = {name: held for name, held in source.items() if name in node.key}
        return {**own, **carried(part.inputs[1], source)}
    return {}


def _joined(node: nodes.Join, left: Carried, right: Carried) -> dict[str, str]:
    """Where a side may be missing its columns may be null, and only the first that is not holds the key."""
    sides: dict[Side | None, Carried] = {"l": left, "r": right}
    sure = {side: held for side, held in sides.items() if side not in node.optional}
    direct = _named(node.select or (), sure)
    for name, expr in node.select or ():
        if isinstance(expr, Call) and expr.fn == "coalesce":
            held = [_held(arg, sides) for arg in expr.args]
            seen = {arg.side for arg in expr.args if isinstance(arg, Col)}
            if len(set(held)) == 1 and held[0] is not None and (seen == {"l", "r"} or seen <= set(sure)):
                direct[name] = held[0]
    return direct


def _named(exprs: nodes.Named, sides: Mapping[Side | None, Carried]) -> dict[str, str]:
    return {name: held for name, expr in exprs if (held := _held(expr, sides)) is not None}


def _held(expr: Expr, sides: Mapping[Side | None, Carried]) -> str | None:
    return sides.get(expr.side, {}).get(expr.name) if isinstance(expr, Col) else None
