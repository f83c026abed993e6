"""Files of rows and columns as events: one way for CSV, Parquet and Arrow IPC."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import InputError, PlanError
from streamproof.events.bag import take
from streamproof.events.files.mapping import ColumnMapping, OwnLayout, layout_of
from streamproof.events.files.rejects import Faults, Rejects
from streamproof.events.files.times import Clock, looks_numeric, ticks, zoned
from streamproof.events.files.values import CANDIDATES, items, narrowest, possible_types, text_of, typed_column
from streamproof.events.notation import write_value
from streamproof.events.order import Flags, Ints, one_array
from streamproof.events.schema import INT64, TIMESTAMP, Schema, Type, type_of_arrow
from streamproof.events.stream import CTI, INSERT, KIND_WORDS, RETRACT, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER, Unit, duration, one_unit

Kinds = npt.NDArray[np.int8]
MAX_COPIES: Final = 1 << 25  # events that the rows of one part may stand for


class FilePart(NamedTuple):
    """Some rows of a file, and the number of each in it."""

    rows: pa.Table
    lines: Ints
    prefix: str = ""  # of the ids that are made for rows: it says which of several files


class RowsFile(Protocol):
    """A file of rows and columns."""

    word: str
    fields: pa.Schema  # columns of bytes are text without a type
    metadata: Mapping[str, str]  # what we wrote into it

    def parts(self, rejects: Rejects) -> Iterator[FilePart]: ...


class _FirstPass:
    """What a first pass over a file finds: the types of columns of text, and whether times are numbers."""

    def __init__(self, file: RowsFile, columns: Mapping[str, str], start: str, *, types_known: bool) -> None:
        kinds = {name: _candidates(file.fields.field(column)) for name, column in columns.items()}
        self._possible = {} if types_known else {name: kind for name, kind in kinds.items() if kind}
        self._seen: set[str] = set()
        field = file.fields.field(start)
        self._numbers = None if _is_text(field) else looks_numeric(pa.array([], field.type))
        if self._possible or self._numbers is None:
            self._read(file, columns, start)
        self.numbers = self._numbers is not False
        self.types = {name: narrowest(kinds, seen=name in self._seen) for name, kinds in self._possible.items()}

    def _read(self, file: RowsFile, columns: Mapping[str, str], start: str) -> None:
        for part in file.parts(Rejects()):
            times = text_of(one_array(part.rows[start]), start, Faults())
            if self._numbers is None and times.null_count < len(times):
                self._numbers = looks_numeric(times)
            for name in self._possible:
                array = text_of(one_array(part.rows[columns[name]]), name, Faults())
                self._possible[name] = possible_types(array, self._possible[name])
                if array.null_count < len(array):
                    self._seen.add(name)
            if not self._possible and self._numbers is not None:
                return


class TabularFile:
    """The events of a file of rows and columns."""

    def __init__(
        self, file: RowsFile, *, mapping: ColumnMapping | None, schema: Schema | None, unit: Unit | None
    ) -> None:
        self._file = file
        self.word = file.word
        names = file.fields.names
        try:
            self._mapping = mapping or layout_of(names)
            self._roles = self._mapping.roles(names)
        except InputError as error:
            error.fix = getattr(file, "hint", None) or error.fix
            raise
        self._weight = self._mapping.weight if isinstance(self._mapping, OwnLayout) else None
        self._columns = self._mapping.payload_columns(names)
        self.complete = "kind" not in self._roles
        self.makes_ids = self.complete and "id" not in self._roles
        look = _FirstPass(file, self._columns, self._roles["start"], types_known=schema is not None)
        declared = schema.unit if schema else None
        claims: dict[str, str | None] = {"the mapping": self._mapping.unit, "the source": declared, "read()": unit}
        if look.numbers:  # the file's own unit is that of its ticks
            claims["the file"] = file.metadata.get("unit")
        self._clock = self._meant(look.numbers, one_unit(claims))
        columns = schema.columns if schema else tuple((name, self._type(name, look)) for name in self._columns)
        self.schema = Schema(columns, self._clock.unit)
        self._refuse_missing()

    @property
    def _own(self) -> bool:
        return isinstance(self._mapping, OwnLayout)

    def _meant(self, numbers: bool, unit: Unit | None) -> Clock:
        return Clock(
            unit or (None if numbers else "us"),
            self._mapping.assume_zone,
            numbers or unit is not None,
            ambiguous=self._mapping.ambiguous,
            dated=unit is not None and not self._own,
        )

    def _refuse_missing(self) -> None:
        for name in self.schema.names:
            if name not in self._columns:
                raise InputError(
                    f'the file has no column "{name}", which the schema names',
                    fix=f"payload columns of the file: {', '.join(self._columns) or 'none'}",
                    name="unknown_column",
                )

    def _type(self, name: str, look: _FirstPass) -> Type:
        if name in look.types:
            return look.types[name]
        column = self._columns[name]
        arrow = self._file.fields.field(column).type
        if pa.types.is_timestamp(arrow) and self._mapping.assume_zone:
            return TIMESTAMP
        try:
            return type_of_arrow(arrow)
        except InputError as error:
            setting = 'assume_zone="UTC"' if pa.types.is_timestamp(arrow) else "payload=[…]"
            error.fix = f"{error.fix}; or read with ColumnMapping(…, {setting}) (--map)"
            raise error.located(f'column "{column}"') from None

    def chunks(self, rejects: Rejects) -> Iterator[tuple[PhysicalStream, int]]:
        """The events of each part, and of how many good rows they are."""
        for part in self._file.parts(rejects):
            before = rejects.count
            stream = self._convert(part, rejects)
            yield stream, part.rows.num_rows - (rejects.count - before)

    def _convert(self, part: FilePart, rejects: Rejects) -> PhysicalStream:
        faults = Faults()
        kind = self._kinds(part, faults)
        le = self._starts(part, kind, faults)
        re = self._ends(part, le, kind, faults)
        new = self._times("new_end", part, faults, needed=kind == RETRACT, null=None)
        weights = self._weights(part, faults)
        columns = [typed_column(self._payload(part, name, faults), name, t, faults) for name, t in self.schema]
        ids = self._ids(part, kind, faults)
        event = kind != CTI
        control = [
            pa.array(kind), ids, pa.array(le), _masked(re, ~event), _masked(new, kind != RETRACT),
        ]  # fmt: skip
        rows = pa.Table.from_arrays([*control, *columns], schema=PhysicalStream.arrow_schema(self.schema))
        for index, why in sorted(faults.why.items()):
            rejects.add(int(part.lines[index]), why, _raw(part.rows, index))
        good = np.ones(len(kind), np.bool_)
        good[list(faults.why)] = False
        counts = np.where(good, weights, 0)
        if self._weight is not None and counts.sum(dtype=np.float64) > MAX_COPIES:
            raise InputError(
                f"rows stand for {counts.sum(dtype=np.float64):,.0f} events, the limit is {MAX_COPIES:,} at once",
                at=f'column "{self._weight}", {self.word}s {part.lines[0]} to {part.lines[-1]}',
                fix="such weights are seldom meant: check the column, or write fewer equal events",
                name="limit_exceeded",
            )
        copied = take(rows, np.repeat(np.arange(len(kind)), counts))
        if self.makes_ids and counts.max(initial=0) > 1:
            at = copied.column_names.index("id")
            copied = copied.set_column(at, copied.field(at), _told_apart(one_array(copied["id"]), counts))
        return PhysicalStream(self.schema, copied)

    def _column(self, part: FilePart, role: str, faults: Faults) -> pa.Array | None:
        name = self._roles.get(role)
        return None if name is None else text_of(one_array(part.rows[name]), name, faults)

    def _kinds(self, part: FilePart, faults: Faults) -> Kinds:
        words = self._column(part, "kind", faults)
        if words is None:
            return np.full(part.rows.num_rows, INSERT, np.int8)
        words = pc.utf8_lower(words.cast(pa.string()))
        codes = pc.index_in(words, value_set=pa.array(KIND_WORDS))
        faults.add(codes.is_null().to_numpy(zero_copy_only=False), 'the kind is not "insert", "retract" or "cti"')
        kinds: Kinds = codes.fill_null(INSERT).to_numpy(zero_copy_only=False).astype(np.int8)
        if "new_end" not in self._roles and np.any(kinds == RETRACT):
            raise InputError(
                "the file has retractions, but the mapping does not say where they end instead",
                fix='name the column: ColumnMapping(…, new_end="…"), or --map new_end=…',
            )
        return kinds

    def _times(
        self, role: str, part: FilePart, faults: Faults, *, needed: Flags | None = None, null: int | None = None
    ) -> Ints:
        column = self._column(part, role, faults)
        if column is None:
            return np.zeros(part.rows.num_rows, np.int64)
        return ticks(column, self._roles[role], self._clock, faults, needed=needed, null=null)

    def _starts(self, part: FilePart, kind: Kinds, faults: Faults) -> Ints:
        if "cti" not in self._roles:
            return self._times("start", part, faults)
        starts = self._times("start", part, faults, needed=kind != CTI)
        return np.where(kind == CTI, self._times("cti", part, faults, needed=kind == CTI), starts)

    def _ends(self, part: FilePart, le: Ints, kind: Kinds, faults: Faults) -> Ints:
        if "end" in self._roles:
            null = None if self._own else FOREVER
            return self._times("end", part, faults, needed=kind != CTI, null=null)
        if "duration" in self._roles:
            spans = self._spans(part, faults)
        else:
            span = 1 if self._mapping.duration is None else duration(self._mapping.duration, self._clock.unit)
            spans = np.full(len(le), span)
        too_far = np.where(spans > 0, le > FOREVER - spans, le < BEGINNING - spans)
        faults.add(too_far & (kind != CTI), "the end lies outside ±2^62 ticks")
        return np.where(too_far, FOREVER, le + np.where(too_far, 0, spans))

    def _spans(self, part: FilePart, faults: Faults) -> Ints:
        column = self._column(part, "duration", faults)
        assert column is not None
        spans = np.zeros(len(column), np.int64)
        for index, value in enumerate(column.to_pylist()):
            try:
                spans[index] = duration(value, self._clock.unit)
            except (PlanError, TypeError, AttributeError):
                faults.put(index, f'the duration {value!r} in "{self._roles["duration"]}" cannot be read')
        return spans

    def _weights(self, part: FilePart, faults: Faults) -> Ints:
        if self._weight is None:
            return np.ones(part.rows.num_rows, np.int64)
        column = text_of(one_array(part.rows[self._weight]), self._weight, faults)
        array = typed_column(column, self._weight, INT64, faults)
        weights: Ints = array.fill_null(0).to_numpy(zero_copy_only=False)
        faults.add(weights < 1, f"the weight {self._weight} is not a positive number of events")
        return weights

    def _ids(self, part: FilePart, kind: Kinds, faults: Faults) -> pa.Array:
        made = pc.binary_join_element_wise(f"#{part.prefix}", pa.array(part.lines).cast(pa.string()), "")
        given = self._column(part, "id", faults)
        if given is None:
            faults.add(kind == RETRACT, "a retraction without an id")
            ids = made
        else:
            given = given.cast(pa.string())
            faults.add(given.is_null().to_numpy(zero_copy_only=False) & (kind == RETRACT), "a retraction without an id")
            ids = pc.coalesce(given, made)
        return pc.if_else(pa.array(kind == CTI), pa.scalar(None, pa.string()), ids)

    def _payload(self, part: FilePart, name: str, faults: Faults) -> pa.Array:
        array = text_of(one_array(part.rows[self._columns[name]]), name, faults)
        if pa.types.is_timestamp(array.type) and array.type.tz is None and self._clock.zone:
            return zoned(array, self._clock.zone, self._clock.ambiguous, self._columns[name], faults)
        return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _told_apart(ids: pa.Array, counts: Ints) -> pa.Array:
    """The ids of rows that stand for several events each: ``#2``, ``#2×2``, ``#2×3``."""
    copy = np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts)
    marks = pc.binary_join_element_wise("×", pa.array(copy + 1).cast(pa.string()), "")
    return pc.if_else(pa.array(copy > 0), pc.binary_join_element_wise(ids, marks, ""), ids)


def _is_text(field: pa.Field) -> bool:
    return bool(pa.types.is_binary(field.type))


def _candidates(field: pa.Field) -> tuple[Type, ...]:
    """What a column may be whose type does not tell: one of text, or of numbers that may be too large for int64."""
    return CANDIDATES if _is_text(field) else (INT64,) if pa.types.is_uint64(field.type) else ()


def _masked(values: Ints, absent: Flags) -> pa.Array:
    return pa.array(values, mask=absent)


def _raw(rows: pa.Table, index: int) -> dict[str, object]:
    """A row as it stands in the file, for the rejects."""
    return {name: _plain(items(one_array(rows[name]).slice(index, 1))[0]) for name in rows.column_names}


def _plain(value: object) -> object:
    value = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else write_value(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def columns_of(names: Sequence[str]) -> None:
    """Refuse a file with two columns of one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(
                f'the file has two columns called "{name}"', fix="rename one of them", name="duplicate_column"
            )
        seen.add(name)
