"""Compiled loops over the lifetimes of each key, in order: gaps, runs, snapshots, chains and sessions."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.events.time import FOREVER
from streamproof.kernels.compiled import loop
from streamproof.kernels.store_loops import KEY, LE, LEAST, PAYLOAD, RE, W, compare_all

NO_MAX = 0


@njit(cache=True)
def session_ends(rows, timeout, longest):
    """Where each row's session ends."""
    ends = np.empty(len(rows), np.int64)
    first = 0
    while first < len(rows):
        last = first  # the last row of the session
        while (
            last + 1 < len(rows)
            and rows[last + 1, KEY] == rows[first, KEY]
            and rows[last + 1, LE] - rows[last, LE] < timeout
            and (longest == NO_MAX or rows[last + 1, LE] - rows[first, LE] < longest)
        ):
            last += 1
        end = rows[last, LE] + timeout
        ends[first : last + 1] = end if longest == NO_MAX else min(end, rows[first, LE] + longest)
        first = last + 1
    return ends


@njit(cache=True)
def changes_loop(old, old_ends, new, new_ends):
    """Which rows of the old and of the new events are to go out, with which ends and weights."""
    gone, come = np.empty((3, len(old)), np.int64), np.empty((3, len(new)), np.int64)
    i = j = went = came = 0
    while i < len(old) or j < len(new):
        order = 1
        if j >= len(new):
            order = -1
        elif i < len(old):
            order = compare_all(old, i, new, j)
        same_end = order == 0 and old_ends[i] == new_ends[j]
        if order <= 0:
            w = old[i, W] - (new[j, W] if same_end else 0)
            if w != 0:
                gone[0, went], gone[1, went], gone[2, went] = i, old_ends[i], -w
                went += 1
        if order >= 0 and not same_end:
            come[0, came], come[1, came], come[2, came] = j, new_ends[j], new[j, W]
            came += 1
        if order <= 0:
            i += 1
        if order >= 0:
            j += 1
    return gone[:, :went], come[:, :came]


@njit(cache=True)
def gaps_loop(start, end, row, le, re):
    most = len(start) + len(row)
    out_row, out_le, out_re = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    size = at = 0
    for n in range(len(start)):
        free = start[n]  # everything before it is covered or done
        while at < len(row) and row[at] == n:
            if le[at] > free and free < end[n]:
                out_row[size], out_le[size], out_re[size] = n, free, min(le[at], end[n])
                size += 1
            free = max(free, re[at])
            at += 1
        if free < end[n]:
            out_row[size], out_le[size], out_re[size] = n, free, end[n]
            size += 1
    return out_row[:size], out_le[:size], out_re[:size]


@njit(cache=True)
def united(key, le, re):
    """Lifetimes of each key that overlap or touch become one; they come in order."""
    keys, starts, ends = np.empty_like(key), np.empty_like(le), np.empty_like(re)
    size = 0
    for n in range(len(key)):
        if size > 0 and keys[size - 1] == key[n] and le[n] <= ends[size - 1]:
            ends[size - 1] = max(ends[size - 1], re[n])
            continue
        keys[size], starts[size], ends[size] = key[n], le[n], re[n]
        size += 1
    return keys[:size], starts[:size], ends[:size]


@njit(cache=True)
def gaps_by_key_loop(key, start, end, since, cover_key, cover_le, cover_re):
    """Two passes: count the gaps, then write them."""
    nowhere = np.empty(0, np.int64)
    size = _write_gaps(key, start, end, since, cover_key, cover_le, cover_re, nowhere, nowhere, nowhere)
    row, le, re = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    _write_gaps(key, start, end, since, cover_key, cover_le, cover_re, row, le, re)
    return row, le, re


@loop
def _write_gaps(key, start, end, since, cover_key, cover_le, cover_re, row, le, re):
    size = first = 0
    for n in range(len(key)):
        while first < len(cover_key) and (
            cover_key[first] < key[n] or (cover_key[first] == key[n] and cover_re[first] <= start[n])
        ):
            first += 1
        at, free = first, since[n]
        while free < end[n]:
            covered = at < len(cover_key) and cover_key[at] == key[n] and cover_le[at] < end[n]
            until = cover_le[at] if covered else end[n]
            if until > free:
                if size < len(row):
                    row[size], le[size], re[size] = n, free, until
                size += 1
            free = max(free, cover_re[at]) if covered else end[n]
            at += 1
    return size


@njit(cache=True)
def last_ends_loop(key, since, limit, cover_key, cover_re):
    out = np.empty_like(since)
    first, latest = 0, LEAST
    for n in range(len(key)):
        if n == 0 or key[n] != key[n - 1]:
            latest = LEAST
            while first < len(cover_key) and cover_key[first] <= key[n]:
                if cover_key[first] == key[n]:
                    latest = max(latest, min(cover_re[first], limit))
                first += 1
        out[n] = max(since[n], latest)
    return out


@njit(cache=True)
def difference_loop(old_row, old_le, old_re, new_row, new_le, new_re):
    most = len(old_row) + len(new_row)
    row, le, re = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    sign = np.empty(most, np.int64)
    i = j = size = 0
    while i < len(old_row) or j < len(new_row):
        order = 1
        if j >= len(new_row):
            order = -1
        elif i < len(old_row):
            before = (old_row[i], old_le[i], old_re[i])
            after = (new_row[j], new_le[j], new_re[j])
            order = 0 if before == after else (-1 if before < after else 1)
        if order < 0:
            row[size], le[size], re[size], sign[size] = old_row[i], old_le[i], old_re[i], -1
        if order > 0:
            row[size], le[size], re[size], sign[size] = new_row[j], new_le[j], new_re[j], 1
        if order <= 0:
            i += 1
        if order >= 0:
            j += 1
        if order != 0:
            size += 1
    return row[:size], le[:size], re[:size], sign[:size]


@njit(cache=True)
def apart_loop(key, start, end):
    keys, low = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
    first, last = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
    size = 0
    for n in range(len(key)):
        goes_on = size > 0 and keys[size - 1] == key[n]
        if goes_on and start[n] <= last[size - 1]:
            last[size - 1] = max(last[size - 1], end[n])
            continue
        keys[size], first[size], last[size] = key[n], start[n], end[n]
        low[size] = last[size - 1] if goes_on else LEAST
        size += 1
    return keys[:size], low[:size], first[:size], last[:size]


@njit(cache=True)
def starts_loop(rows, origins, base):
    """Where rows count from: their own start, or their key's origin if that lies before the base."""
    out = np.empty(len(rows), np.int64)
    at = 0
    for n in range(len(rows)):
        while at < len(origins) and origins[at, KEY] < rows[n, KEY]:
            at += 1
        out[n] = rows[n, LE]
        if rows[n, LE] < base and at < len(origins) and origins[at, KEY] == rows[n, KEY]:
            out[n] = origins[at, PAYLOAD]
    return out


@njit(cache=True)
def runs_loop(rows, starts):
    out = np.empty((len(rows), PAYLOAD), np.int64)
    size = 0
    for n in range(len(rows)):
        if rows[n, W] <= 0:
            continue
        if size > 0 and out[size - 1, KEY] == rows[n, KEY] and starts[n] <= out[size - 1, RE]:
            out[size - 1, RE] = max(out[size - 1, RE], rows[n, RE])
            continue
        out[size, KEY], out[size, LE], out[size, RE], out[size, W] = rows[n, KEY], starts[n], rows[n, RE], 1
        size += 1
    return out[:size]


@njit(cache=True)
def run_origins_loop(rows, starts, new_base):
    found = runs_loop(rows[rows[:, LE] < new_base], starts[rows[:, LE] < new_base])
    return _origin_rows(found[found[:, RE] >= new_base])  # the last run of a key, if any


@njit(cache=True)
def last_boundaries_loop(rows, starts, new_base):
    out = np.empty((len(rows), PAYLOAD), np.int64)
    size = first = 0
    while first < len(rows):
        last, boundary, lives = first, LEAST, False
        while last < len(rows) and rows[last, KEY] == rows[first, KEY]:
            if rows[last, LE] < new_base and rows[last, W] > 0:
                boundary = max(boundary, starts[last], rows[last, RE] if rows[last, RE] < new_base else LEAST)
                lives = lives or rows[last, RE] >= new_base
            last += 1
        if lives:
            out[size, KEY], out[size, LE], out[size, RE], out[size, W] = rows[first, KEY], boundary, 0, 1
            size += 1
        first = last
    return _origin_rows(out[:size])


@njit(cache=True)
def _origin_rows(found):
    """Rows whose cell says where they start."""
    out = np.empty((len(found), PAYLOAD + 1), np.int64)
    for n in range(len(found)):
        out[n, KEY], out[n, LE], out[n, RE], out[n, W] = found[n, KEY], 0, FOREVER, 1
        out[n, PAYLOAD] = found[n, LE]
    return out


@njit(cache=True)
def snapshots_loop(rows, starts):
    out = np.empty((2 * len(rows), PAYLOAD), np.int64)
    size = first = 0
    while first < len(rows):
        last = first
        while last < len(rows) and rows[last, KEY] == rows[first, KEY]:
            last += 1
        counted = rows[first:last, W] > 0
        begins = np.sort(starts[first:last][counted])
        ends = np.sort(rows[first:last, RE].copy()[counted])
        size = _sweep(begins, ends, rows[first, KEY], out, size)
        first = last
    return out[:size]


@loop
def _sweep(begins, ends, key, out, size):
    """Write the snapshots of one key; returns the number of rows written so far."""
    i = j = alive = 0
    here = LEAST
    while j < len(ends):
        following = min(begins[i], ends[j]) if i < len(begins) else ends[j]
        if alive > 0:
            out[size, KEY], out[size, LE], out[size, RE], out[size, W] = key, here, following, 1
            size += 1
        while i < len(begins) and begins[i] == following:
            i += 1
            alive += 1
        while j < len(ends) and ends[j] == following:
            j += 1
            alive -= 1
        here = following
    return size


@njit(cache=True)
def link_loop(events, by_end, begun, base):
    began = np.empty(len(events), np.int64)
    goes_on = np.zeros(len(events), np.bool_)
    first = ended = origin = 0
    while first < len(events):
        key, t = events[first, KEY], events[first, LE]
        last = first
        while last < len(events) and events[last, KEY] == key and events[last, LE] == t:
            began[last] = t
            last += 1
        if t < base:
            origin = _continue_known(events, first, last, begun, origin, began)
        else:
            ended = _continue_ended(events, first, last, by_end, ended, began, goes_on)
        first = last
    return began, goes_on


@loop
def _continue_known(events, first, last, begun, at, began):
    """Lifetimes with one start, in the order of their ends, continue the origins of that start in order."""
    key, t = events[first, KEY], events[first, LE]
    while at < len(begun) and (begun[at, KEY] < key or (begun[at, KEY] == key and begun[at, LE] < t)):
        at += 1
    for n in range(first, last):
        if at < len(begun) and begun[at, KEY] == key and begun[at, LE] == t:
            began[n] = begun[at, PAYLOAD]
            at += 1
    return at


@njit(cache=True)
def _continue_ended(events, first, last, by_end, at, began, goes_on):
    """Lifetimes with one start, in the order of their ends, continue chains that end there, the earliest first."""
    key, t = events[first, KEY], events[first, LE]
    while at < len(by_end) and (
        events[by_end[at], KEY] < key or (events[by_end[at], KEY] == key and events[by_end[at], RE] < t)
    ):
        at += 1
    stop = at
    while stop < len(by_end) and events[by_end[stop], KEY] == key and events[by_end[stop], RE] == t:
        stop += 1
    ended = by_end[at:stop]
    earliest = np.argsort(began[ended])
    for n in range(min(stop - at, last - first)):
        before = ended[earliest[n]]
        goes_on[before] = True
        began[first + n] = began[before]
    return stop
