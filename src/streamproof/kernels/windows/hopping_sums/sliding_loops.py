"""Windows over the panes of a group, one after the other: sums go in and out as the window moves on.

    places of a group   8   9  10  11  12  13            panes per window 4, per hop 1
    starts              2   5   1   ·   3   4            what starts in a pane
    window 8           [2 + 5 + 1 + 0]
    window 9               [5 + 1 + 0 + 3]               − the pane that leaves, + the pane that enters

Invariant: between two windows, the sums are those of all starts from the next to leave up to the next to enter, and of
all moves before the window's first place.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.events.time import FOREVER
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.hopping_sums.pane_store_loops import (
    AFTER,
    BEFORE,
    NONE,
    WINDOW,
    enlist,
    strike,
)
from streamproof.kernels.windows.shared.stretches_loops import FIRST, SIZE
from streamproof.kernels.windows.shared.sums_loops import GROUP, PLACE, SUMS, add_rows, carry_row, is_nothing, until


@loop
def with_held(rows, stretches, place, low_group, high_group, low_place, high_place):
    """Bounds that have also what is held from a place on."""
    for group in range(len(stretches)):
        first = stretches[group, FIRST]
        end = first + stretches[group, SIZE]
        if first == end or rows[end - 1, PLACE] < place:
            continue
        first = first_from(rows, first, end, place)
        low_group, high_group = min(low_group, group), max(high_group, group)
        low_place, high_place = min(low_place, rows[first, PLACE]), max(high_place, rows[end - 1, PLACE])
    return low_group, high_group, low_place, high_place


@loop
def bring(rows, stretches, place, low_group, groups, low_place, fields):
    """Add what is held from a place on to fields."""
    for group in range(low_group, min(low_group + groups, len(stretches))):
        end = stretches[group, FIRST] + stretches[group, SIZE]
        for at in range(first_from(rows, stretches[group, FIRST], end, place), end):
            add_rows(fields, (rows[at, PLACE] - low_place) * groups + group - low_group, 0, rows, at, SUMS, 1)


@loop
def slide(fields, sums, width, low_group, low_place, window, last, numbers, emitted, found, size):
    """Write the windows from one to another; returns the number of rows then."""
    places = len(fields) // len(sums)
    enter = leave = max(window * numbers[PER_HOP] - low_place, 0)
    sums[:] = 0
    for k in range(window, last + 1):
        first = k * numbers[PER_HOP] - low_place
        for place in range(enter, min(first + numbers[PER_WINDOW], places)):
            for n in range(len(sums)):
                sums[n] += fields[place * len(sums) + n]
            enter = place + 1
        for place in range(leave, min(first, enter)):
            for n in range(len(sums)):
                sums[n] -= fields[place * len(sums) + n]
            leave = place + 1
        begun = size
        size = _write_groups(sums, width, low_group, emitted, found, size)
        le = numbers[OFFSET] + k * numbers[PER_HOP] * numbers[TICKS]
        emitted[1, begun:size] = le
        emitted[2, begun:size] = le + numbers[PER_WINDOW] * numbers[TICKS]
        emitted[3, begun:size] = PUT
    return size


@njit(cache=True, inline="always")
def _write_groups(sums, width, low_group, emitted, found, size):
    """Write the groups of a window with their sums; returns the size. A group without events is written over."""
    if width == 2:  # mostly, and a loop over two costs as much as they do
        for b in range(len(sums) >> 1):
            emitted[0, size] = low_group + b
            found[size, 0], found[size, 1] = sums[2 * b], sums[2 * b + 1]
            size += sums[2 * b] != 0
        return size
    for b in range(len(sums) // width):
        emitted[0, size] = low_group + b
        for n in range(width):
            found[size, n] = sums[b * width + n]
        size += sums[b * width] != 0
    return size


@loop
def enlist_anew_loop(rows, stretches, numbers, heads, links):
    """Put every group into the list of its next window."""
    heads[:] = NONE
    for group in range(len(links)):
        links[group, WINDOW], links[group, BEFORE], links[group, AFTER] = FOREVER, NONE, NONE
    due = numbers[DUE] + 1
    for group in range(len(stretches)):
        end = stretches[group, FIRST] + stretches[group, SIZE]
        at = first_from(rows, stretches[group, FIRST], end, due * numbers[PER_HOP])
        if at < end:
            enlist(heads, links, group, max(due, first_with(rows[at, PLACE], numbers)))


@loop
def bounds(group, place):
    """The least and greatest group and place."""
    low_group, high_group, low_place, high_place = group[0], group[0], place[0], place[0]
    for n in range(1, len(group)):
        low_group, high_group = min(low_group, group[n]), max(high_group, group[n])
        low_place, high_place = min(low_place, place[n]), max(high_place, place[n])
    return low_group, high_group, low_place, high_place


@loop
def find_fields(group, place, low_group, groups, low_place, field, fields):
    """For each event its field; all fields are empty then."""
    fields[:] = 0
    for n in range(len(group)):
        field[n] = (place[n] - low_place) * groups + group[n] - low_group


@loop
def regrouped(fields, low_group, low_place, ends, rows):
    """Write the fields that have anything, by group; returns their number. ``ends``: a zero per group and one more.

    Whether a field has anything, no processor guesses well; so every one is written, the others into the last row.
    """
    groups = len(ends) - 1
    for first in range(0, len(fields), groups):
        for b in range(groups):
            ends[b + 1] += not is_nothing(fields, first + b, 0)
    for b in range(groups):
        ends[b + 1] += ends[b]
    for a in range(len(fields) // groups):
        for b in range(groups):
            field = a * groups + b
            counts = not is_nothing(fields, field, 0)
            at = ends[b] if counts else len(rows) - 1
            ends[b] += counts
            rows[at, GROUP], rows[at, PLACE] = low_group + b, low_place + a
            for n in range(fields.shape[1]):
                rows[at, SUMS + n] = fields[field, n]
    return ends[groups]


# ``numbers``: panes per window, panes per hop, the first open window, the last that was due, the last that is due,
# ticks per pane, and the offset.
PER_WINDOW, PER_HOP, OPEN, DUE_BEFORE, DUE, TICKS, OFFSET, KEPT = range(8)
# a slide: the next start to enter, the next to leave, the next move, and where starts and moves end
ENTER, LEAVE, MOVE, STARTS_END, MOVES_END = range(5)
# how a row came about: taken back, or put
TAKEN, PUT = -1, 1
# a slide that is kept: the window that its sums are of, and how many starts of its group had left it
REACHED, LEFT = range(2)


@njit(cache=True, inline="always")
def first_with(place, numbers):
    """The first window that ends after a pane begins; far away for a place that is."""
    if place == FOREVER:
        return np.int64(FOREVER)
    return (place - numbers[PER_WINDOW]) // numbers[PER_HOP] + 1


@njit(cache=True, inline="always")
def first_from(rows, first, end, place):
    """The first of some rows at a place or after it: mostly one of the last."""
    low, high = first, end
    while high > low and high > end - 4 and rows[high - 1, PLACE] >= place:
        high -= 1
    if high > end - 4:
        low = high
    while low < high:
        middle = (low + high) >> 1
        if rows[middle, PLACE] < place:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, inline="always")
def _begin(at, row, starts, first, end, first_move, moves_end, place):
    """A slide that begins at a place: nothing before it needs to enter."""
    at[row, ENTER] = at[row, LEAVE] = first_from(starts, first, end, place)
    at[row, MOVE], at[row, STARTS_END], at[row, MOVES_END] = first_move, end, moves_end


@njit(cache=True, inline="always")
def _advance(sums, row, starts, moves, at, window, numbers):
    """Bring sums to a window."""
    first = window * numbers[PER_HOP]
    beyond = first + numbers[PER_WINDOW]
    while at[row, ENTER] < at[row, STARTS_END] and starts[at[row, ENTER], PLACE] < beyond:
        add_rows(sums, row, 0, starts, at[row, ENTER], SUMS, 1)
        at[row, ENTER] += 1
    while at[row, LEAVE] < at[row, ENTER] and starts[at[row, LEAVE], PLACE] < first:
        add_rows(sums, row, 0, starts, at[row, LEAVE], SUMS, -1)
        at[row, LEAVE] += 1
    while at[row, MOVE] < at[row, MOVES_END] and moves[at[row, MOVE], PLACE] < first:
        add_rows(sums, row, 0, moves, at[row, MOVE], SUMS, 1)
        at[row, MOVE] += 1


@njit(cache=True, inline="always")
def _write(emitted, size, group, window, sign, numbers):
    le = numbers[OFFSET] + window * numbers[PER_HOP] * numbers[TICKS]
    emitted[0, size], emitted[1, size], emitted[3, size] = group, le, sign
    emitted[2, size] = le + numbers[PER_WINDOW] * numbers[TICKS]


# --- windows that were due before -------------------------------------------------------------------------------------


@loop
def correct(held, changes, numbers, scratch, out, size, done):
    """The rows that changes replace, each before its replacement, with their sums; the panes are those before.

    ``scratch`` is for sums and where they stand, two rows of each; ``done`` says how many changes were looked at. Where
    no room is left, it stops after a whole group. Returns the number of rows, and whether these are all.
    """
    (starts, of_starts, moves, of_moves), (new_starts, new_moves), (sums, at) = held, changes, scratch
    while done[0] < len(new_starts) or done[1] < len(new_moves):
        i, j = done[0], done[1]
        group = np.int64(FOREVER)
        if i < len(new_starts):
            group = new_starts[i, GROUP]
        if j < len(new_moves):
            group = min(group, new_moves[j, GROUP])
        i_end, j_end = until(new_starts, i, group), until(new_moves, j, group)
        place = min(
            new_starts[i, PLACE] if i < i_end else np.int64(FOREVER),
            new_moves[j, PLACE] if j < j_end else np.int64(FOREVER),
        )
        window = max(numbers[OPEN], first_with(place, numbers))
        if window <= numbers[DUE_BEFORE]:
            first = window * numbers[PER_HOP]
            a, b = of_starts[group, FIRST], of_moves[group, FIRST]
            _begin(at, 0, starts, a, a + of_starts[group, SIZE], b, b + of_moves[group, SIZE], first)
            _begin(at, 1, new_starts, i, i_end, j, j_end, first)
            begun = size
            size = _correct_group((starts, moves), changes, at, sums, group, window, numbers, out, size)
            if size < 0:
                return begun, False
        done[0], done[1] = i_end, j_end
    return size, True


@njit(cache=True, inline="always")
def _next_change(new_starts, new_moves, at, numbers):
    """The first window that changes may change again, where those of the present one cancel."""
    upcoming, leaving = np.int64(FOREVER), np.int64(FOREVER)
    if at[1, ENTER] < at[1, STARTS_END]:
        upcoming = new_starts[at[1, ENTER], PLACE]
    if at[1, MOVE] < at[1, MOVES_END]:
        upcoming = min(upcoming, new_moves[at[1, MOVE], PLACE])
    if at[1, LEAVE] < at[1, ENTER]:
        leaving = new_starts[at[1, LEAVE], PLACE] // numbers[PER_HOP] + 1
    return min(leaving, first_with(upcoming, numbers))


@njit(cache=True, inline="always")
def _correct_group(held, changes, at, sums, group, window, numbers, out, size):
    """The first row of ``sums`` is what was, the second what changes. −1 where no room is left."""
    (starts, moves), (new_starts, new_moves), (emitted, found) = held, changes, out
    sums[:] = 0
    while window <= numbers[DUE_BEFORE]:
        _advance(sums, 0, starts, moves, at, window, numbers)
        _advance(sums, 1, new_starts, new_moves, at, window, numbers)
        if is_nothing(sums, 1, 0):
            window = max(window + 1, _next_change(new_starts, new_moves, at, numbers))
            continue
        if size + 2 > len(found):
            return -1
        if sums[0, 0] > 0:
            _write(emitted, size, group, window, TAKEN, numbers)
            for n in range(sums.shape[1]):
                found[size, n] = sums[0, n]
            size += 1
        if sums[0, 0] + sums[1, 0] > 0:
            _write(emitted, size, group, window, PUT, numbers)
            for n in range(sums.shape[1]):
                found[size, n] = sums[0, n] + sums[1, n]
            size += 1
        window += 1
    return size


# --- windows that are due now -----------------------------------------------------------------------------------------


@loop
def announce(changes, numbers, heads, links):
    """Put groups that changed where their next window may now be."""
    at = 0
    while at < len(changes):
        group = changes[at, GROUP]
        window = max(numbers[DUE_BEFORE] + 1, first_with(changes[at, PLACE], numbers))
        if window < links[group, WINDOW]:
            if links[group, WINDOW] < FOREVER:
                strike(heads, links, group)
            enlist(heads, links, group, window)
        at = until(changes, at, group)


@loop
def adjust(running, kept, changes, numbers, spec, moving):
    """Bring changes into the sums that are kept, where they are of one of their windows."""
    for n in range(len(changes)):
        group, place = changes[n, GROUP], changes[n, PLACE]
        window = running[group, REACHED]
        if window == FOREVER:
            continue
        first = window * numbers[PER_HOP]
        if place < first if moving else first <= place < first + numbers[PER_WINDOW]:
            add_rows(kept, group, 0, changes, n, SUMS, 1)
            carry_row(kept, group, 0, spec)


@loop
def complete(held, queue, running, numbers, spec, out, size):
    """Write the windows that are due now, after ``size`` rows; returns the size, and whether these are all."""
    (starts, of_starts, moves, of_moves), (heads, links) = held, queue
    low, high = numbers[DUE_BEFORE] + 1, numbers[DUE]
    lists = len(heads) if low < high - len(heads) else high - low + 1
    for n in range(lists):
        group = heads[(low + n) & (len(heads) - 1)]
        while group != NONE:
            after = links[group, AFTER]
            window = links[group, WINDOW]
            if window <= high:
                a, b = of_starts[group, FIRST], of_moves[group, FIRST]
                ends = a + of_starts[group, SIZE], b + of_moves[group, SIZE]
                if numbers[PER_WINDOW] == 1 and numbers[PER_HOP] == 1 and ends[1] == b:
                    size, window = _complete_alone(starts, a, ends[0], group, window, numbers, out, size)
                else:
                    spans = (a, ends[0]), (b, ends[1])
                    size, window = _complete_group(
                        (starts, moves), spans, running, group, window, numbers, spec, out, size
                    )
                strike(heads, links, group)
                if window < FOREVER:
                    enlist(heads, links, group, window)
                if window <= high:
                    return size, False
            group = after
    return size, True


@njit(cache=True, inline="always")
def _complete_alone(starts, first, end, group, window, numbers, out, size):
    """As `_complete_group`, where a window is one pane and nothing lives on from before."""
    emitted, found = out
    at = first_from(starts, first, end, window)
    window = np.int64(FOREVER)
    while at < end:
        if starts[at, SUMS] != 0:
            window = starts[at, PLACE]
            if window > numbers[DUE] or size == len(found):
                break
            _write(emitted, size, group, window, PUT, numbers)
            for n in range(found.shape[1]):
                found[size, n] = starts[at, SUMS + n]
            size += 1
            window = np.int64(FOREVER)
        at += 1
    return size, window


@njit(cache=True, inline="always")
def _complete_group(held, spans, running, group, window, numbers, spec, out, size):
    """The due windows of a group; and its next window, which is due as well where no room was left.

    Where windows overlap much, its sums go on from those of the window that it came to last.
    """
    (starts, moves), (of_starts, of_moves), (last, sums), (emitted, found) = held, spans, running, out
    row = group if len(last) else 0
    leave, enter, move = _resumed(held, spans, running, row, window, numbers)
    while window < FOREVER:
        first = window * numbers[PER_HOP]
        while enter < of_starts[1] and starts[enter, PLACE] < first + numbers[PER_WINDOW]:
            add_rows(sums, row, 0, starts, enter, SUMS, 1)
            enter += 1
        while leave < enter and starts[leave, PLACE] < first:
            add_rows(sums, row, 0, starts, leave, SUMS, -1)
            leave += 1
        while move < of_moves[1] and moves[move, PLACE] < first:
            add_rows(sums, row, 0, moves, move, SUMS, 1)
            move += 1
        if sums[row, 0] == 0:
            upcoming = starts[enter, PLACE] if enter < of_starts[1] else np.int64(FOREVER)
            window = max(window + 1, first_with(upcoming, numbers))
            continue
        if window > numbers[DUE] or size == len(found):
            break
        _write(emitted, size, group, window, PUT, numbers)
        for n in range(sums.shape[1]):
            found[size, n] = sums[row, n]
        size += 1
        window += 1
    if len(last):
        last[group, REACHED], last[group, LEFT] = window, leave - of_starts[0]
        carry_row(sums, row, 0, spec)
    return size, window


@njit(cache=True, inline="always")
def _resumed(held, spans, running, row, window, numbers):
    """The next start to leave and to enter, and the next move: where the last slide ended, or for a new one."""
    (starts, moves), (of_starts, of_moves), (last, sums) = held, spans, running
    reached = last[row, REACHED] if len(last) else np.int64(FOREVER)
    if reached <= window and (window - reached) * numbers[PER_HOP] * numbers[KEPT] <= numbers[PER_WINDOW]:
        first = reached * numbers[PER_HOP]
        leave = of_starts[0] + last[row, LEFT]
        is_right = leave <= of_starts[1] and (leave == of_starts[0] or starts[leave - 1, PLACE] < first)
        if not is_right or (leave < of_starts[1] and starts[leave, PLACE] < first):
            leave = first_from(starts, of_starts[0], of_starts[1], first)
        enter = first_from(starts, leave, of_starts[1], first + numbers[PER_WINDOW])
        move = first_from(moves, of_moves[0], of_moves[1], first)
    else:
        for n in range(sums.shape[1]):
            sums[row, n] = 0
        leave = enter = first_from(starts, of_starts[0], of_starts[1], window * numbers[PER_HOP])
        move = of_moves[0]
    return leave, enter, move
