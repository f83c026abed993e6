"""Windows: how the time axis (or the sequence of events) is divided for aggregates and modules.

Membership is ``le < W.RE and re > W.LE``, except for count windows, which take the events whose start (or end) lies
inside. A window without members gives no row.

>>> Tumbling(10)
Tumbling(size=10, offset=0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from streamproof.errors import PlanError
from streamproof.events.time import Span, Unit, duration
from streamproof.plan.limits import check_count


@dataclass(frozen=True, slots=True)
class Tumbling:
    """``[offset + k·size, offset + (k+1)·size)`` for every integer k."""

    kind: ClassVar[str] = "tumbling"
    size: Span
    offset: Span = 0

    def __post_init__(self) -> None:
        _positive(self.size, "size")


@dataclass(frozen=True, slots=True)
class Hopping:
    """``[offset + k·hop, offset + k·hop + size)`` for every integer k; a hop above the size leaves gaps."""

    kind: ClassVar[str] = "hopping"
    size: Span
    hop: Span
    offset: Span = 0

    def __post_init__(self) -> None:
        _positive(self.size, "size")
        _positive(self.hop, "hop", fix="give a hop of at least 1 tick; for a tumbling window leave hop out")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The intervals between consecutive distinct endpoints of the (group's) events."""

    kind: ClassVar[str] = "snapshot"


@dataclass(frozen=True, slots=True)
class CountStart:
    """``[s_i, s_{i+n-1} + 1)`` over the distinct start times; members are the events that start inside."""

    kind: ClassVar[str] = "count_start"
    n: int

    def __post_init__(self) -> None:
        check_count(self.n, "n")


@dataclass(frozen=True, slots=True)
class CountEnd:
    """``[s_i, s_{i+n-1} + 1)`` over the distinct finite end times; members are the events that end inside."""

    kind: ClassVar[str] = "count_end"
    n: int

    def __post_init__(self) -> None:
        check_count(self.n, "n")


Window: TypeAlias = "Tumbling | Hopping | Snapshot | CountStart | CountEnd"
WINDOWS: dict[str, type[Window]] = {w.kind: w for w in (Tumbling, Hopping, Snapshot, CountStart, CountEnd)}


def _positive(span: Span, name: str, fix: str | None = None) -> None:
    if isinstance(span, bool) or (isinstance(span, int) and span < 1):
        raise PlanError(f"{name} must be positive, got {span}", fix=fix or f"give a {name} of at least 1")


def in_ticks(window: Window, unit: Unit | None) -> Window:
    """The window with its lengths as ticks of ``unit``.

    >>> in_ticks(Tumbling("1 minute"), "s")
    Tumbling(size=60, offset=0)
    """
    match window:
        case Tumbling(size, offset):
            return Tumbling(duration(size, unit), duration(offset, unit))
        case Hopping(size, hop, offset):
            return Hopping(duration(size, unit), duration(hop, unit), duration(offset, unit))
    return window
