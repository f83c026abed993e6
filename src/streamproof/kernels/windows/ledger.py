"""Rows of sums by group and place, each group's rows in a stretch of their own: a change touches only its groups.

>>> ledger = Ledger(width=1)
>>> ledger.put(np.array([[4, 10, 1], [7, 10, 1]]), spec := np.empty((0, 7), np.int64))
>>> ledger.put(np.array([[4, 9, 2], [7, 10, -1]]), spec)
>>> ledger.export().tolist()
[[4, 9, 2], [4, 10, 1]]
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.accumulators import Accumulators, add_rows, carry_row
from streamproof.kernels.windows.sums import GROUP, PLACE, SUMS, is_nothing
from streamproof.thresholds import LEDGER_NEW

BASE, FIRST, SIZE, ROOM = range(4)  # of a stretch: where it begins, its first row, its rows, and room from the base on


class Ledger:
    """Rows (group, place, sums) of all groups, in the order of their places."""

    def __init__(self, width: int) -> None:
        self.rows = np.empty((64, SUMS + width), np.int64)
        self.stretches = np.zeros((64, 4), np.int64)  # by group
        self._used = 0  # so many rows belong to stretches, or did
        self._new = 0  # rows since the last sweep
        self._left = 0  # rows that it left

    def admit(self, groups: int) -> None:
        """Make room for so many groups."""
        if groups > len(self.stretches):
            more = np.zeros((max(groups, 2 * len(self.stretches)), 4), np.int64)
            more[: len(self.stretches)] = self.stretches
            self.stretches = more

    def put(self, changes: Cells, spec: Ints) -> None:
        """Add rows, which come in order; rows of one place become one, and those of which nothing is left go."""
        if not len(changes):
            return
        self.admit(int(changes[-1, GROUP]) + 1)
        self._new += len(changes)
        done, self._used = _put(self.rows, self.stretches, self._used, changes, 0, spec)
        if done < len(changes):
            self._compact(len(changes))
            _, self._used = _put(self.rows, self.stretches, self._used, changes, done, spec)

    def _compact(self, more: int) -> None:
        """All stretches one after the other, in memory with room for so many changes."""
        held = int(self.stretches[:, SIZE].sum())
        rows = np.empty((4 * (held + more) + 64, self.rows.shape[1]), np.int64)
        self._used = _copied(self.rows, self.stretches, rows)
        self.rows = rows

    def convert(self, sums: Accumulators, spec: Ints) -> None:
        """Lay out all sums as ``sums`` now does, which were laid out by ``spec``."""
        self.rows = sums.converted(self.rows, spec)

    def forget(self, before: int, *, spec: Ints, fold: bool) -> None:
        """Forget the rows before a place; with ``fold`` their sum stays, as one row just before it."""
        _forget(self.rows, self.stretches, before, spec, fold)
        self._new, self._left = 0, len(self)

    def wants_sweeping(self) -> bool:
        """Whether as many rows came as the last sweep left."""
        return self._new > max(LEDGER_NEW.now, self._left)

    def export(self) -> Cells:
        """All rows in the order of groups and places."""
        out = np.empty((len(self), self.rows.shape[1]), np.int64)
        _copied(self.rows, self.stretches.copy(), out)
        return out

    def groups(self) -> Ints:
        """The groups that have rows."""
        return np.flatnonzero(self.stretches[:, SIZE])

    def __len__(self) -> int:
        return int(self.stretches[:, SIZE].sum())


@loop
def _move(rows, first, count, to, out):  # type: ignore[no-untyped-def]
    """Copy rows, also to a place just before them."""
    for n in range(count):
        for m in range(rows.shape[1]):
            out[to + n, m] = rows[first + n, m]


@loop
def _make_room(rows, stretches, used, group, need):  # type: ignore[no-untyped-def]
    """Make room for so many rows of a group; how many rows are used then, or −1 where there are not enough."""
    base, first = stretches[group, BASE], stretches[group, FIRST]
    room = stretches[group, ROOM]
    if first + need <= base + room:
        return used
    to = base
    if 4 * need > 3 * room:
        if used + 2 * need > len(rows):
            return -1
        to = used
        used += 2 * need
        stretches[group, BASE], stretches[group, ROOM] = to, 2 * need
    _move(rows, first, stretches[group, SIZE], to, rows)
    stretches[group, FIRST] = to
    return used


@loop
def _put(rows, stretches, used, changes, at, spec):  # type: ignore[no-untyped-def]
    """Add changes from one on; how many are done, and how many rows are used. It stops where there is no room.

    Mostly they belong to a group's last place or come after it, and a call would cost more than the sum.
    """
    while at < len(changes):
        group, end = changes[at, GROUP], at + 1
        while end < len(changes) and changes[end, GROUP] == group:
            end += 1
        first, size = stretches[group, FIRST], stretches[group, SIZE]
        if first + size + end - at > stretches[group, BASE] + stretches[group, ROOM]:
            roomy = _make_room(rows, stretches, used, group, size + end - at)
            if roomy < 0:
                break
            used, first = roomy, stretches[group, FIRST]
        place = changes[at, PLACE]
        if size == 0 or rows[first + size - 1, PLACE] <= place:
            stretches[group, SIZE] = _append(rows, first, first + size, changes, at, end, spec) - first
        else:
            _put_before(rows, stretches, group, changes, at, end, spec)
        at = end
    return at, used


@njit(cache=True, inline="always")
def _append(rows, first, out, changes, at, end, spec):  # type: ignore[no-untyped-def]
    """Put changes after rows that end at ``out``, the first maybe into the last of them; where they end then."""
    for n in range(at, end):
        meets = out > first and rows[out - 1, PLACE] == changes[n, PLACE]
        if meets:
            out -= 1
            add_rows(rows, out, SUMS, changes, n, SUMS, 1)
        else:
            for m in range(rows.shape[1]):
                rows[out, m] = changes[n, m]
        if meets or rows[out, SUMS] == 0:  # carries must not pile up, nor hide that nothing is left
            carry_row(rows, out, SUMS, spec)
            out -= is_nothing(rows, out, SUMS)
        out += 1
    return out


@loop
def _put_before(rows, stretches, group, changes, at, end, spec):  # type: ignore[no-untyped-def]
    """Put changes between the rows of a group; those before the first change stay where they are."""
    first, size, more = stretches[group, FIRST], stretches[group, SIZE], end - at
    kept = size
    while kept > 0 and rows[first + kept - 1, PLACE] >= changes[at, PLACE]:
        kept -= 1
    for n in range(first + size - 1, first + kept - 1, -1):  # there is room for all, so the others step aside
        for m in range(rows.shape[1]):
            rows[n + more, m] = rows[n, m]
    old = first + kept + more
    stretches[group, SIZE] = _merge(rows, first + kept, old, first + size + more, changes, at, end, spec) - first


@loop
def _merge(rows, out, old, last, changes, at, end, spec):  # type: ignore[no-untyped-def]
    """Put the rows from ``old`` to ``last`` and some changes at ``out``, which is before them; where they end there."""
    while old < last or at < end:
        if at == end or (old < last and rows[old, PLACE] < changes[at, PLACE]):
            for m in range(rows.shape[1]):
                rows[out, m] = rows[old, m]
            old += 1
            out += 1
            continue
        meets = old < last and rows[old, PLACE] == changes[at, PLACE]
        for m in range(rows.shape[1]):
            rows[out, m] = changes[at, m] + (rows[old, m] if meets and m >= SUMS else 0)
        old += meets
        at += 1
        if meets or rows[out, SUMS] == 0:  # carries must not pile up, nor hide that nothing is left
            carry_row(rows, out, SUMS, spec)
        out += not is_nothing(rows, out, SUMS)
    return out


@loop
def _copied(rows, stretches, out):  # type: ignore[no-untyped-def]
    """All stretches without room between them; how many rows that are."""
    used = 0
    for group in range(len(stretches)):
        size = stretches[group, SIZE]
        _move(rows, stretches[group, FIRST], size, used, out)
        stretches[group, BASE] = stretches[group, FIRST] = used
        stretches[group, ROOM] = size
        used += size
    return used


@loop
def _forget(rows, stretches, before, spec, fold):  # type: ignore[no-untyped-def]
    for group in range(len(stretches)):
        first = stretches[group, FIRST]
        end = first + stretches[group, SIZE]
        at = first
        while at < end and rows[at, PLACE] < before:
            at += 1
        if fold and at > first:
            for n in range(first, at - 1):
                add_rows(rows, at - 1, SUMS, rows, n, SUMS, 1)
            rows[at - 1, PLACE] = before - 1
            carry_row(rows, at - 1, SUMS, spec)
            at -= not is_nothing(rows, at - 1, SUMS)
        stretches[group, FIRST], stretches[group, SIZE] = at, end - at
