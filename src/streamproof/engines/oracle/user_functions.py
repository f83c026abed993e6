"""User-defined functions inside expressions: computed in Python beforehand, once for each different set of arguments.

A call inside a CASE is made only for the rows that reach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from streamproof.engines.oracle.compiler import Compiler, listed
from streamproof.engines.oracle.database import Columns, python_columns, stored_table
from streamproof.engines.oracle.dialect import Sql, order_keys
from streamproof.engines.oracle.expressions import Env
from streamproof.engines.oracle.program import Compute
from streamproof.events.schema import BOOL, INT64, Schema, Type
from streamproof.plan.answers import declared
from streamproof.plan.expr import Apply, Cast, Col, Expr, all_of, replaced_calls, user_functions
from streamproof.plan.modules import Module


def values(compiler: Compiler, table: str, env: Env, exprs: Sequence[Expr]) -> tuple[str, list[Sql]]:
    """The SQL of expressions over a table, and the table to read them from: with the answers of user functions."""
    hoist = _UserAnswers(compiler, table, env)
    plain = [replaced_calls(expr, hoist.answer) if user_functions(expr) else expr for expr in exprs]
    return hoist.table, [compiler.sql(expr, hoist.env) for expr in plain]


@dataclass(slots=True)
class _UserAnswers:
    """The table so far, and what can be read from it."""

    compiler: Compiler
    table: str
    env: Env
    known: dict[tuple[Apply, tuple[Expr, ...]], Col] = field(default_factory=dict)

    def answer(self, call: Apply | Cast, guard: tuple[Expr, ...]) -> Expr:
        """The column that holds the answer of a call where the guard is true; databases cast by themselves."""
        if isinstance(call, Cast):
            return call
        if (call, guard) not in self.known:
            self.known[call, guard] = self._compute(call, guard)
        return self.known[call, guard]

    def _compute(self, call: Apply, guard: tuple[Expr, ...]) -> Col:
        compiler, module = self.compiler, self.compiler.settings.registry.find(call.fn, "udf")
        args = [compiler.sql(arg, self.env) for arg in call.args]
        result = module.result_type(Schema(tuple((f"arg{n}", arg.type) for n, arg in enumerate(args))))
        assert isinstance(result, Type)
        numbered, word = self._numbered(args, compiler.sql(all_of(list(guard)), self.env).text)
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
            calls = zip(*args, strict=True) if args else [()] * len(ids)
            found = [declared(module, module.apply(given), result, at=f"{module.name}{given!r}") for given in calls]
            return stored_table(made, [ids, found])

        self.compiler.steps.append(
            Compute(f"SELECT DISTINCT {names} FROM {table} WHERE {word}_called", columns, work, answers, made,
                    self.compiler.note, f"{module} of each row")
        )  # fmt: skip
        return answers


def _types(args: list[Sql]) -> list[Type]:
    return [arg.type for arg in args]
