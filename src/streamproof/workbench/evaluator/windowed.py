"""Aggregates, rankings and modules over windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamproof.errors import RunError
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.modules import Clipping, Event, Stamping, WindowSpan
from streamproof.plan.windows import Window
from streamproof.workbench.evaluator.aggregates import aggregate
from streamproof.workbench.evaluator.values import Payload, Row, of_type, order, same_value, widen
from streamproof.workbench.evaluator.windows import Bounds, Span, finite, is_member, windows_of

Value = Callable[[Row], Any]


def _windows(window: Window, rows: Sequence[Row], bounds: Bounds) -> list[tuple[Span, list[Row]]]:
    """Every window with its members, in the order of le, re, payload."""
    return [
        (span, sorted((row for row in rows if is_member(window, span, row)), key=_event_order))
        for span in windows_of(window, rows, bounds)
    ]


def _event_order(row: Row) -> tuple[Any, ...]:
    return (row[0], row[1], *(order(value) for value in row[2].values()))


def _stamped(span: Span, output: nodes.Output, payload: Payload) -> list[Row]:
    """A result with its lifetime; the end of an infinite window is no point in time."""
    if output == "window":
        return [(*span, payload)]
    return [] if span[1] >= FOREVER else [(span[1], finite(span[1] + 1), payload)]


def aggregated(
    plan: Typed, node: nodes.Aggregation, rows: Sequence[Row], args: Mapping[str, Value], bounds: Bounds
) -> list[Row]:
    result: list[Row] = []
    for span, members in _windows(node.window, rows, bounds):
        payload = {}
        for name, agg in node.aggs:
            values = [args[name](row) if name in args else None for row in members]
            payload[name] = aggregate(agg.fn, agg.params, values, plan.schema[name])
        result += _stamped(span, node.output, payload)
    return result


# --- rankings ---------------------------------------------------------------------------------------------------------


def ranked(node: nodes.TopK, rows: Sequence[Row], by: Sequence[tuple[Value, str]], bounds: Bounds) -> list[Row]:
    result: list[Row] = []
    for span, members in _windows(node.window, rows, bounds):
        for row in members:
            rank = 1 + sum(_before(other, row, by) for other in members)
            if rank <= node.k:
                named = {} if node.rank is None else {node.rank: rank}
                result += _stamped(span, node.output, {**row[2], **named})
    return result


def _before(a: Row, b: Row, by: Sequence[tuple[Value, str]]) -> bool:
    """Whether ``a`` ranks strictly before ``b``; nulls come last in either direction."""
    for value, direction in by:
        left, right = value(a), value(b)
        if same_value(left, right):
            continue
        if left is None or right is None:
            return right is None
        return (order(left) < order(right)) == (direction == "asc")
    return False


# --- modules ----------------------------------------------------------------------------------------------------------


def called(plan: Typed, node: nodes.Uda, rows: Sequence[Row], arg: Value, bounds: Bounds) -> list[Row]:
    """One value per window from a user-defined aggregate."""
    assert plan.module is not None
    takes = plan.module.takes
    result: list[Row] = []
    for span, members in _windows(node.window, rows, bounds):
        values = [widen(arg(row), takes[0]) if takes else arg(row) for row in members]
        events = [_clip(row, value, span, node.clip) for row, value in zip(members, values, strict=True)]
        answer = plan.module.evaluate(events, WindowSpan(*span), dict(node.params))
        result += _stamped(span, node.output, {node.as_: of_type(answer, plan.schema[node.as_])})
    return result


def produced(
    plan: Typed, node: nodes.Udo, rows: Sequence[Row], payload: Callable[[Row], Payload], bounds: Bounds
) -> list[Row]:
    """Zero or more rows per window from a user-defined operator."""
    assert plan.module is not None
    result: list[Row] = []
    for span, members in _windows(node.window, rows, bounds):
        events = [_clip(row, payload(row), span, node.clip) for row in members]
        for answer in plan.module.evaluate(events, WindowSpan(*span), dict(node.params)):
            le, re, value = answer if isinstance(answer, Event) else (*span, answer)
            row = {name: of_type(value.get(name), kind) for name, kind in plan.schema}
            le, re = _restamped((le, re), span, node.stamp)
            result += [(le, re, row)] if le < re else []
    return result


def _clip(row: Row, value: Any, span: Span, how: Clipping) -> Event:
    le = max(row[0], span[0]) if how in ("left", "full") else row[0]
    re = min(row[1], span[1]) if how in ("right", "full") else row[1]
    return Event(le, re, value)


def _restamped(life: Span, span: Span, how: Stamping) -> Span:
    if how == "align":
        return span
    if how == "clip":
        return max(life[0], span[0]), min(life[1], span[1])
    if life[0] < span[0]:
        raise RunError(f"output at {life[0]} before its window [{span[0]}, {span[1]})", name="output_in_past")
    return life
