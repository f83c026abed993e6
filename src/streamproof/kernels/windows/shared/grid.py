"""Tumbling and hopping windows: ``[offset + k·hop, offset + k·hop + size)`` for every integer k.

Which windows an event falls into is arithmetic. Only due windows are ever listed, so infinite lifetimes never loop.
"""

from __future__ import annotations

import numpy as np

from streamproof.errors import PlanError, RunError
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Bools, Ints
from streamproof.kernels.delta import Delta
from streamproof.kernels.state import Declared
from streamproof.kernels.store import Store, StoredEvents
from streamproof.kernels.windows.shared.members import NO_WINDOWS, Events, Spans, Windows, once, unique_windows
from streamproof.kernels.windows.shared.members_loops import longest, ranges, runs_of
from streamproof.kernels.windows.shared.outputs import OutputPart, Outputs, least_held
from streamproof.kernels.windows.shared.progress import Liveliness, Step
from streamproof.plan.limits import too_many_rows, too_many_windows
from streamproof.plan.windows import Hopping, Tumbling
from streamproof.thresholds import FEW_WINDOWS

NONE_MOVED = np.zeros(0, np.bool_)
EARLIEST, MANY = -(2**63), 2**63 - 1
LONGEST = 2**60  # longer windows would leave the range of int64


class GridWindows(Declared):
    """Windows on a grid; they are the same for every group and need no state."""

    def __init__(self, window: Tumbling | Hopping, lively: Liveliness, context: Context) -> None:
        hop = window.size if isinstance(window, Tumbling) else window.hop
        assert isinstance(window.size, int)
        assert isinstance(hop, int)
        assert isinstance(window.offset, int)
        if max(window.size, hop) > LONGEST:
            what = f"a window of {window.size} ticks every {hop} ticks leaves the range of ±2^62 ticks"
            raise PlanError(what, fix="use a coarser time unit", name="overflow")
        self.size, self.hop, self.offset = window.size, hop, window.offset % hop
        self._numbers = self.offset, self.size, self.hop
        self._lively = lively
        self._context = context

    def start(self, k: Ints) -> Ints:
        return self.offset + k * self.hop

    def first(self, le: Ints) -> Ints:
        """The number of the first window that ends after ``le``."""
        return (le - self.offset - self.size) // self.hop + 1

    def last(self, re: Ints) -> Ints:
        """The number of the last window that starts before ``re``."""
        return (re - self.offset - 1) // self.hop

    def last_due(self, due: int) -> int:
        """The number of the last window that is due."""
        reach = 0 if self._lively.by_start else self.size
        number = (due - self.offset - reach) // self.hop
        horizon = self._context.horizon
        return number if horizon is None else min(number, (horizon - self.offset - self.size) // self.hop)

    def inside(self, delta: Delta) -> Delta:
        """The events that fall into a window: where windows leave gaps, some fall into none, and nobody reads those.

        Those without a start or an end are refused later, however short they are.
        """
        if self.hop <= self.size or not len(delta):
            return delta
        unbounded = (delta.le <= BEGINNING) | (delta.re >= FOREVER)
        return delta.take(unbounded | (self.first(delta.le) <= self.last(delta.re)))

    def placed(self, events: Events) -> Events:
        return events

    def apply(self, events: Events) -> None:
        """Windows on a grid do not depend on events."""

    def near(self, spans: Spans, due: int) -> Windows:
        # an end that moved to or from inside a window does not change its members
        last_due = self.last_due(due)
        if not len(spans.lo) or self.first(spans.lo.min()) > last_due:
            return NO_WINDOWS
        first, last, total = ranges(spans.lo, spans.hi, spans.moved, *self._numbers, EARLIEST, last_due)
        if not total:
            return NO_WINDOWS
        if due >= FOREVER:  # somebody looks at what is to come, which nothing else bounds
            self._refuse(last - first + 1, spans.lo, spans.hi)
        return self._listed(spans.group, first, last, spans.lo, spans.hi)

    def newly_due(self, step: Step, store: Store) -> Windows:
        first_due, last_due = self.last_due(step.due_before) + 1, self.last_due(step.due)
        begin, end = self.offset + first_due * self.hop, self.offset + last_due * self.hop + self.size
        if first_due > last_due:
            return NO_WINDOWS
        few = (
            last_due - first_due < max(FEW_WINDOWS.now, store.room // FEW_WINDOWS.now)
            and begin > BEGINNING
            and end < FOREVER
        )
        only = store.only_key() if few and not self.may_be_many(store.longest) else None
        if only is not None:
            start = self.start(np.arange(first_due, last_due + 1))  # whoever looks for members finds which have none
            return Windows(np.full(len(start), only), start, start + self.size)
        key, le, re = store.meeting(begin, end)
        self.refuse_many(le, re, step)
        first, last, _ = ranges(le, re, NONE_MOVED, *self._numbers, first_due, last_due)
        return self._listed(key, first, last, le, re)

    def may_be_many(self, longest: int) -> bool:
        """Whether an event that lasts so long may fall into more windows than the limit."""
        return (longest - 1 + self.size) // self.hop + 1 > self._context.limits.windows_per_event

    def refuse_new(self, events: Events, step: Step) -> None:
        """Of events that come now, every due window counts. Those that go were counted when they came."""
        if self.may_be_many(longest(events.le, events.re)):
            new = events.take(events.w > 0)
            self._refuse(self._due_windows(new.le, new.re, step), new.le, new.re)

    def refuse_many(self, le: Ints, re: Ints, step: Step) -> None:
        """Of an event that is held, all due windows count; but of one that nothing ends, those that are due only now.

        It would fail at the end of time, and until then it may be ended any day: its age alone is no fault.
        """
        if not self.may_be_many(longest(le, re)):
            return
        count = self._due_windows(le, re, step)
        if self._context.horizon is None:
            fresh = min(self.last_due(step.due) - self.last_due(step.due_before), MANY)
            count = np.where(re >= FOREVER, np.minimum(count, fresh), count)
        self._refuse(count, le, re)

    def _due_windows(self, le: Ints, re: Ints, step: Step) -> Ints:
        """Returns the number of due windows that each event falls into."""
        return np.minimum(self.last(re), self.last_due(step.due)) - self.first(le) + 1

    def _refuse(self, count: Ints, le: Ints, re: Ints) -> None:
        most, limit = int(count.max()) if len(count) else 0, self._context.limits.windows_per_event
        if most > limit:
            at = int(count.argmax())
            raise too_many_windows(most, limit, at=f"[{show_tick(int(le[at]))}, {show_tick(int(re[at]))})")

    def _listed(self, group: Ints, first: Ints, last: Ints, le: Ints, re: Ints) -> Windows:
        most = self._context.limits.events_listed
        source, k, size = runs_of(group, first, last, most)
        if size > most:
            raise too_many_rows(most, at="")
        start = self.start(k)
        outside = (start <= BEGINNING) | (start + self.size >= FOREVER)
        if outside.any():
            at = source[int(outside.argmax())]
            raise outside_of_time(int(le[at]), int(re[at]))
        return unique_windows(group[source], start, start + self.size)

    def stale(self, spans: Spans, near: Windows, outputs: OutputPart) -> tuple[Bools, Bools]:
        found = outputs.find(near)
        gone = np.zeros(len(outputs.hold), np.bool_)
        gone[found[found >= 0]] = True
        return np.ones(len(near.le), np.bool_), gone

    def forget(self, frontier: int, outputs: Outputs, stored: StoredEvents) -> Bools:
        closed = self._lively.closed(outputs, frontier)  # windows without new members that an end may still change
        groups = once(stored.key)
        held = stored.re > least_held(closed, groups)[np.searchsorted(groups, stored.key)]
        return held | (stored.re >= self.needed_from(frontier))

    def needed_from(self, frontier: int) -> int:
        """Events that ended before are in no window that can still get members, nor can they change."""
        return min(self.opened(frontier) + 1, frontier)

    def opened(self, frontier: int) -> int:
        if frontier <= BEGINNING:
            return frontier
        k = (frontier - self.offset - self.size) // self.hop + 1  # the first window that ends after the frontier
        return self.offset + k * self.hop

    def refuse_no_end(self, stored: StoredEvents) -> None:
        """At the end of time: events that never end fall into infinitely many windows, late ones into impossible ones.

        A horizon leaves out both.
        """
        if self._context.horizon is not None:
            return
        no_end = stored.re >= FOREVER
        if no_end.any():
            raise unbounded(int(stored.le[no_end][0]), FOREVER)
        outside = self.start(self.last(stored.re)) + self.size >= FOREVER
        if outside.any():
            raise outside_of_time(int(stored.le[outside][0]), int(stored.re[outside][0]))


def outside_of_time(le: int, re: int) -> RunError:
    """The error of an event that falls into a window that starts or ends at an infinity."""
    return RunError(
        "a window leaves the range of ±2^62 ticks",
        at=f"[{show_tick(le)}, {show_tick(re)})",
        fix="use a coarser time unit",
        name="overflow",
    )


def unbounded(le: int, re: int) -> RunError:
    """The error of an event that falls into infinitely many windows."""
    return RunError(
        "an event falls into infinitely many windows",
        at=f"[{show_tick(le)}, {show_tick(re)})",
        fix="give a horizon (--horizon T), or end the lifetimes first" if re >= FOREVER else "give lifetimes a start",
        name="unbounded_windows",
    )
