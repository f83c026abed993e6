"""User-defined aggregates and operators: SQL finds the members of each window and clips them; Python runs the module.

A window's events come in the order of their own lifetimes and payloads, as for first and last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from streamproof.engines.oracle.aggregates import stamped
from streamproof.engines.oracle.compiler import Compiler, EventTable, listed
from streamproof.engines.oracle.database import Columns, python_columns, stored_table
from streamproof.engines.oracle.dialect import Sql, lifetime_order, order_keys
from streamproof.engines.oracle.program import Compute
from streamproof.engines.oracle.user_functions import values
from streamproof.engines.oracle.windows import members
from streamproof.events.schema import INT64
from streamproof.plan import nodes
from streamproof.plan.answers import answers_of
from streamproof.plan.check import Typed
from streamproof.plan.expr import Expr
from streamproof.plan.modules import Clipping, WindowSpan

_WINDOW: Columns = (("g", INT64), ("wle", INT64), ("wre", INT64), ("le", INT64), ("re", INT64))


def uda(compiler: Compiler, typed: Typed, node: nodes.Uda, source: EventTable) -> EventTable:
    return stamped(compiler, typed, node.output, _run(compiler, source, typed, node, [node.arg]))


def udo(compiler: Compiler, typed: Typed, node: nodes.Udo, source: EventTable) -> EventTable:
    answers = _run(compiler, source, typed, node, [expr for _, expr in node.map or ()])
    columns = listed("g, wle AS le, wre AS re", (f"c{n}" for n in range(len(typed.schema.columns))))
    return compiler.relation("answered", f"SELECT {columns} FROM {answers}", typed.schema)


def _run(
    compiler: Compiler, source: EventTable, typed: Typed, node: nodes.Uda | nodes.Udo, exprs: Sequence[Expr]
) -> str:
    """The table of what the module answers for the rows of each window, in the order of groups and windows."""
    found = members(compiler, source, node.window)
    table, args = values(compiler, found.table, found.env(), exprs)
    columns: Columns = (*_WINDOW, *((f"x{n}", arg.type) for n, arg in enumerate(args)))
    made: Columns = (*_WINDOW[:3], *((f"c{n}", kind) for n, (_, kind) in enumerate(typed.schema)))
    answers_to = answers_of(typed)

    def answer(rows: pa.Table) -> pa.Table:
        answered = [
            [group, *row] for group, window, part in _windows(rows, columns) for row in answers_to(window, part)
        ]
        return stored_table(made, [list(column) for column in zip(*answered, strict=True)] or [[] for _ in made])

    answers = compiler.name("answers")
    query, what = _seen(compiler, table, found, args, node.clip), f"{node.fn} over each window"
    compiler.steps.append(Compute(query, columns, answer, answers, made, compiler.note, what))
    return answers


def _seen(compiler: Compiler, table: str, found: EventTable, args: list[Sql], clip: Clipping) -> str:
    """What the module sees: clipped lifetimes and mapped values, in the order of the events themselves."""
    le = "greatest(le, wle)" if clip in ("left", "full") else "le"
    re = "least(re, wre)" if clip in ("right", "full") else "re"
    columns = listed(
        f"g, wle, wre, {le} AS seen_le, {re} AS seen_re", (f"{a.text} AS x{n}" for n, a in enumerate(args))
    )
    order = order_keys(compiler.dialect, [("g", INT64), ("wle", INT64), *lifetime_order(found.keys)])
    return f"SELECT {columns} FROM {table} ORDER BY {order}"


def _windows(rows: pa.Table, columns: Columns) -> Iterator[tuple[int, WindowSpan, list[tuple[Any, ...]]]]:
    """Group, window and rows of each window."""
    found: Iterator[tuple[Any, ...]] = zip(*python_columns(rows, columns), strict=True)
    for (group, wle, wre), part in groupby(found, key=lambda row: row[:3]):
        yield group, WindowSpan(wle, wre), [row[3:] for row in part]
