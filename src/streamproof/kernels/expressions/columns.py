"""What an expression reads: Arrow columns of one batch, and which of its rows are looked at.

>>> columns = Columns({Col("v"): pa.array([1, 2, 3])}, 3)
>>> columns.where(pa.array([True, False, True]))[Col("v")].to_pylist()
[1, 3]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import PlanError, did_you_mean
from streamproof.events.order import Flags
from streamproof.plan.expr import Col


class Columns:
    """Columns by name and side, each one array of ``rows`` values. ``le`` and ``re`` are int64 columns among them."""

    def __init__(self, arrays: Mapping[Col, pa.Array], rows: int) -> None:
        self.rows = rows
        self._arrays: dict[Col, pa.Array] = dict(arrays)
        self._missing: Callable[[Col], pa.Array] = self._unknown

    def __getitem__(self, column: Col) -> pa.Array:
        if column not in self._arrays:
            self._arrays[column] = self._missing(column)
        return self._arrays[column]

    def where(self, condition: pa.BooleanArray) -> Columns:
        """The rows where a condition holds. A column is filtered when it is first read."""
        if condition.true_count == self.rows:
            return self
        part = Columns({}, condition.true_count)
        part._missing = lambda column: pc.filter(self[column], condition)
        return part

    def _unknown(self, column: Col) -> pa.Array:
        names = [known.name for known in self._arrays]
        raise PlanError(f'the batch has no column "{column.name}"', fix=did_you_mean(column.name, names))


def keep(condition: pa.Array) -> Flags:
    """The rows where a condition holds: null is false.

    >>> keep(pa.array([True, None, False])).tolist()
    [True, False, False]
    """
    known = pc.fill_null(condition, False) if condition.null_count else condition
    mask: Flags = known.to_numpy(zero_copy_only=False)
    return mask
