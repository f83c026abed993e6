"""A history (the canonical history table, CHT): the bag of events that a stream adds up to.

>>> schema = Schema.of({"v": "int64"})
>>> history = History.from_rows(schema, [(4, 9, {"v": 2}), (1, FOREVER, {"v": 1}), (4, 9, {"v": 2})])
>>> len(history), history.rows["w"].to_pylist()
(3, [1, 2])
>>> print(history.to_json_lines(), end="")
{"le": 1, "re": "inf", "payload": {"v": 1}}
{"le": 4, "re": 9, "payload": {"v": 2}}
{"le": 4, "re": 9, "payload": {"v": 2}}
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.arguments import door, often
from streamproof.errors import ErrorName, InputError, did_you_mean
from streamproof.events import jsontext, weights
from streamproof.events.bag import consolidate, identical, python_rows
from streamproof.events.batch import Batch, array_of, show_beyond
from streamproof.events.notation import column_of, show_payload
from streamproof.events.order import Flags, ints, one_array
from streamproof.events.schema import LE, RE, SIGNED, Schema, W, column_name, own_columns, payload_name
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.thresholds import WRITTEN_AT_ONCE


class Row(NamedTuple):
    """One event of a history."""

    le: int
    re: int
    payload: dict[str, object]

    def __str__(self) -> str:
        return f"[{show_tick(self.le)}, {show_tick(self.re)}) {show_payload(self.payload)}"


@often
@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Events with their counts: consolidated, canonical and sorted. Build it with one of the ``from_…`` methods.

    Law: ``History.from_batches(schema, [history.to_batch()]) == history``.
    """

    schema: Schema
    rows: pa.Table  # le, re, w, payload; equal rows are one row, no weight is 0

    def __post_init__(self) -> None:
        if self.rows.schema != self.schema.arrow_rows:
            raise InputError(
                f"the rows have the columns {self.rows.schema.names}, the schema says {self.schema.arrow_rows.names}",
                fix="build the history with History.from_table, which casts",
            )

    @staticmethod
    def empty(schema: Schema) -> History:
        return History(schema, schema.arrow_rows.empty_table())

    @staticmethod
    def from_batches(schema: Schema, batches: Iterable[Batch], *, allow_negative: bool = False) -> History:
        """The sum of all batches.

        >>> rows = [(1, 5, +1, {}), (1, 9, +1, {}), (1, 9, -1, {})]
        >>> History.from_batches(Schema(), [Batch.from_rows(Schema(), rows)]).to_rows()
        [Row(le=1, re=5, payload={})]
        """
        tables = [batch.rows for batch in batches]
        rows = pa.concat_tables(tables) if tables else schema.arrow_rows.empty_table()
        if rows.schema != schema.arrow_rows:
            raise InputError(
                f"the batches have the columns {rows.schema.names}, the schema says {schema.arrow_rows.names}",
                fix="give the schema of the batches",
            )
        return _checked(schema, consolidate(rows), allow_negative=allow_negative)

    @staticmethod
    @door
    def from_rows(schema: Schema, rows: Iterable[tuple[int, int, Mapping[str, object]]]) -> History:
        """A small history from Python rows ``(le, re, payload)``; a missing column is null."""
        known = list(rows)
        for _, _, payload in known:
            _refuse_unknown(payload, schema)
        columns = [array_of([row[i] for row in known], schema.arrow_rows.field(i)) for i in (0, 1)]
        columns.append(pa.array(np.ones(len(known), np.int64)))
        columns += [column_of((row[2].get(name) for row in known), kind) for name, kind in schema]
        table = pa.Table.from_arrays(columns, schema=schema.arrow_rows)
        return _checked(schema, consolidate(table))

    @staticmethod
    def from_table(schema: Schema, table: pa.Table, *, allow_negative: bool = False) -> History:
        """A history from Arrow columns le, re, perhaps w, and the payload, cast to the schema's types.

        >>> table = pa.table({"v": [1.0], "re": [5], "le": [1]})
        >>> History.from_table(Schema.of({"v": "int64"}), table).to_rows()
        [Row(le=1, re=5, payload={'v': 1})]
        """
        rows = pa.Table.from_arrays(list(_columns(schema, table)), schema=schema.arrow_rows)
        return _checked(schema, consolidate(rows), allow_negative=allow_negative)

    def expand(self, *, most: int = weights.MOST_LISTED) -> pa.Table:
        """One row per event: le, re and the payload; of no more events than ``most``."""
        counts = ints(self.rows[W])
        if np.any(counts < 0):
            raise InputError(
                "a history with negative counts has no rows to list",
                fix="leave out allow_negative to see which retraction is unmatched",
                name="unmatched_retraction",
            )
        rows = self.rows.remove_column(W)
        if np.all(counts == 1):
            return rows
        if weights.total(counts) > most:
            self._refuse_listing(most)
        return rows.take(pa.array(np.repeat(np.arange(len(counts)), counts)))

    def _refuse_listing(self, most: int) -> NoReturn:
        """The rows stand for too many events."""
        counts = ints(self.rows[W])
        le, re, count, payload = next(python_rows(self.rows.slice(int(counts.argmax()), 1)))
        raise weights.too_long(weights.total(counts), most, at=f"{Row(le, re, payload)} × {count:,}")

    def to_rows(self) -> list[Row]:
        """The events as Python rows."""
        return list(self._iterate())

    def _iterate(self) -> Iterator[Row]:
        names = self.schema.names
        for batch in self.expand().to_batches(max_chunksize=65536):
            columns = [column.to_pylist() for column in batch.columns]
            for le, re, *values in zip(*columns, strict=True):
                yield Row(le, re, dict(zip(names, values, strict=True)))

    def to_json_lines(self) -> str:
        """One JSON object per event."""
        return "".join(self.json_lines())

    def json_lines(self) -> Iterator[str]:
        """The JSON lines in blocks, for results that are large."""
        rows = self.expand()
        for start in range(0, rows.num_rows, WRITTEN_AT_ONCE.now):
            part = rows.slice(start, WRITTEN_AT_ONCE.now)
            fields = [(SIGNED[place], jsontext.times(one_array(part[place]))) for place in (LE, RE)]
            text = jsontext.objects([*fields, ("payload", jsontext.payload(self.schema, part))])
            yield "\n".join(text.to_pylist()) + "\n"

    def to_batch(self, *, frontier: int = FOREVER) -> Batch:
        """The history as one batch, complete unless told otherwise."""
        return Batch(self.schema, self.rows, frontier)

    def __len__(self) -> int:
        count = weights.magnitude(ints(self.rows[W]))
        if count > sys.maxsize:
            raise weights.too_many(count, at="the whole history")
        return count

    def __eq__(self, other: object) -> bool:
        """The same bag with the same columns, exactly; NaN equals NaN."""
        if not isinstance(other, History):
            return NotImplemented
        return self.schema == other.schema and identical(self.rows, other.rows)

    __hash__ = None  # type: ignore[assignment]  # a bag of rows is compared, not looked up

    def __repr__(self) -> str:
        shown, count = self.rows.slice(0, 10), weights.magnitude(ints(self.rows[W]))
        few = shown.set_column(W, shown.schema.field(W), pc.min_element_wise(shown[W], 10))
        lines = [str(row) for row in History(self.schema, few).to_rows()[:10]] if not _negative(shown) else ["…"]
        more = [f"… {count - len(lines)} more"] if count > len(lines) else []
        return "\n".join([f"History of {count} events", *lines, *more])


def _negative(rows: pa.Table) -> bool:
    return bool(np.any(ints(rows[W]) < 0))


def _checked(schema: Schema, rows: pa.Table, *, allow_negative: bool = False) -> History:
    le, re, w = (ints(rows[place]) for place in (LE, RE, W))
    fix = "use a coarser unit; an event without an end ends at 2^62"
    _refuse(rows, (le < BEGINNING) | (re > FOREVER), "a lifetime lies outside ±2^62 ticks", "bad_input", fix)
    if len(w) and max(int(w.max()), -int(w.min())) > weights.MOST:
        at = int(np.argmax((w > weights.MOST) | (w < -weights.MOST)))
        le_at, re_at, count, payload = next(python_rows(rows.slice(at, 1)))
        raise weights.too_many(abs(count), at=str(Row(le_at, re_at, payload)))
    _refuse(rows, re <= le, "an event without a lifetime", "empty_lifetime", "give it an end after its start")
    if not allow_negative:
        what = "more was retracted than inserted"
        _refuse(rows, w < 0, what, "unmatched_retraction", "check the stream with a Validator, or allow_negative=True")
    return History(schema, rows)


def _refuse(rows: pa.Table, bad: Flags, what: str, name: ErrorName, fix: str) -> None:
    if not np.any(bad):
        return
    le, re, weight, payload = next(python_rows(rows.slice(int(np.argmax(bad)), 1)))
    at = f"[{show_beyond(le)}, {show_beyond(re)}) {show_payload(payload)} × {weight}"
    raise InputError(f"{what}: {int(bad.sum())} of {rows.num_rows} rows", at=at, fix=fix, name=name)


def _refuse_unknown(names: Iterable[str], schema: Schema) -> None:
    for name in names:
        if name not in schema:
            raise InputError(f'unknown column "{name}"', fix=did_you_mean(name, schema.names), name="unknown_column")


def _columns(schema: Schema, table: pa.Table) -> Iterator[pa.ChunkedArray]:
    """The columns of signed rows, found in a table and cast."""
    known = table.schema.names
    payload = {name: column_name(name) if column_name(name) in known else name for name in schema.names}
    own = own_columns((name for name in known if name not in payload.values()), SIGNED)
    taken = {*own.values(), *payload.values()}
    _refuse_unknown((payload_name(name) for name in known if name not in taken), schema)
    for name in SIGNED:
        if name == "w" and name not in own:
            yield pa.chunked_array([np.ones(table.num_rows, np.int64)])
        else:
            yield _time(_cast(table, own.get(name, name), pa.int64()), name)
    for name, kind in schema:
        yield _cast(table, payload[name], kind.arrow)


def _time(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    if column.null_count:
        raise InputError(f'column "{name}" has nulls', fix="every event needs a start, an end and a weight")
    return column


def _cast(table: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    if name not in table.schema.names:
        raise InputError(
            f'the table has no column "{name}"', fix=did_you_mean(name, table.schema.names), name="unknown_column"
        )
    column = table[name]
    try:
        return column if column.type == kind else column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f'column "{name}" of type {column.type} does not fit into {kind}: {error}',
            fix="give the schema that the values have",
            name="type_mismatch",
        ) from None
