"""One batch of changes against the boundaries of snapshots: the walk that finds the snapshots that differ.

Group by group, time runs over the boundaries that are known, those that change, and those that come due, with the sums
before and after side by side. It begins at the first change of the group and stops where nothing differs any more.

    known (timeline)     ──a────────b─────c───────▶        what holds after each, as it was
    changes of a batch   ───────x───b─────────────▶
    future boundaries    ───────────────────d─────▶        due now: they pop off the heap of their group
    walk                        ╰─b─c─d╯                   WAS and NOW differ from x on; equal again: stop

At every boundary, before or after the change, the snapshot that ends there is closed: one that is on both sides with
the same start and the same sums did not change.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.events.time import FOREVER
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.shared.stretches import ENDS
from streamproof.kernels.windows.shared.stretches_loops import (
    FIRST,
    LEAST_ROOM,
    NEVER,
    NOW,
    ROOM,
    SIZE,
    TIME,
    WAS,
    end_both,
    first_at,
    rewrite,
    same_sums,
    set_sums,
    trim,
)
from streamproof.kernels.windows.shared.sums import DECIMAL, FLOAT
from streamproof.kernels.windows.shared.sums_loops import (
    BASE,
    BITS,
    KIND,
    KNOWN,
    LIMBS,
    MASK,
    SPECIAL,
    VALUE,
    add_float,
    carry_row,
    is_nothing,
)

DOUBT: Final = 0  # of a heap, which begins where its room does: whether some of its entries may cancel
ARITY: Final = 4


@loop
def export(heap, stretches, slots, out):
    count = 0
    for group in range(len(stretches)):
        first = stretches[group, FIRST]
        for at in range(first, first + stretches[group, SIZE]):
            out[count, 0], out[count, 1] = group, heap[at, 0]
            for n in range(slots.shape[1]):
                out[count, 2 + n] = slots[heap[at, 1], n]
            count += 1


@loop
def add_up(rows, spec):
    count = at = 0
    while at < len(rows):
        group, time = rows[at, 0], rows[at, 1]
        for n in range(rows.shape[1]):
            rows[count, n] = rows[at, n]
        at += 1
        while at < len(rows) and rows[at, 0] == group and rows[at, 1] == time:
            for n in range(2, rows.shape[1]):
                rows[count, n] += rows[at, n]
            carry_row(rows, count, 3, spec)
            at += 1
        anything = np.int64(0)
        for n in range(2, rows.shape[1]):
            anything |= rows[count, n]
        count += anything != 0
    return count


@loop
def restore(rows, heap, stretches, nexts):
    """Sorted entries are heaps already."""
    used = at = 0
    while at < len(rows):
        group, start = rows[at, 0], at
        while at < len(rows) and rows[at, 0] == group:
            heap[used + at - start, 0], heap[used + at - start, 1] = rows[at, 1], at
            stretches[group, DOUBT] |= rows[at, 2] <= 0
            at += 1
        stretches[group, FIRST], stretches[group, SIZE] = used, at - start
        stretches[group, ROOM] = 2 * (at - start) + LEAST_ROOM
        nexts[group] = rows[start, 1]
        used += stretches[group, ROOM]
    return used


@njit(cache=True, inline="always")
def widen(heap, stretches, group, used, more):
    """Make room for more entries of a group, which there must be at the end; returns the room used then."""
    size = stretches[group, SIZE] + more
    if size <= stretches[group, ROOM]:
        return used
    first = stretches[group, FIRST]
    for n in range(stretches[group, SIZE]):
        heap[used + n, 0], heap[used + n, 1] = heap[first + n, 0], heap[first + n, 1]
    stretches[group, FIRST], stretches[group, ROOM] = used, 2 * size + LEAST_ROOM
    return used + stretches[group, ROOM]


@njit(cache=True, inline="always")
def top(heap, stretches, group):
    """The first instant of a group's heap."""
    return heap[stretches[group, FIRST], 0] if stretches[group, SIZE] else NEVER


@loop
def push(heap, stretches, group, time, slot):
    first, at = stretches[group, FIRST], stretches[group, SIZE]
    stretches[group, SIZE] += 1
    while at > 0:
        parent = (at - 1) // ARITY
        if heap[first + parent, 0] <= time:
            break
        heap[first + at, 0], heap[first + at, 1] = heap[first + parent, 0], heap[first + parent, 1]
        at = parent
    heap[first + at, 0], heap[first + at, 1] = time, slot


@loop
def pop(heap, stretches, group):
    """Take the first entry off a heap; where its rest is."""
    first, size = stretches[group, FIRST], stretches[group, SIZE] - 1
    stretches[group, SIZE] = size
    if size == 0:
        stretches[group, DOUBT] = 0
    found = heap[first, 1]
    time, slot = heap[first + size, 0], heap[first + size, 1]
    at = 0
    while True:
        child = ARITY * at + 1
        if child >= size:
            break
        for other in range(child + 1, min(child + ARITY, size)):
            if heap[first + other, 0] < heap[first + child, 0]:
                child = other
        if heap[first + child, 0] >= time:
            break
        heap[first + at, 0], heap[first + at, 1] = heap[first + child, 0], heap[first + child, 1]
        at = child
    heap[first + at, 0], heap[first + at, 1] = time, slot
    return found


# a change: its group, its instant, how many events begin or end there, and the sums, which begin with their number
GROUP: Final = 0
PLACE: Final = 1
EVENTS: Final = 2
# rows of the sums at hand: after a boundary, before the batch, and after the next boundary
NEXT = 2
# what a walk counts, so that it can go on where it stopped for want of room
AT, READY_AT, EMITTED, USED, FUTURE_USED, SPARE, DOUBTFUL, NEEDED = range(8)


@loop
def changes(order, group, time, ending, w, cells, nulls, spec, out):
    """What starts and finite ends, in this order, change: one row per group and instant; returns their number.

    Starts are numbered as the events, ends follow; ``ending`` has the event of each end if some events have none.
    """
    count = at = 0
    while at < len(order):
        place, instant = group[order[at]], time[order[at]]
        for n in range(out.shape[1]):
            out[count, n] = 0
        out[count, GROUP], out[count, PLACE] = place, instant
        while at < len(order) and time[order[at]] == instant and group[order[at]] == place:
            event, sign = order[at], 1
            if event >= len(w):
                event, sign = event - len(w), -1
                if len(ending):
                    event = ending[event]
            out[count, EVENTS] += w[event]
            _add_event(out, count, event, sign * w[event], cells, nulls, spec)
            at += 1
        carry_row(out, count, EVENTS + 1, spec)
        count += not is_nothing(out, count, EVENTS)
    return count


@loop
def _add_event(out, row, event, w, cells, nulls, spec):
    lead = EVENTS + 1
    out[row, lead] += w
    for n in range(len(spec)):
        if len(nulls) and (nulls[event] >> n) & 1:
            continue
        if spec[n, KNOWN]:
            out[row, lead + spec[n, KNOWN]] += w
        value, at = cells[spec[n, VALUE], event], lead + spec[n, LIMBS]
        if spec[n, KIND] == FLOAT:
            add_float(out, row, at, lead + spec[n, SPECIAL], spec[n, BASE], value, w)
            continue
        out[row, at] += w * (value & MASK)
        if spec[n, KIND] == DECIMAL:
            high = cells[spec[n, VALUE] + 1, event]
            out[row, at + 1] += w * ((value >> BITS) & MASK)
            out[row, at + 2] += w * (high & MASK)
            out[row, at + 3] += w * (high >> BITS)
        else:
            out[row, at + 1] += w * (value >> BITS)


@loop
def walk(change, reached, future, no_end, ready, reach, room, spec, counts):
    """Run over all groups that change or have a boundary due. Whether it came to the end; if not, give it room.

    ``reach`` is the frontier, up to where boundaries are due, and whether snapshots are out by their start.
    """
    rows, stretches = reached
    heap, heaps, nexts, slots, free = future
    sums, tail, emitted, found = room
    while counts[AT] < len(change) or counts[READY_AT] < len(ready):
        group, last = _next_group(change, ready, counts)
        entries = last - counts[AT]
        needed = stretches[group, SIZE] + entries + heaps[group, SIZE] + 4
        counts[NEEDED] = needed
        if (
            counts[USED] + 2 * needed > len(rows)
            or counts[FUTURE_USED] + 2 * needed > len(heap)
            or counts[SPARE] < entries
            or counts[EMITTED] + 2 * needed > len(emitted)
            or needed > len(tail)
        ):
            return False
        counts[READY_AT] += counts[READY_AT] < len(ready) and ready[counts[READY_AT]] == group
        counts[FUTURE_USED] = widen(heap, heaps, group, counts[FUTURE_USED], entries)
        old_next = nexts[group]
        start, old_start, old_end = _walk_group(
            group, last, change, reached, future, old_next, reach, room, spec, counts
        )
        while counts[AT] < last:
            _keep(heap, heaps, slots, free, group, change, counts[AT], PLACE, counts)
            counts[AT] += 1
        end = _next(heap, heaps, slots, free, group, sums, spec, counts)
        end = FOREVER if end == NEVER and no_end[group] != 0 else end
        nexts[group] = end
        _close(emitted, found, counts, reach, group, start, end, old_start, old_end, sums)
    return True


@njit(cache=True, inline="always")
def _next_group(change, ready, counts):
    """The next group to look at, and where its changes end."""
    last = counts[AT]
    group = change[last, GROUP] if last < len(change) else NEVER
    if counts[READY_AT] < len(ready):
        group = min(group, ready[counts[READY_AT]])
    while last < len(change) and change[last, GROUP] == group:
        last += 1
    return group, last


@njit(cache=True, inline="always")
def _walk_group(group, last_change, change, reached, future, old_next, reach, room, spec, counts):
    """At every boundary, before or after the change, the snapshot that ends there is closed.

    One that is on both sides with the same start and the same sums did not change. A row that is taken back comes just
    before the one that replaces it. Gives the start of the snapshot that stays open, and the one that was.
    """
    frontier, due, by_start = reach
    (rows, stretches), (heap, heaps, _, slots, free), (sums, tail, emitted, found) = reached, future, room
    first, last = stretches[group, FIRST], stretches[group, FIRST] + stretches[group, SIZE]
    at, size = counts[AT], counts[EMITTED]
    time = change[at, PLACE] if at < last_change else NEVER
    coming = top(heap, heaps, group)
    i = first_at(rows, stretches, group, min(time, coming)) if min(time, coming) <= due else last
    head, kept, count = first, i, 0
    start = old_start = _open_at(sums, rows, i - 1, i > first)
    while i < last or min(time, coming) <= due:
        known = rows[i, TIME] if i < last else NEVER
        now = min(time, coming, known)
        knew = known == now
        closes_old = knew or now == old_next
        events = _step(sums, rows, i, knew)
        if time == now:
            events, at = events + _add(sums, change, at), at + 1
            time = change[at, PLACE] if at < last_change else NEVER
        if coming == now:
            events += _take(heap, heaps, slots, free, group, now, sums, counts)
            coming = top(heap, heaps, group)
        carry_row(sums, NEXT, 0, spec)
        closes_new = events != 0 or not same_sums(sums, NEXT, NOW)
        outs = by_start and closes_old and sums[WAS, 0] > 0, closes_new and sums[NOW, 0] > 0
        size = end_both(emitted, found, size, sums, group, (old_start, start), (now, now), outs)
        if closes_old:
            set_sums(sums, WAS, rows, i, knew)
            old_start, i, old_next = now, i + knew, old_next if knew else NEVER
        if closes_new:
            start = now
            if now < frontier:
                head, count = kept, 0
            count = _write(tail, count, now, events, sums)
        if i < last and start == old_start and min(time, coming) > due and same_sums(sums, WAS, NOW):
            break  # from here on everything is as before
    if i < last:
        start = old_start = _open_at(sums, rows, last - 1, True)
    counts[AT], counts[EMITTED] = at, size
    _write_down(rows, stretches, group, (head, kept, i), tail, count, frontier, counts)
    return start, old_start, old_next


@njit(cache=True, inline="always")
def _write_down(rows, stretches, group, span, tail, count, frontier, counts):
    """The boundaries of a group are now those before a change, fresh ones, and those after it."""
    counts[USED] = rewrite(rows, stretches, group, counts[USED], span, tail, count)
    trim(rows, stretches, group, frontier)


@njit(cache=True, inline="always")
def _close(emitted, found, counts, reach, group, start, end, old_start, old_end, sums):
    """The last snapshot that is due ends at the next boundary, or did."""
    by_start = reach[2]
    was_out = by_start and old_end != NEVER and sums[WAS, 0] > 0
    is_out = end != NEVER and sums[NOW, 0] > 0 and (by_start or end <= reach[1])
    starts, ends = (old_start, start), (old_end, end)
    counts[EMITTED] = end_both(emitted, found, counts[EMITTED], sums, group, starts, ends, (was_out, is_out))


# --- what lies ahead --------------------------------------------------------------------------------------------------


@njit(cache=True, inline="always")
def _take(heap, heaps, slots, free, group, time, sums, counts):
    """Take all entries of an instant from a group's heap and add them to the sums after it; returns its events."""
    events = np.int64(0)
    while top(heap, heaps, group) == time:
        slot = pop(heap, heaps, group)
        events += slots[slot, 0]
        for n in range(sums.shape[1]):
            sums[NEXT, n] += slots[slot, 1 + n]
        free[counts[SPARE]] = slot
        counts[SPARE] += 1
    return events


@njit(cache=True, inline="always")
def _keep(heap, heaps, slots, free, group, source, row, place, counts):
    """Put a change into a group's heap: a row with the instant in column ``place`` and the rest after it."""
    counts[SPARE] -= 1
    slot = free[counts[SPARE]]
    for n in range(slots.shape[1]):
        slots[slot, n] = source[row, place + 1 + n]
    if slots[slot, 0] <= 0:
        heaps[group, DOUBT] = 1
        counts[DOUBTFUL] += 1
    push(heap, heaps, group, source[row, place], slot)


@njit(cache=True, inline="always")
def _next(heap, heaps, slots, free, group, sums, spec, counts):
    """The next boundary of a group. Entries that cancel are no boundary, and go; others of one instant become one."""
    time = top(heap, heaps, group)
    while heaps[group, DOUBT] and time != NEVER:
        for n in range(sums.shape[1]):
            sums[NEXT, n] = 0
        events = _take(heap, heaps, slots, free, group, time, sums, counts)
        carry_row(sums, NEXT, 0, spec)
        anything = events
        for n in range(sums.shape[1]):
            anything |= sums[NEXT, n]
        if anything != 0:
            counts[SPARE] -= 1
            slot = free[counts[SPARE]]
            slots[slot, 0] = events
            for n in range(sums.shape[1]):
                slots[slot, 1 + n] = sums[NEXT, n]
            push(heap, heaps, group, time, slot)
            heaps[group, DOUBT] = 1
            break
        time = top(heap, heaps, group)
    return time


# --- sums -------------------------------------------------------------------------------------------------------------


@njit(cache=True, inline="always")
def _open_at(sums, rows, at, there):
    """What holds after a boundary, before the change as after it; where the snapshot starts that is open then."""
    set_sums(sums, NOW, rows, at, there)
    set_sums(sums, WAS, rows, at, there)
    return rows[at, TIME] if there else np.int64(0)


@njit(cache=True, inline="always")
def _step(sums, rows, i, knew):
    """The sums after the next boundary as far as it was known; returns its number of events."""
    for n in range(sums.shape[1]):
        sums[NEXT, n] = sums[NOW, n] + (rows[i, ENDS + 1 + n] - sums[WAS, n] if knew else 0)
    return rows[i, ENDS] if knew else np.int64(0)


@njit(cache=True, inline="always")
def _add(sums, change, at):
    """Add a change to the sums after the next boundary; returns its number of events."""
    for n in range(sums.shape[1]):
        sums[NEXT, n] += change[at, EVENTS + 1 + n]
    return change[at, EVENTS]


@njit(cache=True, inline="always")
def _write(tail, count, now, events, sums):
    """A boundary is passed: write it down."""
    tail[count, TIME], tail[count, ENDS] = now, events
    for n in range(sums.shape[1]):
        sums[NOW, n] = tail[count, ENDS + 1 + n] = sums[NEXT, n]
    return count + 1
