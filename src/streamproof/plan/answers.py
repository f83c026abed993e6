"""What a user module may answer: values of the type that it declares, rows with lifetimes that its window admits.

It is a contract, not a way to compute, so the engines that call a module once per window have one reading of it: the
databases and Spark in batch mode.

>>> from streamproof.events.schema import FLOAT64, STRING
>>> of_type(3, FLOAT64), of_type(None, STRING)
(3.0, None)
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from streamproof.errors import RunError
from streamproof.events.schema import INT64, Schema, Type
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import INT64_MAX, INT64_MIN
from streamproof.plan.modules import Event, Module, Stamping, WindowSpan

Answers: TypeAlias = "Callable[[WindowSpan, Sequence[tuple[Any, ...]]], Iterator[list[object]]]"
"""From a window and its events (le, re, values) to rows: le, re and the payload."""


def answers_of(typed: Typed) -> Answers:
    """What the module of a node answers for a window, checked."""
    node, module, schema = typed.node, typed.module, typed.schema
    assert module is not None
    if isinstance(node, nodes.Uda):
        return _aggregate(module, dict(node.params), schema.columns[0][1])
    assert isinstance(node, nodes.Udo)
    return _operator(module, dict(node.params), [name for name, _ in node.map or ()], schema, node.stamp)


def _aggregate(module: Module, params: Mapping[str, Any], kind: Type) -> Answers:
    def answers(window: WindowSpan, rows: Sequence[tuple[Any, ...]]) -> Iterator[list[object]]:
        answer = module.evaluate([Event(*row) for row in rows], window, params)
        yield [window.le, window.re, declared(module, answer, kind, at=_place(window))]

    return answers


def _operator(
    module: Module, params: Mapping[str, Any], names: Sequence[str], schema: Schema, stamp: Stamping
) -> Answers:
    def answers(window: WindowSpan, rows: Sequence[tuple[Any, ...]]) -> Iterator[list[object]]:
        events = [Event(le, re, dict(zip(names, row, strict=True))) for le, re, *row in rows]
        for answer in module.evaluate(events, window, params):
            le, re, payload = _stamped(module, answer, window, stamp)
            if le < re:
                yield [le, re, *_payload(module, payload, schema, window)]

    return answers


def declared(module: Module, value: object, kind: Type, *, at: str) -> object:
    """A value of a module, if it is of the declared type."""
    try:
        return of_type(value, kind)
    except (TypeError, ValueError, ArithmeticError):
        raise RunError(
            f"{module} gave {value!r}, which is not of type {kind}",
            at=at,
            fix=f"return a value of type {kind} or None",
            name="module_failed",
        ) from None


def of_type(value: object, kind: Type) -> object:
    """The value as its type wants it, or an error of Python; whole numbers are floats and decimals too, but truth is
    neither."""
    if value is None:
        return None
    match kind.kind:
        case "bool" if isinstance(value, bool | np.bool_):
            return bool(value)
        case _ if isinstance(value, bool | np.bool_):
            raise TypeError
        case "int64" if isinstance(value, numbers.Integral) and INT64_MIN <= int(value) <= INT64_MAX:
            return int(value)
        case "float64" if isinstance(value, numbers.Real):
            return float(value)
        case "string" if isinstance(value, str):
            return str(value)
        case "decimal" if isinstance(value, Decimal | int):
            found: object = pa.scalar(Decimal(value), kind.arrow).as_py()
            return found
        case "date" if isinstance(value, date) and not isinstance(value, datetime):
            return value
        case "timestamp" if isinstance(value, datetime) and value.tzinfo is not None:
            return value
    raise TypeError


def _place(window: WindowSpan) -> str:
    return f"window [{show_tick(window.le)}, {show_tick(window.re)})"


def _stamped(
    module: Module, answer: object, window: WindowSpan, stamp: Stamping
) -> tuple[int, int, Mapping[str, object]]:
    """The lifetime of a row that a module gave, which may be empty, and its payload."""
    if isinstance(answer, Mapping):  # unstamped
        return window.le, window.re, answer
    if not (isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[2], Mapping)):
        raise RunError(
            f"{module} gave {answer!r}, which is no row",
            at=_place(window),
            fix="give dicts, or Event(le, re, dict)",
            name="module_failed",
        )
    le, re, payload = answer
    if stamp == "align":
        return window.le, window.re, payload
    le, re = (_time(module, time, window) for time in (le, re))
    if stamp == "clip":
        return max(le, window.le), min(re, window.re), payload
    if le < window.le:
        raise RunError(
            f"{module} gave a row that starts at {show_tick(le)}, before its window",
            at=_place(window),
            fix='clip the input on the left, or use stamp "clip" or "align"',
            name="output_in_past",
        )
    return le, re, payload


def _time(module: Module, time: object, window: WindowSpan) -> int:
    found = declared(module, time, INT64, at=_place(window))
    if not isinstance(found, int):
        what = f"{module} gave a row whose lifetime is no time: {found}"
        raise RunError(what, at=_place(window), fix="give both times", name="module_failed")
    if not BEGINNING <= found <= FOREVER:
        what = f"{module} gave a row whose lifetime lies outside ±2^62 ticks: {found}"
        raise RunError(what, at=_place(window), fix="use a coarser unit", name="overflow")
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
    return [declared(module, row.get(name), kind, at=_place(window)) for name, kind in schema]
