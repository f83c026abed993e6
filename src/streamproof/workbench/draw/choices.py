"""Where drawing gets its choices from: a seed, or anything else that can choose.

>>> RandomChoices(1).pick("abc") == RandomChoices(1).pick("abc")
True
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from streamproof.events.schema import INT64, Schema, Type
from streamproof.events.time import Unit
from streamproof.plan.expr import Col, Side

T = TypeVar("T")


class Choices(Protocol):
    """Choices; the first option and the smallest number are the simplest."""

    def integer(self, low: int, high: int) -> int: ...

    def pick(self, options: Sequence[T]) -> T: ...

    def chance(self, percent: int) -> bool: ...


class RandomChoices:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  # test data, not secrets

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]

    def chance(self, percent: int) -> bool:
        return self._random.random() * 100 < percent


# --- what is known of the columns that a draw may read ----------------------------------------------------------------


LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class DrawnColumn:
    """A type, and what is known of the values.

    ``rough`` floats may differ in their last bits between engines: nothing that would make a small difference large
    (a comparison, a rounding, a key) reads them. ``size`` bounds the magnitude of integers.
    """

    type: Type
    rough: bool = False
    size: int = LARGEST


@dataclass(frozen=True, slots=True)
class DrawnShape:
    """The columns of a stream and what is known of its lifetimes."""

    columns: tuple[tuple[str, DrawnColumn], ...]
    unit: Unit | None = None
    no_end: bool = False  # some event may last forever
    no_start: bool = False  # some event may have begun at −∞

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def rough(self) -> bool:
        return any(column.rough for _, column in self.columns)

    @property
    def schema(self) -> Schema:
        return Schema(tuple((name, column.type) for name, column in self.columns), self.unit)

    def exact_names(self) -> list[str]:
        return [name for name, column in self.columns if not column.rough]


@dataclass(frozen=True, slots=True)
class Readable:
    """The columns that an expression may read, and the unit of ticks."""

    columns: tuple[tuple[Col, DrawnColumn], ...]
    unit: Unit | None = None

    def of(self, kinds: Iterable[str], *, rough: bool = False) -> list[tuple[Col, DrawnColumn]]:
        wanted = tuple(kinds)
        return [(c, column) for c, column in self.columns if column.type.kind in wanted and (rough or not column.rough)]


def readable(shape: DrawnShape, *, times: tuple[str, ...] = ("le",)) -> Readable:
    """The columns of one input."""
    clock = tuple((Col(name), DrawnColumn(INT64)) for name in times)
    return Readable((*_sided(shape, None), *clock), shape.unit)


def readable_pair(left: DrawnShape, right: DrawnShape) -> Readable:
    """The columns of two inputs, with their sides."""
    return Readable((*_sided(left, "l"), *_sided(right, "r")), left.unit)


def _sided(shape: DrawnShape, side: Side | None) -> list[tuple[Col, DrawnColumn]]:
    return [(Col(name, side), column) for name, column in shape.columns]
