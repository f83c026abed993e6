"""User modules of every kind, for plans that are drawn: functions, aggregates and operators, time-sensitive and not.

>>> clamp(99), is_known(None), joined(["b", None, "a"])
(10, False, 'a,b')
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from streamproof.events.time import FOREVER
from streamproof.plan.library import installed
from streamproof.plan.modules import Event, Payload, Registry, WindowSpan, uda, udf, udo


@cache
def all_modules() -> Registry:
    """The installed modules and those of this file."""
    registry = Registry(installed())
    for module in (clamp, is_known, halved, longest, joined, picky, crowds, halves):
        registry.add(module)
    return registry


@udf("clamp", returns="int64", takes=["int64"])
def clamp(value: int) -> int:
    return max(-10, min(10, value))


@udf("is_known", returns="bool", passes_null=True)
def is_known(value: object) -> bool:
    return value is not None


@udf("halved", returns="float64", takes=["float64"])
def halved(value: float) -> float:
    return value / 2


@uda("longest", returns="int64", time_sensitive=True)
def longest(events: Sequence[Event], window: WindowSpan) -> int | None:
    """The longest finite lifetime that it sees."""
    return max((event.re - event.le for event in events if event.re < FOREVER), default=None)


@uda("joined", returns="string", takes="string")
def joined(values: Sequence[str | None]) -> str:
    return ",".join(sorted(value for value in values if value is not None))


@uda("picky", returns="int64", takes="int64")
def picky(values: Sequence[int | None]) -> int:
    """Fails on 7."""
    if 7 in values:
        raise ValueError("7 is not welcome")
    return len(values)


@udo("crowds", returns={"n": "int64"})
def crowds(payloads: Sequence[Payload]) -> Iterator[Payload]:
    """One row if there are at least two events."""
    if len(payloads) >= 2:
        yield {"n": len(payloads)}


@udo("halves", returns=lambda inputs: inputs, time_sensitive=True)
def halves(events: Sequence[Event], window: WindowSpan) -> Iterator[Any]:
    """Every event in two halves, and one row without a stamp for each that has no end."""
    for event in events:
        if event.re >= FOREVER:
            yield event.value
            continue
        middle = (event.le + event.re) // 2
        for le, re in ((event.le, middle), (middle, event.re)):
            if le < re:
                yield Event(le, re, event.value)
