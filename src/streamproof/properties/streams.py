"""Streams with times: drawn windows whose rows have a place in event time and an order of arrival.

>>> stream = recorded([{"at": 0, "v": 1}, {"at": 7_000_000, "v": 2}], time="at", size="5s", start=0)
>>> stream
stream of 2 rows in 2 windows of 5s from 1970-01-01T00:00:00Z
  0  00:00:00  v=1
  1  00:00:07  v=2
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.arguments import door
from streamproof.errors import InputError, did_you_mean
from streamproof.events.notation import exact_moment
from streamproof.events.time import Span, duration, show_moment, to_tick
from streamproof.properties.contents import Explicit, Part, Sampler, uniform
from streamproof.properties.rows import LazyColumns, Window, as_record

Ints = np.ndarray[Any, np.dtype[np.int64]]
WEEK: Final = 7 * 86_400 * 10**6
START: Final = 2818 * WEEK  # Thursday 2024-01-04, a whole number of weeks after 1970, as Spark's windows count
STAMP: Final = pa.timestamp("us", tz="UTC")
SHOWN = 12  # rows of a window that the text of a stream shows


@dataclass(frozen=True)
class Timed:
    """Rows of one window with their times, in microseconds after the window's start."""

    rows: Part
    offsets: tuple[int, ...] | None  # None: from the seed of the rows
    span: int  # the offsets lie below it
    step: int = 1  # and are multiples of it

    def times(self) -> Ints:
        """Microseconds after the window's start."""
        if self.offsets is not None:
            return np.array(self.offsets, dtype=np.int64)
        ticks = max(1, self.span // self.step)
        assert not isinstance(self.rows, Explicit)
        numbers = uniform(self.rows.count, self.rows.seed, 1, self.rows.skip)
        return np.minimum((numbers * ticks).astype(np.int64), ticks - 1) * self.step


@dataclass(frozen=True)
class WindowLayout:
    """Where the windows of a stream lie in time, in microseconds."""

    size: int
    every: int  # from one window's start to the next: the size for tumbling windows
    start: int = START

    def begin(self, window: int) -> int:
        """The start of a window."""
        return self.start + window * self.every

    def end(self, windows: int) -> int:
        """Where a stream of so many windows ends."""
        return self.start if windows == 0 else self.begin(windows - 1) + self.size


@dataclass(frozen=True, eq=False)
class WindowedStream:
    """A finite stream: rows in windows, with event times, in an order of arrival."""

    windows: tuple[tuple[Timed, ...], ...]
    layout: WindowLayout
    time: str
    schema: pa.Schema | None = None  # of the rows without the time, where known
    delays: tuple[tuple[int, int], ...] = ()  # (row, microseconds): rows that arrive later than their time
    spread: tuple[int, int] | None = None  # (most, seed): every row arrives up to so much later
    repeats: tuple[tuple[int, int], ...] = ()  # (row, microseconds): rows that arrive once more, so much later
    in_order_given: bool = False  # rows stay in the order in which they were given
    name: str = field(default="input")

    @cached_property
    def digest(self) -> str:
        """The same for equal streams, in every process."""
        parts = [
            [(part.rows.describe(), part.offsets, part.span, part.step) for part in window] for window in self.windows
        ]
        text = repr((parts, self.layout, self.time, self.delays, self.spread, self.repeats, str(self.schema)))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WindowedStream) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def start(self) -> int:
        """Where the horizon begins, in microseconds since 1970."""
        return self.layout.start

    @property
    def end(self) -> int:
        """Where the horizon ends: after the last window, also if it is empty."""
        return self.layout.end(len(self.windows))

    @property
    def ordered(self) -> bool:
        """Whether every row arrives in the order of its time, once."""
        return not (self.delays or self.spread or self.repeats or self.in_order_given)

    @property
    def count(self) -> int:
        """How many rows arrive."""
        return sum(part.rows.count for window in self.windows for part in window) + len(self.repeats)

    def __len__(self) -> int:
        return len(self.windows)

    @cached_property
    def _unordered(self) -> pa.Table:
        """The rows window by window, with the event time."""
        schema = self.full_schema
        parts = [(n, part) for n, window in enumerate(self.windows) for part in window if part.rows.count]
        if not parts:
            return schema.empty_table()
        times = np.concatenate([part.times() + self.layout.begin(n) for n, part in parts])
        rows, order = _rows_of([part.rows for _, part in parts])
        columns = [
            pa.chunked_array([pa.array(times, type=STAMP)]) if f.name == self.time else _typed(rows, f, order)
            for f in schema
        ]
        return pa.table(columns, schema=schema).combine_chunks()

    @cached_property
    def full_schema(self) -> pa.Schema:
        """The columns of the rows and the event time."""
        inner = self.schema if self.schema is not None else _inferred(self.windows, self.time)
        stamp = pa.field(self.time, STAMP)
        at = inner.get_field_index(self.time)
        return inner.append(stamp) if at < 0 else inner.set(at, stamp)

    @cached_property
    def _arriving(self) -> tuple[pa.Table, Ints]:
        """All rows in their order of arrival, and when each arrives."""
        table = self._unordered
        times = event_times(table, self.time)
        arrival = times.copy()
        if self.spread is not None and len(arrival):
            arrival += (uniform(len(arrival), self.spread[1], 0) * (self.spread[0] + 1)).astype(np.int64)
        for row, delay in self.delays:
            arrival[row] += delay
        if self.repeats:
            rows = np.array([row for row, _ in self.repeats], dtype=np.int64)
            arrival = np.concatenate([arrival, arrival[rows] + np.array([later for _, later in self.repeats])])
            table = pa.concat_tables([table, table.take(pa.array(rows))])
        order = np.arange(len(arrival)) if self.in_order_given else np.argsort(arrival, kind="stable")
        return table.take(pa.array(order)), arrival[order]

    @property
    def table(self) -> pa.Table:
        """All rows in their order of arrival."""
        return self._arriving[0]

    @property
    def rows(self) -> Window:
        """All rows in their order of arrival, as predicates see them."""
        return Window(LazyColumns(self.table))

    def batches(self, many: int | str) -> list[pa.Table]:
        """The rows in micro-batches: ``"window"`` gives each window's arrivals, a number gives so many equal parts."""
        table, arrival = self._arriving
        if many == "window":
            count = max(len(self.windows), 1)
            reached = np.maximum.accumulate(arrival) if len(arrival) else arrival
            number = np.clip((reached - self.start) // self.layout.every, 0, None)
            last = int(max(count, number[-1] + 1 if len(number) else 0))
            edges = np.searchsorted(number, np.arange(last + 1))
        elif isinstance(many, int) and many >= 1:
            edges = np.linspace(0, table.num_rows, many + 1).astype(np.int64)
        else:
            raise InputError(f'batches is a number of micro-batches or "window", not {many!r}')
        return [table.slice(a, b - a) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]

    def shifted(self, by: int) -> WindowedStream:
        """The same stream so many microseconds later."""
        return replace(self, layout=replace(self.layout, start=self.layout.start + by))

    def __repr__(self) -> str:
        windows = f"{len(self.windows)} windows of {_span_text(self.layout.size)}"
        head = f"stream of {self.count:,} rows in {windows} from {show_moment(self.start, 'us')}"
        return "\n".join([head, *self._lines()])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # as notebooks and Hypothesis call it
        for number, line in enumerate(repr(self).splitlines()):
            if number:
                printer.break_()
            printer.text(line)

    def _lines(self) -> Iterator[str]:
        """The rows by window; a run of empty windows takes one line."""
        rows = LazyColumns(self._unordered)
        at, first = 0, 0  # the next row, and the first of the empty windows just before
        for number, window in enumerate(self.windows):
            count = sum(part.rows.count for part in window)
            if not count:
                continue
            yield from _empty(first, number)
            for shown in range(min(count, SHOWN)):
                yield f"  {number}  {self._row_text(rows, at + shown)}"
            if count > SHOWN:
                yield f"  {number}  … {count - SHOWN} more"
            at, first = at + count, number + 1
        yield from _empty(first, len(self.windows))

    def _row_text(self, rows: LazyColumns, at: int) -> str:
        moment = show_moment(_ticks(rows.table, self.time)[at], "us")[11:].rstrip("Z")
        values = ", ".join(f"{name}={rows.values(name)[at]!r}" for name in rows.names if name != self.time)
        late = sum(delay for row, delay in self.delays if row == at)
        return f"{moment}  {values}" + (f"  (arrives {_span_text(late)} late)" if late else "")


def _empty(first: int, last: int) -> Iterator[str]:
    if first < last:
        yield f"  {first}  –" if last - first == 1 else f"  {first}–{last - 1}  –"


def _ticks(table: pa.Table, time: str) -> list[int]:
    ticks: list[int] = event_times(table, time).tolist()
    return ticks


def event_times(table: pa.Table, time: str) -> Ints:
    """The event times of a table in microseconds since 1970."""
    if time not in table.column_names:
        raise InputError(f'the rows have no column "{time}"', fix=did_you_mean(time, table.column_names))
    column = table.column(time)
    if not (pa.types.is_timestamp(column.type) or pa.types.is_integer(column.type)):
        fix = "give instants: zoned datetimes, or whole microseconds since 1970"
        raise InputError(f'the column "{time}" has no times but {column.type}', fix=fix)
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
    result: Ints = column.to_numpy().astype(np.int64)
    return result


Values = Mapping[str, Any]  # columns of Python values, or of Arrow's


def _rows_of(parts: Sequence[Part]) -> tuple[list[tuple[Values, int]], Ints | None]:
    """The rows of all parts, those of one kind together, and the order that puts them back; None if they are in it."""
    kinds: dict[Sampler | None, list[int]] = {}
    for number, part in enumerate(parts):
        kinds.setdefault(None if isinstance(part, Explicit) else part.sampler, []).append(number)
    groups = [
        (_values([parts[n] for n in members]), sum(parts[n].count for n in members)) for members in kinds.values()
    ]
    if len(kinds) == 1:
        return groups, None
    listed = [number for members in kinds.values() for number in members]
    sizes = np.array([parts[number].count for number in listed])
    starts = dict(zip(listed, (np.cumsum(sizes) - sizes).tolist(), strict=True))
    return groups, np.concatenate([np.arange(starts[n], starts[n] + part.count) for n, part in enumerate(parts)])


def _values(parts: Sequence[Part]) -> Values:
    first = parts[0]
    if isinstance(first, Explicit):
        records = [record for part in parts for record in part.records()]
        names = dict.fromkeys(name for record in records for name in record)
        return {name: [record.get(name) for record in records] for name in names}
    bulks = [part for part in parts if not isinstance(part, Explicit)]
    table = first.sampler.tables([(part.size, part.seed, part.skip) for part in bulks])
    return {name: table.column(name) for name in table.column_names}


def _typed(groups: Sequence[tuple[Values, int]], column: pa.Field, order: Ints | None) -> pa.ChunkedArray:
    """One column of all rows, of its type, in order."""
    chunks = [chunk for values, count in groups for chunk in _chunks(values.get(column.name), column, count)]
    joined = pa.chunked_array(chunks, type=column.type)
    return joined if order is None else joined.take(pa.array(order))


def _chunks(values: Any, column: pa.Field, count: int) -> list[pa.Array]:
    if values is None:
        return [pa.nulls(count, column.type)]
    try:
        if isinstance(values, pa.ChunkedArray):
            return list(values.cast(column.type).chunks)
        return [pa.array(values, type=column.type)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        text = f'a value of "{column.name}" is not of type {column.type}: {error}'
        raise InputError(text, fix="make the element strategy and schema= agree") from None


def _inferred(windows: Sequence[Sequence[Timed]], time: str) -> pa.Schema:
    """The columns of drawn rows; nothing can be said of a stream without rows."""
    parts = [part.rows for window in windows for part in window if part.rows.count]
    if not parts:
        raise InputError(
            "the stream has no rows, so its columns are unknown",
            fix='give windows(…, schema={"zone": "int64", …}), or an element strategy that says its columns',
        )
    return pa.unify_schemas([_columns_of(part, time) for part in parts], promote_options="permissive")


def _columns_of(part: Part, time: str) -> pa.Schema:
    if not isinstance(part, Explicit):
        return part.table.schema
    records = part.records()
    names = [name for name in records[0] if name != time]
    try:
        return pa.table({name: pa.array([record.get(name) for record in records]) for name in names}).schema
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        fix = "draw values of one type per column, and whole numbers of 64 bits"
        raise InputError(f"the rows do not make a table: {error}", fix=fix) from None


def _span_text(micros: int) -> str:
    """A length of time in the largest unit that is whole.

    >>> _span_text(3_600_000_000), _span_text(90_000_000)
    ('1h', '90s')
    """
    for unit, size in (
        ("d", 86_400_000_000),
        ("h", 3_600_000_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1000),
    ):
        if micros % size == 0 and micros:
            return f"{micros // size}{unit}"
    return f"{micros}us" if micros else "0s"


_YEARS: Final = range(-62_135_596_800_000_000, 253_402_300_800_000_000)  # 1 to 9999, in microseconds
_MOST_WINDOWS: Final = 1 << 24


def positive(span: Span, what: str) -> int:
    """A length of time in microseconds that is more than nothing."""
    ticks = duration(span, "us")
    if ticks <= 0:
        raise InputError(f"{what} must be positive, got {span!r}", fix='write e.g. "1 hour"')
    return ticks


def instant(moment: object) -> int:
    """An instant in microseconds since 1970: a zoned datetime, ISO text with a zone, or the number itself."""
    if isinstance(moment, str):
        try:
            moment = exact_moment(moment)
        except ValueError:
            raise InputError(f"{moment!r} is not an instant", fix='write e.g. "2024-05-01T12:00:00Z"') from None
    if isinstance(moment, datetime):
        return to_tick(moment, "us")
    if isinstance(moment, int) and not isinstance(moment, bool) and moment in _YEARS:
        return moment
    raise InputError(f"{moment!r} is not an instant", fix='write e.g. "2024-05-01T12:00:00Z"')


@door
def recorded(
    rows: Iterable[object] | pa.Table, *, time: str, size: Span, start: object = None, windows: int | None = None
) -> WindowedStream:
    """A stream that was recorded: rows with their times, in the order in which they arrived.

    ``start`` is that of the first row's window, ``windows`` the number up to the last row's, if not given.
    """
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist([as_record(row) for row in rows])
    width = positive(size, "the window's size")
    times = event_times(table, time) if table.num_rows else np.zeros(0, dtype=np.int64)
    origin = instant(start) if start is not None else int(times.min()) // width * width if len(times) else START
    numbers = (times - origin) // width
    if len(numbers) and numbers.min() < 0:
        raise InputError("a row lies before the start of the stream", fix="give an earlier start=")
    count = windows if windows is not None else int(numbers.max()) + 1 if len(numbers) else 0
    if len(numbers) and numbers.max() >= count:
        raise InputError("a row lies behind the end of the stream", fix="give more windows=, or leave it out")
    if count > _MOST_WINDOWS:
        text = f"the stream would have {count:,} windows, the limit is {_MOST_WINDOWS:,}"
        raise InputError(text, fix="choose larger windows, or a later start=", name="limit_exceeded")
    return _rebuilt(table, times, WindowLayout(width, width, origin), time, count)


def _rebuilt(table: pa.Table, times: Ints, layout: WindowLayout, time: str, count: int) -> WindowedStream:
    """The windows of a table, remembering in which order its rows arrived."""
    numbers = (times - layout.start) // layout.every
    plain = table.drop_columns([time]) if time in table.column_names else table
    records = plain.to_pylist()
    order = np.argsort(numbers, kind="stable")
    windows = []
    for number in range(count):
        inside = order[numbers[order] == number] if len(records) < 10_000 else np.flatnonzero(numbers == number)
        offsets = tuple((times[inside] - layout.begin(number)).tolist())
        windows.append((Timed(Explicit(tuple(records[at] for at in inside.tolist())), offsets, layout.size),))
    # rows that arrive after a later one: delayed until that one's time
    reached = np.maximum.accumulate(times) if len(times) else times
    placed = {int(at): place for place, at in enumerate(order.tolist())}
    delays = tuple((placed[at], int(reached[at] - times[at])) for at in np.flatnonzero(reached > times).tolist())
    return WindowedStream(tuple(windows), layout, time, plain.schema, delays=delays)


def as_schema(given: Mapping[str, Any] | pa.Schema | None) -> pa.Schema | None:
    """Columns and their types as users write them: an Arrow schema, or names with Arrow types or their names."""
    if given is None or isinstance(given, pa.Schema):
        return given
    try:
        return pa.schema(
            [(name, pa.type_for_alias(kind) if isinstance(kind, str) else kind) for name, kind in given.items()]
        )
    except (ValueError, TypeError) as error:
        fix = 'name Arrow types: "int64", "float64", "string", "bool", "timestamp[us, tz=UTC]"'
        raise InputError(f"schema={dict(given)!r}: {error}", fix=fix) from None
