"""Compiled loops over stretches of sums per pane, and over the lists of groups whose next window is due."""

from __future__ import annotations

from typing import Final

from numba import njit

from streamproof.events.time import FOREVER
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.shared.stretches_loops import BASE, FIRST, ROOM, SIZE, move, place_for
from streamproof.kernels.windows.shared.sums_loops import GROUP, PLACE, SUMS, add_rows, carry_row, is_nothing


@loop
def put(rows, stretches, used, changes, at, spec):
    """Add changes from one on, as far as there is room; returns how many are done, and how many rows are used.

    Mostly they belong to a group's last place or come after it, and a call would cost more than the sum.
    """
    while at < len(changes):
        group, end = changes[at, GROUP], at + 1
        while end < len(changes) and changes[end, GROUP] == group:
            end += 1
        first, size = stretches[group, FIRST], stretches[group, SIZE]
        if first + size + end - at > stretches[group, BASE] + stretches[group, ROOM]:
            to, used = place_for(stretches, group, first, size + end - at, used, len(rows), 0)
            if to < 0:
                break
            move(rows, first, to, size)
            stretches[group, FIRST] = first = to
        place = changes[at, PLACE]
        if size == 0 or rows[first + size - 1, PLACE] <= place:
            stretches[group, SIZE] = _append(rows, first, first + size, changes, at, end, spec) - first
        else:
            _put_before(rows, stretches, group, changes, at, end, spec)
        at = end
    return at, used


@njit(cache=True, inline="always")
def _append(rows, first, out, changes, at, end, spec):
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
def _put_before(rows, stretches, group, changes, at, end, spec):
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
def _merge(rows, out, old, last, changes, at, end, spec):
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
def copied(rows, stretches, out):
    """Copy all stretches without room between them; returns the number of rows."""
    used = 0
    for group in range(len(stretches)):
        size = stretches[group, SIZE]
        for n in range(size):
            for m in range(rows.shape[1]):
                out[used + n, m] = rows[stretches[group, FIRST] + n, m]
        stretches[group, BASE] = stretches[group, FIRST] = used
        stretches[group, ROOM] = size
        used += size
    return used


@loop
def forget(rows, stretches, before, spec, fold):
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


WINDOW, BEFORE, AFTER = range(3)  # of a group: its window, and its neighbours in the list
NONE: Final = -1


@njit(cache=True, inline="always")
def enlist(heads, links, group, window):
    """Put a group that is in no list into that of a window."""
    place = window & (len(heads) - 1)
    after = heads[place]
    links[group, WINDOW], links[group, BEFORE], links[group, AFTER] = window, NONE, after
    if after != NONE:
        links[after, BEFORE] = group
    heads[place] = group


@njit(cache=True, inline="always")
def strike(heads, links, group):
    """Take a group out of its list."""
    before, after = links[group, BEFORE], links[group, AFTER]
    if before == NONE:
        heads[links[group, WINDOW] & (len(heads) - 1)] = after
    else:
        links[before, AFTER] = after
    if after != NONE:
        links[after, BEFORE] = before
    links[group, WINDOW] = FOREVER
