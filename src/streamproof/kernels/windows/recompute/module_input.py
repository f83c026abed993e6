"""What a module sees of the members of windows: plain lists of values or events, one list per window, in order.

Everything is arranged in columns first; Python objects are made once per event that is seen, and none is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np

from streamproof.events import weights
from streamproof.kernels.cells import Bools, Cells, Ints
from streamproof.kernels.interning import Interner
from streamproof.kernels.windows.recompute.recompute_loops import SORTED, UNSORTED, disorder_loop
from streamproof.kernels.windows.shared.members import Members
from streamproof.kernels.windows.shared.outputs import nets
from streamproof.plan.modules import Clipping, Event
from streamproof.thresholds import SEEN_AT_ONCE

Ranks = Callable[[Members], Ints]


class ModuleInput:
    """How one module sees events: with lifetimes or without, clipped, as a value or as a dict of columns."""

    def __init__(
        self, columns: list[tuple[str, int]], *, clip: Clipping, timed: bool, as_rows: bool, ranks: Ranks,
        most: int,
    ) -> None:  # fmt: skip
        """``most``: so many events are made at once."""
        self._names = [name for name, _ in columns]
        self._columns = [number for _, number in columns]
        self._clip, self._timed, self._as_rows, self._ranks, self._most = clip, timed, as_rows, ranks, most

    def whole(self, members: Members, chosen: Bools | None = None) -> Iterator[list[Any]]:
        """Per window its events, equal ones as often as they are there; none for windows that are not chosen."""
        at = np.arange(len(members.window)) if chosen is None else np.flatnonzero(chosen[members.window])
        le, re = self._lifetimes(members, at)
        order = self._order(members, at, le, re)
        return self._pieces(members, at[order], le[order], re[order], members.w[at][order])

    def changes(self, members: Members) -> tuple[Iterable[list[Any]], Iterator[list[Any]]]:
        """Per window the events that went and those that came. What the module sees unchanged did neither."""
        at = np.arange(len(members.window))
        le, re = self._lifetimes(members, at)
        order = self._order(members, at, le, re)
        at, le, re = at[order], le[order], re[order]
        w = members.w[at]
        if not len(w) or w.min() > 0:
            return repeat([], len(members)), self._pieces(members, at, le, re, w)
        w, first = nets(self._identity(members, at, le, re), w)
        at, le, re = at[first], le[first], re[first]
        gone, new = w < 0, w > 0
        return (
            self._pieces(members, at[gone], le[gone], re[gone], -w[gone]),
            self._pieces(members, at[new], le[new], re[new], w[new]),
        )

    def events(self, members: Members, number: int) -> list[Event]:
        """The events of one window, as an error shows them."""
        first, last = np.searchsorted(members.window, [number, number + 1])
        at = np.arange(first, last)
        le, re = self._lifetimes(members, at)
        order = self._order(members, at, le, re)
        at = at[order].repeat(members.w[at][order])
        le, re = self._lifetimes(members, at)
        return list(map(Event, le.tolist(), re.tolist(), self._values(members, at)))

    # --- order --------------------------------------------------------------------------------------------------------

    def _lifetimes(self, members: Members, at: Ints) -> tuple[Ints, Ints]:
        """The lifetimes that the module sees."""
        le, re, window = members.le[at], members.re[at], members.window[at]
        if self._clip in ("left", "full"):
            le = np.maximum(le, members.windows.le[window])
        if self._clip in ("right", "full"):
            re = np.minimum(re, members.windows.re[window])
        return le, re

    def _order(self, members: Members, at: Ints, le: Ints, re: Ints) -> Ints:
        """Some members in the order of window, lifetime and payload. The payload is looked at only for ties."""
        window = members.window[at]
        disorder = disorder_loop(window, le, re)
        order = np.lexsort((re, le, window)) if disorder == UNSORTED else np.arange(len(at))
        if disorder == SORTED:
            return order
        ties, run = _ties(window[order], le[order], re[order])
        if len(ties):
            ranks = self._ranks(_picked(members, at[order[ties]]))
            order[ties] = order[ties[np.lexsort((ranks, run))]]
        return order

    def _identity(self, members: Members, at: Ints, le: Ints, re: Ints) -> Cells:
        """Cells that are equal exactly for members of one window that the module cannot tell apart."""
        layout = members.layout
        cells = [members.window[at], *((le, re) if self._timed else ())]
        known = 0
        for number in self._columns:
            kind, cell = layout.columns[number]
            cells += [members.cells[at, cell + n] for n in range(2 if kind.kind == "decimal" else 1)]
            known |= 1 << number
        return np.column_stack([*cells, members.cells[at, -1] & known])

    # --- objects ------------------------------------------------------------------------------------------------------

    def _pieces(self, members: Members, at: Ints, le: Ints, re: Ints, w: Ints) -> Iterator[list[Any]]:
        """Per window a list of what the module sees."""
        if len(w) and (w.min() != 1 or w.max() != 1):
            if (events := weights.total(w)) > self._most:
                raise weights.too_long(events, self._most, at="what a module sees at once")
            at, le, re = at.repeat(w), le.repeat(w), re.repeat(w)
        ends, together = np.searchsorted(members.window[at], np.arange(len(members) + 1)), SEEN_AT_ONCE.now
        return chain.from_iterable(
            self._some(members, at, le, re, ends[first : first + together + 1])
            for first in range(0, len(members), together)
        )

    def _some(self, members: Members, at: Ints, le: Ints, re: Ints, ends: Ints) -> Iterator[list[Any]]:
        """What is seen of a few windows, which end at these places."""
        part = slice(ends[0], ends[-1])
        seen = self._values(members, at[part])
        if self._timed:  # tuple.__new__ makes named tuples without a Python call for each
            times = le[part].tolist(), re[part].tolist()
            seen = list(map(tuple.__new__, repeat(Event), zip(*times, seen, strict=True)))
        places = (ends - ends[0]).tolist()
        return map(seen.__getitem__, map(slice, places, places[1:]))

    def _values(self, members: Members, at: Ints) -> list[Any]:
        """The value (UDA) or the dict of columns (UDO) of each member."""
        columns = [listed(members, number, at) for number in self._columns]
        if not self._as_rows:
            return columns[0]
        names = self._names
        if not names:
            return [{} for _ in range(len(at))]
        if len(names) == 1:
            return [{names[0]: value} for value in columns[0]]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _picked(members: Members, at: Ints) -> Members:
    return Members(
        members.windows, members.window[at], members.le[at], members.re[at], members.w[at], members.slot[at],
        members.cells[at], members.layout, members.strings,
    )  # fmt: skip


def listed(members: Members, number: int, at: Ints) -> list[Any]:
    """The Python values of a column of some members."""
    kind, cell = members.layout.columns[number]
    values = members.cells[at, cell]
    found: list[Any]
    match kind.kind:
        case "int64":
            found = values.tolist()
        case "float64":
            found = values.view(np.float64).tolist()
        case "bool":
            found = values.astype(np.bool_).tolist()
        case _:
            return _interpreted(members, number, at)
    nulls = members.layout.nulls(members.cells[at, -1:], number)
    if nulls.any():
        for n in np.flatnonzero(nulls).tolist():
            found[n] = None
    return found


def _interpreted(members: Members, number: int, at: Ints) -> list[Any]:
    """The values of a column whose cells say little by themselves: each different one is made once."""
    layout = members.layout
    kind, cell = layout.columns[number]
    width = 2 if kind.kind == "decimal" else 1
    cells = members.cells[at]
    own = np.column_stack([cells[:, cell : cell + width], layout.nulls(cells, number)])
    codes = Interner(own.shape[1]).intern(own)
    first = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    different = layout.column(cells[first], number, members.strings).to_pylist()
    return [different[code] for code in codes.tolist()]


def _ties(window: Ints, le: Ints, re: Ints) -> tuple[Ints, Ints]:
    """Where sorted rows are equal to a neighbour, and the number of the run of equal ones that each belongs to."""
    same = (window[1:] == window[:-1]) & (le[1:] == le[:-1]) & (re[1:] == re[:-1])
    tied = np.zeros(len(window), np.bool_)
    tied[1:] |= same
    tied[:-1] |= same
    ties = np.flatnonzero(tied)
    run = np.cumsum(~np.concatenate([np.zeros(min(1, len(window)), np.bool_), same]))
    return ties, run[ties]
