"""Chains of Python calls, laid out: on one line where they fit, else one call per line.

>>> chain = Chain(Call("source", (Argument('"S"'),)), (Call("shift", (Argument("2"),)),))
>>> print(render(chain))
source("S").shift(2)
>>> print(render(chain, width=16))
(
    source("S")
    .shift(2)
)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WIDTH: Final = 100
_STEP: Final = "    "


@dataclass(frozen=True, slots=True)
class Chain:
    """Something and the calls made on it: ``head.call().call()``."""

    head: Call | str
    calls: tuple[Call, ...] = ()

    def then(self, *calls: Call) -> Chain:
        """The chain with more calls at its end."""
        return Chain(self.head, (*self.calls, *calls))


@dataclass(frozen=True, slots=True)
class Call:
    """A call by name."""

    name: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, by keyword if it has one; ``prefix`` stands before the value: ``**``, ``lambda g: ``."""

    value: Chain | str
    keyword: str | None = None
    prefix: str = ""

    @property
    def start(self) -> str:
        """What stands before the value."""
        return (f"{self.keyword}=" if self.keyword else "") + self.prefix


def render(chain: Chain, *, indent: str = "", used: int = 0, width: int = WIDTH) -> str:
    """The text of a chain; ``indent`` is that of its line, of which ``used`` characters are taken already."""
    flat = _flat(chain)
    if len(indent) + used + len(flat) <= width:
        return flat
    if not chain.calls:
        return flat if isinstance(chain.head, str) else _broken(chain.head, "", indent, width)
    inner = indent + _STEP
    head = chain.head if isinstance(chain.head, str) else _fitted(chain.head, "", inner, width)
    lines = [f"{inner}{head}", *(f"{inner}{_fitted(call, '.', inner, width)}" for call in chain.calls)]
    return "\n".join(["(", *lines, f"{indent})"])


def _flat(chain: Chain) -> str:
    head = chain.head if isinstance(chain.head, str) else _flat_call(chain.head)
    return head + "".join(f".{_flat_call(call)}" for call in chain.calls)


def _flat_call(call: Call) -> str:
    return f"{call.name}({', '.join(map(_flat_argument, call.arguments))})"


def _flat_argument(argument: Argument) -> str:
    return argument.start + (argument.value if isinstance(argument.value, str) else _flat(argument.value))


def _fitted(call: Call, dot: str, indent: str, width: int) -> str:
    flat = dot + _flat_call(call)
    return flat if len(indent) + len(flat) <= width or not call.arguments else _broken(call, dot, indent, width)


def _broken(call: Call, dot: str, indent: str, width: int) -> str:
    """The call with one argument per line."""
    inner = indent + _STEP
    lines = [f"{inner}{_argument(argument, inner, width)}," for argument in call.arguments]
    return "\n".join([f"{dot}{call.name}(", *lines, f"{indent})"])


def _argument(argument: Argument, indent: str, width: int) -> str:
    start = argument.start
    if isinstance(argument.value, str):
        return start + argument.value
    return start + render(argument.value, indent=indent, used=len(start) + 1, width=width)
