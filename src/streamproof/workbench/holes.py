"""Holes: what an intent leaves open, and how much of it.

>>> one_of("a", "b").options
('a', 'b')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling

if TYPE_CHECKING:
    from streamproof.workbench.intent import Intent

WINDOWS: Final = tuple(kind.kind for kind in (Tumbling, Hopping, Snapshot, CountStart, CountEnd))


class Hole:
    """Anything that fits."""

    def __repr__(self) -> str:
        return "any"


any: Final = Hole()  # noqa: A001  # the word of the tester


@dataclass(frozen=True)
class OneOf(Hole):
    """One of these."""

    options: tuple[Any, ...]


@dataclass(frozen=True)
class WindowHole(Hole):
    """A window of one of these kinds, of any size."""

    kinds: tuple[str, ...] = WINDOWS


@dataclass(frozen=True, eq=False)
class ExprHole(Hole):
    """An expression over a stream, or a comparison of two of them."""

    of: Intent | None = None
    kind: str | None = None  # its type
    column: str | None = None
    compared: tuple[str, ExprHole, Any] | None = None

    def __eq__(self, other: object) -> Any:
        return self._compare("eq", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("ne", other)

    def __lt__(self, other: object) -> ExprHole:
        return self._compare("lt", other)

    def __le__(self, other: object) -> ExprHole:
        return self._compare("lte", other)

    def __gt__(self, other: object) -> ExprHole:
        return self._compare("gt", other)

    def __ge__(self, other: object) -> ExprHole:
        return self._compare("gte", other)

    def _compare(self, fn: str, other: object) -> ExprHole:
        return ExprHole(compared=(fn, self, other))

    __hash__ = object.__hash__


def one_of(*options: Any) -> OneOf:
    """One of these values."""
    return OneOf(options)


def window(*kinds: str) -> WindowHole:
    """A window of one of these kinds; of any kind if none is given."""
    return WindowHole(kinds or WINDOWS)


def expr(of: Intent | None = None, kind: str | None = None) -> ExprHole:
    """An expression over a stream, of a type if that is given. Comparing two makes a condition."""
    return ExprHole(of, kind)


def col(name: str, of: Intent | None = None) -> ExprHole:
    """A column by its name."""
    return ExprHole(of, column=name)


def options_of(value: Any, default: Sequence[Any]) -> tuple[Any, ...]:
    """What a value may become: itself, one of several, or any of the default."""
    if isinstance(value, OneOf):
        return value.options
    return tuple(default) if isinstance(value, Hole) else (value,)
