"""What flows between kernels: signed rows in columns, each with the number of its group, and the frontier.

>>> from streamproof.events.schema import Schema
>>> batch = Batch.from_rows(Schema.of({"v": "int64"}), [(1, 5, 1, {"v": 7})], frontier=3)
>>> delta = Delta.from_batch(batch)
>>> len(delta), delta.frontier, delta.to_batch(batch.schema).rows.to_pylist()
(1, 3, [{'le': 1, 're': 5, 'w': 1, 'v': 7}])

Rows that cancel are found at little cost where few can: a row can only cancel one of the other sign with the same group
and lifetime. Those are found by a table of marks, and only they are compared whole.

>>> schema = batch.schema
>>> rows = [(1, 5, 1, {"v": 7}), (1, 5, -1, {"v": 7}), (2, 5, -1, {"v": 7})]
>>> without_cancelling(Delta.from_batch(Batch.from_rows(schema, rows)), Layout.of(schema), Strings()).le.tolist()
[2]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamproof.events import weights
from streamproof.events.batch import Batch
from streamproof.events.order import no_values, plain_array
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.cells import Ints, Layout, Strings
from streamproof.kernels.columns_loops import all_once, extent, mix, suspects_loop, total, totals
from streamproof.kernels.interning import Interner
from streamproof.thresholds import SMALL_SUMS

NUMBERS: Final = (pa.int64(), pa.float64())


class Extent(NamedTuple):
    """The bounds of a delta's rows, found in one pass over them."""

    least_le: int
    greatest_le: int
    greatest_re: int
    longest: int  # the longest lifetime; infinite where one has no start
    least_w: int
    greatest_w: int


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """Signed rows with group numbers. Outside of every group_apply the group is 0."""

    group: Ints
    le: Ints
    re: Ints
    w: Ints
    columns: tuple[pa.Array, ...]
    frontier: int = BEGINNING
    is_net: bool = field(default=False, init=False)  # whether it is known that no two rows are equal but for w
    _extent: Extent | None = field(default=None, init=False)

    def __len__(self) -> int:
        return len(self.le)

    @staticmethod
    def empty(schema: Schema, *, frontier: int = BEGINNING) -> Delta:
        none = np.empty(0, np.int64)
        return Delta(none, none, none, none, tuple(no_values(kind.arrow) for _, kind in schema), frontier)

    @staticmethod
    def from_batch(batch: Batch) -> Delta:
        """The rows of a batch, in group 0."""
        rows = batch.rows
        le, re, w, *columns = [one_chunk(rows.column(n)) for n in range(rows.num_columns)]
        starts, ends, weights = (column.to_numpy(zero_copy_only=False) for column in (le, re, w))
        return Delta(np.zeros(len(le), np.int64), starts, ends, weights, tuple(columns), batch.frontier)

    @property
    def extent(self) -> Extent:
        """The bounds of its rows; there must be some."""
        if self._extent is None:
            object.__setattr__(self, "_extent", Extent(*extent(self.le, self.re, self.w)))
        assert self._extent is not None
        return self._extent

    def to_batch(self, schema: Schema) -> Batch:
        """The rows as a batch; groups are gone by then."""
        times = (np.ascontiguousarray(column) for column in (self.le, self.re, self.w))
        arrays = [*(plain_array(column) for column in times), *self.columns]
        return Batch(schema, pa.Table.from_arrays(arrays, schema=schema.arrow_rows), self.frontier)

    def total(self) -> int:
        """The exact sum of the weights."""
        found, bits = total(self.w)
        return int(found) if (int(bits) + 1) * len(self) < 1 << SMALL_SUMS.now else weights.total(self.w)

    def net(self, is_net: bool = True) -> Delta:
        """The same rows, known to be net: no two are equal but for w, and no w is 0. `replace` forgets it."""
        return self if is_net == self.is_net else self._copy(self.frontier, is_net)

    def grouped(self, group: Ints) -> Delta:
        """The same rows in other groups."""
        same = Delta(group, self.le, self.re, self.w, self.columns, self.frontier)
        object.__setattr__(same, "_extent", self._extent)
        return same

    def points(self) -> Delta:
        """``[le, le + 1)`` for each of its rows; there must be some."""
        same = Delta(self.group, self.le, self.le + 1, self.w, self.columns, self.frontier)
        longest = 1 if self.extent.least_le > BEGINNING else FOREVER
        reach = self.extent._replace(greatest_re=self.extent.greatest_le + 1, longest=longest)
        object.__setattr__(same, "_extent", reach)
        return same

    def _copy(self, frontier: int, is_net: bool) -> Delta:
        same = Delta(self.group, self.le, self.re, self.w, self.columns, frontier)
        object.__setattr__(same, "is_net", is_net)
        object.__setattr__(same, "_extent", self._extent)
        return same

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Delta:
        """The rows at these positions, or where a mask is true."""
        at: Ints = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64, copy=False)
        columns = tuple(_taken(self.columns, at))
        return Delta(self.group[at], self.le[at], self.re[at], self.w[at], columns, self.frontier)

    def at(self, frontier: int) -> Delta:
        """The same rows with another frontier."""
        if frontier == self.frontier:
            return self
        return self._copy(frontier, self.is_net)


def _taken(columns: Sequence[pa.Array], at: Ints) -> Iterator[pa.Array]:
    """The values of columns at some positions; numbers without nulls are taken at half the cost."""
    picked: pa.Array | None = None
    for column in columns:
        if column.type in NUMBERS and not column.null_count:
            yield plain_array(column.to_numpy()[at])
            continue
        picked = plain_array(at) if picked is None else picked
        yield column.take(picked)


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """A chunked column as one array, without a copy where it is one already."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def concat(deltas: Sequence[Delta], *, frontier: int) -> Delta:
    """Rows of several deltas of one schema, one after the other."""
    filled = [delta for delta in deltas if len(delta)] or list(deltas[:1])
    if len(filled) == 1:
        return filled[0].at(frontier)
    group, le, re, w = (np.concatenate([getattr(d, name) for d in filled]) for name in ("group", "le", "re", "w"))
    columns = tuple(pa.concat_arrays(parts) for parts in zip(*(d.columns for d in filled), strict=True))
    return Delta(group, le, re, w, columns, frontier)


def consolidate(delta: Delta, layout: Layout, strings: Strings) -> Delta:
    """Equal rows become one, and rows that cancel vanish. Law: the sum of the rows stays the same."""
    if delta.is_net or not len(delta):
        return delta
    if not delta.w.all():
        delta = delta.take(delta.w != 0)
    cells = layout.columns_of(delta.columns, strings)
    if _are_different((delta.group, delta.le, delta.re, *cells)):
        return delta.net()
    totals, firsts = _summed(delta, cells)
    kept = totals != 0
    return replace(delta.take(firsts[kept]), w=totals[kept]).net()


def net_weights(delta: Delta, at: Ints, layout: Layout, strings: Strings) -> tuple[Ints, Ints]:
    """Of some rows, those that are equal but for w: the sum of their weights, and which of these rows is the first."""
    cells = layout.columns_of(delta.columns, strings)
    times = delta.group, delta.le, delta.re
    identity = np.empty((len(at), 3 + len(cells)), np.int64)
    for n, column in enumerate((*times, *cells)):
        identity[:, n] = column[at]
    known = Interner(identity.shape[1], 1 << len(at).bit_length())
    found: tuple[Ints, Ints] = totals(known.intern(identity), delta.w[at])
    return found


def _summed(delta: Delta, cells: Sequence[Ints]) -> tuple[Ints, Ints]:
    identity = np.column_stack([delta.group, delta.le, delta.re, *cells])
    found: tuple[Ints, Ints] = totals(Interner(identity.shape[1]).intern(identity), delta.w)
    return found


def _are_different(columns: tuple[Ints, ...]) -> bool:
    """Whether no two rows of some columns are equal, as far as their hashes tell; in doubt, no."""
    if len(columns[0]) < 2:
        return True
    marks = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mix(marks, column)
    different: bool = all_once(marks)
    return different


def without_cancelling(delta: Delta, layout: Layout, strings: Strings) -> Delta:
    """The same sum with nothing that cancels. Law: `consolidate` of both is equal."""
    if not len(delta) or delta.extent.least_w > 0 or delta.extent.greatest_w < 0:
        return delta
    suspects = suspects_loop(delta.group, delta.le, delta.re, delta.w)
    if not suspects.any():
        return delta
    if suspects.all():
        return consolidate(delta, layout, strings)
    doubtful = np.flatnonzero(suspects)
    totals, firsts = net_weights(delta, doubtful, layout, strings)
    w = delta.w.copy()
    w[doubtful] = 0
    w[doubtful[firsts]] = totals
    return replace(delta, w=w).take(w != 0)
