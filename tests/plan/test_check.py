"""The check: what is wrong with a plan, where, and how to fix it."""

from __future__ import annotations

import pytest

from streamproof.errors import PlanError, StreamproofError
from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.check import check, walk
from streamproof.query.aggregates import count
from streamproof.query.column import Expression, desc
from streamproof.query.stream import Stream, group_input, let, ref, source

SCHEMAS = {"S": Schema.of({"key": "string", "value": "int64"}), "R": Schema.of({"key": "string", "price": "float64"})}
S, R = source("S"), source("R")


def refused(stream: Stream, schemas: dict[str, Schema] | None = None) -> StreamproofError:
    with pytest.raises(StreamproofError) as caught:
        check(stream.plan, SCHEMAS if schemas is None else schemas)
    return caught.value


WRONG = [
    (
        S.where("valeu > 1"), "unknown_column", 'unknown column "valeu"', "plan: where(valeu > 1)",
        'did you mean "value"? Known: "key", "value"',
    ),
    (
        S.where("value + 1"), "type_mismatch", "the condition of where must be bool, not int64",
        "plan: where(value + 1)", "compare or cast it to bool",
    ),
    (
        S.select(x="key + 1"), "type_mismatch", "add takes numbers, got string, int64", "plan: select(x=key + 1)",
        "cast the arguments",
    ),
    (
        S.where("value > 'a'"), "type_mismatch", "gt takes values of one type, got int64, string",
        "plan: where(value > 'a')", "cast the arguments",
    ),
    (
        S.where("re > 1"), "unknown_column",
        "only alter_duration may read re: elsewhere an end can still change after the result was given",
        "plan: where(re > 1)", "use alter_duration, or point_at_end to make ends into starts",
    ),
    (
        S.join(R, "key = r.key"), "unknown_column", 'the column "key" needs a side', "plan: join(on=key = r.key)",
        "two inputs are in scope: write l.key or r.key",
    ),
    (
        S.where("l.value > 1"), "unknown_column", 'unknown column "l.value"', "plan: where(l.value > 1)",
        'did you mean "value"? Known: "key", "value"',
    ),
    (
        S.join(R, "l.key = r.key"), "duplicate_column", 'both sides have a column "key"',
        "plan: join(on=l.key = r.key)", 'give select, e.g. {"l_key": "l.key", "r_key": "r.key"}',
    ),
    (
        S.union(R), "type_mismatch", "a union needs the same columns everywhere; not in all inputs: price, value",
        "plan: union", "use select to give every input the same columns",
    ),
    (
        S.select("key").union(S.select(key="value")), "type_mismatch",
        'the column "key" is int64 and string in a union', "plan: union", "cast it in one input",
    ),
    (
        S.group_apply("key", apply=lambda g: g.select(key="value")), "duplicate_column",
        'the apply branch changes "key", which is a key of the group', "plan: group_apply(key)",
        'call the new column something else: group_apply adds the key "key" by itself',
    ),
    (
        S.group_apply("key", apply=lambda g: g.select("value").union(S.select("value"))), "bad_plan",
        'the source "S" cannot stand inside group_apply', "plan.apply.ins[1].in: source(S)",
        "inside apply the only leaf is group_input; join outside the group instead",
    ),
    (
        group_input(), "bad_plan", "group_input stands outside of group_apply", "plan: group_input",
        "use a source here",
    ),
    (
        let(M=S).in_(ref("N")), "bad_plan", 'the stream "N" is not bound by any let here', "plan.in: ref(N)",
        'known: "M"',
    ),
    (
        source("T"), "bad_plan", 'no schema is known for the source "T"', "plan: source(T)", 'known: "S", "R"',
    ),
    (
        S.shift("5s"), "bad_plan", "the duration '5s' needs a time unit, and this stream has none", "plan: shift(5s)",
        'give plain ticks, or declare the unit of the source: source("S", unit="us")',
    ),
    (
        S.select(x="hour(le)"), "type_mismatch", "ticks without a unit have no year, hour or second",
        "plan: select(x=hour(le))", 'declare the unit of the source: source("S", unit="us")',
    ),
    (
        S.to_point().advance_time(every=1), "bad_plan", "advance_time must stand directly above a source",
        "plan: advance_time(every=1, delay=0, late=drop)", "move it down to the source",
    ),
    (
        S.tumbling(5).uda("twavgg", "value"), "unknown_module", 'unknown uda "twavgg"',
        "plan: uda(tumbling(size=5), twavgg=twavgg(value))", None,
    ),
    (
        S.tumbling(5).uda("twavg", "key"), "type_mismatch", "uda twavg@1 takes float64, got string",
        "plan: uda(tumbling(size=5), twavg=twavg(key))", "cast the argument",
    ),
    (
        S.tumbling(5).uda("twavg", "value", params={"p": 1}), "bad_plan", 'uda twavg@1 has no parameter "p"',
        "plan: uda(tumbling(size=5), twavg=twavg(value), p=1)", "it takes none",
    ),
    (
        S.session(5, key="keys"), "unknown_column", 'unknown column "keys"', "plan: session(timeout=5, key=keys)",
        'did you mean "key"? Known: "key", "value"',
    ),
    (
        S.tumbling(5).top(1, by=desc("value"), rank="key"), "duplicate_column", 'two columns are called "key"',
        "plan: topk(tumbling(size=5), k=1, by=value desc, rank=key)", "rename one of them",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("stream", "name", "what", "at", "fix"), WRONG, ids=[case[2] for case in WRONG])
def test_errors_say_what_where_and_how_to_fix_it(
    stream: Stream, name: str, what: str, at: str, fix: str | None
) -> None:
    error = refused(stream)
    assert (error.name, error.what, error.at) == (name, what, at)
    if fix is not None:
        assert error.fix == fix


def test_the_path_leads_to_the_node() -> None:
    deep = R.join(S.where("valeu > 1").shift(2), "l.key = r.key", select={"k": "l.key"})
    assert refused(deep).at == "plan.right.in: where(valeu > 1)"


def test_inputs_must_count_time_in_one_unit() -> None:
    schemas = {"S": Schema.of({"v": "int64"}, unit="s"), "R": Schema.of({"u": "int64"}, unit="ms")}
    assert refused(S.join(R), schemas).what == "the inputs count time in different units: ms and s"


def test_the_unit_of_a_source_must_be_that_of_its_data() -> None:
    error = refused(source("S", unit="ms"), {"S": Schema.of({"v": "int64"}, unit="s")})
    assert error.what == 'the source "S" counts in ms, its data in s'


def test_a_name_with_a_nul_is_refused_where_it_is_made() -> None:
    with pytest.raises(PlanError) as caught:
        S.select({"a\0b": "value"})
    assert caught.value.name == "reserved_column"
    assert caught.value.fix == "rename the column to 'ab' on reading or in select"


TYPES: list[tuple[Expression, str]] = [
    ("value + 1", "int64"), ("value + 1.5", "float64"), ("value / 2", "float64"), ("value // 2", "int64"),
    ("key || 'a'", "string"), ("value > 1", "bool"), ("null", "null"), ("coalesce(null, value)", "int64"),
    ("case when value > 1 then 1 else 2.5 end", "float64"), ("cast(value as decimal(10, 2)) * 2", "decimal(29,2)"),
    ("length(key)", "int64"), ("le", "int64"), ("date '2024-05-01'", "date"), ("nullif(value, 1)", "int64"),
    ("cast(value as decimal(10, 2)) + 1", "decimal(22,2)"), ("round(2.5)", "float64"), ("sign(-2.5)", "int64"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind"), TYPES)
def test_types_of_expressions(text: str, kind: str) -> None:
    assert str(check(S.select(x=text).plan, SCHEMAS).schema["x"]) == kind


def test_a_typed_plan_leaves_nothing_open() -> None:
    plan = source("S", {"v": "int64"}, unit="ms").shift("2s").tumbling("1 minute").aggregate(n=count()).plan
    typed = check(plan)
    parts = {type(part.node): part.node for part in walk(typed)}
    assert parts[nodes.Shift].by == 2000  # type: ignore[attr-defined]
    assert parts[nodes.Aggregation].window.size == 60_000  # type: ignore[attr-defined]


def test_a_shared_stream_is_one_object() -> None:
    typed = check(S.where("value > 1").multicast(lambda m: m.union(m)).plan, SCHEMAS)
    assert typed.inputs[0] is typed.inputs[1]
