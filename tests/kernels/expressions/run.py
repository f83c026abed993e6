"""Short ways to evaluate an expression in tests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from streamproof.errors import RunError
from streamproof.events.schema import Schema, Type, parse_type
from streamproof.kernels.expressions.columns import Columns
from streamproof.kernels.expressions.compile import compile_expression
from streamproof.plan.expr import Col, Expr
from streamproof.plan.modules import Registry
from streamproof.plan.parse import parse
from streamproof.plan.typing import Scope

Column = tuple[str | Type, list[Any]]


def evaluate(expr: str | Expr, *, registry: Registry | None = None, rows: int | None = None, **columns: Column) -> Any:
    """The values of an expression over columns given as ``name=(type, values)``."""
    kinds = {name: kind if isinstance(kind, Type) else parse_type(kind) for name, (kind, _) in columns.items()}
    payload = {name: kind for name, kind in kinds.items() if name not in ("le", "re")}
    scope = Scope.one(Schema.of(payload, unit="us"), times=("le", "re"), registry=registry)
    arrays = {Col(name): pa.array(values, kinds[name].arrow) for name, (_, values) in columns.items()}
    count = rows if rows is not None else len(next(iter(arrays.values())))
    evaluation = compile_expression(parse(expr) if isinstance(expr, str) else expr, scope)
    result = evaluation(Columns(arrays, count))
    assert result.type == evaluation.type.arrow
    assert len(result) == count
    return result.to_pylist()


def failure(expr: str | Expr, *, registry: Registry | None = None, **columns: Column) -> RunError:
    """The error of an expression."""
    with pytest.raises(RunError) as caught:
        evaluate(expr, registry=registry, **columns)
    return caught.value
