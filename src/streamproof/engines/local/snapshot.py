"""A running query on paper: the state of every kernel as one Arrow file, with a version and the plan it belongs to.

Nothing in it is code. A snapshot of another version or another plan is refused.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from streamproof.engines.local.graph import Graph
from streamproof.errors import InputError
from streamproof.kernels.base import State
from streamproof.plan.check import Typed
from streamproof.plan.labels import label

VERSION = "1"
_FIELDS = pa.schema(
    [
        ("step", pa.int64()),
        ("name", pa.string()),
        ("shape", pa.list_(pa.int64())),
        ("values", pa.large_list(pa.int64())),
    ]
)


def save(graph: Graph) -> bytes:
    """The whole state of a graph. Law: a graph restored from it goes on to the same output."""
    rows = [
        {"step": step, "name": name, "shape": _shape(value), "values": _values(value)}
        for step, state in enumerate(graph.snapshot())
        for name, value in state.items()
    ]
    texts = graph.context.strings.export()
    about = {"streamproof.version": VERSION, "plan": _plan_of(graph.typed), "strings": json.dumps(texts)}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _FIELDS.with_metadata(about)) as file:
        file.write_table(pa.Table.from_pylist(rows, schema=_FIELDS).replace_schema_metadata(about))
    return bytes(sink.getvalue())


def restore(graph: Graph, snapshot: bytes) -> None:
    """Put a fresh graph of the same plan into the state of a snapshot."""
    try:
        table = pa.ipc.open_file(pa.py_buffer(snapshot)).read_all()
    except pa.ArrowInvalid as error:
        raise InputError(f"not a snapshot: {error}", fix="give the file that a run wrote") from None
    about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    if about.get("streamproof.version") != VERSION:
        found = about.get("streamproof.version", "none")
        raise InputError(f"the snapshot has version {found}, this program reads {VERSION}", fix="start the query anew")
    if about["plan"] != _plan_of(graph.typed):
        raise InputError("the snapshot belongs to another plan", fix="run the plan that it was taken from")
    graph.context.strings.restore(json.loads(about["strings"]))
    states: list[State] = [{} for _ in graph.steps]
    for row in table.to_pylist():
        states[row["step"]][row["name"]] = _value(row["shape"], row["values"])
    graph.restore(states)


def _plan_of(typed: Typed) -> str:
    """A text that tells plans apart: every node with its parameters and schema, in the order of the tree."""
    inputs = ", ".join(_plan_of(part) for part in typed.inputs)
    return f"{label(typed.node)} : {typed.schema.columns} ({inputs})"


def _shape(value: object) -> list[int] | None:
    """The shape of an array; an empty one for a number, null for nothing."""
    if isinstance(value, np.ndarray):
        return list(value.shape)
    return None if value is None else []


def _values(value: object) -> object:
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value).reshape(-1)
    return [] if value is None else [value]


def _value(shape: list[int] | None, values: list[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | int | None:
    if shape is None:
        return None
    return np.array(values, np.int64).reshape(shape) if shape else values[0]
