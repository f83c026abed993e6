"""Are two histories the same, and if not, what is the first difference?

>>> from streamproof.events.history import History
>>> from streamproof.events.schema import Schema
>>> one, other = (History.from_rows(Schema.of({"v": "int64"}), [(3, 7, {"v": v})]) for v in (4, 5))
>>> same_bag(one, other)
False
>>> print(explain_difference(one, other))
at [3, 7): expected v=4, found v=5
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from streamproof.arguments import door
from streamproof.events.bag import difference, identical, instants, python_rows, take
from streamproof.events.notation import merge_types, show_payload
from streamproof.events.order import (
    Flags,
    Floats,
    Ints,
    Words,
    group_numbers,
    ints,
    one_array,
    pack,
    pieces_of,
    sort_rows,
)
from streamproof.events.schema import FLOAT64, LE, RE, Schema, W
from streamproof.events.time import show_tick

if TYPE_CHECKING:
    from streamproof.events.history import History

RELATIVE: Final = 1e-9
ABSOLUTE: Final = 1e-12
_END_MOVED: Final = (RE, "at {0}: {1} expected to end at {2}, found {3}")
_START_MOVED: Final = (LE, "{1} until {0}: expected from {2}, found from {3}")


class Tolerance(NamedTuple):
    """How far two floats may be apart and still count as equal."""

    relative: float = RELATIVE
    absolute: float = ABSOLUTE


@door
def same_bag(
    a: History,
    b: History,
    *,
    relative: float = RELATIVE,
    absolute: float = ABSOLUTE,
    numeric_types_loose: bool = True,
) -> bool:
    """The same events the same number of times.

    Values compare by number, so 15 equals 15.0, unless ``numeric_types_loose=False``; floats may differ by the
    tolerance; everything else is exact. NaN equals NaN, null equals null. Column order does not matter.

    Law: ``a == b`` implies ``same_bag(a, b)``.
    """
    if explain_schemas(a.schema, b.schema, loose=numeric_types_loose) is not None:
        return False
    missing, surplus = _unmatched(*_aligned(a, b), Tolerance(relative, absolute))
    return not (missing.num_rows or surplus.num_rows)


@door
def same_snapshots(a: History, b: History, *, relative: float = RELATIVE, absolute: float = ABSOLUTE) -> bool:
    """At every instant the same payloads the same number of times, however lifetimes are cut.

    >>> from streamproof.events.history import History
    >>> cut = History.from_rows(Schema(), [(1, 5, {}), (5, 9, {})])
    >>> same_snapshots(cut, History.from_rows(Schema(), [(1, 9, {})]))
    True
    """
    if explain_schemas(a.schema, b.schema, loose=True) is not None:
        return False
    tolerance = Tolerance(relative, absolute)
    left, right = _aligned(a, b)
    if identical(instants(left), instants(right)):
        return True
    if not any(kind == FLOAT64.arrow for kind in left.schema.types):
        return False
    snapped = _snapped(pa.concat_tables([left, right]), tolerance)
    left, right = snapped.slice(0, left.num_rows), snapped.slice(left.num_rows)
    missing, surplus = _unmatched(instants(left), instants(right), tolerance)
    return not (missing.num_rows or surplus.num_rows)


def same_schema(a: Schema, b: Schema) -> bool:
    """The same columns of the same types, in any order, and the same unit."""
    return dict(a.columns) == dict(b.columns) and a.unit == b.unit


def explain_schemas(expected: Schema, actual: Schema, *, loose: bool) -> str | None:
    """Why two histories cannot be compared row by row, or nothing."""
    if set(expected.names) != set(actual.names):
        return f"columns differ: expected {_listed(expected)}, found {_listed(actual)}"
    for name, kind in expected:
        found = actual[name]
        if found != kind and not (loose and merge_types(kind, found)):
            return f'column "{name}": expected type {kind}, found {found}'
    return None


def _listed(schema: Schema) -> str:
    return ", ".join(schema.names) or "none"


@door
def explain_difference(
    expected: History,
    actual: History,
    *,
    relative: float = RELATIVE,
    absolute: float = ABSOLUTE,
    numeric_types_loose: bool = True,
) -> str | None:
    """The first difference in time order, in words; nothing if there is none.

    Law: ``explain_difference(a, b) is None`` iff ``same_bag(a, b)``.
    """
    reason = explain_schemas(expected.schema, actual.schema, loose=numeric_types_loose)
    if reason is not None:
        return reason
    left, right = _aligned(expected, actual)
    missing, surplus = _unmatched(left, right, Tolerance(relative, absolute))
    if not missing.num_rows and not surplus.num_rows:
        return None
    first = _first(missing, surplus)
    counts = _counts(left, first), _counts(right, first)
    text = _in_words(first, _from(missing, first), _from(surplus, first), counts)
    more = max(missing.num_rows, surplus.num_rows) - 1
    return text + (f" (and {more} more {'row differs' if more == 1 else 'rows differ'})" if more > 0 else "")


def _aligned(a: History, b: History) -> tuple[pa.Table, pa.Table]:
    """The rows of both with equal columns: numbers of two types become one type, in the order of ``a``."""
    wide = tuple((name, merge_types(kind, b.schema[name]) or kind) for name, kind in a.schema)
    rows = Schema(wide).arrow_rows
    return a.rows.cast(rows), b.rows.select(rows.names).cast(rows)


def _unmatched(a: pa.Table, b: pa.Table, tolerance: Tolerance) -> tuple[pa.Table, pa.Table]:
    """What only ``a`` has and what only ``b`` has, each in canonical order, with counts."""
    if identical(a, b):
        return a.slice(0, 0), b.slice(0, 0)
    rest = difference(a, b)
    w = ints(rest[W])
    left, right = np.flatnonzero(w > 0), np.flatnonzero(w < 0)
    floats = [i for i, field in enumerate(rest.schema) if pa.types.is_floating(field.type)]
    if floats and len(left) and len(right):
        left, right = _without_near(rest, np.repeat(left, w[left]), np.repeat(right, -w[right]), floats, tolerance)
    return take(rest, left), take(rest, right)


def _without_near(
    rows: pa.Table, left: Ints, right: Ints, floats: list[int], tolerance: Tolerance
) -> tuple[Ints, Ints]:
    """Take away pairs of rows that agree but for the last bits of floats."""
    values = np.column_stack([_floats(rows.column(i)) for i in floats])
    group = group_numbers(*sort_rows(_classes(rows, values, floats), rows.num_rows))
    gone_left, gone_right = np.zeros(len(left), np.bool_), np.zeros(len(right), np.bool_)
    shared = np.intersect1d(group[left], group[right])
    by_group = [np.argsort(group[side], kind="stable") for side in (left, right)]
    bounds = [
        np.searchsorted(group[side[o]], [shared, shared + 1]) for side, o in zip((left, right), by_group, strict=True)
    ]
    for (l0, l1), (r0, r1) in zip(bounds[0].T, bounds[1].T, strict=True):
        mine, theirs = by_group[0][l0:l1], by_group[1][r0:r1]
        for i, j in _pairs(values[left[mine]], values[right[theirs]], tolerance):
            gone_left[mine[i]] = gone_right[theirs[j]] = True
    return left[~gone_left], right[~gone_right]


def _pairs(a: Floats, b: Floats, tolerance: Tolerance) -> list[tuple[int, int]]:
    """Greedy pairs of near rows; rows are in canonical order, so the nearest is usually the next."""
    free = np.ones(len(b), np.bool_)
    pairs = []
    for i, row in enumerate(a):
        near = free & np.all(
            np.isclose(b, row, rtol=tolerance.relative, atol=tolerance.absolute, equal_nan=True), axis=1
        )
        if near.any():
            with np.errstate(invalid="ignore"):  # equal infinities have no distance
                distance = np.where(near, np.abs(np.nan_to_num(b - row)).sum(axis=1), np.inf)
            j = int(np.argmin(distance))
            free[j] = False
            pairs.append((i, j))
    return pairs


def _floats(column: pa.ChunkedArray) -> Floats:
    array = one_array(column)
    values: Floats = array.fill_null(0.0).to_numpy(zero_copy_only=False)
    return values


def _classes(rows: pa.Table, values: Floats, floats: list[int]) -> list[Words]:
    """Everything in which near rows agree exactly: times, other columns, and which floats are null, NaN or infinite."""
    exact = rows.select([i for i in range(rows.num_columns) if i not in (W, *floats)])
    pieces = pieces_of(exact)
    for index, column in zip(floats, values.T, strict=True):
        kind = np.where(np.isnan(column), 1, np.where(np.isposinf(column), 2, np.where(np.isneginf(column), 3, 0)))
        absent = one_array(rows.column(index)).is_null().to_numpy(zero_copy_only=False)
        pieces.append((np.where(absent, 4, kind).astype(np.uint64), 3))
    return pack(pieces)


def _snapped(rows: pa.Table, tolerance: Tolerance) -> pa.Table:
    """Near floats made equal, column by column, so that payloads can be grouped."""
    for index, field in enumerate(rows.schema):
        if field.type == FLOAT64.arrow:
            array = one_array(rows.column(index))
            absent = array.is_null().to_numpy(zero_copy_only=False)
            values = _snap(_floats(array), tolerance)
            rows = rows.set_column(index, field, pa.array(values, mask=absent, from_pandas=False))
    return rows


def _snap(values: Floats, tolerance: Tolerance) -> Floats:
    """Each value replaced by the least of its cluster of near values; a cluster that spreads too far stays as it is."""
    distinct, where = np.unique(values, return_inverse=True)
    if not len(distinct):
        return values
    with np.errstate(invalid="ignore"):  # ∞ − ∞
        gaps = np.diff(distinct) > tolerance.absolute + tolerance.relative * np.abs(distinct[1:])
        starts = np.flatnonzero(np.concatenate([[True], gaps | ~np.isfinite(distinct[1:])]))
        ends = np.concatenate([starts[1:], [len(distinct)]]) - 1
        least, most = distinct[starts], distinct[ends]
        tight = most - least <= 2 * (tolerance.absolute + tolerance.relative * np.abs(most))
    sizes = ends - starts + 1
    snapped = np.where(np.repeat(tight, sizes), np.repeat(least, sizes), distinct)
    return snapped[where]


class _Event(NamedTuple):
    """A row as Python values."""

    times: tuple[int, int]
    weight: int
    payload: dict[str, object]

    def __str__(self) -> str:
        return f"[{show_tick(self.times[LE])}, {show_tick(self.times[RE])})"

    def same_payload(self, other: _Event) -> bool:
        return repr(self.payload) == repr(other.payload)


def _events(rows: pa.Table) -> list[_Event]:
    return [_Event((le, re), w, payload) for le, re, w, payload in python_rows(rows)]


def _first(missing: pa.Table, surplus: pa.Table) -> _Event:
    """The earliest row that differs; its weight above 0 says that it is missing, below 0 that it is surplus."""
    heads = [_events(side.slice(0, 1))[0] for side in (missing, surplus) if side.num_rows]
    return min(heads, key=lambda row: row.times)


def _from(side: pa.Table, first: _Event) -> list[_Event]:
    """Rows of a side that could be the counterpart of the first: the same start, or else close behind (first 100)."""
    same: Flags = ints(side[LE]) == first.times[LE]
    return _events(take(side, np.flatnonzero(same)[:1000])) or _events(side.slice(0, 100))


def _counts(rows: pa.Table, row: _Event) -> int:
    """How often exactly this row occurs."""
    le, re = row.times
    near = take(rows, np.flatnonzero((ints(rows[LE]) == le) & (ints(rows[RE]) == re)))
    return sum(abs(other.weight) for other in _events(near) if other.same_payload(row))


def _tick(value: int) -> str:
    return str(show_tick(value))


def _in_words(first: _Event, missing: list[_Event], surplus: list[_Event], counts: tuple[int, int]) -> str:
    payload = show_payload(first.payload)
    if all(counts):
        return f"at {first}: {payload} expected {_times(counts[0])}, found {_times(counts[1])}"
    is_missing = counts[0] > 0
    others = surplus if is_missing else missing
    same = [other for other in others if other.same_payload(first)]
    for end, text in (_END_MOVED, _START_MOVED):
        start = LE if end == RE else RE
        for other in same:
            if other.times[start] == first.times[start]:
                wanted, found = (first, other) if is_missing else (other, first)
                times = (first.times[start], wanted.times[end], found.times[end])
                return text.format(_tick(times[0]), payload, _tick(times[1]), _tick(times[2]))
    twins = [other.payload for other in others if other.times == first.times]
    if twins:
        return _values_differ(first, twins, is_missing=is_missing)
    return f"at {first}: {'missing' if is_missing else 'surplus'} {payload}"


def _values_differ(first: _Event, twins: list[dict[str, object]], *, is_missing: bool) -> str:
    """The same lifetime with another value: name the columns that differ, and those that agree as context."""
    mine = first.payload
    other = max(twins, key=lambda row: sum(repr(row[name]) == repr(mine[name]) for name in mine))
    differ = [name for name in mine if repr(mine[name]) != repr(other[name])]
    agree = {name: mine[name] for name in mine if name not in differ}
    wanted, found = (mine, other) if is_missing else (other, mine)
    context = f" {show_payload(agree)}" if agree else ""
    left, right = (show_payload({name: row[name] for name in differ}) for row in (wanted, found))
    return f"at {first}{context}: expected {left}, found {right}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
