"""Expressions over Arrow columns, one meaning with every other engine, and no Python per row but user functions.

>>> from streamproof.events.schema import Schema
>>> from streamproof.plan.expr import Col
>>> from streamproof.plan.parse import parse
>>> from streamproof.plan.typing import Scope
>>> import pyarrow as pa
>>> above = compile_expression(parse("v > 1"), Scope.one(Schema.of({"v": "int64"})))
>>> keep(above(Columns({Col("v"): pa.array([1, None, 3])}, 3))).tolist()
[False, False, True]
"""

from __future__ import annotations

from streamproof.kernels.expressions.columns import Columns, LostRows, keep
from streamproof.kernels.expressions.compile import Evaluation, compile_expression

__all__ = ["Columns", "Evaluation", "LostRows", "compile_expression", "keep"]
