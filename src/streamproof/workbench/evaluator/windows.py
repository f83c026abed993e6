"""Windows and their members, enumerated from the definitions.

>>> windows_of(Hopping(10, 5), [(3, 7, {})], Bounds())
[(-5, 5), (0, 10), (5, 15)]
>>> windows_of(Snapshot(), [(1, 5, {}), (3, 8, {})], Bounds())
[(1, 3), (3, 5), (5, 8)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from streamproof.errors import RunError
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan.limits import Limits, too_many_windows
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window
from streamproof.workbench.evaluator.values import Row

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far windows may go."""

    horizon: int | None = None
    limits: Limits = field(default_factory=Limits)


def windows_of(window: Window, rows: Sequence[Row], bounds: Bounds) -> list[Span]:
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


def _candidates(window: Window, rows: Sequence[Row], bounds: Bounds) -> list[Span]:
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


def _hopping(size: int, hop: int, offset: int, rows: Sequence[Row], bounds: Bounds) -> list[Span]:
    spans = sorted({span for row in rows for span in spans_over(row, size, hop, offset, bounds)})
    return [(finite(le), finite(re)) for le, re in spans]


def finite(tick: int) -> int:
    """A computed time, which must lie within the infinities."""
    if not BEGINNING < tick < FOREVER:
        raise RunError(f"the time {tick} lies outside ±2^62", name="overflow")
    return tick


def spans_over(row: Row, size: int, hop: int, offset: int, bounds: Bounds) -> list[Span]:
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
