"""Whatever a user has for an input, in parts: a file, physical events, a history, an Arrow table.

>>> loaded = load("S", [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 1}}])
>>> loaded.schema.names, len(loaded.history())
(('v',), 1)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from streamproof.errors import InputError, StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.files import Reader, read
from streamproof.events.files.binary import refusing_damage
from streamproof.events.history import History
from streamproof.events.physical import to_batches
from streamproof.events.schema import SIGNED, Schema, check_names, own_columns, payload_name, type_of_arrow
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING
from streamproof.events.validate import Validator

Input: TypeAlias = (
    "History | PhysicalStream | Reader | pa.Table | str | Path | Iterable[Mapping[str, object]] | Iterable[Batch]"
)
Part: TypeAlias = "PhysicalStream | Batch | History"


@dataclass(frozen=True, slots=True)
class Loaded:
    """One input, ready to run: its schema and its parts, to be read once.

    Physical events keep the order in which they arrived; a history is complete and has none.
    """

    schema: Schema
    parts: Iterable[Part]
    reader: Reader | None = None  # of the file that it is, and how that is read
    name: str = ""  # of its source, for errors

    @property
    def makes_ids(self) -> bool:
        """Whether every event is an insert with an id of the reader's own making: then none need be remembered."""
        return self.reader is not None and self.reader.makes_ids

    def checked(self, validator: Validator | None = None) -> Loaded:
        """The same, with physical events validated as they are read."""
        check = validator or Validator()
        check.forgetful |= self.makes_ids
        return replace(self, parts=self._checked(check))

    def _checked(self, validator: Validator) -> Iterator[Part]:
        for part in self.parts:
            try:
                checked = validator.check(part) if isinstance(part, PhysicalStream) else part
            except StreamproofError as error:
                raise error.within(f"input {self.name}") from None
            yield checked

    @property
    def batches(self) -> Iterator[Batch]:
        """The parts as signed rows; a batch closes at each CTI, its frontier."""
        frontier = BEGINNING
        for part in self.parts:
            for batch in _batches(part):
                frontier = max(frontier, batch.frontier)
                yield batch if batch.frontier == frontier else replace(batch, frontier=frontier)

    def history(self) -> History:
        return History.from_batches(self.schema, self.batches)


def _batches(part: Part) -> Iterable[Batch]:
    match part:
        case Batch():
            return [part.lawful()]
        case History():
            return [part.to_batch()]
    return to_batches(part)


def no_input(name: str) -> InputError:
    """What to say where a source of the plan is given nothing."""
    fix = f'give it one: run({{"{name}": …}}), or on the command line --input {name}=FILE'
    return InputError(f'no input is given for the source "{name}"', at=f'source "{name}"', fix=fix)


def load(name: str, value: Input | Loaded, *, schema: Schema | None = None) -> Loaded:
    """The input in parts, whose events nobody has validated yet. Errors, also those on the way, name the input."""
    if isinstance(value, Loaded):
        return value
    try:
        loaded = _load(value, schema)
    except StreamproofError as error:
        raise error.within(f"input {name}") from None
    return replace(loaded, parts=_named(loaded.parts, name), name=name)


def _named(parts: Iterable[Part], name: str) -> Iterator[Part]:
    """The same parts; errors on the way name the input."""
    try:
        yield from parts
    except StreamproofError as error:
        raise error.within(f"input {name}") from None


def _load(value: Input, schema: Schema | None) -> Loaded:
    match value:
        case History():
            return Loaded(value.schema, [value])
        case pa.Table():
            return _from_table(value, schema)
        case PhysicalStream():
            return Loaded(value.schema, [value])
        case Reader():
            return Loaded(value.schema, _some(value), value)
        case str() | Path():
            reader = read(Path(value), schema=schema)
            return Loaded(reader.schema, _some(reader), reader)
    return _from_items(list(value), schema)


def _from_items(items: list[Mapping[str, object] | Batch], schema: Schema | None) -> Loaded:
    if items and all(isinstance(item, Batch) for item in items):
        batches = [item for item in items if isinstance(item, Batch)]
        return Loaded(batches[0].schema, batches)
    events = [item for item in items if isinstance(item, Mapping)]
    if len(events) != len(items):
        raise InputError("an input must be all events or all batches", fix="events are dicts with a kind")
    chunk = PhysicalStream.from_dicts(events, schema=schema)
    return Loaded(chunk.schema, [chunk])


def _from_table(table: pa.Table, schema: Schema | None) -> Loaded:
    with refusing_damage("Arrow", Path("a table")):
        table.validate(full=True)
    own = own_columns(table.column_names, SIGNED).values()
    fields = [field for field in table.schema if field.name not in own]
    check_names([payload_name(field.name) for field in fields], InputError)
    found = schema or Schema(tuple((payload_name(field.name), type_of_arrow(field.type)) for field in fields))
    return Loaded(found, [History.from_table(found, table)])


def _some(chunks: Iterable[PhysicalStream]) -> Iterator[PhysicalStream]:
    """The chunks of a file, of which there must be one."""
    empty = True
    for chunk in chunks:
        empty = False
        yield chunk
    if empty:
        raise InputError("there are no events, and no schema is given", fix="declare the schema in the source node")
