"""What a window holds before its rows have times: rows that Hypothesis drew, and rows that a seed stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import pyarrow as pa

from streamproof.properties.rows import as_record
from streamproof.properties.sampling import Sampler


@dataclass(frozen=True)
class Explicit:
    """Elements that were drawn one by one."""

    elements: tuple[Any, ...]
    places: tuple[int, ...] | None = None  # in their window, in ticks, where they were drawn with them

    @property
    def count(self) -> int:
        """How many rows these are."""
        return len(self.elements)

    def records(self) -> list[dict[str, Any]]:
        """The rows."""
        return [as_record(element) for element in self.elements]

    def describe(self) -> str:
        """For the digest: what the rows are."""
        return repr(self.records())


@dataclass(frozen=True)
class Bulk:
    """Rows that a seed stands for; fewer of them are a prefix of more, without those that are skipped."""

    sampler: Sampler
    size: int
    seed: int
    skip: int = 0

    @property
    def count(self) -> int:
        """How many rows these are."""
        return self.size

    @cached_property
    def table(self) -> pa.Table:
        """The rows, expanded."""
        return self.sampler.table(self.size, self.seed, self.skip)

    @property
    def elements(self) -> tuple[Any, ...]:
        """The rows as elements."""
        records = self.table.to_pylist()
        return tuple(record["value"] for record in records) if self.table.column_names == ["value"] else tuple(records)

    def records(self) -> list[dict[str, Any]]:
        """The rows."""
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found

    def describe(self) -> str:
        """For the digest: what the rows are."""
        return f"{self.size} rows of seed {self.seed} after {self.skip}"


Part: TypeAlias = Explicit | Bulk
Contents: TypeAlias = tuple[Part, ...]


def elements(contents: Contents) -> list[Any]:
    """The elements of a window."""
    return [element for part in contents for element in part.elements]


def united(left: Sequence[Contents], right: Sequence[Contents], shift: int = 0) -> list[Contents]:
    """Window-wise union, the right one shifted by some windows; the shorter is padded with empty windows.

    >>> one, two = (Explicit((1,)),), (Explicit((2,)),)
    >>> [elements(window) for window in united([one, one], [two], shift=1)]
    [[1], [1, 2]]
    """
    result = list(left) + [()] * (len(right) + shift - len(left)) if right else list(left)
    for at, contents in enumerate(right, shift):
        result[at] = result[at] + contents
    return result
