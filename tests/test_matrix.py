"""Every node, aggregate and function is known everywhere: whatever a new one still misses is named here.

What a node or an aggregate has without any rule, and what refuses it, is in `test_extension.py`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

import streamproof
from streamproof.engines.base import support
from streamproof.engines.oracle.duckdb_dialect import DuckDbSql
from streamproof.engines.oracle.postgres_dialect import PostgresSql
from streamproof.engines.spark.batch.casts import CASTS as SPARK_CASTS
from streamproof.engines.spark.batch.casts import IN_PYTHON
from streamproof.engines.spark.batch.functions import FUNCTIONS as SPARK_FUNCTIONS
from streamproof.errors import PlanError
from streamproof.events.schema import BOOL, FLOAT64, INT64, STRING, Schema
from streamproof.kernels.expressions.casts import CONVERSIONS
from streamproof.kernels.expressions.compile import IMPLEMENTATIONS
from streamproof.language import json, python, sql, xml
from streamproof.language.notation import OPS
from streamproof.language.python import CALLS
from streamproof.plan import check, nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.event_nodes import NODES, EventQuery
from streamproof.plan.explain import explain
from streamproof.plan.functions import FUNCTIONS
from streamproof.plan.labels import label
from streamproof.plan.parse import parse
from streamproof.plan.typing import CASTS
from streamproof.plan.windows import Snapshot
from streamproof.query import aggregates as written
from streamproof.query.stream import Stream
from streamproof.workbench.draw.choices import DrawnColumn, DrawnShape, RandomChoices
from streamproof.workbench.draw.operators import OperatorMaker, operators
from streamproof.workbench.draw.windowed import FAMILIES, WindowMaker
from streamproof.workbench.evaluator.aggregates import aggregate
from streamproof.workbench.evaluator.evaluate import RULES as DEFINITIONS
from streamproof.workbench.evaluator.functions import SEES_NULL, STRICT
from streamproof.workbench.modules import all_modules
from streamproof.workbench.results import all_ops
from streamproof.workbench.round_trip import through
from streamproof.workbench.shipped_suites import everything

_BINDING = (nodes.Source, nodes.GroupInput, nodes.Ref, nodes.Let, nodes.GroupApply, EventQuery)
SCHEMA = Schema.of({"k": "string", "v": "int64"})
BINDERS = {node.__name__: True for node in _BINDING}
ROOMS = {
    "plan/check.py": check.RULES.supports() | BINDERS,  # which have code of their own there
    "language/notation.py": {node.__name__: True for node in OPS.values()},
    "language/python.py": CALLS.supports() | BINDERS,
    "workbench/evaluator/evaluate.py": {node.__name__: True for node in DEFINITIONS} | BINDERS,
    **{f"engine {name}": offered for name, offered in support().items()},
}


@pytest.mark.parametrize("room", ROOMS)
def test_every_node_is_known(room: str) -> None:
    missing = [node.__name__ for node in NODES if ROOMS[room].get(node.__name__) is not True]
    assert missing == [], f"{room} has no rule for {', '.join(missing)}"


def test_every_operator_is_drawn_by_the_shipped_suites() -> None:
    chosen = {op for one in everything() for part in one.walk() for op in (part.op, *part.fixed.get("among", ()))}
    assert set(operators()) <= chosen
    named = {"group_apply", "advance_time"}  # by scenarios of their own
    assert set(all_ops()) - {"let"} == set(operators()) | named <= chosen | {"eql"}


@pytest.mark.parametrize("op", sorted(operators()))
def test_every_operator_is_drawn_and_written_in_every_language(op: str) -> None:
    """A node without an entry of its own is drawn by the types of its fields. Python calls a method of its name."""
    shape = DrawnShape((("k", DrawnColumn(STRING)), ("v", DrawnColumn(INT64, size=10))))
    drawn = 0
    for seed in range(12):
        sides: list[tuple[nodes.Plan, DrawnShape]] = [(nodes.Source(name), shape) for name in ("S", "R")]
        plan, _ = OperatorMaker(RandomChoices(seed), 20).put(op, sides[: operators()[op]])
        try:
            check.check(plan, dict.fromkeys(("S", "R"), SCHEMA), registry=all_modules())
        except PlanError:  # what was drawn by types alone may be no plan
            continue
        drawn += 1
        assert label(plan)
        assert [through(plan, language) for language in ("json", "xml")] == [plan] * 2
        again = through(plan, "python")  # without what a count is given, which it does not read
        assert python.dumps(again) == python.dumps(plan)
    assert drawn > 3


def tables() -> dict[str, tuple[Collection[str], Collection[tuple[str, str]]]]:
    """The functions and casts of each engine."""
    in_python = IN_PYTHON.keys() | SPARK_CASTS.keys()
    return {
        "local": (IMPLEMENTATIONS, CONVERSIONS), "duckdb": (DuckDbSql.functions, DuckDbSql.casts),
        "postgres": (PostgresSql.functions, PostgresSql.casts), "spark": (SPARK_FUNCTIONS, in_python),
    }  # fmt: skip


@pytest.mark.parametrize("engine", tables())
def test_every_function_and_cast_is_computed(engine: str) -> None:
    functions, casts = tables()[engine]
    assert set(functions) == set(FUNCTIONS)
    assert set(casts) == {(kind, to) for kind, others in CASTS.items() for to in others}


def test_every_node_has_a_docstring_that_says_what_it_means() -> None:
    assert [node.__name__ for node in NODES if not (node.__doc__ or "").strip().endswith(".")] == []


def test_stream_methods_say_what_they_mean() -> None:
    public = [name for name in dir(Stream) if not name.startswith("_") and callable(getattr(Stream, name))]
    assert [name for name in public if not getattr(Stream, name).__doc__] == []


# --- aggregates -------------------------------------------------------------------------------------------------------


def _aggregate(fn: str) -> Aggregate:
    params = (0.5,) if AGGREGATES[fn].parameter else ()
    return Aggregate(fn, None if fn == "count" else parse("v"), params)


@pytest.mark.parametrize("fn", AGGREGATES)
def test_every_aggregate_is_known(fn: str) -> None:
    """To the query, the languages, the labels and the evaluator; what engines compute is in `test_extension.py`."""
    assert hasattr(written, fn) or fn == "count_values", f"query/aggregates.py has no function {fn}"
    plan = nodes.Aggregation(nodes.Source("S"), Snapshot(), (("a", _aggregate(fn)),))
    assert json.loads(json.dumps(plan)) == plan
    assert xml.loads(xml.dumps(plan)) == plan
    assert fn.removesuffix("_values") in python.dumps(plan)
    assert "(" in explain(plan)
    result = AGGREGATES[fn].result(INT64, _aggregate(fn).params)
    assert aggregate(fn, _aggregate(fn).params, [1, 1], result) is not None
    assert AGGREGATES[fn].summary


@pytest.mark.parametrize("fn", AGGREGATES)
def test_every_aggregate_is_drawn(fn: str) -> None:
    assert fn in FAMILIES[0]
    shape = DrawnShape((("v", DrawnColumn(INT64, size=10)), ("f", DrawnColumn(FLOAT64)), ("b", DrawnColumn(BOOL))))
    makers = [WindowMaker(RandomChoices(seed), shape, None) for seed in range(20)]
    assert {maker.aggregate((fn, "count"))[0].fn for maker in makers} >= {fn}


def test_every_aggregate_has_words_in_sql() -> None:
    plan = [nodes.Aggregation(nodes.Source("S"), Snapshot(), (("a", _aggregate(fn)),)) for fn in AGGREGATES]
    assert all("SELECT" in sql.dumps(one) for one in plan)


# --- functions --------------------------------------------------------------------------------------------------------


def test_every_function_has_a_definition() -> None:
    own = {"nullif", "coalesce"}  # which decide what is read
    assert set(FUNCTIONS) == set(STRICT) | set(SEES_NULL) | own


# --- lists of nodes ---------------------------------------------------------------------------------------------------

SOURCES = Path(streamproof.__file__).parent
TABLES = {
    "plan/nodes.py": 1,  # CORE_NODES
    "plan/event_nodes.py": 1,  # EVENT_NODES
    "plan/check.py": 1,  # its schema
    "plan/labels.py": 1,  # its words
    "plan/rewrites/push_filter.py": 1,  # what its traits do not say; any other node stops a filter
    "language/python.py": 1,
    "language/sql/printer.py": 2,  # what has words, and what has none and why
    "engines/local/rules.py": 1,
    "engines/oracle/rules.py": 1,
    "engines/spark/batch/rules.py": 1,
    "workbench/evaluator/evaluate.py": 1,
}
"""Tables from node to rule: closed, so that a node without a rule is an error, or has no special rule."""
LISTS = {
    "plan/labels.py": 1,  # the types of the event nodes, which share one word
    "engines/spark/batch/event_nodes.py": 1,  # the same, for the one function that computes them
    "workbench/judge.py": 1,  # operators that have windows; where a new one is missing, `verify` fails
}
"""Other places that name four nodes or more. A pass or an engine decides by traits: see `plan.nodes.Node`."""


def _named(part: ast.AST) -> str:
    return part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""


def _members(part: ast.AST) -> list[ast.AST]:
    match part:
        case ast.Tuple(elts=found) | ast.Set(elts=found) | ast.List(elts=found):
            return list(found)
        case ast.Dict(keys=keys):
            return [key for key in keys if key is not None]
        case ast.MatchOr(patterns=patterns):
            return [pattern.cls for pattern in patterns if isinstance(pattern, ast.MatchClass)]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*(_members(left) or [left]), right]
    return []


def _lists(tree: ast.AST) -> Iterator[ast.AST]:
    """Outermost tuples, sets, lists, tables and unions that name four nodes or more."""
    known = {node.__name__ for node in NODES}
    if sum(_named(member) in known for member in _members(tree)) >= 4:
        yield tree
        return
    for child in ast.iter_child_nodes(tree):
        yield from _lists(child)


def test_nobody_lists_nodes_by_hand() -> None:
    found = {
        str(path.relative_to(SOURCES)): len(list(_lists(ast.parse(path.read_text(encoding="utf-8")))))
        for path in sorted(SOURCES.rglob("*.py"))
    }
    expected = Counter(TABLES) + Counter(LISTS)
    assert {file: count for file, count in found.items() if count} == dict(expected)
