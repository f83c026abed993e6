"""Windows of all groups abreast: where a batch has events of most groups at most places, sums lie place by place.

All groups slide together then, over one sheet; what opens and closes within the batch never enters a ledger.
"""

from __future__ import annotations

from numba import njit

from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.accumulators import add_rows
from streamproof.kernels.windows.agenda import AFTER, BEFORE, NONE, WINDOW, Agenda, enlist
from streamproof.kernels.windows.ledger import FIRST, SIZE, Ledger
from streamproof.kernels.windows.places import Bounds, Sheet, bounds_of, is_dense
from streamproof.kernels.windows.sliding import (
    DUE,
    DUE_BEFORE,
    OFFSET,
    PER_HOP,
    PER_WINDOW,
    PUT,
    TICKS,
    first_from,
    first_with,
)
from streamproof.kernels.windows.sums import PLACE, SUMS, Entries, Scratch


def bounds_abreast(entries: Entries, held: Ledger, numbers: Ints) -> Bounds | None:
    """The bounds of events and of what is held for windows that they make due; None where too much would be empty."""
    bounds = bounds_of(entries)
    if not is_dense(max(bounds.groups * bounds.places, len(held.stretches)), entries):
        return None
    first = (int(numbers[DUE_BEFORE]) + 1) * int(numbers[PER_HOP])
    whole = Bounds(*_with_held(held.rows, held.stretches, first, *bounds))
    windows = len(_due_windows(whole, numbers))
    return whole if windows and is_dense(whole.groups * (whole.places + windows), entries) else None


def slide_abreast(
    sheet: Sheet, held: Ledger, numbers: Ints, emitted: Cells, found: Cells, size: int, out: Scratch
) -> int:
    """Write the windows that are due now, after ``size`` other rows, for which there is room; how many rows there are.

    What is held is brought into the sheet first.
    """
    bounds, width = sheet.bounds, sheet.fields.shape[1]
    windows = _due_windows(bounds, numbers)
    first = windows[0] * int(numbers[PER_HOP])
    _bring(held.rows, held.stretches, first, bounds.low_group, bounds.groups, bounds.low_place, sheet.fields)
    sums = out.matrix("abreast", bounds.groups, width).reshape(-1)
    flat = sheet.fields.reshape(-1), sums, width
    return int(
        _slide(*flat, bounds.low_group, bounds.low_place, windows[0], windows[-1], numbers, emitted, found, size)
    )


def rows_abreast(bounds: Bounds, numbers: Ints) -> int:
    """How many rows windows that are due now may have."""
    return bounds.groups * len(_due_windows(bounds, numbers))


def enlist_anew(agenda: Agenda, held: Ledger, numbers: Ints) -> None:
    """List all groups by what is held, after everything that was due."""
    _enlist_anew(held.rows, held.stretches, numbers, agenda.heads, agenda.links)


def _due_windows(bounds: Bounds, numbers: Ints) -> range:
    """The windows that are due now and have places within bounds."""
    first = max(int(numbers[DUE_BEFORE]) + 1, int(first_with(bounds.low_place, numbers)))
    return range(first, min(int(numbers[DUE]), bounds.high_place // int(numbers[PER_HOP])) + 1)


@loop
def _with_held(rows, stretches, place, low_group, high_group, low_place, high_place):  # type: ignore[no-untyped-def]
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
def _bring(rows, stretches, place, low_group, groups, low_place, fields):  # type: ignore[no-untyped-def]
    """Add what is held from a place on to fields."""
    for group in range(low_group, min(low_group + groups, len(stretches))):
        end = stretches[group, FIRST] + stretches[group, SIZE]
        for at in range(first_from(rows, stretches[group, FIRST], end, place), end):
            add_rows(fields, (rows[at, PLACE] - low_place) * groups + group - low_group, 0, rows, at, SUMS, 1)


@loop
def _slide(fields, sums, width, low_group, low_place, window, last, numbers, emitted, found, size):  # type: ignore[no-untyped-def]
    """The windows from one to another; how many rows there are."""
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
def _write_groups(sums, width, low_group, emitted, found, size):  # type: ignore[no-untyped-def]
    """The groups of a window and their sums; how many rows there are. A group without events is written over."""
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
def _enlist_anew(rows, stretches, numbers, heads, links):  # type: ignore[no-untyped-def]
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
