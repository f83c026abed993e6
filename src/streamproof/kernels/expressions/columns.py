"""What an expression reads: Arrow columns of one batch, and which of its rows are looked at.

>>> columns = Columns({Col("v"): pa.array([1, 2, 3])}, 3)
>>> columns.where(pa.array([True, False, True]))[Col("v")].to_pylist()
[1, 3]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import PlanError, did_you_mean
from streamproof.events.order import Flags
from streamproof.plan.expr import Col
from streamproof.plan.failures import DeadLetter


class LostRows:
    """The rows of a batch that a function failed on. They are left out, and a dead letter says so.

    >>> lost = LostRows(3, [])
    >>> lost.note(np.array([False, True, False]), []); lost.kept.tolist()
    [True, False, True]
    """

    def __init__(self, rows: int, letters: list[DeadLetter]) -> None:
        self.kept: Flags = np.ones(rows, np.bool_)
        self._letters = letters

    def note(self, failed: Flags, letters: Iterable[DeadLetter]) -> None:
        """Some rows are lost."""
        self.kept &= ~failed
        self._letters.extend(letters)


class Columns:
    """Columns by name and side, each one array of ``rows`` values. ``le`` and ``re`` are int64 columns among them.

    Where rows may get lost, a function that fails on some gives null and notes them; else its error is raised.
    """

    def __init__(self, arrays: Mapping[Col, pa.Array], rows: int, *, lost: LostRows | None = None) -> None:
        self.rows = rows
        self.lost = lost
        self._arrays: dict[Col, pa.Array] = dict(arrays)
        self._missing: Callable[[Col], pa.Array] | None = None  # no method of its own: in a cycle, arrays live too long

    def __getitem__(self, column: Col) -> pa.Array:
        if column not in self._arrays:
            self._arrays[column] = self._unknown(column) if self._missing is None else self._missing(column)
        return self._arrays[column]

    def where(self, condition: pa.BooleanArray) -> Columns:
        """The rows where a condition holds. A column is filtered when it is first read."""
        if condition.true_count == self.rows:
            return self
        part = Columns({}, condition.true_count, lost=self._part_of_lost(condition))
        part._missing = lambda column: pc.filter(self[column], condition)
        return part

    def _part_of_lost(self, condition: pa.BooleanArray) -> LostRows | None:
        """What notes the rows of a part, which it counts by itself, as those of the whole."""
        return None if self.lost is None else _PartLost(self.lost, keep(condition))

    def _unknown(self, column: Col) -> pa.Array:
        names = [known.name for known in self._arrays]
        raise PlanError(f'the batch has no column "{column.name}"', fix=did_you_mean(column.name, names))


class _PartLost(LostRows):
    """The lost rows of a part of a batch."""

    def __init__(self, whole: LostRows, part: Flags) -> None:
        self._whole, self._part = whole, part

    def note(self, failed: Flags, letters: Iterable[DeadLetter]) -> None:
        rows = np.zeros(len(self._part), np.bool_)
        rows[np.flatnonzero(self._part)[failed]] = True
        self._whole.note(rows, letters)


def keep(condition: pa.Array) -> Flags:
    """The rows where a condition holds: null is false.

    >>> keep(pa.array([True, None, False])).tolist()
    [True, False, False]
    """
    known = pc.fill_null(condition, False) if condition.null_count else condition
    mask: Flags = known.to_numpy(zero_copy_only=False)
    return mask
