"""A restart never changes a result without a word: what differs is refused by name, or listed as what may change."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.job import Job, on
from streamproof.engines.local import LocalEngine
from streamproof.engines.local.processor import Processor
from streamproof.engines.local.query import RunningQuery
from streamproof.engines.local.savepoint import KIND, VERSION
from streamproof.engines.sealed import opened, sealed
from streamproof.errors import InputError, StreamproofError
from streamproof.events.schema import Schema
from streamproof.events.validate import Validator
from streamproof.plan.library import installed
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Module, Properties, Registry
from streamproof.plan.windows import Tumbling

COLUMNS = {"k": "string", "v": "int64"}
PLAN = sp.source("S").group_by("k").tumbling(10).aggregate(n=sp.count(), t=sp.sum("v"))
CALLED = sp.source("S").tumbling(10).uda("scaled", "v")
TIMED = sp.source("S").advance_time(every=2).group_by("k").tumbling(10).aggregate(n=sp.count(), t=sp.sum("v"))


def scaled(by: int, **described: Any) -> Module:
    """A module whose results depend on a number in its closure."""
    return sp.uda("scaled", **{"returns": "int64", "takes": "int64", **described})(lambda values: sum(values) * by)


def started(
    plan: sp.Stream = PLAN, *, columns: dict[str, Any] = COLUMNS, unit: Any = "s", start: dict[str, Any] | None = None,
    forgetful: bool = False, validator: dict[str, Any] | None = None, **options: Any,
) -> RunningQuery:  # fmt: skip
    check = Validator(**(validator or {}))
    check.forgetful = forgetful
    given = {"S": Schema.of(columns, unit=unit)}
    return on(plan.plan, "local", **options).start(given, validators={"S": check}, **(start or {}))


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "plan": ({}, {"plan": sp.source("S").group_by("k").tumbling(20).aggregate(n=sp.count(), t=sp.sum("v"))},
             "the savepoint belongs to another plan: it was taken with queries.query.plan.apply.window.size=10"),
    "plan: operator": ({}, {"plan": sp.source("S")}, "belongs to another plan"),
    "plan: advance_time": ({"plan": TIMED}, {"plan": sp.source("S").advance_time(every=3).group_by("k").tumbling(10)
                            .aggregate(n=sp.count(), t=sp.sum("v"))}, ".every=2"),
    "plan: advance_time is late": ({"plan": TIMED}, {"plan": sp.source("S").advance_time(every=2, late="adjust")
                                    .group_by("k").tumbling(10).aggregate(n=sp.count(), t=sp.sum("v"))}, "late"),
    "emission": ({"emission": "final"}, {"emission": "speculative"},
                 'the savepoint was taken with emission="final", this query has emission="speculative"'),
    "horizon": ({"horizon": 100}, {}, "the savepoint was taken with horizon=100, this query has horizon=null"),
    "limits": ({}, {"limits": Limits(windows_per_event=5)}, "limits.windows_per_event=1000000"),
    "events_listed": ({}, {"limits": Limits(events_listed=5)}, "limits.events_listed=50000000"),
    "optimise": ({}, {"optimise": False}, "optimise=true"),
    "modules": ({"plan": CALLED, "modules": [scaled(2)]}, {"plan": CALLED, "modules": [scaled(3)]}, "uda scaled.code"),
    "modules: version": ({"plan": CALLED, "modules": [scaled(2)]},
                         {"plan": CALLED, "modules": [scaled(2, version="2")]},
                         "uda scaled.version"),
    "modules: one more": ({"plan": CALLED, "modules": [scaled(2)]},
                          {"plan": CALLED, "modules": [scaled(2), scaled(2, version="2")]}, "uda scaled.version"),
    "modules: promises": ({"plan": CALLED, "modules": [scaled(2)]},
                          {"plan": CALLED, "modules": [scaled(2, properties=Properties(deterministic=False))]},
                          "uda scaled.properties"),
    "modules: another": ({"modules": [scaled(2)]}, {"modules": [scaled(3)]}, None),  # the plan does not call it
    "columns": ({"columns": {**COLUMNS, "x": "int64"}}, {"columns": {**COLUMNS, "x": "float64"}},
                "sources.S.columns.2.1"),
    "columns: order": ({}, {"columns": {"v": "int64", "k": "string"}}, "sources.S.columns"),
    "unit": ({}, {"unit": "ms"}, 'the savepoint was taken with sources.S.unit="s", this query has sources.S.unit="ms"'),
    "shape": ({"validator": {"shape": "interval"}}, {}, 'sources.S.shape="interval"'),
    "order": ({}, {"validator": {"order": "by_le"}}, "sources.S.order=null"),
    "forgetful": ({"forgetful": True}, {}, "sources.S.ids_made_on_reading=true"),
    "keep_history": ({"start": {"keep_history": False}}, {}, "queries.query.keep_history=false"),
    "policy": ({}, {"validator": {"policy": "drop"}}, None),
    "keep": ({}, {"validator": {"keep": 1}}, None),
    "keep_late": ({"start": {"keep_late": True}}, {}, None),
    "latency": ({}, {"latency": 5.0}, None),
    "on_module_error": ({}, {"on_module_error": "dead_letter"}, None),
}  # fmt: skip
WAYS: tuple[Callable[..., Any], ...] = (
    on,
    LocalEngine,
    Job.start,
    Processor,
    Processor.source,
    Processor.start,
    Validator,
)
NOT_SETTINGS = {
    "self", "engine_name", "options", "given", "validators", "validator", "schema", "settings",  # where others are
    "name",  # what a source or a query is called: what reads it, or restores it, calls it so
}  # fmt: skip


def test_every_setting_is_claimed_or_may_change() -> None:
    named = {name for way in WAYS for name in inspect.signature(way).parameters}
    named |= {field.name for field in fields(Settings)} - {"registry"} | {field.name for field in fields(Limits)}
    covered = {name.partition(":")[0] for name in CASES} | {"windows_per_event"}
    assert named - NOT_SETTINGS - covered == set(), "say in CASES whether a restart may change it"


def events(number: int, *, start: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for n in range(start, start + number):
        payload = {"k": "ab"[n % 2], "v": n}
        found.append({"kind": "insert", "id": f"e{n}", "le": 3 * n, "re": 3 * n + 5, "payload": payload})
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_differs_is_refused_and_changes_nothing(name: str) -> None:
    taken, now, words = CASES[name]
    first = started(**taken)
    first.push("S", events(8))
    savepoint = first.savepoint()
    second = started(**now)
    if words is None:
        second.restore(savepoint)
        first.push("S", events(8, start=8))
        second.push("S", events(8, start=8))
        for query in (first, second):
            query.finish()
        assert second.history == first.history
        return
    with pytest.raises(InputError) as error:
        second.restore(savepoint)
    assert words in error.value.what
    assert error.value.fix
    fresh = started(**now)
    for query in (second, fresh):
        query.push("S", [{**event, "payload": {**event["payload"], **({"x": 1} if "columns" in name else {})}}
                         if "order" not in name else event for event in events(4)])  # fmt: skip
        query.finish()
    assert (second.events() == fresh.events()) is True, "the refused savepoint has changed nothing"


def test_a_processor_is_restored_with_its_settings_only() -> None:
    processor = Processor(Settings(horizon=50, registry=Registry([*installed(), scaled(2)])), emission="final")
    processor.source("S", Schema.of(COLUMNS))
    processor.start(CALLED, name="one")
    savepoint = processor.savepoint()
    same = Settings(horizon=50, registry=Registry([*installed(), scaled(2)]))
    assert Processor.restore(savepoint, same).emission == "final"
    for settings, words in (
        (Settings(), "the savepoint was taken with horizon=50, this processor has horizon=null"),
        (Settings(horizon=50, registry=Registry([*installed(), scaled(3)])), "uda scaled.code"),
        (Settings(horizon=50, registry=same.registry, optimise=False), "optimise=true"),
    ):
        with pytest.raises(InputError) as error:
            Processor.restore(savepoint, settings)
        assert words in error.value.what


def test_what_nobody_has_taken_yet_survives() -> None:
    plan = sp.source("S").advance_time(every=1).select(v="picky(v)")
    options: dict[str, Any] = {"modules": [picky], "on_module_error": "dead_letter"}
    validator = {"policy": "dead_letter"}
    first = started(plan, start={"keep_late": True}, validator=validator, **options)
    first.push("S", [*events(5), *events(1)])
    second = started(plan, start={"keep_late": True}, validator=validator, **options)
    second.restore(first.savepoint())
    late = second.processor.take_late()["S"]
    assert late == first.processor.take_late()["S"]
    assert len(late) == 1
    letters = [letter.as_dict() for letter in second.processor.take_failures()]
    assert letters == [letter.as_dict() for letter in first.processor.take_failures()]
    assert len(letters) == 1
    assert [operator.rows_in for operator in second.metrics.operators] == [o.rows_in for o in first.metrics.operators]


@sp.udf("picky", takes=["int64"], returns="int64")
def picky(v: int) -> int:
    if v == 3:
        raise ValueError("not three")
    return v


def test_a_stopped_query_leaves_a_savepoint_that_can_be_restored() -> None:
    processor = Processor()
    processor.source("S", Schema.of(COLUMNS))
    for name, plan in (("timed", TIMED), ("plain", PLAN)):
        processor.start(plan, name=name)
    processor.push("S", events(5))
    processor.stop("timed")
    again = Processor.restore(processor.savepoint())
    for one in (processor, again):
        one.push("S", events(5, start=5))
        one.finish()
    assert again.queries["plain"].history == processor.queries["plain"].history


# --- damage -----------------------------------------------------------------------------------------------------------


def savepoint_to_damage() -> bytes:
    query = started(TIMED, start={"keep_late": True})
    query.push("S", events(30))
    return query.savepoint()


def test_no_bit_flip_no_cut_and_no_more_bytes_go_unnoticed() -> None:
    whole, draw = savepoint_to_damage(), random.Random(7)
    head = range(8 * 80)
    flips = [*head, *(draw.randrange(8 * len(whole)) for _ in range(3000 - len(head)))]
    query = started(TIMED, start={"keep_late": True})
    for bit in flips:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_refused(query, bytes(damaged))
    for cut in [*range(120), *(draw.randrange(len(whole)) for _ in range(500))]:
        assert_refused(query, whole[:cut])
        assert_refused(query, whole + draw.randbytes(1 + cut % 9))
    query.restore(whole)
    query.push("S", events(1, start=100))


def assert_refused(query: RunningQuery, damaged: bytes) -> None:
    with pytest.raises(InputError) as error:
        query.restore(damaged)
    assert any(word in error.value.what for word in ("not a savepoint", "is damaged"))
    with pytest.raises(InputError):
        Processor.restore(damaged)


@pytest.mark.parametrize(
    "other", [b"", b"x", b"PAR1" * 40, b"ARROW1\0\0" * 40, b"{}" * 80, sealed(b"{}", kind="interrupted run", version=1)]
)
def test_other_files_are_refused(other: bytes) -> None:
    assert_refused(started(), other)


def test_another_version_is_refused() -> None:
    content = opened(savepoint_to_damage(), kind=KIND, version=VERSION)
    for version in (VERSION - 1, VERSION + 1):
        with pytest.raises(InputError, match=f"the savepoint has version {version}, this program reads {VERSION}"):
            started(TIMED).restore(sealed(content, kind=KIND, version=version))


def test_content_that_does_not_fit_is_refused_whatever_it_is() -> None:
    """Sealed again after damage, as only someone could who means it: still one kind of error."""
    content, draw = opened(savepoint_to_damage(), kind=KIND, version=VERSION), random.Random(3)
    texts = [content.replace(b'"entries"', b'"entried"'), content.replace(b'"frontier"', b'"frontied"'), b"", b"ARROW1"]
    texts += [content[: draw.randrange(len(content))] for _ in range(20)]
    for text in texts:
        query = started(TIMED)
        with pytest.raises(StreamproofError):
            query.restore(sealed(text, kind=KIND, version=VERSION))


# --- drawn ------------------------------------------------------------------------------------------------------------

WINDOWS = (Tumbling(7), Tumbling(10))
CHOICES: dict[str, list[Any]] = {
    "emission": ["speculative", "eager", "final"], "horizon": [None, 60, 1000], "optimise": [True, False],
    "limits": [Limits(), Limits(windows_per_event=1000)], "latency": [0.0, 100.0],
    "on_module_error": ["fail", "dead_letter"],
}  # fmt: skip


def drawn_plan(draw: random.Random) -> sp.Stream:
    source = sp.source("S")
    stream = draw.choice([source, source.advance_time(every=draw.choice([1, 3]), delay=draw.choice([0, 4]))])
    stream = draw.choice([stream, stream.where("v % 3 <> 1"), stream.shift(2), stream.coalesce()])
    window = draw.choice([stream, stream.group_by("k")]).in_windows(draw.choice(WINDOWS))
    return draw.choice([window.aggregate(n=sp.count(), m=sp.max("v")), window.top(1, by=sp.desc("v"), keep=["v"])])


def drawn_events(draw: random.Random) -> list[list[dict[str, Any]]]:
    starts = sorted(draw.randrange(80) for _ in range(24))
    found = [
        {
            "kind": "insert",
            "id": f"e{n}",
            "le": le,
            "re": le + draw.randrange(1, 12),
            "payload": {"k": draw.choice("abc"), "v": n},
        }
        for n, le in enumerate(starts)
    ]
    return [[*found[n : n + 4], {"kind": "cti", "t": found[n]["le"]}] for n in range(0, 24, 4)]


@pytest.mark.parametrize("seed", range(60))
def test_drawn_restarts_are_refused_or_change_nothing(seed: int) -> None:
    draw = random.Random(seed)
    plan, parts, cut = drawn_plan(draw), drawn_events(draw), draw.randrange(1, 6)
    taken = {name: draw.choice(values) for name, values in CHOICES.items()}
    now = {**taken, (name := draw.choice(list(CHOICES))): draw.choice(CHOICES[name])}
    other = drawn_plan(draw) if draw.random() < 0.2 else plan
    whole, first, second = started(plan, **taken), started(plan, **taken), started(other, **now)
    for part in parts:
        whole.push("S", part)
    whole.finish()
    for part in parts[:cut]:
        first.push("S", part)
    output = first.pull()
    refused = None
    try:
        second.restore(first.savepoint())
    except InputError as error:
        refused = error
    same = all(str(now[each]) == str(taken[each]) for each in CHOICES if each not in ("latency", "on_module_error"))
    assert (refused is None) == (same and other.plan == plan.plan), refused
    if refused is not None:
        return
    for part in parts[cut:]:
        second.push("S", part)
    second.finish()
    assert sp.History.from_batches(whole.schema, [*output, *second.pull()]) == whole.history
    assert second.history == whole.history
