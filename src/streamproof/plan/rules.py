"""One mechanism for dispatch: a typed table from node type to rule.

Kernels, SQL, explain and the printers each hold one table; `supports` gives the capability matrix.

>>> class Leaf: ...
>>> class Odd: ...
>>> names: Rules[str] = Rules("names", {Leaf: "a leaf"}, {Odd: "odd things have no name"})
>>> names[Leaf()]
'a leaf'
>>> names.supports()
{'Leaf': True, 'Odd': 'odd things have no name'}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from streamproof.errors import PlanError

R = TypeVar("R")
What = TypeVar("What")


class Rules(Generic[R]):
    """Rules by node type, and the nodes that have none with the reason why."""

    def __init__(self, owner: str, rules: Mapping[type, R], refused: Mapping[type, str] | None = None) -> None:
        self.owner = owner
        self._rules = dict(rules)
        self._refused = dict(refused or {})

    def __getitem__(self, node: object) -> R:
        kind = type(node)
        if kind in self._rules:
            return self._rules[kind]
        reason = self._refused.get(kind, f"{self.owner} has no rule for it")
        raise PlanError(f"{kind.__name__} is not supported here: {reason}", fix="use another operator or engine")

    def find(self, node: object, default: R) -> R:
        """The rule of a node, or the one for nodes that have none."""
        return self._rules.get(type(node), default)

    def supports(self) -> dict[str, bool | str]:
        """Each node's name with True, or with the reason why it is refused."""
        return {kind.__name__: True for kind in self._rules} | {k.__name__: why for k, why in self._refused.items()}


def entry(table: Mapping[What, R], what: What, engine: str) -> R:
    """What an engine's table has for a function or a cast; what it does not list is refused by name, never guessed.

    >>> entry({("int64", "string"): "CAST"}, ("date", "bool"), "duckdb")
    Traceback (most recent call last):
    streamproof.errors.PlanError: the engine duckdb cannot cast date to bool
      fix: use another function or engine
    """
    if what in table:
        return table[what]
    shown = f"cast {' to '.join(what)}" if isinstance(what, tuple) else f"compute {what}"
    raise PlanError(f"the engine {engine} cannot {shown}", fix="use another function or engine")
