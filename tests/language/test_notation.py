"""Plan files as plain data: what is wrong with one, where, and how to fix it."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof.errors import PlanError
from streamproof.language import json
from streamproof.language.notation import MAX_DEPTH, MAX_SIZE, from_data, from_document, to_data
from streamproof.plan import nodes

S: dict[str, Any] = {"op": "source", "name": "S"}
TUMBLING = {"type": "tumbling", "size": 10}


def refused(data: object) -> PlanError:
    with pytest.raises(PlanError) as caught:
        from_document(data)
    return caught.value


WRONG = [
    ({"op": "wehre", "in": S, "expr": "v"}, "unknown op 'wehre'", "plan", 'did you mean "where"?'),
    ({"op": 5}, "unknown op 5", "plan", "known: "),
    ([], "a node must be an object, got list", "plan", 'write {"op": …}'),
    ({"op": "where", "in": 5, "expr": "v"}, "a node must be an object, got int", "plan.in", 'write {"op": …}'),
    ({"op": "where", "in": S}, 'where needs the field "expr"', "plan", "its fields are: in, expr"),
    ({"op": "where", "in": S, "exprs": "v"}, 'where has no field "exprs"', "plan", 'did you mean "expr"?'),
    ({"op": "where", "in": S, "expr": "v +"}, "cannot read the expression near '+'", "plan.expr: v +", None),
    ({"op": "where", "in": S, "expr": None}, "None is not an expression", "plan.expr", 'write text, e.g. "v > 1"'),
    ({"op": "shift", "in": S, "by": 1.5}, "1.5 is not a duration", "plan.by", 'write ticks (5) or text with a unit'),
    ({"op": "select", "in": S, "exprs": ["v"]}, "expected an object, got ['v']", "plan.exprs", None),
    (
        {"op": "select", "in": S, "exprs": {"a\0": "v"}},
        "the column name 'a\\x00' has a NUL character, which is reserved for names of our own",
        "plan: select", "rename the column to 'a' on reading or in select",
    ),
    ({"op": "union", "ins": S}, "expected a list, got {'op': 'source', 'name': 'S'}", "plan.ins", None),
    ({"op": "union", "ins": []}, "a union needs at least one input", "plan: union", "give it streams to unite"),
    (
        {"op": "agg", "in": S, "window": {"type": "tumblin", "size": 1}, "aggs": {"n": ["count"]}},
        "unknown window type 'tumblin'", "plan.window", 'did you mean "tumbling"?',
    ),
    (
        {"op": "agg", "in": S, "window": {"type": "tumbling", "sizes": 1}, "aggs": {"n": ["count"]}},
        'a tumbling window has no field "sizes"', "plan.window", 'did you mean "size"?',
    ),
    (
        {"op": "agg", "in": S, "window": {"type": "hopping", "size": 1}, "aggs": {"n": ["count"]}},
        'a hopping window needs "hop"', "plan.window", "its fields are: size, hop, offset",
    ),
    (
        {"op": "agg", "in": S, "window": {"type": "hopping", "size": 10, "hop": 0}, "aggs": {"n": ["count"]}},
        "hop must be positive, got 0", "plan.window",
        "give a hop of at least 1 tick; for a tumbling window leave hop out",
    ),
    (
        {"op": "agg", "in": S, "window": TUMBLING, "aggs": {"n": ["sums", "v"]}}, 'unknown aggregate "sums"',
        "plan.aggs", 'did you mean "sum"?',
    ),
    (
        {"op": "agg", "in": S, "window": TUMBLING, "aggs": {"n": ["sum"]}}, "sum needs an expression to aggregate",
        "plan.aggs", 'write ["sum", "column"]',
    ),
    (
        {"op": "agg", "in": S, "window": TUMBLING, "aggs": {"n": ["percentile", "v", 90]}},
        "percentile needs p between 0 and 1, got 90", "plan.aggs", "0.9 is the 90th percentile",
    ),
    (
        {"op": "agg", "in": S, "window": TUMBLING, "aggs": {"n": ["count"]}, "output": "points"},
        "output must be one of window, point_end, got 'points'", "plan: agg", None,
    ),
    (
        {"op": "topk", "in": S, "window": TUMBLING, "k": "3", "by": ["v"]}, "expected a whole number, got '3'",
        "plan.k", None,
    ),
    (
        {"op": "advance_time", "in": S}, "advance_time needs either every (events) or every_duration",
        "plan: advance_time", "give one of them",
    ),
    (
        {"op": "source", "name": "S", "schema": {"v": "intt"}}, "unknown type 'intt'", "plan.schema",
        'did you mean "int64"?',
    ),
    ({"op": "source", "name": 5}, "expected text, got 5", "plan.name", None),
    (
        {"op": "uda", "in": S, "window": TUMBLING, "fn": "twavg", "arg": "v", "as": "x", "params": {"p": [1]}},
        "[1] is not a constant", "plan.params", 'write a scalar, or e.g. {"type": "date", "value": "2024-05-01"}',
    ),
    (
        {"version": 2, "plan": S}, "the plan file has version 2, this program reads version 1", None,
        "update streamproof, or write the plan again in the old notation",
    ),
    ({"nodes": []}, 'a plan file holds a node with "op", or {"version": 1, "plan": …}', "plan", None),
]  # fmt: skip


@pytest.mark.parametrize(("data", "what", "at", "fix"), WRONG, ids=[case[1] for case in WRONG])
def test_errors_say_what_where_and_how_to_fix_it(data: object, what: str, at: str | None, fix: str | None) -> None:
    error = refused(data)
    assert error.what == what
    assert error.at == at
    assert fix is None or (error.fix or "").startswith(fix)


def test_the_place_is_a_path_from_the_root() -> None:
    inner = {"op": "shift", "in": {"op": "source"}, "by": 1}
    assert refused({"op": "union", "ins": [S, inner]}).at == "plan.ins[1].in"
    assert refused({"op": "let", "bind": {"M": inner}, "in": S}).at == "plan.bind.M.in"


def test_deep_plans_are_refused() -> None:
    data = S
    for _ in range(MAX_DEPTH + 1):
        data = {"op": "to_point", "in": data}
    error = refused(data)
    assert error.name == "limit_exceeded"
    assert error.what == f"the plan is nested more than {MAX_DEPTH} levels deep"


def test_a_plan_of_the_deepest_allowed_level_is_read_and_written() -> None:
    data = S
    for _ in range(MAX_DEPTH):
        data = {"op": "to_point", "in": data}
    assert to_data(from_data(data)) == data


def test_absurdly_deep_json_is_refused() -> None:
    with pytest.raises(PlanError) as caught:
        json.loads('{"op": "to_point", "in": ' * 100_000)
    assert caught.value.name == "limit_exceeded"


def test_files_that_are_too_large_are_refused_unread() -> None:
    with pytest.raises(PlanError, match=f"the plan file has {MAX_SIZE + 1} characters") as caught:
        json.loads(" " * (MAX_SIZE + 1))
    assert caught.value.name == "limit_exceeded"


def test_json_names_the_place_of_a_syntax_error() -> None:
    with pytest.raises(PlanError) as caught:
        json.loads('{"op": "source",\n "name" "S"}')
    assert caught.value.what == "not JSON: Expecting ':' delimiter"
    assert caught.value.at == "line 2, column 9"


def test_a_key_that_occurs_twice_is_refused() -> None:
    with pytest.raises(PlanError, match='the key "v" occurs twice in one object'):
        json.loads('{"op": "select", "in": {"op": "source", "name": "S"}, "exprs": {"v": "a", "v": "b"}}')


def test_both_names_of_an_anti_join_are_read() -> None:
    for op in ("lasj", "anti_join"):
        assert isinstance(from_data({"op": op, "left": S, "right": S, "on": "1 = 1"}), nodes.AntiJoin)


def test_numbers_may_stand_for_expressions() -> None:
    plan = from_data({"op": "select", "in": S, "exprs": {"a": 1, "b": True, "c": 2.5}})
    assert to_data(plan)["exprs"] == {"a": "1", "b": "true", "c": "2.5"}


def test_a_bare_node_is_version_1() -> None:
    assert from_document(S) == from_document({"version": 1, "plan": S}) == nodes.Source("S")
