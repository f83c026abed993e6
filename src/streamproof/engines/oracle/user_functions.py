"""User-defined functions inside expressions: computed in Python beforehand, once for each different set of arguments.

A call inside a CASE is made only for the rows that reach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from streamproof.engines.oracle.compiler import Compiler, listed
from streamproof.engines.oracle.database import Columns
from streamproof.engines.oracle.dialect import Sql, order_keys
from streamproof.engines.oracle.expressions import Env
from streamproof.engines.oracle.program import Compute
from streamproof.engines.oracle.values import python_columns, returned, stored_table
from streamproof.errors import RunError
from streamproof.events.schema import BOOL, INT64, Schema, Type
from streamproof.plan.expr import TRUE, Apply, Call, Case, Cast, Col, Expr, all_of, user_functions
from streamproof.plan.modules import Module


def values(compiler: Compiler, table: str, env: Env, exprs: Sequence[Expr]) -> tuple[str, list[Sql]]:
    """The SQL of expressions over a table, and the table to read them from: with the answers of user functions."""
    hoist = _Hoist(compiler, table, env)
    plain = [hoist.out_of(expr, []) if user_functions(expr) else expr for expr in exprs]
    return hoist.table, [compiler.sql(expr, hoist.env) for expr in plain]


@dataclass(slots=True)
class _Hoist:
    """The table so far, and what can be read from it."""

    compiler: Compiler
    table: str
    env: Env
    known: dict[tuple[Apply, tuple[Expr, ...]], Col] = field(default_factory=dict)

    def out_of(self, expr: Expr, guard: list[Expr]) -> Expr:
        """The expression with each call replaced by a column that holds its answer where the guard is true."""
        match expr:
            case Apply(fn, args):
                return self._answer(Apply(fn, tuple(self.out_of(arg, guard) for arg in args)), guard)
            case Call(fn, args):
                return Call(fn, tuple(self.out_of(arg, guard) for arg in args))
            case Cast(arg):
                return replace(expr, arg=self.out_of(arg, guard))
            case Case():
                return self._case(expr, guard)
        return expr

    def _case(self, expr: Case, guard: list[Expr]) -> Case:
        branches, reached = [], list(guard)
        for condition, value in expr.branches:
            asked = self.out_of(condition, reached)
            holds: Expr = Call("same", (asked, TRUE))
            branches.append((asked, self.out_of(value, [*reached, holds])))
            reached.append(Call("not", (holds,)))
        return Case(tuple(branches), self.out_of(expr.default, reached))

    def _answer(self, call: Apply, guard: list[Expr]) -> Col:
        key = (call, tuple(guard))
        if key not in self.known:
            self.known[key] = self._compute(call, guard)
        return self.known[key]

    def _compute(self, call: Apply, guard: list[Expr]) -> Col:
        compiler, module = self.compiler, self.compiler.settings.registry.find(call.fn, "udf")
        args = [compiler.sql(arg, self.env) for arg in call.args]
        result = module.result_type(Schema(tuple((f"arg{n}", arg.type) for n, arg in enumerate(args))))
        assert isinstance(result, Type)
        numbered, word = self._numbered(args, compiler.sql(all_of(guard), self.env).text)
        answers = self._asked(module, numbered, word, _types(args), result)
        self.table = compiler.create(
            "with_udf", f"SELECT t.*, f.value AS {word} FROM {numbered} t LEFT JOIN {answers} f ON t.{word}_id = f.id"
        )
        column = Col(f"\x00{word}")  # no payload column can have this name
        self.env = self.env.extended({column: Sql(word, result, atom=True)})
        return column

    def _numbered(self, args: list[Sql], guard: str) -> tuple[str, str]:
        """The table with the arguments and a number for each different set of them."""
        compiler = self.compiler
        word = compiler.name("u")
        columns = [f"CASE WHEN {guard} THEN {arg.text} END AS {word}_{n}" for n, arg in enumerate(args)]
        asked = compiler.create(
            "asked", f"SELECT {listed('t.*', f'({guard}) AS {word}_called', columns)} FROM {self.table} t"
        )
        keys = [(f"{word}_called", BOOL), *((f"{word}_{n}", arg.type) for n, arg in enumerate(args))]
        rank = f"dense_rank() OVER (ORDER BY {order_keys(compiler.dialect, keys)}) AS {word}_id"
        return compiler.create("numbered", f"SELECT *, {rank} FROM {asked}"), word

    def _asked(self, module: Module, table: str, word: str, types: list[Type], result: Type) -> str:
        columns: Columns = (("id", INT64), *((f"{word}_{n}", kind) for n, kind in enumerate(types)))
        names = listed(f"{word}_id", (name for name, _ in columns[1:]))
        made: Columns = (("id", INT64), ("value", result))
        answers = self.compiler.name("answers")

        def work(rows: pa.Table) -> pa.Table:
            ids, *args = python_columns(rows, columns)
            found = [
                _checked(module, given, result) for given in (zip(*args, strict=True) if args else [()] * len(ids))
            ]
            return stored_table(made, [ids, found])

        self.compiler.steps.append(
            Compute(f"SELECT DISTINCT {names} FROM {table} WHERE {word}_called", columns, work, answers, made,
                    self.compiler.note, f"{module} of each row")
        )  # fmt: skip
        return answers


def _types(args: list[Sql]) -> list[Type]:
    return [arg.type for arg in args]


def _checked(module: Module, args: tuple[object, ...], result: Type) -> object:
    value = module.apply(args)
    try:
        return returned(value, result)
    except (TypeError, ValueError, OverflowError):
        raise RunError(
            f"{module} gave {value!r}, which is not of type {result}",
            at=f"{module.name}{args!r}",
            fix=f"return a value of type {result} or None",
            name="module_failed",
        ) from None
