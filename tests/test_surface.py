"""Whatever a public call is given: it works, or it says what is wrong, where, and what to write instead.

Every public name, and every public method of every public class, is called with each of its arguments replaced by
each of many wrong ones; with one argument too few, one too many, and one that it does not know. The tables below say
how each is called rightly; a test fails where one is missing.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import streamproof as sp
from streamproof import functions, properties
from streamproof.engines.spark.output import read_events, read_output
from streamproof.errors import StreamproofError
from streamproof.pictures.timeline import Bar, Lane, Timeline

EVENTS = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"k": "x", "v": 7}}, {"kind": "cti", "t": 10}]
SCHEMA = sp.Schema.of({"k": "string", "v": "int64"})
FRAME = pd.DataFrame({"le": [1], "re": [5], "v": [7]})


class Odd:
    """Nothing that any call takes."""

    def __repr__(self) -> str:
        return "an odd thing"


WRONG: tuple[object, ...] = (
    Odd(), None, True, -1, 0, 1.5, math.nan, math.inf, 10**30, "", "no such thing", "1 +", "\x1b[2J", b"bytes", [], [1],
    ["x", None], {}, {"a": 1}, {1: 2}, {"S": Odd()}, {"S": FRAME}, {"T": EVENTS}, set(), {1, 2}, FRAME, (), object,
    lambda: 1, sp.source("S"), sp.source("S").group_by("k"), sp.count(), sp.col("v"), SCHEMA, Path("no/such/file"),
    Path("."), pa.table({"x": [1]}), iter([1]), 2**63, -(2**63), "5 parsecs",
)  # fmt: skip


@dataclass
class Call:
    """How something is called rightly."""

    function: Callable[..., Any]
    args: tuple[object, ...] = ()
    kwargs: dict[str, object] = field(default_factory=dict)


def right(function: Callable[..., Any], *args: object, **kwargs: object) -> Call:
    return Call(function, args, kwargs)


def stream() -> Any:
    return sp.source("S", {"k": "string", "v": "int64"})


def history() -> sp.History:
    return sp.History.from_rows(SCHEMA, [(1, 5, {"k": "x", "v": 7})])


def physical() -> sp.PhysicalStream:
    return sp.PhysicalStream.from_dicts(EVENTS, schema=SCHEMA)


def query() -> Any:
    return stream().tumbling(10).aggregate(n=sp.count()).on("local").start({})


def job(engine: str = "duckdb") -> Any:
    return stream().where("v > 1").on(engine)


def processor() -> sp.Processor:
    made = sp.Processor()
    made.source("S", SCHEMA)
    made.start(stream().where("v > 1").plan, name="q")
    return made


@sp.uda("spread", returns="int64", takes="int64")
def spread(values: list[int]) -> int:
    return max(values) - min(values)


def bucket() -> sp.TokenBucket:
    return sp.TokenBucket(10, "1/10")


happening = sp.arrive("S", "v > 1")
lasts = sp.lasting(happening, "10s")
windowed = stream().tumbling(10)
partial = stream().every(10, window=60)


ROWS = [{"at": datetime(2024, 1, 4, hour, tzinfo=UTC), "v": hour} for hour in range(3)]
soon = properties.eventually(properties.now(bool)).within(2)


def recorded_run() -> Any:
    return properties.run_recorded(properties.recorded(ROWS, time="at", size="1 hour"), ROWS)


def functions_called(tmp: Path) -> dict[str, Call]:
    """Every public name that can be called."""
    file = tmp / "events.jsonl"
    sp.write(physical(), file, overwrite=True)
    (tmp / "t.csv").write_text("t,v\n1,2\n3,4\n")
    return {
        "Batch": right(sp.Batch, SCHEMA, history().to_batch().rows, 10),
        "ColumnMapping": right(sp.ColumnMapping, start="t", duration="1h"),
        "Cti": right(sp.Cti, 5),
        "Facets": right(sp.Facets, shape="point"),
        "History": right(sp.History, SCHEMA, history().rows),
        "Insert": right(sp.Insert, "a", 1, 5, {"v": 1}),
        "Parameter": right(sp.Parameter, "p", "int64"),
        "PhysicalStream": right(sp.PhysicalStream, SCHEMA, physical().rows),
        "Processor": right(sp.Processor, emission="final", latency=0.5),
        "Properties": right(sp.Properties, deterministic=True),
        "QoS": right(sp.QoS, "500 ms", 10),
        "QueryServer": right(sp.QueryServer, share="0.5", policy="qed"),
        "Registry": right(sp.Registry, [spread]),
        "Retract": right(sp.Retract, "a", 1, 5, 3, {"v": 1}),
        "Schema": right(sp.Schema, (("v", sp.Schema.of({"v": "int64"})["v"]),), "ms"),
        "Stream": right(sp.Stream, stream().plan),
        "TokenBucket": right(sp.TokenBucket, 10, "1/10", peak=2),
        "Validator": right(sp.Validator, policy="drop", keep=5),
        "analyze": right(sp.analyze, tmp / "t.csv", "t", on="here"),
        "arrive": right(sp.arrive, "S", "v > 1"),
        "asc": right(sp.asc, "v"),
        "avg": right(sp.avg, "v"),
        "becomes": right(sp.becomes, "S", "v > 1"),
        "call": right(sp.call, "f", "v"),
        "changes": right(sp.changes, "S", "v", by=3, way="up", within="5s"),
        "check_module": right(sp.check_module, spread, windows=2, inputs={"value": "int64"}),
        "clock": right(sp.clock, every="5s"),
        "col": right(sp.col, "v"),
        "count": right(sp.count, "v"),
        "count_distinct": right(sp.count_distinct, "v"),
        "count_values": right(sp.count_values, "v"),
        "desc": right(sp.desc, "v"),
        "describe": right(sp.describe, physical(), history=True),
        "eql": right(sp.eql, "SELECT count(*) FROM S EVERY 10s WINDOW 60s", S=stream()),
        "explain_difference": right(sp.explain_difference, history(), history(), relative=0.5),
        "first": right(sp.first, "v"),
        "from_batches": right(sp.from_batches, [history().to_batch()], schema=SCHEMA),
        "from_trace": right(sp.from_trace, [1.0, 2.0, 5.0], rate=1),
        "generated": right(sp.generated, SCHEMA, 5, 1, sp.Facets()),
        "group_input": right(sp.group_input),
        "last": right(sp.last, "v"),
        "lasting": right(sp.lasting, happening, "10s", by="k", pair="fifo", max="1h"),
        "let": right(sp.let, M=stream()),
        "lit": right(sp.lit, 5),
        "make_disorder": right(sp.make_disorder, {"dataSource": str(tmp / "t.csv"), "timestampIndex": 0}, out=tmp),
        "make_duplicates": right(sp.make_duplicates, stream().plan),
        "make_speculative": right(sp.make_speculative, stream().plan, key=["k"], k=2),
        "marbles": right(sp.marbles, history(), width=50, rows=3),
        "max": right(sp.max, "v"),
        "median": right(sp.median, "v"),
        "min": right(sp.min, "v"),
        "on": right(sp.on, stream().plan, "duckdb", horizon=10, optimise=True),
        "percentile": right(sp.percentile, "v", 0.5),
        "read": right(sp.read, file, schema=SCHEMA, format="jsonl", chunk_rows=10),
        "ref": right(sp.ref, "M"),
        "register_sources": right(sp.register_sources, None),
        "same_bag": right(sp.same_bag, history(), history(), relative=0.1),
        "same_snapshots": right(sp.same_snapshots, history(), history(), absolute=0.1),
        "source": right(sp.source, "S", {"v": "int64"}, unit="ms"),
        "sql": right(sp.sql, "v + 1"),
        "stdev_pop": right(sp.stdev_pop, "v"),
        "stdev_samp": right(sp.stdev_samp, "v"),
        "sum": right(sp.sum, "v"),
        "to_batches": right(sp.to_batches, physical()),
        "to_history": right(sp.to_history, physical(), schema=SCHEMA),
        "trace": right(sp.trace, job("local"), {"S": EVENTS}, "a", source="S"),
        "uda": right(sp.uda, "m", returns="int64", takes="int64"),
        "udf": right(sp.udf, "m", returns="int64", takes=["int64"]),
        "udo": right(sp.udo, "m", returns={"v": "int64"}),
        "var_pop": right(sp.var_pop, "v"),
        "var_samp": right(sp.var_samp, "v"),
        "when": right(sp.when, "v > 1", 5),
        "write": right(sp.write, history(), tmp / "h.csv", overwrite=True),
    }


NOT_CALLED = {  # constants and rooms, and what only we make: their methods are called below
    "BEGINNING", "FOREVER", "functions", "left", "right",
    "Event",  # what modules see: a plain tuple, made by the million
    "Analysis", "Job", "Run", "RunningQuery", "Metrics", "DeadLetter",
    "InfrastructureError", "InputError", "PlanError", "RunError", "StreamproofError",
}  # fmt: skip


def methods_called(tmp: Path) -> dict[str, Call]:
    """Every public method of what the calls above give; a new object for each call, where calls change it."""
    right_stream = sp.source("R", {"k": "string", "w": "int64"})
    two = {"on": "l.k = r.k", "select": {"k": "l.k"}}
    made: dict[str, list[Call]] = {
        "Stream": [
            right(stream().where, "v > 1"), right(stream().select, "k", x="v * 2"), right(stream().shift, 5),
            right(stream().extend, 5), right(stream().alter_duration, 5), right(stream().to_point),
            right(stream().point_at_end), right(stream().chop, 5, offset=1), right(stream().stitch),
            right(stream().coalesce), right(stream().distinct), right(stream().session, 5, max=10, key="k"),
            right(stream().advance_time, every=5, delay=1, late="drop"),
            right(stream().join, right_stream, **two), right(stream().left_outer, right_stream, **two),
            right(stream().full_outer, right_stream, **two), right(stream().followed_by, right_stream, **two),
            right(stream().anti_join, right_stream, "l.k = r.k"), right(stream().clip, right_stream, "l.k = r.k"),
            right(stream().union, stream()), right(stream().in_windows, windowed.window),
            right(stream().group_by, "k"), right(stream().group_apply, "k", apply=lambda g: g.to_point()),
            right(stream().multicast, lambda m: m.union(m), name="M"), right(stream().on, "duckdb", horizon=5),
            right(stream().tumbling, 10, offset=1), right(stream().hopping, 10, hop=5, offset=1),
            right(stream().snapshot), right(windowed.aggregate(n=sp.count()).same_window),
            right(stream().count_start, 3), right(stream().count_end, 3),
            right(stream().on_arrival, window=5), right(stream().every, 10, window=60),
            right(stream().at, happening, by="k", window=5),
            right(stream().during, lasts, continuous=True, window=5, hop=5),
            right(stream().transition, "v > 1", key="k"), right(stream().drift, "v", step=3, way="up", key="k"),
            right(stream().pairing, stream(), key="k", policy="lifo", max=5),
            right(stream().observe, stream(), {"n": sp.count()}, key="k", reach=5),
            right(stream().to_eql), right(stream().to_json), right(stream().to_python), right(stream().to_xml),
            right(stream().to_sql), right(stream().explain), right(stream().mermaid),
        ],
        "Grouped": [right(stream().group_by("k").apply, lambda g: g.to_point())],
        "Windowed": [
            right(windowed.aggregate, n=sp.count(), output="point_end"),
            right(windowed.top, 3, by=sp.desc("v"), rank="r", keep=["k"], output="window"),
            right(windowed.uda, "spread", "v", as_="s", params={}, clip="full", output="window", restriction="none"),
            right(windowed.udo, "rows", map={"v": "v"}, params={}, clip="none", stamp="align", restriction="none"),
        ],
        "Column": [
            *(right(getattr(sp.col("v"), name), 5) for name in (
                "same_as", "isin", "like", "contains", "starts_with", "ends_with"
            )),
            right(sp.col("v").between, 1, 5), right(sp.col("v").cast, "int64"), right(sp.col("v").try_cast, "int64"),
            *(right(getattr(sp.col("v"), name)) for name in ("is_null", "is_not_null", "asc", "desc")),
        ],
        "Choice": [right(sp.when("v > 1", 5).when, "v > 2", 6), right(sp.when("v > 1", 5).otherwise, 6)],
        "Bindings": [right(sp.let(M=stream()).in_, sp.ref("M"))],
        "Happening": [
            right((happening @ happening).within, 5), right((lasts @ lasts).open), right(lasts.every, 5),
        ],
        "PartialQuery": [
            right(partial.group_by, "k"), right(partial.emit_empty), right(partial.qos, latency="5s", backlog=5),
            right(partial.aggregate, n=sp.count()),
        ],
        "Job": [
            right(job().run, {"S": EVENTS}, validators={"S": sp.Validator()}),
            right(job("local").run, {"S": EVENTS}), right(job("local").start, {}, keep_history=True, keep_late=True),
            right(job().open, {"S": EVENTS}), right(job().check, {"S": SCHEMA}),
            right(job().sql, {"S": EVENTS}),
        ],
        "Run": [right(job().run({"S": EVENTS}).picture, width=50),
                *(right(getattr(job().run({"S": EVENTS}), name)) for name in ("to_arrow", "to_pandas", "to_polars"))],
        "History": [
            right(sp.History.empty, SCHEMA), right(sp.History.from_batches, SCHEMA, [history().to_batch()]),
            right(sp.History.from_rows, SCHEMA, [(1, 5, {"v": 1})]),
            right(sp.History.from_table, SCHEMA, pa.table({"le": [1], "re": [5], "k": ["x"], "v": [1]})),
            right(history().expand), right(history().to_rows), right(history().to_json_lines),
            right(history().json_lines), right(history().to_batch, frontier=10),
        ],
        "Batch": [
            right(sp.Batch.empty, SCHEMA, frontier=5), right(sp.Batch.from_rows, SCHEMA, [(1, 5, 1, {"v": 1})]),
        ],
        "PhysicalStream": [
            right(sp.PhysicalStream.empty, SCHEMA), right(sp.PhysicalStream.from_dicts, EVENTS, schema=SCHEMA),
            right(sp.PhysicalStream.from_events, [sp.Insert("a", 1, 5, {"k": "x", "v": 1})], schema=SCHEMA),
            right(sp.PhysicalStream.concat, [physical()], schema=SCHEMA), right(physical().to_events),
            right(physical().to_dicts), right(physical().to_json_lines), right(physical().slice, 0, 1),
            right(physical().event, 0),
        ],
        "Schema": [right(sp.Schema.of, {"v": "int64"}, unit="ms")],
        "Validator": [right(sp.Validator().check, physical())],
        "Registry": [right(sp.Registry().add, spread), right(sp.Registry().load, "math")],
        "RunningQuery": [
            right(query().push, "S", EVENTS), right(query().finish, "S"), right(query().over, {"S": EVENTS}),
            right(query().pull), right(query().events), right(query().picture, width=50), right(query().savepoint),
            right(query().restore, query().savepoint()), right(query().close),
        ],
        "Processor": [
            right(processor().source, "T", {"v": "int64"}, validator=sp.Validator()),
            right(processor().start, stream().plan, name="r", keep_history=True), right(processor().stop, "q"),
            right(processor().push, "S", EVENTS), right(processor().finish, "S"), right(processor().metrics, "q"),
            right(processor().explain), right(processor().savepoint), right(processor().load, processor().savepoint()),
            right(sp.Processor.restore, processor().savepoint()),
        ],
        "QueryServer": [
            right(sp.QueryServer().register, windowed.aggregate(n=sp.count()).plan, sp.QoS("1 s"), name="q",
                  arrival=bucket(), cost={"S": 1}),
        ],
        "properties": [
            right(properties.recorded, ROWS, time="at", size="1 hour", start="2024-01-04T00:00Z", windows=3),
            right(properties.tumbling, "1 hour", on="at"), right(properties.sliding, "2 hours", "1 hour", on="at"),
            right(properties.micro_batches), right(properties.judge, soon, recorded_run(), steps=None),
            right(properties.assert_holds, soon, recorded_run(), steps=None, undecided="pass", vacuous="report"),
            right(properties.evaluate, soon, [1, 2]), right(properties.safe_length, soon),
            right(properties.html_report, properties.judge(soon, recorded_run()), title="t"),
        ],
        "output": [right(read_output, tmp), right(read_events, tmp)],
        "functions": [right(getattr(functions, name), "v") for name in ("abs", "coalesce", "lower", "year")],
    }  # fmt: skip
    return {
        f"{owner}.{call.function.__name__}{f'#{n}' if n else ''}": call
        for owner, calls in made.items()
        for n, call in enumerate(calls)
    }


TRUSTING = (
    "Validator",
    "Insert",
    "Retract",
    "Cti",
    "Batch",
    "History.to_batch",
)  # made by the million: judged when they are used


def calls(tmp: Path) -> dict[str, Call]:
    return {**functions_called(tmp), **methods_called(tmp)}


def test_every_public_name_is_called_here(tmp_path: Path) -> None:
    missing = set(sp.__all__) - set(functions_called(tmp_path)) - NOT_CALLED
    assert not missing, f"tell how these are called rightly: {missing}"


@pytest.mark.parametrize(
    "owner", [sp.Stream, sp.Job, sp.RunningQuery, sp.Processor, type(windowed), type(sp.col("v")), type(partial)]
)
def test_every_public_method_is_called_here(owner: type, tmp_path: Path) -> None:
    here = {name.partition(".")[2].partition("#")[0] for name in methods_called(tmp_path)}
    own = {name for name in dir(owner) if not name.startswith("_") and callable(inspect.getattr_static(owner, name))}
    elsewhere = {
        "anti_join",
        "batch",
        "stream",
        "stream_files",
        "add_inlet",
        "schemas",
        "place",
        "run_due",
        "settle",
        "notes",
        "failed",
    }
    elsewhere |= {"take_failures", "take_late", "to_arrow", "to_pandas", "to_polars"}
    assert own - here - elsewhere == set()


def wrong_calls(call: Call) -> Iterator[tuple[str, tuple[object, ...], dict[str, object]]]:
    """The call with one thing wrong at a time."""
    yield "an unknown keyword", call.args, {**call.kwargs, "bogus_": 1}
    yield "one too many", (*call.args, *[Odd()] * 9), call.kwargs
    for place in range(len(call.args)):
        yield f"argument {place} left out", call.args[:place], call.kwargs
        for value in WRONG:
            yield f"argument {place}", (*call.args[:place], value, *call.args[place + 1 :]), call.kwargs
    for name in call.kwargs:
        yield f"{name} left out", call.args, {key: part for key, part in call.kwargs.items() if key != name}
        for value in WRONG:
            yield name, call.args, {**call.kwargs, name: value}


def ours(error: BaseException) -> str | None:
    """What is wrong with an error, if anything."""
    if isinstance(error, properties.PropertyFailed):
        return None  # the verdict on a predicate that fails
    if not isinstance(error, StreamproofError):
        return f"{type(error).__name__}: {error}"
    lacking = [part for part in ("what", "at", "fix") if not getattr(error, part)]
    if lacking:
        return f"without {' and '.join(lacking)}: {error.what}"
    if any(not (char.isprintable() or char == "\n") for char in str(error)):
        return f"control characters: {error.what!r}"
    return None


@pytest.mark.filterwarnings("ignore")
def test_wrong_arguments_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for name, call in calls(tmp_path).items():
        for how, args, kwargs in wrong_calls(call):
            values = [*args, *kwargs.values()]
            try:
                made = call.function(*args, **kwargs)
                if inspect.isgenerator(made):
                    list(made)
            except Exception as error:  # which is what is judged
                why = ours(error)
            else:
                odd = any(isinstance(value, Odd) for value in values) and not name.startswith(TRUSTING)
                why = "an odd thing is taken" if odd else None
            if why is not None:
                found.append(f"{name}, {how} {values!r:.200}: {why}")
    assert not found, f"{len(found)}:\n" + "\n".join(found[:100])


STEERING = "\x1b[2Jz\u202e\x07"
"""What clears a terminal, turns the direction of text round, and rings."""


def shown() -> Iterator[tuple[str, str]]:
    """Whatever shows itself, with text from data in every place that has text."""
    schema = sp.Schema.of({"v": "string", STEERING: "int64"})
    made = sp.History.from_rows(schema, [(1, 5, {"v": STEERING, STEERING: 1})])
    events = sp.PhysicalStream.from_events([sp.Insert(STEERING, 1, 5, {"v": STEERING, STEERING: 1})], schema=schema)
    named = sp.source(STEERING, {"v": "string", STEERING: "int64"})
    query = named.on("local").start({})
    query.push(STEERING, events)
    local, ran = named.on("local").run({STEERING: events}), named.on("duckdb").run({STEERING: events})
    things: dict[str, object] = {
        "history": made, "events": events, "batch": made.to_batch(), "schema": schema, "stream": named,
        "plan": named.plan, "insert": events.event(0), "row": made.to_rows()[0], "column": sp.col(STEERING),
        "text": sp.lit(STEERING), "where": named.where(sp.col("v") == STEERING), "grouped": named.group_by("v"),
        "windowed": named.tumbling(10), "job": named.on("local"), "happening": sp.arrive(STEERING), "run": ran,
        "live": local, "query": query, "metrics": local.metrics, "processor": query.processor,
        "trace": sp.trace(named.on("local"), {STEERING: events}, STEERING), "figures": sp.describe(events),
        "picture": Timeline(STEERING, (Lane(STEERING, (Bar(1, 5, STEERING),)),), STEERING),
    }  # fmt: skip
    for name, thing in things.items():
        yield name, repr(thing)
        yield name, str(thing)
        for method in ("_repr_html_", "explain", "mermaid", "text", "picture", "svg"):
            if callable(inspect.getattr_static(type(thing), method, None)):
                yield f"{name}.{method}", str(getattr(thing, method)())
    yield "marbles", sp.marbles(made)
    yield "difference", str(sp.explain_difference(made, sp.History.empty(schema)))


def test_nothing_that_is_shown_steers_a_terminal() -> None:
    found = {name: text for name, text in shown() if any(not (c.isprintable() or c == "\n") for c in text)}
    assert not found
