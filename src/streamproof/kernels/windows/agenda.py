"""When each group has its next window: groups in lists by the number of a window, so that time finds the due ones.

A group stands in the list of the first window that may have members and is not due yet. Windows share lists in turn, so
there are few lists, however far apart windows are.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.events.time import FOREVER
from streamproof.thresholds import LISTS

WINDOW, BEFORE, AFTER = range(3)  # of a group: its window, and its neighbours in the list
NONE: Final = -1


class Agenda:
    """The next window of each group."""

    def __init__(self) -> None:
        self.heads = np.full(LISTS.now, NONE, np.int64)  # the first group of each list
        self.links = _unlisted(64)  # by group

    def admit(self, groups: int) -> None:
        """Make room for so many groups."""
        if groups > len(self.links):
            more = _unlisted(max(groups, 2 * len(self.links)))
            more[: len(self.links)] = self.links
            self.links = more


def _unlisted(groups: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.full((groups, 3), (FOREVER, NONE, NONE), np.int64)


@njit(cache=True, inline="always")
def enlist(heads, links, group, window):  # type: ignore[no-untyped-def]
    """Put a group that is in no list into that of a window."""
    place = window & (len(heads) - 1)
    after = heads[place]
    links[group, WINDOW], links[group, BEFORE], links[group, AFTER] = window, NONE, after
    if after != NONE:
        links[after, BEFORE] = group
    heads[place] = group


@njit(cache=True, inline="always")
def strike(heads, links, group):  # type: ignore[no-untyped-def]
    """Take a group out of its list."""
    before, after = links[group, BEFORE], links[group, AFTER]
    if before == NONE:
        heads[links[group, WINDOW] & (len(heads) - 1)] = after
    else:
        links[before, AFTER] = after
    if after != NONE:
        links[after, BEFORE] = before
    links[group, WINDOW] = FOREVER
