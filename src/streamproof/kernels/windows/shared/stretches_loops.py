"""Compiled loops over stretches of rows: room to grow, search, rewriting the end, and trimming the front."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.kernels.compiled import loop

TIME: Final = 0
VALUES: Final = 2  # the first column of what holds from there on; it begins with the number of events
BASE, FIRST, SIZE, ROOM = range(4)  # of a stretch: where it begins, its first row, its rows, and room from the base on
LEAST_ROOM: Final = 4
NEVER: Final = 2**63 - 1  # later than every instant
# of the sums at hand: after the change, and before it
NOW, WAS = range(2)


@njit(cache=True, inline="always")
def place_for(stretches, group, to, size, used, length, spare):
    """Where so many rows of a group can stand, and the number of rows of the matrix that are used then.

    That is ``to`` as long as the room lasts, then the base again; if they fill most of that, the end of the matrix,
    with room for twice as many and some to spare. −1 where the matrix ends before.
    """
    base, room = stretches[group, BASE], stretches[group, ROOM]
    if to + size <= base + room:
        return to, used
    if 4 * size > 3 * room:
        room = 2 * size + spare
        if used + room > length:
            return np.int64(-1), used
        base, used = used, used + room
        stretches[group, BASE], stretches[group, ROOM] = base, room
    return base, used


@njit(cache=True, inline="always")
def trim(rows, stretches, group, frontier):
    """Forget what a group has before the frontier, but for the start of a snapshot that still has events."""
    first, size = stretches[group, FIRST], stretches[group, SIZE]
    while size > 1 and rows[first + 1, TIME] < frontier:
        first += 1
        size -= 1
    if size and rows[first, TIME] < frontier and rows[first, VALUES] == 0:
        first += 1
        size -= 1
    stretches[group, FIRST], stretches[group, SIZE] = first, size


@loop
def trim_all(rows, stretches, frontier):
    for group in range(len(stretches)):
        if stretches[group, SIZE]:
            trim(rows, stretches, group, frontier)


@loop
def export(rows, stretches, out):
    count = 0
    for group in range(len(stretches)):
        first = stretches[group, FIRST]
        for at in range(first, first + stretches[group, SIZE]):
            out[count, 0] = group
            for n in range(rows.shape[1]):
                out[count, 1 + n] = rows[at, n]
            count += 1


@loop
def restore(source, rows, stretches):
    used = 0
    for at in range(len(source)):
        group = source[at, 0]
        if at == 0 or group != source[at - 1, 0]:
            if at:
                used += _settle(stretches, source[at - 1, 0])
            stretches[group, FIRST] = stretches[group, BASE] = used
        to = used + stretches[group, SIZE]
        for n in range(rows.shape[1]):
            rows[to, n] = source[at, 1 + n]
        stretches[group, SIZE] += 1
    return used + _settle(stretches, source[-1, 0]) if len(source) else 0


@loop
def _settle(stretches, group):
    """Give a stretch room to grow; returns its size with that room."""
    stretches[group, ROOM] = 2 * stretches[group, SIZE] + LEAST_ROOM
    return stretches[group, ROOM]


@njit(cache=True, inline="always")
def first_at(rows, stretches, group, time):
    """The first row of a group at or after an instant: most changes come near the end."""
    low = stretches[group, FIRST]
    high = low + stretches[group, SIZE]
    step = 1
    while high - step > low and rows[high - step, TIME] >= time:
        high -= step
        step *= 2
    low = max(low, high - step)
    while low < high:
        middle = (low + high) >> 1
        if rows[middle, TIME] < time:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, inline="always")
def rewrite(rows, stretches, group, used, span, tail, count):
    """A group's rows become those from ``span[0]`` up to ``span[1]``, the tail, and those from ``span[2]`` on.

    There must be room for twice as many at the end of the matrix. Returns the number of rows used then.
    """
    kept, rest = span[1] - span[0], stretches[group, FIRST] + stretches[group, SIZE] - span[2]
    size = kept + count + rest
    to, used = place_for(stretches, group, span[0], size, used, len(rows), LEAST_ROOM)
    move(rows, span[0], to, kept)
    move(rows, span[2], to + kept + count, rest)
    for n in range(count):
        for m in range(rows.shape[1]):
            rows[to + kept + n, m] = tail[n, m]
    stretches[group, FIRST], stretches[group, SIZE] = to, size
    return used


@loop
def move(rows, source, to, count):
    """Move rows to a place that may overlap."""
    if source == to:
        return
    if to > source:
        for n in range(count - 1, -1, -1):
            for m in range(rows.shape[1]):
                rows[to + n, m] = rows[source + n, m]
        return
    for n in range(count):
        for m in range(rows.shape[1]):
            rows[to + n, m] = rows[source + n, m]


# --- both sides of a change -------------------------------------------------------------------------------------------
#
# ``sums`` has what holds after the change in row NOW, and what held before it in row WAS. Time runs over the boundaries
# of both sides; wherever one ends a snapshot, it is written unless the other side has the same:
#
#     was   ├──── 2 ────┤├─ 5 ─┤             −[0, 6) 2
#     now   ├─ 2 ─┤├─ 3 ─┤├─ 5 ─┤    gives   +[0, 3) 2  +[3, 6) 3       and nothing for the 5


@njit(cache=True, inline="always")
def set_sums(sums, row, rows, at, there):
    """What holds after a boundary, or nothing."""
    for n in range(sums.shape[1]):
        sums[row, n] = rows[at, VALUES + n] if there else 0


@njit(cache=True, inline="always")
def same_sums(sums, a, b):
    """Whether two rows of sums are equal."""
    differs = np.int64(0)
    for n in range(sums.shape[1]):
        differs |= sums[a, n] ^ sums[b, n]
    return differs == 0


@njit(cache=True, inline="always")
def end_both(emitted, found, size, sums, group, starts, ends, outs):
    """Write the snapshots (before, after) that end, unless they are the same; returns the number of rows then.

    A row that is taken back comes just before the one that replaces it.
    """
    if outs[0] and outs[1] and starts[0] == starts[1] and ends[0] == ends[1] and same_sums(sums, WAS, NOW):
        return size
    if outs[0]:
        size = _put(emitted, found, size, sums, WAS, group, starts[0], ends[0])
    if outs[1]:
        size = _put(emitted, found, size, sums, NOW, group, starts[1], ends[1])
    return size


@njit(cache=True, inline="always")
def _put(emitted, found, size, sums, which, group, le, re):
    """Write a row that comes out, with its sums."""
    emitted[size, 0], emitted[size, 1], emitted[size, 2], emitted[size, 3] = group, le, re, 1 - 2 * which
    for n in range(sums.shape[1]):
        found[size, n] = sums[which, n]
    return size + 1
