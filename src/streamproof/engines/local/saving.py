"""A whole processor on paper: its plans, the state of its operators, and what its doors remember, in one Arrow file.

Nothing in it is code: plans are JSON, modules are named, and everything else is numbers and texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamproof.engines.base import Settings, prepare
from streamproof.engines.local import snapshot as graphs
from streamproof.engines.local.query import RunningQuery
from streamproof.errors import InputError
from streamproof.events.schema import Schema
from streamproof.events.validate import Validator
from streamproof.language import json as plan_json
from streamproof.plan.nodes import Plan

if TYPE_CHECKING:
    from streamproof.engines.local.processor import Processor

Tables = dict[str, pa.Table]


def save(processor: Processor) -> bytes:
    """The processor as bytes."""
    pieces: dict[str, bytes] = {"graph": graphs.save(processor.graph)}
    sources, queries = [], []
    for name, inlet in processor.inlets.items():
        about, tables = inlet.snapshot()
        sources.append({"name": name, "schema": _write_schema(inlet.schema), "policy": inlet.policy, **about})
        pieces |= _named(f"source {name}", tables)
    for name, query in processor.queries.items():
        about, tables = query.outlet.snapshot()
        plan = json.loads(plan_json.dumps(query.plan))
        queries.append({"name": name, "plan": plan, "eras": dict(query.eras), **about})
        pieces |= _named(f"query {name}", tables)
    about = {"emission": processor.emission, "horizon": processor.settings.horizon}
    pieces["about"] = json.dumps({**about, "sources": sources, "queries": queries}).encode()
    columns = [pa.array(list(pieces), pa.string()), pa.array(list(pieces.values()), pa.large_binary())]
    table = pa.Table.from_arrays(columns, names=["name", "content"])
    return graphs.table_bytes(table.replace_schema_metadata({"streamproof.processor": graphs.VERSION}))


def rebuilt(make: type[Processor], snapshot: bytes, settings: Settings) -> Processor:
    """A processor with the sources and queries of a snapshot, in its state."""
    about = json.loads(_pieces(snapshot)["about"])
    if settings.horizon != about["horizon"]:
        raise InputError(f"the snapshot was taken with the horizon {about['horizon']}", fix="give the same horizon")
    processor = make(settings, emission=about["emission"])
    for source in about["sources"]:
        policy = source["policy"]
        validator = None if policy is None else Validator(**policy)
        processor.add_inlet(source["name"], _read_schema(source["schema"]), validator)
    for saved in about["queries"]:
        processor.place(_query(processor, saved), past_known=True)
    processor.load(snapshot)
    return processor


def _query(processor: Processor, saved: Mapping[str, Any]) -> RunningQuery:
    plan = _plan(json.dumps(saved["plan"]))
    typed = prepare(plan, processor.schemas(plan), processor.settings)
    kept, eras = saved["keep_history"], saved["eras"]
    return RunningQuery(processor, saved["name"], plan, typed, eras=eras, keep_history=kept)


@lru_cache(maxsize=16)
def _plan(text: str) -> Plan:
    """The plan of a text; that of the same text is the same plan, so what was prepared for it serves again."""
    return plan_json.loads(text)


def load_state(processor: Processor, snapshot: bytes) -> None:
    """Put a processor that runs the same queries into the state of a snapshot."""
    pieces = _pieces(snapshot)
    about = json.loads(pieces["about"])
    kinds = (("query", "queries", processor.queries), ("source", "sources", processor.inlets))
    for word, key, running in kinds:
        saved = [part["name"] for part in about[key]]
        if sorted(saved) != sorted(running):
            text = f"the snapshot has the {key} {', '.join(saved)}, not {', '.join(running)}"
            raise InputError(text, fix=f"start every {word} under the name that it had")
    graphs.restore(processor.graph, pieces["graph"])
    for part in about["sources"]:
        processor.inlets[part["name"]].restore(part, _tables(pieces, f"source {part['name']}"))
    for part in about["queries"]:
        processor.queries[part["name"]].outlet.restore(part, _tables(pieces, f"query {part['name']}"))


def _pieces(snapshot: bytes) -> dict[str, bytes]:
    table = graphs.read_table(snapshot)
    graphs.refuse_version((table.schema.metadata or {}).get(b"streamproof.processor", b"").decode())
    return dict(zip(table["name"].to_pylist(), table["content"].to_pylist(), strict=True))


def _named(owner: str, tables: Tables) -> dict[str, bytes]:
    return {f"{owner}: {name}": graphs.table_bytes(table) for name, table in tables.items()}


def _tables(pieces: Mapping[str, bytes], owner: str) -> Tables:
    start = f"{owner}: "
    return {n.removeprefix(start): graphs.read_table(part) for n, part in pieces.items() if n.startswith(start)}


def _write_schema(schema: Schema) -> dict[str, object]:
    return {"columns": {name: str(kind) for name, kind in schema}, "unit": schema.unit}


def _read_schema(saved: Mapping[str, Any]) -> Schema:
    return Schema.of(saved["columns"], unit=saved["unit"])
