"""Compiled loops of recomputing: members in the order of their windows, rankings, and boundaries with their counts."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.events.time import BEGINNING
from streamproof.kernels.compiled import loop

SORTED, TIED, UNSORTED = 0, 1, 2


@loop
def disorder_loop(window, le, re):
    """Whether rows are in the order of all three, and whether some are equal in all."""
    tied = False
    for i in range(1, len(window)):
        if window[i] != window[i - 1]:
            if window[i] < window[i - 1]:
                return UNSORTED
        elif le[i] != le[i - 1]:
            if le[i] < le[i - 1]:
                return UNSORTED
        elif re[i] < re[i - 1]:
            return UNSORTED
        elif re[i] == re[i - 1]:
            tied = True
    return TIED if tied else SORTED


@loop
def place(part, at, window, offset, places, rows, placed, slot):
    for n in range(len(at)):
        to = places[window[n]]
        places[window[n]] += 1
        for c in range(rows.shape[1]):
            rows[to, c] = part[at[n], c]
        placed[to], slot[to] = window[n], offset + at[n]


@loop
def merge(old, new, out):
    i = j = kept = 0
    while i < len(old[0]) or j < len(new[0]):
        from_new = i >= len(old[0]) or (
            j < len(new[0]) and (new[0][j] < old[0][i] or (new[0][j] == old[0][i] and new[1][j] < old[1][i]))
        )
        group, time = (new[0][j], new[1][j]) if from_new else (old[0][i], old[1][i])
        count = 0
        if not from_new:
            count = old[2][i]
            i += 1
        while j < len(new[0]) and new[0][j] == group and new[1][j] == time:
            count += new[2][j]
            j += 1
        if count != 0:
            out[0][kept], out[1][kept], out[2][kept] = group, time, count
            kept += 1
    return kept


@loop
def near_top(window, keys, top, found):
    """Find the members that fewer than k others of their window come strictly before, and perhaps a few more.

    ``top`` is for k members, the first ones so far in order. Of a window below 0 all are found. Returns their number.
    """
    k = len(top)
    size = first = 0
    while first < len(window):
        last, held = first, 0
        while last < len(window) and window[last] == window[first]:
            if held < k or _before(keys, last, top[k - 1]):
                held = _insert(keys, top, held, last)
            last += 1
        for member in range(first, last):
            if held < k or window[member] < 0 or not _before(keys, top[k - 1], member):
                found[size] = member
                size += 1
        first = last
    return size


@loop
def ranks(window, w, keys, at, rank, k):
    """Of members in order, keep those of rank at most k, and write down their ranks; returns their number.

    The rank of a member is one more than how many events of its window come strictly before.
    """
    size = 0
    before = tied = np.int64(0)  # events of the window before this member, and before those that tie with it
    last = np.int64(-1)
    for n in range(len(at)):
        member = at[n]
        if last >= 0 and window[member] != window[last]:
            before = tied = np.int64(0)
        elif last >= 0 and _before(keys, last, member):
            tied = before
        if tied < k:
            at[size], rank[size] = member, tied + 1
            size += 1
        before += w[member]
        last = member
    return size


@njit(cache=True, inline="always")
def _before(keys, a, b):
    """Whether one member comes strictly before another."""
    for n in range(keys.shape[1]):
        if keys[a, n] != keys[b, n]:
            return keys[a, n] < keys[b, n]
    return False


@njit(cache=True, inline="always")
def _insert(keys, top, held, member):
    """Put a member in its place among the first; returns their number then."""
    at = min(held, len(top) - 1)
    while at > 0 and _before(keys, member, top[at - 1]):
        top[at] = top[at - 1]
        at -= 1
    top[at] = member
    return min(held + 1, len(top))


@loop
def stretches(group, le, re, offset, size, frontier, stretch):
    """Number the stretches of events of one group that lie in one window which ends by the frontier.

    Every other event has the number −1. Returns the number of stretches and other events.
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
