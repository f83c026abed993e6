"""The state of a running graph: that of every kernel, as one Arrow file.

Nothing in it is code. Kernels are known by what they do over which inputs, so the state of other operators is refused.
The file has no checksum of its own: whoever keeps it seals it (`streamproof.engines.sealed`).
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from streamproof.engines.local.graph import Graph
from streamproof.errors import InputError
from streamproof.kernels.base import State

_FIELDS = pa.schema(
    [
        ("step", pa.string()),
        ("name", pa.string()),
        ("shape", pa.list_(pa.int64())),
        ("values", pa.large_list(pa.int64())),
    ]
)


def save(graph: Graph) -> bytes:
    """Returns the whole state of a graph. Law: a graph restored from it continues to the same output."""
    states = zip(graph.steps, graph.save(), strict=True)
    rows = [(step.identity, name, value) for step, state in states for name, value in state.items()]
    values = [_values(value) for _, _, value in rows]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in values])]).astype(np.int64)
    flat = np.concatenate([np.empty(0, np.int64), *values])
    columns = [
        pa.array([step for step, _, _ in rows], pa.string()),
        pa.array([name for _, name, _ in rows], pa.string()),
        pa.array([_shape(value) for _, _, value in rows], _FIELDS.field("shape").type),
        pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(flat)),
    ]
    about = {
        "steps": json.dumps([step.identity for step in graph.steps]),
        "strings": json.dumps(graph.context.strings.export()),
    }
    return table_bytes(pa.Table.from_arrays(columns, schema=_FIELDS).replace_schema_metadata(about))


def restore(graph: Graph, savepoint: bytes) -> None:
    """Put a fresh graph of the same plans into the state of a savepoint."""
    table = read_table(savepoint)
    about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    if sorted(json.loads(about["steps"])) != sorted(step.identity for step in graph.steps):
        text = "the savepoint belongs to another plan: its operators, or how they are joined, are not those of this one"
        raise InputError(text, fix="run the plan that it was taken from, with the version of streamproof that took it")
    graph.context.strings.restore(*json.loads(about["strings"]))
    states: dict[str, State] = {step.identity: {} for step in graph.steps}
    table = table.combine_chunks()
    ends, flat = _flat(table)
    heads = zip(*(table[name].to_pylist() for name in ("step", "name", "shape")), strict=True)
    for row, (step, name, shape) in enumerate(heads):
        states[step][name] = _value(shape, flat[ends[row] : ends[row + 1]])
    graph.restore([states[step.identity] for step in graph.steps])


def table_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    return bytes(sink.getvalue())


def read_table(content: bytes) -> pa.Table:
    """The inverse of `table_bytes`; every offset and every text in it is looked at before it is used."""
    try:
        table = pa.ipc.open_file(pa.py_buffer(content)).read_all()
        table.validate(full=True)
    except pa.ArrowException as error:
        raise InputError(f"not a savepoint: {error}", fix="give the file that a run wrote") from None
    return table


def _flat(table: pa.Table) -> tuple[list[int], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Where the values of each row start and end, and all values."""
    if not table.num_rows:
        return [0], np.empty(0, np.int64)
    values = table["values"].chunk(0)
    return values.offsets.to_pylist(), values.values.to_numpy()


def _shape(value: object) -> list[int] | None:
    """The shape of an array; an empty one for a number, null for nothing."""
    if isinstance(value, np.ndarray):
        return list(value.shape)
    return None if value is None else []


def _values(value: object) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(-1)
    return np.array([] if value is None else [value], np.int64)


def _value(
    shape: list[int] | None, values: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | int | None:
    if shape is None:
        return None
    return values.reshape(shape).copy() if shape else int(values[0])
