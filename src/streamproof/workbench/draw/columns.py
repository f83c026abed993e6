"""What the generators know about a column besides its type, so that plans fail only where they should."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamproof.events.schema import INT64, Schema, Type
from streamproof.events.time import Unit
from streamproof.plan.expr import Col, Side

LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class Column:
    """A type, and what is known of the values.

    ``rough`` floats may differ in their last bits between engines: nothing that would make a small difference large
    (a comparison, a rounding, a key) reads them. ``size`` bounds the magnitude of integers.
    """

    type: Type
    rough: bool = False
    size: int = LARGEST


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a stream and what is known of its lifetimes."""

    columns: tuple[tuple[str, Column], ...]
    unit: Unit | None = None
    endless: bool = False  # some event may last forever
    ageless: bool = False  # some event may have begun at −∞

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

    columns: tuple[tuple[Col, Column], ...]
    unit: Unit | None = None

    def of(self, kinds: Iterable[str], *, rough: bool = False) -> list[tuple[Col, Column]]:
        wanted = tuple(kinds)
        return [(c, column) for c, column in self.columns if column.type.kind in wanted and (rough or not column.rough)]


def readable(shape: Shape, *, times: tuple[str, ...] = ("le",)) -> Readable:
    """The columns of one input."""
    clock = tuple((Col(name), Column(INT64)) for name in times)
    return Readable((*_sided(shape, None), *clock), shape.unit)


def readable_pair(left: Shape, right: Shape) -> Readable:
    """The columns of two inputs, with their sides."""
    return Readable((*_sided(left, "l"), *_sided(right, "r")), left.unit)


def _sided(shape: Shape, side: Side | None) -> list[tuple[Col, Column]]:
    return [(Col(name, side), column) for name, column in shape.columns]
