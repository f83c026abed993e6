"""Plans made ready for an engine, and those that are at hand from a moment ago."""

from __future__ import annotations

import streamproof as sp
from streamproof.engines.base import Settings, prepare
from streamproof.events.schema import Schema
from streamproof.plan.modules import Registry

SCHEMA = Schema.of({"v": "int64"})
SOURCE = sp.source("S", SCHEMA)


def test_a_plan_is_prepared_once() -> None:
    plan, settings = SOURCE.where("v > 1").plan, Settings()
    assert prepare(plan, {"S": SCHEMA}, settings) is prepare(plan, {"S": SCHEMA}, settings)


def test_a_plan_that_is_only_equal_is_another_one() -> None:
    whole, broken = (SOURCE.select(x=sp.lit(value)).plan for value in (1, 1.0))
    prepared = [prepare(plan, {"S": SCHEMA}, Settings()).schema["x"] for plan in (whole, broken)]
    assert [str(kind) for kind in prepared] == ["int64", "float64"]


def test_other_schemas_make_another_plan() -> None:
    plan = sp.source("S").select(x="v").plan
    found = [prepare(plan, {"S": Schema.of({"v": kind})}, Settings()).schema["x"] for kind in ("int64", "string")]
    assert [str(kind) for kind in found] == ["int64", "string"]


def test_a_module_that_comes_later_is_known_then() -> None:
    @sp.udf("half", returns="int64", takes=("int64",))
    def whole(v: int) -> int:
        return v // 2

    @sp.udf("half", returns="float64", takes=("int64",), version="2")
    def exact(v: int) -> float:
        return v / 2

    registry = Registry([whole])
    plan, settings = SOURCE.select(x="half(v)").plan, Settings(registry=registry)
    before = prepare(plan, {"S": SCHEMA}, settings)
    registry.add(exact)
    after = prepare(plan, {"S": SCHEMA}, settings)
    assert [str(typed.schema["x"]) for typed in (before, after)] == ["int64", "float64"]
