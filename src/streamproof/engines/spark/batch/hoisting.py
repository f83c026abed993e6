"""What runs in Python inside an expression: computed beforehand, as columns, from whole Arrow arrays.

Spark evaluates a Python function for every row, also in a branch of a CASE that the row never takes, and not at all
inside other functions. So calls of user-defined functions, and the few casts that Java cannot do, become columns of
their own, asked for only where the expression would ask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as f

from streamproof.engines.spark.batch.casts import IN_PYTHON, or_fail
from streamproof.engines.spark.batch.expressions import translate
from streamproof.engines.spark.batch.failing import marked
from streamproof.engines.spark.batch.relation import Env, Value, in_arrow
from streamproof.engines.spark.rows import spark_type
from streamproof.errors import StreamproofError
from streamproof.events.schema import Schema, Type
from streamproof.plan.expr import Apply, Cast, Col, Expr, all_of, replaced_calls, walk
from streamproof.plan.modules import Module, Registry

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MADE: Final = frozenset(to for _, to in IN_PYTHON)  # kinds that casts in Python give


def values(frame: DataFrame, env: Env, exprs: Sequence[Expr], registry: Registry) -> tuple[DataFrame, list[Value]]:
    """The columns of expressions, and the DataFrame to read them from: with what Python answered."""
    hoist = _PythonColumns(frame, env, registry)
    plain = [hoist.out_of(expr) for expr in exprs]
    return hoist.frame, [translate(expr, hoist.env) for expr in plain]


@dataclass(slots=True)
class _PythonColumns:
    """The DataFrame so far, and what can be read from it."""

    frame: DataFrame
    env: Env
    registry: Registry
    known: dict[tuple[Expr, tuple[Expr, ...]], Col] = field(default_factory=dict)

    def out_of(self, expr: Expr) -> Expr:
        """The expression with what runs in Python replaced by columns that hold the answers."""
        return replaced_calls(expr, self._answer) if any(self._in_python(part) for part in walk(expr)) else expr

    def _in_python(self, expr: Expr) -> bool:
        if isinstance(expr, Cast):
            return expr.to.kind in _MADE and not self._native(expr)
        return isinstance(expr, Apply)

    def _native(self, expr: Cast) -> bool:
        """Whether Spark does the cast; not if what stands inside it may have to become a column first."""
        if any(
            isinstance(part, Apply) or (isinstance(part, Cast) and part.to.kind in _MADE) for part in walk(expr.arg)
        ):
            return False
        return (translate(expr.arg, self.env).type.kind, expr.to.kind) not in IN_PYTHON

    def _answer(self, call: Apply | Cast, guard: tuple[Expr, ...]) -> Expr:
        """The column that holds the answer of a call where the guard is true; most casts stay."""
        if isinstance(call, Cast) and (translate(call.arg, self.env).type.kind, call.to.kind) not in IN_PYTHON:
            return call
        if (call, guard) not in self.known:
            column = Col(f"\x00{len(self.known)}")  # no payload column can have this name
            word = f"u{len(self.known)}"
            found = self._apply(call, guard, word) if isinstance(call, Apply) else self._cast(call, guard, word)
            self.env = {**self.env, column: found}
            self.known[call, guard] = column
        return self.known[call, guard]

    def _apply(self, call: Apply, guard: tuple[Expr, ...], word: str) -> Value:
        module = self.registry.find(call.fn, "udf")
        args = [translate(arg, self.env) for arg in call.args]
        result = module.result_type(Schema(tuple((f"arg{n}", arg.type) for n, arg in enumerate(args))))
        assert isinstance(result, Type)
        called = self._called(guard)
        asked = [f.when(called, arg.column) for arg in args] if guard else [arg.column for arg in args]
        calls, steady = _calls(module, [arg.type for arg in args], result), module.properties.deterministic
        answers = in_arrow(calls, spark_type(result), called, *asked, deterministic=steady)
        self.frame = self.frame.withColumn(word, answers)
        return Value(f.col(word), result, atom=True)

    def _cast(self, call: Cast, guard: tuple[Expr, ...], word: str) -> Value:
        """Never fails as a column; where it is read, a null for a value is the error."""
        given = translate(call.arg, self.env)
        function, name = IN_PYTHON[given.type.kind, call.to.kind]
        asked = f.when(self._called(guard), given.column) if guard else given.column
        self.frame = self.frame.withColumn(f"{word}_given", asked)
        converted = in_arrow(_whole_arrays(function, call.to), spark_type(call.to), f.col(f"{word}_given"))
        self.frame = self.frame.withColumn(word, converted)
        found = f.col(word)
        strict = or_fail(f.col(f"{word}_given"), found, call.to, name) if call.strict and name else found
        return Value(strict, call.to, atom=not call.strict)

    def _called(self, guard: tuple[Expr, ...]) -> Column:
        return translate(all_of(list(guard)), self.env).column


def _whole_arrays(function: Callable[[pa.Array, Type], pa.Array], to: Type) -> Callable[[pa.Array], pa.Array]:
    def work(array: pa.Array) -> pa.Array:
        return function(array, to)

    return work


def _calls(module: Module, kinds: list[Type], result: Type) -> Callable[..., pa.Array]:
    """A user's function over Arrow arrays: once for each different row of arguments that is asked for."""

    def work(called: pa.Array, *args: pa.Array) -> pa.Array:
        from streamproof.kernels.expressions.udf import call_module  # noqa: PLC0415  # on a worker

        asked = called.fill_null(False)
        try:
            rows = [arg.filter(asked).cast(_seen(kind)) for arg, kind in zip(args, kinds, strict=True)]
            count = asked.true_count
            if count == 0:
                return pa.nulls(len(asked), result.arrow)
            answers = call_module(module, rows, count, result)
        except StreamproofError as error:
            raise marked(error) from None
        return answers.take(_places(asked))

    return work


def _seen(kind: Type) -> pa.DataType:
    return pa.int64() if kind.kind == "null" else kind.arrow


def _places(asked: pa.Array) -> pa.Array:
    """For each row the place of its answer, or None."""
    import numpy as np  # noqa: PLC0415  # on a worker

    flags = asked.to_numpy(zero_copy_only=False)
    places = np.cumsum(flags) - 1
    return pa.array(places, mask=~flags)
