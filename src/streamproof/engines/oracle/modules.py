"""User-defined aggregates and operators: SQL finds the members of each window and clips them; Python runs the module.

A window's events come in the order of their own lifetimes and payloads, as for first and last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

import pyarrow as pa

from streamproof.engines.oracle.aggregates import stamped
from streamproof.engines.oracle.compiler import Compiler, Relation, listed
from streamproof.engines.oracle.database import Columns
from streamproof.engines.oracle.dialect import Sql, lifetime_order, order_keys
from streamproof.engines.oracle.program import Compute
from streamproof.engines.oracle.user_functions import values
from streamproof.engines.oracle.values import python_columns, returned, stored_table
from streamproof.engines.oracle.windows import members
from streamproof.errors import RunError
from streamproof.events.schema import INT64, Schema, Type
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import Expr
from streamproof.plan.modules import Clipping, Event, Module, Stamping, WindowSpan

Lifetime: TypeAlias = "tuple[int, int]"
Work: TypeAlias = "Callable[[int, WindowSpan, list[tuple[int, int, list[object]]]], Iterator[list[object]]]"
_WINDOW: Columns = (("g", INT64), ("wle", INT64), ("wre", INT64), ("le", INT64), ("re", INT64))


def uda(compiler: Compiler, typed: Typed, node: nodes.Uda, source: Relation) -> Relation:
    module = typed.module
    assert module is not None
    (_, result), params = typed.schema.columns[0], dict(node.params)

    def work(group: int, window: WindowSpan, rows: list[tuple[int, int, list[object]]]) -> Iterator[list[object]]:
        events = [Event(le, re, value) for le, re, (value,) in rows]
        answer = module.evaluate(events, window, params)
        yield [group, window.le, window.re, checked(module, answer, result, window)]

    made: Columns = (("g", INT64), ("wle", INT64), ("wre", INT64), ("c0", result))
    answers = _run(compiler, source, node, _Call([node.arg], work, made))
    return stamped(compiler, typed, node.output, answers)


def udo(compiler: Compiler, typed: Typed, node: nodes.Udo, source: Relation) -> Relation:
    module = typed.module
    assert module is not None
    names, params = [name for name, _ in node.map or ()], dict(node.params)

    def work(group: int, window: WindowSpan, rows: list[tuple[int, int, list[object]]]) -> Iterator[list[object]]:
        events = [Event(le, re, dict(zip(names, row, strict=True))) for le, re, row in rows]
        for answer in module.evaluate(events, window, params):
            lifetime, payload = _stamp(module, answer, window, node.stamp)
            if lifetime is not None:
                yield [group, *lifetime, *_payload(module, payload, typed.schema, window)]

    made: Columns = (
        ("g", INT64),
        ("le", INT64),
        ("re", INT64),
        *((f"c{n}", kind) for n, (_, kind) in enumerate(typed.schema)),
    )
    answers = _run(compiler, source, node, _Call([expr for _, expr in node.map or ()], work, made))
    return Relation(answers, typed.schema)


@dataclass(frozen=True, slots=True)
class _Call:
    """What a module is called with, for each window, and the columns of what it gives."""

    exprs: Sequence[Expr]
    work: Work
    made: Columns


def _run(compiler: Compiler, source: Relation, node: nodes.Uda | nodes.Udo, call: _Call) -> str:
    """The table of what the call gives for the rows of each window, in the order of groups and windows."""
    found = members(compiler, source, node.window)
    table, args = values(compiler, found.table, found.env(), call.exprs)
    columns: Columns = (*_WINDOW, *((f"x{n}", arg.type) for n, arg in enumerate(args)))
    query = _seen(compiler, table, found, args, node.clip)

    def answer(rows: pa.Table) -> pa.Table:
        made_rows = [row for window in _windows(rows, columns) for row in call.work(*window)]
        return stored_table(
            call.made, [list(column) for column in zip(*made_rows, strict=True)] or [[] for _ in call.made]
        )

    answers = compiler.name("answers")
    what = f"{node.fn} over each window"
    compiler.steps.append(Compute(query, columns, answer, answers, call.made, compiler.note, what))
    return answers


def _seen(compiler: Compiler, table: str, found: Relation, args: list[Sql], clip: Clipping) -> str:
    """What the module sees: clipped lifetimes and mapped values, in the order of the events themselves."""
    le = "greatest(le, wle)" if clip in ("left", "full") else "le"
    re = "least(re, wre)" if clip in ("right", "full") else "re"
    columns = listed(
        f"g, wle, wre, {le} AS seen_le, {re} AS seen_re", (f"{a.text} AS x{n}" for n, a in enumerate(args))
    )
    order = order_keys(compiler.dialect, [("g", INT64), ("wle", INT64), *lifetime_order(found.keys)])
    return f"SELECT {columns} FROM {table} ORDER BY {order}"


def _windows(rows: pa.Table, columns: Columns) -> Iterator[tuple[int, WindowSpan, list[tuple[int, int, list[object]]]]]:
    """Group, window and rows of each window."""
    found: Iterator[tuple[Any, ...]] = zip(*python_columns(rows, columns), strict=True)
    for (group, wle, wre), part in groupby(found, key=lambda row: row[:3]):
        yield group, WindowSpan(wle, wre), [(row[3], row[4], list(row[5:])) for row in part]


def checked(module: Module, value: object, kind: Type, window: WindowSpan) -> object:
    """A value of a module as the database stores it, if it is of the declared type."""
    try:
        return returned(value, kind)
    except (TypeError, ValueError, OverflowError):
        raise RunError(
            f"{module} gave {value!r}, which is not of type {kind}",
            at=_place(window),
            fix=f"return a value of type {kind} or None",
            name="module_failed",
        ) from None


def _place(window: WindowSpan) -> str:
    return f"window [{show_tick(window.le)}, {show_tick(window.re)})"


def _stamp(
    module: Module, answer: object, window: WindowSpan, stamp: Stamping
) -> tuple[Lifetime | None, Mapping[str, object]]:
    """The lifetime of a row that a module gave, or None where it is empty; and its payload."""
    if isinstance(answer, Mapping):  # unstamped
        return (window.le, window.re), answer
    if not (isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[2], Mapping)):
        raise RunError(
            f"{module} gave {answer!r}, which is no row",
            at=_place(window),
            fix="give dicts, or Event(le, re, dict)",
            name="module_failed",
        )
    le, re, payload = answer
    if stamp == "align":
        return (window.le, window.re), payload
    le, re = (_time(module, time, window) for time in (le, re))
    if stamp == "clip":
        le, re = max(le, window.le), min(re, window.re)
    if le < window.le:
        raise RunError(
            f"{module} gave a row that starts at {show_tick(le)}, before its window",
            at=_place(window),
            fix='clip the input on the left, or use stamp "clip" or "align"',
            name="output_in_past",
        )
    return ((le, re) if le < re else None), payload


def _time(module: Module, time: object, window: WindowSpan) -> int:
    found = checked(module, time, INT64, window)
    if not isinstance(found, int) or not BEGINNING <= found <= FOREVER:
        name, why = ("module_failed", "is no time") if found is None else ("overflow", "lies outside ±2^62 ticks")
        raise RunError(f"{module} gave a row whose lifetime {why}: {found}", at=_place(window), name=name)  # type: ignore[arg-type]  # both are error names
    return found


def _payload(module: Module, row: Mapping[str, object], schema: Schema, window: WindowSpan) -> list[object]:
    unknown = [name for name in row if name not in schema]
    if unknown:
        raise RunError(
            f'{module} gave a column "{unknown[0]}" that it does not declare',
            at=_place(window),
            fix="give the columns " + ", ".join(schema.names),
            name="module_failed",
        )
    return [checked(module, row.get(name), kind, window) for name, kind in schema]
