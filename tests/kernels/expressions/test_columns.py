"""What evaluations take and give: sides, slices, empty batches, constants, masks; and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

from streamproof.errors import PlanError
from streamproof.events.schema import Schema
from streamproof.kernels.expressions.columns import Columns, keep
from streamproof.kernels.expressions.compile import compile_expression
from streamproof.plan.expr import LIFE_START, Col
from streamproof.plan.parse import parse
from streamproof.plan.typing import Scope, bind
from tests.kernels.expressions.run import evaluate

SCHEMA = Schema.of({"v": "int64", "s": "string"}, unit="s")


def test_two_inputs_and_their_times() -> None:
    scope = Scope.two(SCHEMA, SCHEMA)
    evaluation = compile_expression(bind(parse("l.v + r.v > l.le - r.le"), scope), scope)
    columns = {
        Col("v", "l"): pa.array([1, 2]),
        Col("v", "r"): pa.array([1, None]),
        Col(LIFE_START, "l"): pa.array([5, 5]),
        Col(LIFE_START, "r"): pa.array([4, 4]),
    }
    assert evaluation(Columns(columns, 2)).to_pylist() == [True, None]


def test_parts_of_ticks_use_the_unit_of_the_stream() -> None:
    evaluation = compile_expression(bind(parse("hour(le)"), Scope.one(SCHEMA)), Scope.one(SCHEMA))
    assert evaluation(Columns({Col(LIFE_START): pa.array([3600, -1, 2**62])}, 3)).to_pylist() == [1, 23, None]


@pytest.mark.parametrize("text", ["'é' || 'b'", "1 + 1", "null", "1 < 2", "cast('2024-05-01' as date)"])
def test_constants_stand_on_every_row(text: str) -> None:
    assert len(set(evaluate(text, rows=3, v=("int64", [1, 2, 3])))) == 1
    assert evaluate(text, rows=0, v=("int64", [])) == []


@pytest.mark.parametrize(
    "text", ["upper(s)", "substr(s, v)", "s like s", "v % 3", "cast(v as varchar) || s", "round(v, -1)"]
)
def test_slices_are_like_fresh_columns(text: str) -> None:
    evaluation = compile_expression(parse(text), Scope.one(SCHEMA))
    v, s = pa.array([9, 1, None, 15]), pa.array(["skipped", "héllo", "日本", None])
    sliced = evaluation(Columns({Col("v"): v[1:], Col("s"): s[1:]}, 3))
    fresh = evaluation(Columns({Col("v"): pa.array([1, None, 15]), Col("s"): pa.array(["héllo", "日本", None])}, 3))
    assert sliced.equals(fresh)


def test_missing_columns_are_named() -> None:
    with pytest.raises(PlanError, match='the batch has no column "v"'):
        compile_expression(parse("v + 1"), Scope.one(SCHEMA))(Columns({Col("s"): pa.array(["a"])}, 1))


def test_keep_takes_null_for_false() -> None:
    assert keep(pa.array([True, None, False, True])).tolist() == [True, False, False, True]
    assert keep(pa.array([], pa.bool_())).tolist() == []


def test_narrow_columns_are_widened() -> None:
    evaluation = compile_expression(parse("v + 1"), Scope.one(SCHEMA))
    assert evaluation(Columns({Col("v"): pa.array([1], pa.int32())}, 1)).to_pylist() == [2]


def test_importing_is_light() -> None:
    code = "import sys, streamproof.kernels.expressions; print({'numba', 'pandas'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
