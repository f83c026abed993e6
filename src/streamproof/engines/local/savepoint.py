"""Savepoints: the plans of a processor, the state of its operators and of its sources, in one Arrow file.

Nothing in it is code: plans are JSON, modules are named, and everything else is numbers and texts. What it was taken
with is its claim; it is sealed, so that a damaged one is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from streamproof.engines.base import Settings, prepare
from streamproof.engines.claims import (
    Claim,
    module_claim,
    plain,
    plan_claim,
    refuse_other,
    schema_claim,
    settings_claim,
)
from streamproof.engines.local import graph_state
from streamproof.engines.local.query import RunningQuery
from streamproof.engines.sealed import fitting, opened, sealed
from streamproof.events.schema import Schema
from streamproof.events.validate import Validator
from streamproof.language import json as plan_json
from streamproof.plan.failures import DeadLetter
from streamproof.plan.nodes import Plan

if TYPE_CHECKING:
    from streamproof.engines.local.processor import Processor

Tables = dict[str, pa.Table]
KIND: Final = "savepoint"
VERSION: Final = 5
SAVED: Final = "the savepoint"
SAME_SETTINGS: Final = "give the processor the settings that it had"


def save(processor: Processor) -> bytes:
    """Returns the savepoint of a processor."""
    pieces: dict[str, bytes] = {"graph": graph_state.save(processor.graph)}
    sources, queries = [], []
    for name, inlet in processor.inlets.items():
        about, tables = inlet.save()
        sources.append({"name": name, "schema": _write_schema(inlet.schema), "policy": inlet.policy, **about})
        pieces |= _named(f"source {name}", tables)
    for name, query in processor.queries.items():
        about, tables = query.outlet.save()
        plan = json.loads(plan_json.dumps(query.plan))
        queries.append({"name": name, "plan": plan, "start_offsets": dict(query.start_offsets), **about})
        pieces |= _named(f"query {name}", tables)
    rows = {step.identity: (step.rows_in, step.rows_out) for step in processor.graph.steps}
    letters = [letter.as_dict() for letter in processor.graph.context.dead_letters]
    about = {
        "claim": claim_of(processor), "keep_late": processor.keep_late, "rows": rows, "letters": letters,
        "sources": sources, "queries": queries,
    }  # fmt: skip
    pieces["about"] = json.dumps(about).encode()
    columns = [pa.array(list(pieces), pa.string()), pa.array(list(pieces.values()), pa.large_binary())]
    table = pa.Table.from_arrays(columns, names=["name", "content"])
    return sealed(graph_state.table_bytes(table), kind=KIND, version=VERSION)


def claim_of(processor: Processor) -> Claim:
    """Everything that the output of a processor depends on, beside what is pushed."""
    modules: Claim = {}
    for query in processor.queries.values():
        modules |= module_claim(query.plan, processor.settings.registry)
    return {
        "emission": processor.emission,
        **settings_claim(processor.settings),
        "sources": {name: {**schema_claim(inlet.schema), **inlet.claim} for name, inlet in processor.inlets.items()},
        "queries": {
            name: {
                "plan": plan_claim(query.plan),
                "since": dict(query.start_offsets),
                "keep_history": query.outlet.keep_history,
            }
            for name, query in processor.queries.items()
        },
        "modules": modules,
    }


def rebuilt(make: type[Processor], savepoint: bytes, settings: Settings) -> Processor:
    """A processor with the sources and queries of a savepoint, in its state."""
    about, pieces = _read(savepoint)
    with fitting(KIND):
        _refuse_other_settings(about["claim"], settings)
        processor = make(settings, emission=about["claim"]["emission"], keep_late=about["keep_late"])
        for source in about["sources"]:
            policy = source["policy"]
            validator = None if policy is None else _validator(policy)
            processor.add_inlet(source["name"], _read_schema(source["schema"]), validator)
        for saved in about["queries"]:
            processor.place(_query(processor, saved), past_known=True)
        _load(processor, about, pieces)
    return processor


def _refuse_other_settings(claim: Mapping[str, Any], settings: Settings) -> None:
    """Before anything is made: what is made with other settings could fail with other words."""
    now = settings_claim(settings)
    refuse_other({name: claim[name] for name in now}, now, saved=SAVED, running="this processor", fix=SAME_SETTINGS)


def _validator(policy: Mapping[str, Any]) -> Validator:
    made = Validator(policy=policy["policy"], shape=policy["shape"], order=policy["order"])
    made.forgetful = policy["ids_made_on_reading"]
    return made


def _query(processor: Processor, saved: Mapping[str, Any]) -> RunningQuery:
    plan = _plan(json.dumps(saved["plan"]))
    typed = prepare(plan, processor.schemas(plan), processor.settings)
    kept, start_offsets = saved["keep_history"], saved["start_offsets"]
    return RunningQuery(processor, saved["name"], plan, typed, start_offsets=start_offsets, keep_history=kept)


@lru_cache(maxsize=16)
def _plan(text: str) -> Plan:
    """The plan of a text; that of the same text is the same plan, so what was prepared for it serves again."""
    return plan_json.loads(text)


def load_state(processor: Processor, savepoint: bytes) -> None:
    """Put a processor that runs the same queries into the state of a savepoint."""
    about, pieces = _read(savepoint)
    with fitting(KIND):
        _load(processor, about, pieces)


def _load(processor: Processor, about: Mapping[str, Any], pieces: Mapping[str, bytes]) -> None:
    """Refuse what differs; then go into the state. If that fails, the processor is of no use any more, and says so."""
    running = "this query" if len(processor.queries) == 1 else "this processor"
    refuse_other(about["claim"], plain(claim_of(processor)), saved=SAVED, running=running)
    processor.failed("restoring a savepoint failed half-way")
    graph_state.restore(processor.graph, pieces["graph"])
    for step in processor.graph.steps:
        step.rows_in, step.rows_out = about["rows"][step.identity]
    processor.graph.context.dead_letters[:] = [DeadLetter.from_dict(letter) for letter in about["letters"]]
    for part in about["sources"]:
        processor.inlets[part["name"]].restore(part, _tables(pieces, f"source {part['name']}"))
    for part in about["queries"]:
        processor.queries[part["name"]].outlet.restore(part, _tables(pieces, f"query {part['name']}"))
    processor.failed(None)


def _read(savepoint: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a savepoint says about itself, and its pieces."""
    content = opened(bytes(savepoint), kind=KIND, version=VERSION)
    with fitting(KIND):
        table = graph_state.read_table(content)
        pieces = dict(zip(table["name"].to_pylist(), table["content"].to_pylist(), strict=True))
        return json.loads(pieces["about"]), pieces


def _named(owner: str, tables: Tables) -> dict[str, bytes]:
    return {f"{owner}: {name}": graph_state.table_bytes(table) for name, table in tables.items()}


def _tables(pieces: Mapping[str, bytes], owner: str) -> Tables:
    start = f"{owner}: "
    return {n.removeprefix(start): graph_state.read_table(part) for n, part in pieces.items() if n.startswith(start)}


def _write_schema(schema: Schema) -> dict[str, object]:
    return {"columns": {name: str(kind) for name, kind in schema}, "unit": schema.unit}


def _read_schema(saved: Mapping[str, Any]) -> Schema:
    return Schema.of(saved["columns"], unit=saved["unit"])
