"""Agreement: DuckDB and PostgreSQL give the same for random expressions over random values, errors included."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamproof.engines.oracle.engine import Oracle
from streamproof.errors import PlanError, StreamproofError
from streamproof.events.compare import explain_difference
from streamproof.events.history import History
from streamproof.events.schema import Schema, Type, parse_type
from streamproof.plan import nodes
from streamproof.plan.expr import Call, Case, Cast, Col, Expr, Lit, columns_of, literal, walk
from streamproof.plan.functions import FUNCTIONS, TIME_PARTS
from streamproof.plan.typing import Scope, type_of
from tests.engines.oracle.running import run

COLUMNS = {
    "i": "int64", "j": "int64", "x": "float64", "y": "float64", "s": "string", "t": "string", "b": "bool",
    "d": "decimal(10,2)", "e": "decimal(20,8)", "day": "date", "at": "timestamp", "z": "null",
}  # fmt: skip
SCHEMA = Schema.of(COLUMNS, unit="us")
SCOPE = Scope.one(SCHEMA)
TARGETS = [
    parse_type(name)
    for name in ("int64", "float64", "string", "bool", "decimal(6,2)", "decimal(38,6)", "date", "timestamp")
]
ROUNDED = {"ln", "log10", "exp", "power", "sqrt"}

INTS = st.one_of(
    st.integers(-9, 9),
    st.sampled_from([2**63 - 1, -(2**63), 2**62, -(2**62), 10**18]),
    st.integers(-(2**63), 2**63 - 1),
)
FLOATS = st.one_of(
    st.sampled_from(
        [
            0.0,
            -0.0,
            1.0,
            0.5,
            2.5,
            -2.5,
            1e16,
            1e-5,
            math.nan,
            math.inf,
            -math.inf,
            1e308,
            5e-324,
            0.1,
            9.2233720368547758e18,
        ]
    ),
    st.floats(allow_nan=True),
)
TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "a",
            "A",
            "é",
            "%",
            "_",
            "\\",
            "a%",
            "12",
            "-7",
            "1.5",
            "1e3",
            "nan",
            "inf",
            "true",
            "2024-02-29",
            "2024-05-01T12:00:00Z",
        ]
    ),
    st.text(st.sampled_from("abAé日😀%_\\ 0123456789.-+eE:TZ\n'\""), max_size=12),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": INTS, "float64": FLOATS, "string": TEXTS, "bool": st.booleans(),
    "date": st.dates(), "timestamp": st.datetimes(timezones=st.just(UTC)),
}  # fmt: skip


def values(kind: Type) -> st.SearchStrategy[Any]:
    if kind.kind == "null":
        return st.none()
    if kind.kind == "decimal":
        most = 10**kind.precision - 1
        unscaled = st.one_of(st.integers(-999, 999), st.integers(-most, most))
        return st.one_of(st.none(), unscaled.map(lambda n: Decimal(n).scaleb(-kind.scale)))
    return st.one_of(st.none(), VALUES[kind.kind])


ROWS = st.lists(st.fixed_dictionaries({name: values(kind) for name, kind in SCHEMA}), min_size=1, max_size=4)
CONSTANTS = st.one_of(
    INTS,
    FLOATS,
    TEXTS,
    st.booleans(),
    st.none(),
    st.sampled_from([Decimal("1.5"), date(2000, 1, 1), datetime(1969, 12, 31, tzinfo=UTC)]),
).map(literal)
LEAVES: st.SearchStrategy[Expr] = st.one_of(st.sampled_from([Col(name) for name in SCHEMA.names]), CONSTANTS)


def larger(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def call(name: str) -> st.SearchStrategy[Expr]:
        function = FUNCTIONS[name]
        size = st.integers(function.least, function.most or function.least + 2)
        return size.flatmap(lambda n: st.tuples(*[parts] * n)).map(lambda args: Call(name, args))

    names = [name for name in FUNCTIONS if name not in {*TIME_PARTS, "instant"} | ROUNDED]
    times = st.sampled_from(TIME_PARTS).flatmap(lambda name: parts.map(lambda arg: Call(name, (arg,))))
    return st.one_of(
        st.sampled_from(names).flatmap(call),
        times,
        st.builds(Cast, parts, st.sampled_from(TARGETS), st.booleans()),
        st.builds(lambda c, a, b: Case(((c, a),), b), parts, parts, parts),
    )


def well_typed(expr: Expr) -> bool:
    try:
        return type_of(expr, SCOPE).kind != "null"
    except PlanError:
        return False


EXPRESSIONS = st.recursive(LEAVES, larger, max_leaves=6).filter(well_typed)


def outcome(engine: Oracle, expr: Expr, stream: History) -> History | str:
    try:
        return run(engine, nodes.Select(nodes.Source("S"), (("out", expr),)), S=stream)
    except StreamproofError as error:
        return error.name


def folds(expr: Expr) -> bool:
    """Whether some part of the expression is a constant null, or a call on constants alone."""
    return any(part.value is None if isinstance(part, Lit) else not list(columns_of(part)) for part in walk(expr))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(expr=EXPRESSIONS, rows=ROWS)
def test_both_databases_agree(expr: Expr, rows: list[dict[str, Any]], duckdb: Oracle, postgres: Oracle) -> None:
    stream = History.from_rows(SCHEMA, [(n, n + 1, row) for n, row in enumerate(rows)])
    first, second = outcome(duckdb, expr, stream), outcome(postgres, expr, stream)
    if isinstance(first, str) or isinstance(second, str):
        if isinstance(first, str) != isinstance(second, str) and folds(expr):
            return  # what a database finds out about constants, it need not evaluate
        assert first == second
        assert first != "infrastructure"
        return
    assert explain_difference(first, second, relative=1e-15, absolute=0.0) is None


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=st.floats())
def test_floats_print_as_python_prints_them(value: float, duckdb: Oracle, postgres: Oracle) -> None:
    stream = History.from_rows(Schema.of({"x": "float64"}), [(0, 1, {"x": value})])
    for engine in (duckdb, postgres):
        found = outcome(engine, Cast(Col("x"), parse_type("string")), stream)
        assert isinstance(found, History)
        assert found.to_rows()[0].payload == {"out": repr(value + 0.0)}
