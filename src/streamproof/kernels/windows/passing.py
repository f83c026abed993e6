"""Events that only pass by a ranking: their one window gets its last events with the batch that brings them.

Nothing can change such a window later, so an event behind k others of it is of no use to anybody, and need not be
sorted, kept, looked for and forgotten. Events are compared stretch by stretch, as they come: what is behind k others of
its stretch is behind them in the window.
"""

from __future__ import annotations

import numpy as np

from streamproof.events.time import BEGINNING
from streamproof.kernels.cells import Ints, Layout, Strings
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.changes import Events
from streamproof.kernels.windows.grid import Grid
from streamproof.kernels.windows.segments import NO_WINDOWS, Members
from streamproof.kernels.windows.topk import Ranking


def without_passing(
    events: Events, grid: Grid, frontier: int, ranking: Ranking, layout: Layout, strings: Strings
) -> Events:
    """The events that may matter to a ranking on a grid, when time has come up to a frontier."""
    if frontier <= BEGINNING or grid.hop != grid.size or not len(events.w) or events.w.min() < 1:
        return events
    stretch = np.empty(len(events.w), np.int64)
    if _stretches(events.group, events.le, events.re, grid.offset, grid.size, frontier, stretch) == len(stretch):
        return events
    ahead: Ints = ranking.ahead(
        Members(NO_WINDOWS, stretch, events.le, events.re, events.w, stretch, events.cells, layout, strings)
    )
    return events if len(ahead) == len(stretch) else events.take(ahead)


@loop
def _stretches(group, le, re, offset, size, frontier, stretch):  # type: ignore[no-untyped-def]
    """Number the stretches of events of one group that lie in one window which ends by the frontier.

    Every other event has the number −1. How many stretches and other events there are.
    """
    count = np.int64(0)
    number = start = end = np.int64(-1)
    for n in range(len(le)):
        if number < 0 or group[n] != group[n - 1] or le[n] < start or re[n] > end:
            start = (le[n] - offset) // size * size + offset
            end = start + size
            count += 1
            number = count if le[n] > BEGINNING and re[n] <= end <= frontier else np.int64(-1)
        stretch[n] = number
    return count
