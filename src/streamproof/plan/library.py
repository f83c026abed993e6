"""The modules that come with streamproof, and the registry of everything installed.

>>> twavg([Event(0, 5, 10), Event(5, 10, 20)], WindowSpan(0, 10))
15.0
>>> [module.name for module in installed() if module.kind == "udo"]
['changes', 'passthrough']
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

from streamproof import extensions
from streamproof.events.schema import FLOAT64, Schema, Type
from streamproof.events.time import FOREVER
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit, user_functions
from streamproof.plan.modules import Event, Module, Payload, Properties, Registry, WindowSpan, uda, udo
from streamproof.plan.nodes import Node, Uda, Udo, parameters

Number = int | float
MeanState = tuple[list[float], int, dict[str, int]]


@cache
def installed() -> Registry:
    """Every module that an installed package offers at the entry point ``streamproof.modules``, ours included."""
    registry = Registry()
    for name in extensions.names("modules"):
        library = extensions.load("modules", name)
        for value in vars(library).values():
            if isinstance(value, Module):
                registry.add(value)
    return registry


@uda("twavg", returns="float64", takes="float64", time_sensitive=True, properties=Properties(time_bound=False))
def twavg(events: Sequence[Event], window: WindowSpan) -> float | None:
    """Time-weighted average: the sum of value × length of (clipped) lifetime, over the window's length."""
    weighted, known = 0.0, False
    for le, re, value in events:
        if value is not None:
            known = True
            weighted += float(value) * (re - le if re < FOREVER else math.inf)
    if not known or window.re >= FOREVER:
        return None  # no value at all, or no finite length to divide by
    return weighted / (window.re - window.le)


@uda("median", returns="float64", takes="float64")
def median(values: Sequence[Number | None]) -> float | None:
    """The middle value; between two middle values, their mean. NaN is above all numbers."""
    known = _ascending(values)
    middle = len(known) // 2
    if not known:
        return None
    return known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2


@uda("spread", returns="float64", takes="float64")
def spread(values: Sequence[Number | None]) -> float | None:
    """The greatest value minus the least. NaN is above all numbers."""
    known = _ascending(values)
    return known[-1] - known[0] if known else None


def _ascending(values: Sequence[Number | None]) -> list[float]:
    """The known values in order, whatever order they came in: NaN, which compares with nothing, last."""
    return sorted((float(value) for value in values if value is not None), key=lambda x: (math.isnan(x), x))


@uda("mean", returns="float64", takes="float64", incremental=True, properties=Properties(invertible=True))
class Mean:
    """The mean, kept as an exact sum and a count: an example of an incremental module.

    What no sum gives back, NaN and the infinities, is counted beside.
    """

    def start(self) -> MeanState:
        return [], 0, {}

    def add(self, state: MeanState, events: Sequence[Number | None]) -> MeanState:
        return self._changed(state, events, 1)

    def remove(self, state: MeanState, events: Sequence[Number | None]) -> MeanState:
        return self._changed(state, events, -1)

    def _changed(self, state: MeanState, events: Sequence[Number | None], sign: int) -> MeanState:
        partials, count, odd = state
        known = [float(value) for value in events if value is not None]
        for value in known:
            if math.isfinite(value):
                _accumulate(partials, sign * value)
            else:
                odd[str(value)] = odd.get(str(value), 0) + sign
        return partials, count + sign * len(known), odd

    def result(self, state: MeanState) -> float | None:
        partials, count, odd = state
        if not count:
            return None
        return sum((float(name) for name, times in odd.items() if times), sum(partials)) / count


def _accumulate(partials: list[float], value: float) -> None:
    """Add a float to an exact sum held as non-overlapping partial sums (Shewchuk)."""
    kept = 0
    for partial in partials:
        high, low = (value, partial) if abs(value) >= abs(partial) else (partial, value)
        value = high + low
        rest = low - (value - high)
        if rest:
            partials[kept] = rest
            kept += 1
    partials[kept:] = [value]


@udo("passthrough", returns=lambda inputs: inputs, time_sensitive=True)
def passthrough(events: Sequence[Event], window: WindowSpan) -> Iterator[Event]:
    """Every event as it is seen: the smallest module that shows clipping and stamping."""
    yield from events


def _changes_schema(inputs: Schema) -> Schema:
    columns: list[tuple[str, Type]] = [(name, kind) for name, kind in inputs if not kind.is_numeric]
    return Schema((*columns, *((name, FLOAT64) for name, kind in inputs if kind.is_numeric)))


@udo("changes", returns=_changes_schema, time_sensitive=True)
def changes(events: Sequence[Event], window: WindowSpan) -> Iterator[Payload]:
    """Per window one row: each numeric column's last value minus its first, in start order; others as they end."""
    ordered = sorted(events, key=lambda event: (event.le, event.re, repr(sorted(event.value.items()))))
    first, last = ordered[0].value, ordered[-1].value
    row: Payload = {}
    for name, value in last.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        row[name] = float(value - first[name]) if is_number and first[name] is not None else value
    yield row


def functions_of(node: Node) -> Iterator[Apply]:
    """The calls of user-defined functions in a node's own expressions.

    >>> from streamproof.plan.nodes import Source, Where
    >>> from streamproof.plan.parse import parse
    >>> [call.fn for call in functions_of(Where(Source("S"), parse("near(x, y) and z > 1")))]
    ['near']
    """
    return (call for expr in _expressions(parameters(node)) for call in user_functions(expr))


def calls_modules(node: Node) -> bool:
    """Whether a node calls any user module."""
    return isinstance(node, Uda | Udo) or any(True for _ in functions_of(node))


def _expressions(value: object) -> Iterator[Expr]:
    """Every expression somewhere in a node's parameters."""
    match value:
        case Col() | Lit() | Call() | Apply() | Cast() | Case():
            yield value
        case Aggregate(arg=arg) if arg is not None:
            yield arg
        case dict():
            for part in value.values():
                yield from _expressions(part)
        case tuple():
            for part in value:
                yield from _expressions(part)
