"""Windows and their members, enumerated from the definitions.

>>> windows_of(Hopping(10, 5), [(3, 7, {})], WindowBounds())
[(-5, 5), (0, 10), (5, 15)]
>>> windows_of(Snapshot(), [(1, 5, {}), (3, 8, {})], WindowBounds())
[(1, 3), (3, 5), (5, 8)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from streamproof.errors import RunError
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.limits import Limits, too_many_windows
from streamproof.plan.modules import Clipping, Event, Stamping, WindowSpan
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window
from streamproof.workbench.evaluator.aggregates import aggregate
from streamproof.workbench.evaluator.values import Payload, Row, of_type, order, same_value, widen

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """How far windows may go."""

    horizon: int | None = None
    limits: Limits = field(default_factory=Limits)


def windows_of(window: Window, rows: Sequence[Row], bounds: WindowBounds) -> list[Span]:
    """Every window with at least one member, in order."""
    return [span for span in _candidates(window, rows, bounds) if any(is_member(window, span, row) for row in rows)]


def is_member(window: Window, span: Span, row: Row) -> bool:
    """Membership by overlap; in count windows by where the event starts or ends."""
    le, re, _ = row
    if isinstance(window, CountStart):
        return span[0] <= le < span[1]
    if isinstance(window, CountEnd):
        return span[0] <= re < span[1]
    return le < span[1] and re > span[0]


def _candidates(window: Window, rows: Sequence[Row], bounds: WindowBounds) -> list[Span]:
    match window:
        case Tumbling(size, offset):
            return _hopping(_ticks(size), _ticks(size), _ticks(offset), rows, bounds)
        case Hopping(size, hop, offset):
            return _hopping(_ticks(size), _ticks(hop), _ticks(offset), rows, bounds)
        case Snapshot():
            return list(pairwise(sorted({end for le, re, _ in rows for end in (le, re)})))
        case CountStart(n):
            return _counted(sorted({le for le, _, _ in rows}), n)
        case CountEnd(n):
            return _counted(sorted({re for _, re, _ in rows if re < FOREVER}), n)


def _ticks(span: object) -> int:
    assert isinstance(span, int), "the check made every length of time into ticks"
    return span


def _hopping(size: int, hop: int, offset: int, rows: Sequence[Row], bounds: WindowBounds) -> list[Span]:
    spans = sorted({span for row in rows for span in spans_over(row, size, hop, offset, bounds)})
    return [(finite(le), finite(re)) for le, re in spans]


def finite(tick: int) -> int:
    """A computed time, which must lie within the infinities."""
    if not BEGINNING < tick < FOREVER:
        raise RunError(f"the time {tick} lies outside ±2^62", name="overflow")
    return tick


def spans_over(row: Row, size: int, hop: int, offset: int, bounds: WindowBounds) -> list[Span]:
    """The windows ``[offset + k·hop, … + size)`` that one event falls into."""
    le, re, _ = row
    if le <= BEGINNING or (re >= FOREVER and bounds.horizon is None):
        raise RunError(f"[{le}, {re}) falls into infinitely many windows", name="unbounded_windows")
    spans = []
    for span in _from(le, size, hop, offset):
        if span[0] >= re or (bounds.horizon is not None and span[1] > bounds.horizon):
            break
        spans.append(span)
        if len(spans) > bounds.limits.windows_per_event:
            raise too_many_windows(len(spans), bounds.limits.windows_per_event, at=str(row))
    return spans


def _from(le: int, size: int, hop: int, offset: int) -> Iterator[Span]:
    """All windows that end after ``le``, earliest first."""
    k = (le - size - offset) // hop - 1
    while offset + k * hop + size <= le:
        k += 1
    while True:
        yield offset + k * hop, offset + k * hop + size
        k += 1


def _counted(times: list[int], n: int) -> list[Span]:
    return [(first, finite(last + 1)) for first, last in zip(times, times[n - 1 :], strict=False)]


# --- what is computed over their members ------------------------------------------------------------------------------


Value = Callable[[Row], Any]


def _windows(window: Window, rows: Sequence[Row], bounds: WindowBounds) -> list[tuple[Span, list[Row]]]:
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
    plan: Typed, node: nodes.Aggregation, rows: Sequence[Row], args: Mapping[str, Value], bounds: WindowBounds
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


def ranked(node: nodes.TopK, rows: Sequence[Row], by: Sequence[tuple[Value, str]], bounds: WindowBounds) -> list[Row]:
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


def called(plan: Typed, node: nodes.Uda, rows: Sequence[Row], arg: Value, bounds: WindowBounds) -> list[Row]:
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
    plan: Typed, node: nodes.Udo, rows: Sequence[Row], payload: Callable[[Row], Payload], bounds: WindowBounds
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
