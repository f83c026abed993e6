"""Reading one piece of a source: the time of every row, where the row stands, and which rows cannot be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.hashing import Bytes, hash_slices
from streamproof.disorder.layout import OFFSET_BITS, FilePiece, SourceLayout
from streamproof.disorder.scanning import (
    AFTER_QUOTE,
    BLANK,
    FIELDS,
    GOOD,
    NAIVE,
    NO_OBJECT,
    NO_TIME,
    ODD_TIME,
    OPEN_QUOTE,
    TOO_FINE,
    fields_of,
    members_of,
    row_ends,
    times_of,
)
from streamproof.disorder.units import TICKS
from streamproof.events.notation import write_json
from streamproof.events.order import Flags, Ints, ints

SHOWN: Final = 500  # bytes of a rejected row that are kept
LIMIT: Final = 2**61  # times beyond it leave no room for delays


@dataclass(frozen=True)
class Scanned:
    """What reading a piece found."""

    rows: int
    lines: int  # physical lines, so that rejects can say theirs
    highest: int
    rejected: int = 0
    nulls: int = 0
    naive: int = 0
    reasons: dict[str, int] = field(default_factory=dict)


def scan_piece(
    store: ArrayStore, number: int, layout: SourceLayout, piece: FilePiece, *, hashes: bool = False
) -> Scanned:
    """Put the times, ids and lengths of a piece's rows into the store; with ``hashes`` also one of each whole row."""
    if layout.format == "parquet":
        return _scan_row_groups(store, number, layout, piece, hashes)
    data = read_bytes(piece)
    ends = row_ends(data, 0, len(data), layout.separator if layout.multiline else 0)
    if len(data) and (not len(ends) or ends[-1] != len(data)):  # the last line has no break
        ends = np.append(ends, len(data))
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64) if len(ends) else ends
    status, spans, counts = _spans(layout, data, starts, ends)
    columns = _columns(layout, data, status, spans)
    good = status == GOOD
    store.put(f"id/{number}", (np.int64(piece.file) << OFFSET_BITS) | (piece.start + starts[good]))
    store.put(f"length/{number}", (ends - starts)[good].astype(np.int32))
    if hashes:
        stops = ends[good] - (data[ends[good] - 1] == 10) if len(ends) else ends
        store.put(f"row/{number}", hash_slices(data, starts[good], stops))
    rejects = _Rejects(layout, data, starts, ends, spans, counts)
    return _finish(store, number, columns, status, rejects)


def read_bytes(piece: FilePiece) -> Bytes:
    """The bytes of a piece."""
    data = np.empty(piece.end - piece.start, np.uint8)
    with piece.path.open("rb", buffering=0) as file:
        file.seek(piece.start)
        view, done = memoryview(data.data), 0
        while done < len(data) and (more := file.readinto(view[done:])):
            done += more
    return data[:done]


def _spans(layout: SourceLayout, data: Bytes, starts: Ints, ends: Ints) -> tuple[Any, Any, Any]:
    """What became of each row, and where its wanted fields lie."""
    if layout.format == "jsonl":
        names = [layout.names[place].encode() for place in layout.wanted]
        stops = np.cumsum([len(name) for name in names]).astype(np.int64)
        status, spans = members_of(data, starts, ends, np.frombuffer(b"".join(names), np.uint8), stops)
        return status, spans, np.zeros(len(starts), np.int64)
    wanted = np.array(layout.wanted, np.int64)
    status, spans, counts = fields_of(data, starts, ends, layout.separator, layout.quote, wanted, len(layout.names))
    return status, spans, counts


@dataclass
class PieceColumns:
    """The columns of a piece: times, kinds of times, arrivals, and hashes of keys."""

    times: Ints
    naive: Flags
    arrivals: Ints | None = None
    keys: Any = None
    key_texts: Any = None


def _columns(layout: SourceLayout, data: Bytes, status: Any, spans: Any) -> PieceColumns:
    per_second = TICKS[layout.unit]
    times, kinds = times_of(data, status, spans[0], spans[1], per_second)
    naive = (kinds == NAIVE) & (status == GOOD)
    found = PieceColumns(_zoned(layout, times, naive), naive)
    place = 2
    if layout.arrival is not None:
        arrivals, kinds = times_of(data, status, spans[place], spans[place + 1], per_second)
        found.arrivals = _zoned(layout, arrivals, (kinds == NAIVE) & (status == GOOD))
        place += 2
    status[(status == GOOD) & (np.abs(times) > LIMIT)] = ODD_TIME
    if layout.key is not None:
        found.keys = hash_slices(data, spans[place], spans[place + 1])
        found.key_texts = spans[place : place + 2]
    return found


def _zoned(layout: SourceLayout, times: Ints, naive: Flags) -> Ints:
    """Instants without a zone, in the zone of the source: UTC unless it says another."""
    if layout.zone in (None, "UTC") or not naive.any():
        return times
    per_second = TICKS[layout.unit]
    seconds = times[naive] // per_second
    local = pa.array(seconds, pa.timestamp("s"))
    zoned = pc.assume_timezone(local, layout.zone, ambiguous="earliest", nonexistent="earliest")
    times = times.copy()
    times[naive] += (ints(zoned.cast(pa.int64())) - seconds) * per_second
    return times


def _finish(store: ArrayStore, number: int, columns: PieceColumns, status: Any, rejects: _Rejects) -> Scanned:
    good = status == GOOD
    times = columns.times[good]
    store.put(f"t/{number}", times)
    if columns.arrivals is not None:
        store.put(f"arrival/{number}", columns.arrivals[good])
    if columns.keys is not None:
        store.put(f"key/{number}", columns.keys[good])
    text, reasons = rejects.written(status)
    if text:
        store.put(f"rejects/{number}", np.frombuffer(text, np.uint8))
    return Scanned(
        rows=len(times), lines=rejects.lines, highest=int(times.max()) if len(times) else -(2**62),
        rejected=int((~good).sum()), nulls=int((status == NO_TIME).sum()), naive=int(columns.naive[good].sum()),
        reasons=reasons,
    )  # fmt: skip


class _Rejects:
    """The rows of a piece that cannot be read, with their lines counted from the piece's first one."""

    def __init__(self, layout: SourceLayout, data: Bytes, starts: Ints, ends: Ints, spans: Any, counts: Ints) -> None:  # noqa: PLR0917
        self._layout, self._data, self._starts, self._ends = layout, data, starts, ends
        self._spans, self._counts = spans, counts
        breaks = np.flatnonzero(data == 10) if layout.multiline else None
        self.lines = len(starts) if breaks is None else len(breaks)
        self._breaks = breaks

    def written(self, status: Any) -> tuple[bytes, dict[str, int]]:
        """All of them as JSON lines, and how many for which reason."""
        lines: list[str] = []
        reasons: dict[str, int] = {}
        for row in np.flatnonzero(status != GOOD).tolist():
            reason, why = self._why(row, int(status[row]))
            reasons[reason] = reasons.get(reason, 0) + 1
            text = self._data[self._starts[row] : min(self._ends[row], self._starts[row] + SHOWN)].tobytes()
            shown = text.decode("utf-8", errors="backslashreplace").rstrip("\r\n")
            lines.append(write_json({"line": self._line(row), "why": why, "row": shown}) + "\n")
        return "".join(lines).encode(), reasons

    def _line(self, row: int) -> int:
        if self._breaks is None:
            return row
        return int(np.searchsorted(self._breaks, self._starts[row]))

    def _why(self, row: int, status: int) -> tuple[str, str]:
        begin, end = self._spans[0][row], self._spans[1][row]
        text = self._data[begin : min(end, begin + 60)].tobytes().decode("utf-8", errors="backslashreplace")
        name = self._layout.names[self._layout.time]
        return {
            BLANK: ("blank", "the line is blank"),
            FIELDS: ("fields", f"{self._counts[row]} fields where there should be {len(self._layout.names)}"),
            OPEN_QUOTE: ("quote", "a quoted field does not end"),
            AFTER_QUOTE: ("after a quote", "there is text after a quote that ends a field"),
            NO_TIME: ("no time", f'the time in "{name}" is missing'),
            ODD_TIME: ("not a time", f'"{text}" is not a time'),
            TOO_FINE: ("too fine", f'"{text}" is finer than 1 {self._layout.unit}: use a finer unit'),
            NO_OBJECT: ("not JSON", "the line is not a JSON object"),
        }[status]


def _scan_row_groups(store: ArrayStore, number: int, layout: SourceLayout, piece: FilePiece, hashes: bool) -> Scanned:
    columns = None if hashes else [layout.names[place] for place in layout.wanted]
    table = pq.ParquetFile(piece.path).read_row_groups(range(piece.start, piece.end), columns=columns)
    if hashes:
        store.put(f"row/{number}", _table_hashes(table))
    wanted = table.select([layout.names[place] for place in layout.wanted]).combine_chunks()
    found = table_columns(layout, wanted)
    status, cols = found
    good = status == GOOD
    if hashes:
        store.put(f"row/{number}", np.asarray(store.get(f"row/{number}"))[good])
    rows = piece.first_row + np.arange(len(status), dtype=np.int64)
    store.put(f"id/{number}", (np.int64(piece.file) << OFFSET_BITS) | rows[good])
    store.put(f"length/{number}", np.zeros(int(good.sum()), np.int32))
    return _finish(store, number, cols, status, _TableRejects(layout, table, len(status)))


def table_columns(layout: SourceLayout, table: pa.Table) -> tuple[Any, PieceColumns]:
    """The columns of a table: what became of each row, and its times; the columns are time, arrival, key as wanted."""
    status = np.zeros(len(table), np.uint8)
    times, naive = array_times(layout, table.column(0), status)
    found, place = PieceColumns(times, naive), 1
    if layout.arrival is not None:
        found.arrivals = array_times(layout, table.column(place), status)[0]
        place += 1
    status[(status == GOOD) & (np.abs(times) > LIMIT)] = ODD_TIME
    if layout.key is not None:
        found.keys = _array_hashes(table.column(place))
    return status, found


def array_times(layout: SourceLayout, column: pa.ChunkedArray, status: Any) -> tuple[Ints, Flags]:
    """Times of an Arrow column in ticks; rows without one change their status."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    kind = array.type
    per_second = TICKS[layout.unit]
    status[array.is_null().to_numpy(zero_copy_only=False) & (status == GOOD)] = NO_TIME
    if pa.types.is_integer(kind):
        return ints(array.fill_null(0).cast(pa.int64())), np.zeros(len(array), np.bool_)
    if pa.types.is_floating(kind):
        numbers = array.fill_null(0).cast(pa.float64()).to_numpy(zero_copy_only=False)
        far = ~(np.abs(numbers) <= float(LIMIT))  # not a number is far as well
        status[far & (status == GOOD)] = ODD_TIME
        whole = np.where(far, 0, numbers)
        status[(whole != np.rint(whole)) & (status == GOOD)] = TOO_FINE
        return whole.astype(np.int64), np.zeros(len(array), np.bool_)
    if pa.types.is_date(kind):
        days = ints(array.fill_null(0).cast(pa.date32()).cast(pa.int32()).cast(pa.int64()))
        return days * 86_400 * per_second, np.ones(len(array), np.bool_)
    if pa.types.is_timestamp(kind):
        values = ints(array.cast(pa.int64()).fill_null(0))
        values = _rescaled(values, TICKS[kind.unit], per_second, status)
        naive = np.full(len(array), kind.tz is None)
        return _zoned(layout, values, naive & (status == GOOD)), naive & (status == GOOD)
    data, starts, ends = _text(array.cast(pa.large_string()))
    times, kinds = times_of(data, status, starts, ends, per_second)
    naive = (kinds == NAIVE) & (status == GOOD)
    return _zoned(layout, times, naive), naive


def _rescaled(values: Ints, have: int, want: int, status: Any) -> Ints:
    """Ticks of another unit; what does not go evenly is too fine."""
    if want >= have:
        return values * (want // have)
    factor = have // want
    status[(values % factor != 0) & (status == GOOD)] = TOO_FINE
    return values // factor


def _text(array: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """The bytes of a column of text, and where each value starts and ends."""
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return raw, places[:-1], places[1:]


def _array_hashes(column: pa.ChunkedArray) -> Any:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    data, starts, ends = _text(pc.fill_null(array.cast(pa.large_string()), ""))
    return hash_slices(data, starts, ends)


def _table_hashes(table: pa.Table) -> Any:
    """One hash for each row, from those of its columns."""
    total = np.zeros(len(table), np.uint64)
    for column in table.columns:
        try:
            total = total * np.uint64(0x9E3779B97F4A7C15) + _array_hashes(column)
        except pa.ArrowNotImplementedError:  # nested: its text will do
            total = total * np.uint64(31) + _array_hashes(pa.array([str(value) for value in column]))
    return total


class _TableRejects(_Rejects):
    """Rejected rows of a table, by their row."""

    def __init__(self, layout: SourceLayout, table: pa.Table, rows: int) -> None:
        self._layout, self._table, self.lines = layout, table, rows

    def written(self, status: Any) -> tuple[bytes, dict[str, int]]:
        lines: list[str] = []
        reasons: dict[str, int] = {}
        for row in np.flatnonzero(status != GOOD).tolist():
            shown = str(self._table.column(self._layout.names[self._layout.time])[row].as_py())
            reason, why = {
                NO_TIME: ("no time", "the time is missing"),
                TOO_FINE: ("too fine", f"{shown} is finer than 1 {self._layout.unit}: use a finer unit"),
            }.get(int(status[row]), ("not a time", f"{shown} is not a time"))
            reasons[reason] = reasons.get(reason, 0) + 1
            lines.append(write_json({"line": row, "why": why, "row": shown}) + "\n")
        return "".join(lines).encode(), reasons
