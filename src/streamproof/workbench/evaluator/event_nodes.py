"""Transitions, drifts, pairings and what is seen during events: the meaning, by loops over lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from streamproof.errors import RunError
from streamproof.events.time import FOREVER
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition
from streamproof.plan.expr import Lit
from streamproof.workbench.evaluator.aggregates import aggregate
from streamproof.workbench.evaluator.values import Row, order, payload_identity
from streamproof.workbench.evaluator.windows import WindowBounds, finite

Value = Callable[[Row], Any]


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Tuples by start and payload; ends do not matter."""
    return sorted(rows, key=lambda row: (row[0], *(order(value) for value in row[2].values())))


def _by_key(rows: Sequence[Row], key: tuple[str, ...]) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(payload_identity(row[2], key), []).append(row)
    return groups


def _point(row: Row) -> Row:
    return (row[0], finite(row[0] + 1), row[2])


def _points(rows: Sequence[Row]) -> list[Row]:
    return [_point(row) for row in rows]


def transitions(node: Transition, rows: Sequence[Row], holds: Value) -> list[Row]:
    result = []
    _points(rows)
    for group in _by_key(rows, node.key).values():
        before = False
        for row in in_order(group):
            now = holds(row) is True
            if now and not before:
                result.append(_point(row))
            before = now
    return result


def drifts(node: Drift, rows: Sequence[Row], value: Value) -> list[Row]:
    assert isinstance(node.step, Lit)
    step = node.step.value
    assert isinstance(step, int | float | Decimal)
    result = []
    _points(rows)
    for group in _by_key(rows, node.key).values():
        reference = None
        for row in in_order(group):
            found = value(row)
            if found is None or found != found:  # noqa: PLR0124  # NaN
                continue
            exact = isinstance(found, int) and isinstance(step, int)
            found, limit = (found, step) if exact else (float(found), float(step))
            if reference is None:
                reference = found
            elif _moved(node.way, found, reference) >= limit:
                result.append(_point(row))
                reference = found
    return result


def _moved(way: str, now: Any, then: Any) -> Any:
    return {"up": now - then, "down": then - now, "any": abs(now - then)}[way]


def paired(node: Pairing, begins: Sequence[Row], ends: Sequence[Row]) -> list[Row]:
    """Ends in order of time, each for the first or the last begin that is open then."""
    assert not isinstance(node.max, str | timedelta), "the check made every length of time into ticks"
    closing = _by_key(_points(ends), node.key)
    _points(begins)
    result: list[Row] = []
    for key, group in _by_key(begins, node.key).items():
        waiting = in_order(group)
        for t in sorted(row[0] for row in closing.get(key, ())):
            open_now = [row for row in waiting if row[0] < t and (node.max is None or t < row[0] + node.max)]
            if open_now:
                chosen = open_now[0 if node.policy == "fifo" else -1]
                waiting.remove(chosen)
                result.append((chosen[0], t, chosen[2]))
        for le, _, payload in waiting:
            result.append((le, FOREVER if node.max is None else finite(le + node.max), payload))
    return result


def observed(
    plan: Typed, node: During, sides: tuple[Sequence[Row], Sequence[Row]], args: dict[str, Value], bounds: WindowBounds
) -> list[Row]:
    left, right = sides
    result: list[Row] = []
    data = _by_key(_points(right), node.key)
    for event in left:
        seen = data.get(payload_identity(event[2], node.key), [])
        for t, group in _triggers(node, event, seen, bounds):
            members = [row for row in seen if _sees(node, event, t, row[0])]
            for chosen in _groups(node, members, group):
                result.append(_row(plan, event, t, chosen, args))
            if not members and node.empty:
                result.append(_row(plan, event, t, [], args))
    return result


def _triggers(node: During, event: Row, seen: Sequence[Row], bounds: WindowBounds) -> list[tuple[int, Any]]:
    """The instants at which an event asks, and the group that it asks about, if it is one."""
    le, re, _ = event
    if node.trigger == "start":
        return [(le, None)]
    if node.trigger == "end":
        return [(re, None)] if re < FOREVER else []
    if node.trigger == "arrival":
        return [(row[0], payload_identity(row[2], node.group)) for row in seen if le <= row[0] < re]
    assert isinstance(node.hop, int)
    assert node.reach is None or isinstance(node.reach, int)
    later = [row[0] for row in seen if le <= row[0] < re]
    if not later:
        return []
    last = re - 1 if bounds.horizon is None else min(re - 1, bounds.horizon)
    reached = [(s, last if node.reach is None else min(last, s + node.reach - 1)) for s in set(later)]
    ranges = [range(s + (le - s) % node.hop, end + 1, node.hop) for s, end in reached]
    if any(len(instants) > bounds.limits.windows_per_event for instants in ranges):
        raise RunError("too many", name="unbounded_windows" if re >= FOREVER else "limit_exceeded")
    return [(t, None) for t in sorted({t for instants in ranges for t in instants})]


def _sees(node: During, event: Row, t: int, s: int) -> bool:
    if node.trigger == "end":
        return event[0] <= s < t
    since = node.trigger != "start"
    assert node.reach is None or isinstance(node.reach, int)
    return s <= t and (node.reach is None or s > t - node.reach) and (not since or s >= event[0])


def _groups(node: During, members: Sequence[Row], wanted: Any) -> list[list[Row]]:
    groups = _by_key(members, node.group)
    chosen = [in_order(rows) for key, rows in groups.items() if wanted is None or key == wanted]
    return [rows[-1:] for rows in chosen] if node.latest else chosen


def _row(plan: Typed, event: Row, t: int, members: Sequence[Row], args: dict[str, Value]) -> Row:
    node = plan.node
    assert isinstance(node, During)
    payload = {name: members[0][2][name] for name in node.group} | event[2]
    if node.begin is not None:
        payload[node.begin] = event[0]
    if node.end is not None:
        payload[node.end] = None if event[1] >= FOREVER else event[1]
    for name, agg in node.aggs:
        values = [args[name](row) if name in args else None for row in members]
        payload[name] = aggregate(agg.fn, agg.params, values, plan.schema[name]) if members else agg.of_nothing
    return (t, finite(t + 1), payload)
