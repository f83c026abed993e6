"""Sweeping the events of groups from the first instant that changes: the boundaries, and the extremes after each.

A row is an instant, a spare cell, the number of events, and per extreme whether there is a value and its key; the
greatest key wins. Ends wait in a heap, and so do values, which are dropped when they get to the top after their end.

    events by start    ├─ 7 ─────┤                 sweep ──▶
                          ├─ 9 ─┤                  now = the next start, or the least end in the heap
                             ├─ 2 ────────┤        heap of ends    9 7 2    (earliest on top)
    boundaries         │  │  │  │ │       │        heap of values  9 7 2    (greatest on top)
    greatest           7  9  9  7 2                9 ends: it is on top, so it goes; 7 is next

Invariant: at each instant the top of a heap of values is an event that holds, or will be dropped before it is read.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.shared.stretches import ENDS
from streamproof.kernels.windows.shared.stretches_loops import (
    FIRST,
    NEVER,
    NOW,
    SIZE,
    TIME,
    VALUES,
    WAS,
    end_both,
    first_at,
    rewrite,
    set_sums,
    trim,
)


@loop
def earliest(group, lo, nexts, due, groups, times):
    """List the groups that change or have a boundary due, in order, and from when on each; returns their number.

    Changes come in the order of their groups.
    """
    count = at = 0
    for n in range(len(nexts)):
        time = nexts[n] if nexts[n] <= due else np.int64(NEVER)
        changes = at < len(group) and group[at] == n
        while at < len(group) and group[at] == n:
            time = min(time, lo[at])
            at += 1
        if changes or nexts[n] <= due:
            groups[count], times[count] = n, time
            count += 1
    return count


@loop
def sweep(groups, first_times, starts, events, ranks, known, state, reach, scratch, out):
    """Bring the boundaries of groups up to date; returns the number of rows that come out, and of rows used.

    ``starts`` says where the events of each group begin: all that end at its first time or later, by their start.
    ``ranks`` has one row for the ends, where the earliest is the greatest, and one per extreme.
    """
    le, re, w = events
    rows, stretches, nexts, used = state
    fresh, heaps, sizes, sums = scratch
    emitted, found = out
    size = 0
    for n in range(len(groups)):
        group, span = groups[n], (starts[n], starts[n + 1])
        count, following = _fresh(first_times[n], span, le, re, w, ranks, known, reach[1], fresh, heaps, sizes)
        kept = first_at(rows, stretches, group, first_times[n])
        last = stretches[group, FIRST] + stretches[group, SIZE]
        ends = nexts[group], following
        size = _differ(rows, stretches, group, kept, fresh, count, ends, reach, sums, emitted, found, size)
        nexts[group] = following
        skipped = 0
        while skipped + 1 < count and fresh[skipped + 1, TIME] < reach[0]:
            skipped += 1
        head = kept if count and fresh[skipped, TIME] < reach[0] else stretches[group, FIRST]
        used = rewrite(rows, stretches, group, used, (head, kept, last), fresh[skipped:], count - skipped)
        trim(rows, stretches, group, reach[0])
    return size, used


@njit(cache=True, inline="always")
def _fresh(first, span, le, re, w, ranks, known, due, fresh, heaps, sizes):
    """The boundaries of a group from a first instant up to where they are due, and the one that follows."""
    last = span[1]
    sizes[:] = 0
    at, events = _begin(first, span, le, w, ranks, known, heaps, sizes)
    count = 0
    while True:
        now = le[at] if at < last else NEVER
        if sizes[0]:
            now = min(now, re[heaps[0, 0]])
        if now > due or now == NEVER:
            return count, now
        while at < last and le[at] == now:
            events += w[at]
            for n in range(len(ranks)):
                if known[n, at]:
                    _push(heaps, n, sizes[n], at, ranks)
                    sizes[n] += 1
            at += 1
        while sizes[0] and re[heaps[0, 0]] == now:
            events -= w[heaps[0, 0]]
            sizes[0] -= 1
            _sink(heaps, 0, 0, sizes[0], heaps[0, sizes[0]], ranks)
        fresh[count, TIME], fresh[count, ENDS], fresh[count, VALUES] = now, 0, events
        for n in range(1, len(ranks)):
            while sizes[n] and re[heaps[n, 0]] <= now:
                sizes[n] -= 1
                _sink(heaps, n, 0, sizes[n], heaps[n, sizes[n]], ranks)
            place = VALUES + 2 * n - 1
            fresh[count, place] = sizes[n] > 0
            fresh[count, place + 1] = ranks[n, heaps[n, 0]] if sizes[n] else 0
        count += 1


@njit(cache=True, inline="always")
def _begin(first, span, le, w, ranks, known, heaps, sizes):
    """Put the events that begin before an instant into the heaps; returns where others begin, and their number."""
    at, last = span
    events = np.int64(0)
    while at < last and le[at] < first:
        events += w[at]
        for n in range(len(ranks)):
            heaps[n, sizes[n]] = at
            sizes[n] += known[n, at]
        at += 1
    for n in range(len(ranks)):
        for parent in range((sizes[n] >> 1) - 1, -1, -1):
            _sink(heaps, n, parent, sizes[n], heaps[n, parent], ranks)
    return at, events


@njit(cache=True, inline="always")
def _push(heaps, heap, at, event, ranks):
    """Put an event at the end of a heap, and let it rise."""
    while at > 0:
        parent = (at - 1) >> 1
        if ranks[heap, event] <= ranks[heap, heaps[heap, parent]]:
            break
        heaps[heap, at] = heaps[heap, parent]
        at = parent
    heaps[heap, at] = event


@njit(cache=True, inline="always")
def _sink(heaps, heap, at, size, event, ranks):
    """Put an event at a place of a heap of some size, and let it sink."""
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and ranks[heap, heaps[heap, child + 1]] > ranks[heap, heaps[heap, child]]:
            child += 1
        if ranks[heap, heaps[heap, child]] <= ranks[heap, event]:
            break
        heaps[heap, at] = heaps[heap, child]
        at = child
    heaps[heap, at] = event


@njit(cache=True, inline="always")
def _differ(rows, stretches, group, at, fresh, count, ends, reach, sums, emitted, found, size):
    """Write the snapshots that differ: those before the change from a row on, against fresh ones; returns the size."""
    last = stretches[group, FIRST] + stretches[group, SIZE]
    old_next, new_next = ends
    _, due, by_start = reach
    there = at > stretches[group, FIRST]
    start = old_start = rows[at - 1, TIME] if there else np.int64(0)
    set_sums(sums, NOW, rows, at - 1, there)
    set_sums(sums, WAS, rows, at - 1, there)
    n = 0
    while at <= last or n <= count:
        old_end = rows[at, TIME] if at < last else old_next if at == last else NEVER
        end = fresh[n, TIME] if n < count else new_next if n == count else NEVER
        now = min(old_end, end)
        if now == NEVER:
            break
        closes_old, closes_new = old_end == now, end == now
        was_out = by_start and closes_old and sums[WAS, 0] > 0
        is_out = closes_new and sums[NOW, 0] > 0 and (by_start or now <= due)
        size = end_both(emitted, found, size, sums, group, (old_start, start), (now, now), (was_out, is_out))
        if closes_old:
            set_sums(sums, WAS, rows, at, at < last)
            old_start = now
            at += 1
        if closes_new:
            set_sums(sums, NOW, fresh, n, n < count)
            start = now
            n += 1
    return size
