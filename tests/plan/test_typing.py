"""Binding: what follows from types becomes explicit, and nothing else changes."""

from __future__ import annotations

from itertools import product

import pytest

from streamproof.errors import PlanError
from streamproof.events.schema import (
    BOOL,
    DATE,
    FLOAT64,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    Schema,
    Type,
    decimal,
)
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.expr import Call, Cast, Col, Expr, as_written, transform, walk
from streamproof.plan.functions import FUNCTIONS, Function, may_fail
from streamproof.plan.labels import label
from streamproof.plan.parse import parse
from streamproof.plan.rewrites.normal_form import to_plan
from streamproof.plan.text import to_text
from streamproof.plan.typing import bind, type_of
from streamproof.workbench.draw.choices import RandomChoices
from tests.kernels.expressions.generate import ANY, SCOPE, Maker

KINDS = (NULL, INT64, FLOAT64, STRING, BOOL, DATE, TIMESTAMP, decimal(3, 1), decimal(38, 0), decimal(38, 30))


def results(function: Function) -> list[tuple[tuple[Type, ...], Type]]:
    """The arguments that a function takes, two at most, and what it gives of each."""
    found = []
    for count in range(function.least, min(function.most or 2, max(function.least, 2)) + 1):
        for kinds in product(KINDS, repeat=count):
            try:
                found.append((kinds, function.result(kinds)))
            except PlanError:
                continue
    return found


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_widened_arguments_give_the_same_type(function: Function) -> None:
    for kinds, result in results(function):
        if result != NULL:
            wide = function.widens(kinds)
            assert len(wide) == len(kinds)
            assert NULL not in wide, kinds
            assert function.result(wide) == result, (kinds, wide)
            assert function.widens(wide) == wide, kinds


def random_expressions(count: int) -> list[Expr]:
    """Well-typed expressions as they would be written."""
    drawn = (Maker(RandomChoices(seed)).of(ANY[seed % len(ANY)], 1 + seed % 5) for seed in range(count))
    return [expr for expr in drawn if is_typed(expr)]


def is_typed(expr: Expr) -> bool:
    try:
        type_of(expr, SCOPE)
    except PlanError:
        return False  # the dice made a type that does not exist
    return True


def test_binding_keeps_the_type_and_is_done_once() -> None:
    for expr in random_expressions(400):
        bound = bind(expr, SCOPE)
        assert type_of(bound, SCOPE) == type_of(expr, SCOPE), to_text(expr)
        assert bind(bound, SCOPE) == bound, to_text(expr)


def test_a_bound_expression_reads_as_it_was_written() -> None:
    for expr in random_expressions(400):
        bound = bind(expr, SCOPE)
        assert bind(as_written(bound), SCOPE) == bound, to_text(expr)
        assert to_text(as_written(bound)) == to_text(bound)


def test_nothing_is_left_to_widen() -> None:
    for expr in random_expressions(400):
        bound = bind(expr, SCOPE)
        for part in walk(bound):
            if isinstance(part, Call) and type_of(part, SCOPE) != NULL:
                kinds = tuple(type_of(arg, SCOPE) for arg in part.args)
                assert FUNCTIONS[part.fn].widens(kinds) == kinds, to_text(expr)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("i > f", "cast(i as double) > f"),
        ("i + 1", "i + 1"),
        ("i / 2", "cast(i as double) / cast(2 as double)"),
        ("x0 + i", "cast(x0 as decimal(20,1)) + cast(i as decimal(20,1))"),
        ("x0 * i", "x0 * cast(i as decimal(19,0))"),
        ("null = s", "cast(null as varchar) = s"),
        ("n or b", "cast(n as boolean) or b"),
        ("nullif(i, f)", "nullif(i, f)"),
        ("case when n then i else 0.5 end", "case when cast(n as boolean) then cast(i as double) else 0.5 end"),
        ("halved(i)", "halved(cast(i as double))"),
    ],
)
def test_casts_that_binding_puts_in(text: str, bound: str) -> None:
    def written(part: Expr) -> Expr:
        return Cast(part.arg, part.to) if isinstance(part, Cast) else part

    assert to_text(transform(bind(parse(text), SCOPE), written)) == bound


def test_only_what_may_have_no_place_is_strict() -> None:
    def casts(text: str) -> list[bool]:
        return [part.strict for part in walk(bind(parse(text), SCOPE)) if isinstance(part, Cast)]

    assert casts("i > f") == [False]
    assert casts("x0 + i") == [False, False]
    assert casts("i = x4") == [True]  # decimal(38,38) has no room before the point
    assert not may_fail(bind(parse("i > f or i > x0"), SCOPE))
    assert may_fail(bind(parse("i = x4"), SCOPE))


def test_plans_show_no_casts_that_the_check_put_in() -> None:
    schemas = {"S": Schema.of({"v": "int64"}), "R": Schema.of({"v": "float64"})}
    plan = nodes.AntiJoin(nodes.Where(nodes.Source("S"), parse("v > 1.5")), nodes.Source("R"), parse("l.v = r.v"))
    typed = check(plan, schemas)
    assert isinstance(typed.node, nodes.AntiJoin)
    assert typed.node.on == Call("eq", (Cast(Col("v", "l"), FLOAT64, strict=False, implied=True), Col("v", "r")))
    assert label(typed.node) == label(plan)
    again = to_plan(typed)
    assert [node.expr for node in nodes.walk(again) if isinstance(node, nodes.Where)] == [parse("v > 1.5")]
    assert to_plan(check(again)) == again
