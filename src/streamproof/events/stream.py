"""The columnar form of physical events: one Arrow table in order of arrival.

>>> stream = PhysicalStream.from_events([Insert("a", 1, 5, {"v": 1}), Retract("a", 1, 5, 3, {"v": 1}), Cti(4)])
>>> len(stream), stream.schema.columns, stream.kinds.tolist()
(3, (('v', Type('int64')),), [0, 1, 2])
>>> stream.to_dicts()[1]
{'kind': 'retract', 'id': 'a', 'le': 1, 're': 5, 're_new': 3, 'payload': {'v': 1}}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.arguments import often
from streamproof.errors import InputError, printable
from streamproof.events import jsontext
from streamproof.events.bag import identical
from streamproof.events.event import (
    Cti,
    Event,
    Insert,
    Retract,
    infer_schema,
    read_event,
    refuse_unknown,
    typed,
    write_event,
)
from streamproof.events.notation import column_of, show_payload
from streamproof.events.order import one_array
from streamproof.events.schema import ESCAPE, STRING, Schema, Type
from streamproof.events.time import Unit
from streamproof.thresholds import WRITTEN_AT_ONCE

INSERT: Final = 0
RETRACT: Final = 1
CTI: Final = 2
KIND_WORDS: Final = ("insert", "retract", "cti")
CONTROL: Final = pa.schema(
    [("kind", pa.int8()), ("id", pa.string()), ("le", pa.int64()), ("re", pa.int64()), ("re_new", pa.int64())]
)
"""The columns before the payload. A CTI carries its time in le; re_new is null but in retractions."""

Codes: TypeAlias = npt.NDArray[np.int8]


def _column_name(name: str) -> str:
    """What a payload column is called beside the control columns, which keep their names in memory."""
    return ESCAPE + name if name in CONTROL.names or name.startswith(ESCAPE) else name


@lru_cache(maxsize=256)  # every piece of a stream asks for it
def _arrow_schema(columns: tuple[tuple[str, Type], ...]) -> pa.Schema:
    return pa.schema([*CONTROL, *((_column_name(name), kind.arrow) for name, kind in columns)])


@often
@dataclass(frozen=True, slots=True, eq=False)
class PhysicalStream:
    """Physical events in order of arrival, as one Arrow table: the control columns, then the payload."""

    schema: Schema
    rows: pa.Table

    def __post_init__(self) -> None:
        if not self.rows.schema.equals(self.arrow_schema(self.schema)):
            raise InputError(
                f"the rows have the columns {self.rows.schema.names}, not {self.arrow_schema(self.schema).names}",
                fix="build the rows with PhysicalStream.arrow_schema",
            )

    @staticmethod
    def arrow_schema(schema: Schema) -> pa.Schema:
        """The Arrow schema of the rows of a stream."""
        return _arrow_schema(schema.columns)

    @staticmethod
    def empty(schema: Schema) -> PhysicalStream:
        return PhysicalStream(schema, PhysicalStream.arrow_schema(schema).empty_table())

    @staticmethod
    def of(
        schema: Schema,
        *,
        kind: Codes,
        id: pa.Array,  # noqa: A002  # the column's name
        le: pa.Array,
        re: pa.Array,
        re_new: pa.Array,
        payload: pa.Table,
    ) -> PhysicalStream:
        """A stream from its columns."""
        control = [pa.array(kind), id, le, re, re_new]
        return PhysicalStream(
            schema, pa.Table.from_arrays([*control, *payload.columns], schema=PhysicalStream.arrow_schema(schema))
        )

    @staticmethod
    def from_events(
        events: Iterable[Event], *, schema: Schema | None = None, unit: Unit | None = None
    ) -> PhysicalStream:
        """A stream from Python events; without a schema the types are inferred."""
        known = list(events)
        schema = schema or infer_schema(known, unit=unit)
        payloads = [{} if isinstance(event, Cti) else event.payload for event in known]
        for event, payload in zip(known, payloads, strict=True):
            refuse_unknown(payload, schema, str(event))
        columns = [_control_column(known, name) for name in CONTROL.names]
        columns += [_payload_column(known, payloads, name, kind) for name, kind in schema]
        return PhysicalStream(schema, pa.Table.from_arrays(columns, schema=PhysicalStream.arrow_schema(schema)))

    @staticmethod
    def from_dicts(
        documents: Iterable[Mapping[str, object]], *, schema: Schema | None = None, unit: Unit | None = None
    ) -> PhysicalStream:
        """A stream from the JSON notation; an event without a kind is an insert, one without an id gets one.

        >>> PhysicalStream.from_dicts([{"le": 1, "re": "inf", "payload": {"v": 7}}]).to_events()
        [Insert(id='#0', le=1, re=4611686018427387904, payload={'v': 7})]
        """
        events = [read_event(document, number) for number, document in enumerate(documents)]
        if schema is not None:
            events = [typed(event, schema) for event in events]
        return PhysicalStream.from_events(events, schema=schema, unit=unit)

    @staticmethod
    def concat(streams: Iterable[PhysicalStream], *, schema: Schema | None = None) -> PhysicalStream:
        """One stream after the other; they must have one schema."""
        known = list(streams)
        schema = schema or (known[0].schema if known else Schema())
        return (
            PhysicalStream(schema, pa.concat_tables([s.rows for s in known])) if known else PhysicalStream.empty(schema)
        )

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def payload(self) -> pa.Table:
        """The payload columns under their own names."""
        return self.rows.select(range(len(CONTROL), self.rows.num_columns)).rename_columns(list(self.schema.names))

    @property
    def kinds(self) -> Codes:
        """Per row `INSERT`, `RETRACT` or `CTI`."""
        codes: Codes = one_array(self.rows["kind"]).to_numpy(zero_copy_only=False)
        return codes

    def slice(self, start: int, length: int | None = None) -> PhysicalStream:
        if start < 0 or (length is not None and not 0 <= length < 1 << 62):
            raise InputError(f"there are no events {start}, {length}", fix="count from 0")
        return PhysicalStream(self.schema, self.rows.slice(start, length))

    def filter(self, keep: npt.NDArray[np.bool_]) -> PhysicalStream:
        return self if keep.all() else PhysicalStream(self.schema, self.rows.filter(pa.array(keep)))

    def to_events(self) -> list[Event]:
        """The events as Python objects."""
        return list(self._iterate())

    def _iterate(self) -> Iterator[Event]:
        names = self.schema.names
        for batch in self.rows.to_batches(max_chunksize=65536):
            for kind, name, le, re, re_new, *values in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                if kind == CTI:
                    yield Cti(le)
                elif kind == INSERT:
                    yield Insert(name, le, re, dict(zip(names, values, strict=True)))
                else:
                    yield Retract(name, le, re, re_new, dict(zip(names, values, strict=True)))

    def to_dicts(self) -> list[dict[str, object]]:
        """The events in the JSON notation."""
        return [write_event(event) for event in self._iterate()]

    def to_json_lines(self) -> str:
        """One JSON object per event, in order of arrival."""
        return "".join(self.json_lines())

    def json_lines(self) -> Iterator[str]:
        """The JSON lines in blocks, for streams that are large."""
        for start in range(0, len(self), WRITTEN_AT_ONCE.now):
            yield "\n".join(_json_text(self.slice(start, WRITTEN_AT_ONCE.now)).to_pylist()) + "\n"

    def event(self, index: int) -> Event:
        if not 0 <= index < len(self):
            raise InputError(f"there is no event {index} among {len(self)}", fix="count from 0")
        return self.slice(index, 1).to_events()[0]

    def __eq__(self, other: object) -> bool:
        """The same events in the same order; NaN equals NaN."""
        if not isinstance(other, PhysicalStream):
            return NotImplemented
        return self.schema == other.schema and identical(self.rows, other.rows)

    __hash__ = None  # type: ignore[assignment]  # compared, not looked up

    def __repr__(self) -> str:
        shown = [
            str(event) if isinstance(event, Cti) else f"{event} {show_payload(event.payload)}"
            for event in self.slice(0, 10).to_events()
        ]
        more = [f"… {len(self) - 10} more"] if len(self) > 10 else []
        return printable("\n".join([f"PhysicalStream of {len(self)} events", *shown, *more]))


def _json_text(stream: PhysicalStream) -> pa.Array:
    """The JSON text of every event: each kind has its own fields."""
    rows = {name: one_array(stream.rows[name]) for name in CONTROL.names}
    le, re, re_new = (jsontext.times(rows[name]) for name in ("le", "re", "re_new"))
    ids, payload = jsontext.text_of_column(rows["id"], STRING), jsontext.payload(stream.schema, stream.payload)
    words = [pa.repeat(f'"{word}"', len(stream)) for word in KIND_WORDS]
    insert = jsontext.objects([("kind", words[INSERT]), ("id", ids), ("le", le), ("re", re), ("payload", payload)])
    change = [("kind", words[RETRACT]), ("id", ids), ("le", le), ("re", re), ("re_new", re_new), ("payload", payload)]
    cti = jsontext.objects([("kind", words[CTI]), ("t", le)])
    codes = stream.kinds
    known = pc.if_else(pa.array(codes == RETRACT), jsontext.objects(change), insert)
    return pc.if_else(pa.array(codes == CTI), cti, known)


def _control_column(events: list[Event], name: str) -> pa.Array:
    values: list[object] = []
    for event in events:
        if name == "kind":
            values.append(INSERT if isinstance(event, Insert) else RETRACT if isinstance(event, Retract) else CTI)
        elif isinstance(event, Cti):
            values.append(event.t if name == "le" else None)
        else:
            values.append(getattr(event, name, None))
    try:
        return pa.array(values, CONTROL.field(name).type)
    except UnicodeEncodeError as error:
        raise InputError(f"the id {error.object!r} has half a character", fix="give ids that are text") from None


def _payload_column(events: list[Event], payloads: list[Mapping[str, object]], name: str, kind: Type) -> pa.Array:
    try:
        return column_of((payload.get(name) for payload in payloads), kind)
    except InputError as error:
        error.what = f'column "{name}": {error.what}'
        raise
