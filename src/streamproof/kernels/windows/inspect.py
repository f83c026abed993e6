"""Looking inside a window kernel: its windows with their members, what it retains, and what a change would do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.cells import Bools, Ints
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.recompute.strategy import Recompute
from streamproof.kernels.windows.shared.members import Events, Spans, Windows


class EventView(NamedTuple):
    """A retained event: its group, its lifetime, and how often it is there."""

    group: int
    le: int
    re: int
    times: int


class WindowView(NamedTuple):
    """A window and how many events it has. A final window can no longer change, and its state is gone.

    ``members`` are their lifetimes; empty where only sums are kept.
    """

    group: int
    le: int
    re: int
    size: int
    final: bool = False
    members: tuple[EventView, ...] = ()


class Span(NamedTuple):
    """A window of a group."""

    group: int
    le: int
    re: int


@dataclass(frozen=True, slots=True)
class Affected:
    """The windows whose rows a change takes back, and those whose rows it puts in their place."""

    retract: tuple[Span, ...]
    insert: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a window kernel holds. ``sealed`` is the output's frontier; None as long as there is none."""

    frontier: int
    sealed: int | None
    windows: tuple[WindowView, ...]
    events: tuple[EventView, ...]
    affected: Affected | None = None  # what the change that was asked about would do

    @property
    def open(self) -> tuple[WindowView, ...]:
        return tuple(window for window in self.windows if not window.final)

    @property
    def final(self) -> tuple[WindowView, ...]:
        return tuple(window for window in self.windows if window.final)


def windows_of(kernel: Recompute) -> tuple[WindowView, ...]:
    """The windows of all retained events. Of an event that never ends, up to where time has come."""
    stored = kernel.store.events()
    windows = kernel.kind.near(_bounded(kernel, Spans.of(Events(*stored), "ends")), FOREVER)
    members = kernel.members(windows, kernel.store)
    groups = members.windows.group[members.window]
    views = [EventView(*row) for row in _columns(groups, members.le, members.re, members.w)]
    final = _final(kernel, windows)
    starts = np.searchsorted(members.window, np.arange(len(members) + 1)).tolist()
    shown = []
    for n, (group, le, re) in enumerate(_columns(*members.windows)):
        inside = tuple(views[starts[n] : starts[n + 1]])
        shown.append(WindowView(group, le, re, sum(view.times for view in inside), bool(final[n]), inside))
    return tuple(shown)


def events_of(kernel: Recompute) -> tuple[EventView, ...]:
    """The retained events."""
    stored = kernel.store.events()
    return tuple(EventView(*row) for row in _columns(stored.key, stored.le, stored.re, stored.w))


def affected_members(kernel: Recompute, twin: Recompute, change: Delta) -> Affected:
    """What a change would do. ``twin`` is a copy of the kernel, which the change is applied to."""
    events = twin.kind.placed(twin.read(change)).settled()
    spans = _bounded(kernel, Spans.of(events, kernel.lively.watch))
    before = _changeable(kernel, spans)
    twin.store.add(*events)
    twin.kind.apply(events)
    after = _changeable(twin, spans)
    same = _untouched(before & after, spans)
    return Affected(tuple(sorted(before - same)), tuple(sorted(after - same)))


def affected_sums(before: Iterable[WindowView], after: Iterable[WindowView], spans: Spans) -> Affected:
    """What a change of these spans does to windows of which only sums are kept."""
    old, new = ({Span(view.group, view.le, view.re) for view in views} for views in (before, after))
    same = _untouched(old & new, spans)
    return Affected(tuple(sorted(old - same)), tuple(sorted(new - same)))


def spans_of(change: Events) -> Spans:
    """Where a change of the input changes the members of windows."""
    return Spans.of(change.settled(), "members")


def _changeable(kernel: Recompute, spans: Spans) -> set[Span]:
    """The windows near a change that have members and are not final."""
    windows = kernel.members(kernel.kind.near(spans, FOREVER), kernel.store).windows
    return {Span(*span) for span in _columns(*windows.take(~_final(kernel, windows)))}


def _untouched(windows: set[Span], spans: Spans) -> set[Span]:
    """The windows that only touch a change: no event in them changes."""
    listed = sorted(windows)
    group, le, re = (np.array([window[n] for window in listed], np.int64) for n in range(3))
    meet = spans.merged().meet(group, le, re).tolist()
    return {window for window, met in zip(listed, meet, strict=True) if not met}


def _final(kernel: Recompute, windows: Windows) -> Bools:
    """Which of the windows that have members are final."""
    members = kernel.members(windows, kernel.store)
    closed = kernel.lively.is_closed(members.windows.re, kernel.frontier)
    return closed & ((kernel.evaluator.holds(members) < kernel.frontier) | (kernel.frontier >= FOREVER))


def _bounded(kernel: Recompute, spans: Spans) -> Spans:
    """Spans that end: those of events that never do, where time has come or the last finite instant lies."""
    stored = kernel.store.events()
    times = np.concatenate([stored.le, stored.re, spans.lo, spans.hi, [kernel.frontier, kernel.seen]])
    finite = times[(times < FOREVER) & (times > BEGINNING)]
    reach = int(finite.max()) + 1 if len(finite) else BEGINNING + 1
    return spans._replace(hi=np.where(spans.hi >= FOREVER, np.maximum(reach, spans.lo + 1), spans.hi))


def _columns(*columns: Ints) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))
