"""Whatever a user has for an input, as checked batches: a file, physical events, a history, an Arrow table.

>>> loaded = load("S", [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 1}}])
>>> loaded.schema.names, len(loaded.history())
(('v',), 1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from streamproof.errors import InputError, StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.files import Reader, read
from streamproof.events.history import History
from streamproof.events.physical import PhysicalStream, to_batches
from streamproof.events.schema import Schema, check_names, type_of_arrow
from streamproof.events.validate import Validator

Input: TypeAlias = (
    "History | PhysicalStream | Reader | pa.Table | str | Path | Iterable[Mapping[str, object]] | Iterable[Batch]"
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """One input, ready to run: its schema and its batches, to be read once."""

    schema: Schema
    batches: Iterable[Batch]

    def history(self) -> History:
        return History.from_batches(self.schema, self.batches)


def load(name: str, value: Input, *, schema: Schema | None = None, validator: Validator | None = None) -> Loaded:
    """The input as batches. Physical events are validated on the way; errors name the input."""
    try:
        return _load(value, schema, validator or Validator())
    except StreamproofError as error:
        error.at = f"input {name}, {error.at}" if error.at else f"input {name}"
        raise


def _load(value: Input, schema: Schema | None, validator: Validator) -> Loaded:
    match value:
        case History():
            return Loaded(value.schema, [value.to_batch()])
        case pa.Table():
            return _from_table(value, schema)
        case PhysicalStream():
            return _from_chunks([value], validator)
        case Reader():
            return _from_chunks(value, validator)
        case str() | Path():
            return _from_chunks(read(Path(value), schema=schema), validator)
    return _from_items(list(value), schema, validator)


def _from_items(items: list[Mapping[str, object] | Batch], schema: Schema | None, validator: Validator) -> Loaded:
    if items and all(isinstance(item, Batch) for item in items):
        batches = [item for item in items if isinstance(item, Batch)]
        return Loaded(batches[0].schema, batches)
    events = [item for item in items if isinstance(item, Mapping)]
    if len(events) != len(items):
        raise InputError("an input must be all events or all batches", fix="events are dicts with a kind")
    return _from_chunks([PhysicalStream.from_dicts(events, schema=schema)], validator)


def _from_table(table: pa.Table, schema: Schema | None) -> Loaded:
    names = [name for name in table.column_names if name not in ("le", "re", "w")]
    check_names(names, InputError)
    found = schema or Schema(tuple((name, type_of_arrow(table.schema.field(name).type)) for name in names))
    return Loaded(found, [History.from_table(found, table).to_batch()])


def _from_chunks(chunks: Iterable[PhysicalStream], validator: Validator) -> Loaded:
    """Validated batches; the first chunk is read now, because it tells the schema."""
    checked = (validator.check(chunk) for chunk in chunks)
    first = next(checked, None)
    if first is None:
        raise InputError("there are no events, and no schema is given", fix="declare the schema in the source node")
    return Loaded(first.schema, to_batches(chain([first], checked)))


Watcher: TypeAlias = Callable[[Batch], None]


def watched(batches: Iterable[Batch], watcher: Watcher) -> Iterator[Batch]:
    """The same batches, each shown to ``watcher`` as it passes: for progress and counting."""
    for batch in batches:
        watcher(batch)
        yield batch
