"""Columns as JSON text: whole files are written without a Python call per row.

>>> from streamproof.events.schema import STRING
>>> column = pa.array(["a", None])
>>> objects([("k", text_of_column(column, STRING)), ("v", numbers(pa.array([1, 2])))]).to_pylist()
['{"k": "a", "v": 1}', '{"k": null, "v": 2}']

Law: the text is what `notation.write_json` writes for each row.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from streamproof.events.notation import write_json, write_value
from streamproof.events.order import one_array
from streamproof.events.schema import Schema, Type
from streamproof.events.time import BEGINNING, FOREVER


def objects(fields: list[tuple[str, pa.Array]]) -> pa.Array:
    """One JSON object per row, from the JSON text of each field."""
    if not fields:
        raise ValueError("an object of no fields has no length")
    parts: list[object] = []
    for name, text in fields:
        parts += [("{" if not parts else ", ") + write_json(name) + ": ", text]
    return pc.binary_join_element_wise(*parts, "}", "")


def payload(schema: Schema, table: pa.Table) -> pa.Array:
    """The payload of every row as a JSON object; it is the last columns of the table."""
    if not schema.columns:
        return pa.repeat("{}", table.num_rows)
    columns = map(one_array, table.columns[-len(schema.columns) :])
    return objects([(name, text_of_column(c, kind)) for (name, kind), c in zip(schema, columns, strict=True)])


def text_of_column(column: pa.Array, kind: Type) -> pa.Array:
    """The JSON text of every value; null is the word."""
    match kind.kind:
        case "int64":
            text = column.cast(pa.string())
        case "bool":
            text = pc.if_else(column, "true", "false")
        case "null":
            return pa.repeat("null", len(column))
        case "float64":  # Python's shortest text that reads back as the same number
            text = pa.array([None if value is None else write_json(value) for value in column.to_pylist()], pa.string())
        case _:  # one call per different value
            encoded = column.dictionary_encode()
            words = [write_json(write_value(value)) for value in encoded.dictionary.to_pylist()]
            text = pa.array(words, pa.string()).take(encoded.indices)
    return pc.fill_null(text, "null")


def numbers(column: pa.Array) -> pa.Array:
    """Whole numbers as text."""
    return column.cast(pa.string())


def times(column: pa.Array) -> pa.Array:
    """Ticks in the notation of files: numbers, "inf" and "-inf"."""
    text = pc.if_else(pc.equal(column, FOREVER), '"inf"', numbers(column))
    return pc.if_else(pc.equal(column, BEGINNING), '"-inf"', text)
