"""Signed rows as bags: sum, difference, and the form that shows only what holds at each instant.

>>> from streamproof.events.schema import Schema
>>> from streamproof.events.batch import Batch
>>> rows = Batch.from_rows(Schema(), [(1, 5, 1, {}), (5, 9, 1, {}), (1, 5, 1, {}), (1, 5, -1, {})]).rows
>>> consolidate(rows).to_pylist()
[{'le': 1, 're': 5, 'w': 1}, {'le': 5, 're': 9, 'w': 1}]
>>> instants(rows).to_pylist()
[{'le': 1, 're': 9, 'w': 1}]
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import RunError
from streamproof.events import weights
from streamproof.events.notation import show_payload
from streamproof.events.order import (
    Ints,
    canonical,
    group_numbers,
    int_piece,
    ints,
    lifetime_pieces,
    one_array,
    pack,
    pieces_of,
    plain_array,
    sort_rows,
)
from streamproof.events.schema import LE, RE, W, payload_name
from streamproof.events.time import show_tick


def payload_of(rows: pa.Table) -> pa.Table:
    """The payload columns of signed rows."""
    return rows.select(range(3, rows.num_columns))


def python_rows(rows: pa.Table) -> Iterator[tuple[int, int, int, dict[str, object]]]:
    """Few signed rows as Python values: le, re, w and the payload.

    >>> from streamproof.events.schema import Schema
    >>> list(python_rows(pa.Table.from_arrays([[1], [5], [1], [7]], schema=Schema.of({"w": "int64"}).arrow_rows)))
    [(1, 5, 1, {'w': 7})]
    """
    names = [payload_name(name) for name in rows.schema.names[W + 1 :]]
    for le, re, w, *values in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        yield le, re, w, dict(zip(names, values, strict=True))


def consolidate(rows: pa.Table) -> pa.Table:
    """Signed rows with equal rows summed, zeros gone, canonical values, in canonical order.

    Law: the order of rows does not matter, and ``consolidate(consolidate(x)) == consolidate(x)``.
    """
    rows = canonical(rows)
    le, re, w = (ints(rows[place]) for place in (LE, RE, W))
    order, starts = sort_rows(pack([*lifetime_pieces(le, re), *pieces_of(payload_of(rows))]), rows.num_rows)
    if not len(order):
        return rows
    totals, lost = weights.sums(w[order], starts)
    if lost.any():
        first = int(lost.argmax())
        raise _uncountable(rows, w, order[slice(*np.append(starts, len(order))[first : first + 2])])
    kept = totals != 0
    taken = take(rows, order[starts[kept]])
    return taken.set_column(W, rows.schema.field(W), plain_array(totals[kept]))


def _uncountable(rows: pa.Table, w: Ints, equal: Ints) -> RunError:
    """The error of equal rows whose weights do not add up to an int64."""
    le, re, _, payload = next(python_rows(rows.slice(int(equal[0]), 1)))
    return weights.too_many(weights.total(w[equal]), at=f"[{show_tick(le)}, {show_tick(re)}) {show_payload(payload)}")


def identical(a: pa.Table, b: pa.Table) -> bool:
    """The same consolidated rows, exactly: one pass, no sort."""
    if a.schema != b.schema or a.num_rows != b.num_rows:
        return False
    return all(_same_column(one_array(x), one_array(y)) for x, y in zip(a.columns, b.columns, strict=True))


def _same_column(a: pa.Array, b: pa.Array) -> bool:
    if not pa.types.is_floating(a.type):
        return bool(a.equals(b))
    if not a.is_null().equals(b.is_null()):
        return False
    left, right = (x.fill_null(0.0).to_numpy(zero_copy_only=False) for x in (a, b))
    return bool(np.array_equal(left, right, equal_nan=True))


def difference(a: pa.Table, b: pa.Table) -> pa.Table:
    """``a − b``, consolidated: what only ``a`` has weighs more than 0, what only ``b`` has less.

    Law: ``difference(a, a)`` has no rows.
    """
    return consolidate(pa.concat_tables([a, b.set_column(W, b.schema.field(W), pc.negate(b[W]))]))


def instants(rows: pa.Table) -> pa.Table:
    """Per payload the maximal pieces of time with a constant count: equal iff the rows are equal at every instant.

    Ordered by payload, then time; so equal streams give identical tables.
    """
    rows = canonical(rows)
    payload = payload_of(rows)
    group = group_numbers(*sort_rows(pack(pieces_of(payload)), rows.num_rows))
    le, re, w = (ints(rows[place]) for place in (LE, RE, W))
    if (events := weights.magnitude(w)) > weights.MOST:
        raise weights.too_many(events, at="all rows together")
    source = np.concatenate([np.arange(len(le))] * 2)
    group, when, change = np.concatenate([group, group]), np.concatenate([le, re]), np.concatenate([w, -w])
    order, fresh = sort_rows(pack([int_piece(group), int_piece(when)]), len(when))
    if not len(order):
        return rows
    group, when, change, source = group[order], when[order], change[order], source[order]
    change = np.add.reduceat(change, fresh)
    when, source = when[fresh][change != 0], source[fresh][change != 0]
    count = np.cumsum(change[change != 0])  # every payload's changes sum to 0, so its count starts at 0
    return _pieces(rows, source, when, count[:-1])


def _pieces(rows: pa.Table, source: Ints, when: Ints, count: Ints) -> pa.Table:
    """Rows from each change to the next, of the same payload wherever the count is not 0."""
    kept = np.flatnonzero(count)
    times = [pa.array(part) for part in (when[kept], when[kept + 1], count[kept])]
    payload = take(payload_of(rows), source[kept])
    return pa.Table.from_arrays([*times, *payload.columns], schema=rows.schema)


def take(rows: pa.Table, indices: Ints) -> pa.Table:
    """The rows at ``indices``; all of them in their order cost nothing."""
    if len(indices) == rows.num_rows and np.array_equal(indices, np.arange(len(indices))):
        return rows
    return rows.combine_chunks().take(plain_array(indices))
