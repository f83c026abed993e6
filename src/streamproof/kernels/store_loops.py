"""Compiled loops over sorted runs of rows (key, le, re, w, payload…): order, merge, search, and take away.

A search steps over stretches of the past at once, by the latest ends that lie above a run (see `store.Run`).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.compiled import loop

IN_DOUBT: Final = -1


@loop
def insertions_loop(le, re, w, cti):
    """Returns the number of inserts, if rows are nothing else and all legal."""
    events = 0
    for n in range(len(le)):
        if w[n] < 1 or re[n] <= le[n] or le[n] < cti:
            return IN_DOUBT
        events += w[n]
    return events


@njit(cache=True)
def events_loop(groups, le, re, w, cti):
    """Returns the number of events that net rows are, if none of them changes anything before the CTI.

    In a group, rows differ in their ends alone: one that goes and one that comes are one event.
    """
    size = groups.max() + 1 if len(groups) else 0
    come, gone, early = np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.bool_)
    for n in range(len(groups)):
        if re[n] <= le[n] or (le[n] < cti and re[n] < cti):
            return IN_DOUBT
        early[groups[n]] = le[n] < cti
        if w[n] > 0:
            come[groups[n]] += w[n]
        else:
            gone[groups[n]] -= w[n]
    if np.any(early & (come != gone)):
        return IN_DOUBT
    return np.maximum(come, gone).sum()


@loop
def add(counts, codes, w):
    for n in range(len(codes)):
        counts[codes[n]] += w[n]


@loop
def meet(rows, query, others, at, done, key, le, re, w):
    """Write down the pairs of one run, after those of others; the bits that any of the weights has, by side."""
    one = other = np.int64(0)
    for n in range(len(at)):
        i, j = query[done + n], at[n]
        key[done + n], w[done + n] = rows[i, KEY], rows[i, W] * others[j, W]
        le[done + n], re[done + n] = max(rows[i, LE], others[j, LE]), min(rows[i, RE], others[j, RE])
        one |= rows[i, W] ^ (rows[i, W] >> 63)
        other |= others[j, W] ^ (others[j, W] >> 63)
    return one, other


KEY: Final = 0
LE: Final = 1
RE: Final = 2
W: Final = 3
PAYLOAD: Final = 4  # the first cell of the payload
LEAST: Final = -(2**63)


# --- order ------------------------------------------------------------------------------------------------------------


@loop
def compare(a, i, b, j, depth):
    """−1, 0 or 1: row i of a against row j of b by key, le and the first ``depth`` cells of the payload."""
    if a[i, KEY] != b[j, KEY]:
        return -1 if a[i, KEY] < b[j, KEY] else 1
    if a[i, LE] != b[j, LE]:
        return -1 if a[i, LE] < b[j, LE] else 1
    for n in range(PAYLOAD, PAYLOAD + depth):
        if a[i, n] != b[j, n]:
            return -1 if a[i, n] < b[j, n] else 1
    return 0


@loop
def compare_all(a, i, b, j):
    """The order of a run: key, le, payload, re."""
    order = compare(a, i, b, j, a.shape[1] - PAYLOAD)
    if order == 0 and a[i, RE] != b[j, RE]:
        return -1 if a[i, RE] < b[j, RE] else 1
    return order


@njit(cache=True)
def arranged_loop(order, key, le, re, w, cells, spare):
    width = cells.shape[1]
    rows = np.empty((len(order), PAYLOAD + width + spare), np.int64)
    for n in range(len(order)):
        at = order[n]
        rows[n, KEY] = key[at]
        rows[n, LE] = le[at]
        rows[n, RE] = re[at]
        rows[n, W] = w[at]
        for c in range(width):
            rows[n, PAYLOAD + c] = cells[at, c]
        for c in range(spare):
            rows[n, PAYLOAD + width + c] = 0
    return rows


@njit(cache=True)
def settle_loop(rows, short):
    """Rows sorted by key and le become a run, in place; returns how many are left."""
    first, is_run = 0, True
    while first < len(rows):
        last = first + 1
        is_run &= rows[first, W] != 0
        while last < len(rows) and rows[last, KEY] == rows[first, KEY] and rows[last, LE] == rows[first, LE]:
            last += 1
        if last - first > 1:
            _sort_ties(rows, first, last, short)
            is_run = False
        first = last
    return len(rows) if is_run else _collapse(rows)


@njit(cache=True)
def _sort_ties(rows, first, last, short):
    """Sort some rows by payload and re, in place: insertion in short pieces, then merging."""
    size = last - first
    order = np.arange(first, last)
    for low in range(0, size, short):
        for i in range(low + 1, min(low + short, size)):
            j, moving = i, order[i]
            while j > low and compare_all(rows, order[j - 1], rows, moving) > 0:
                order[j] = order[j - 1]
                j -= 1
            order[j] = moving
    step = short
    while step < size:
        order = _merge_orders(rows, order, step)
        step *= 2
    sorted_rows = rows[first:last].copy()
    for n in range(size):
        rows[first + n] = sorted_rows[order[n] - first]


@njit(cache=True)
def _merge_orders(rows, order, step):
    size = len(order)
    out = np.empty_like(order)
    for low in range(0, size, 2 * step):
        middle, high = min(low + step, size), min(low + 2 * step, size)
        i, j = low, middle
        for n in range(low, high):
            take_first = j >= high or (i < middle and compare_all(rows, order[i], rows, order[j]) <= 0)
            if take_first:
                out[n] = order[i]
                i += 1
            else:
                out[n] = order[j]
                j += 1
    return out


@loop
def _collapse(rows):
    """Equal neighbours become one row, rows of weight zero vanish; returns how many are left."""
    size = 0
    at = 0
    while at < len(rows):
        w = rows[at, W]
        following = at + 1
        while following < len(rows) and compare_all(rows, at, rows, following) == 0:
            w += rows[following, W]
            following += 1
        if w != 0:
            if size != at:
                for n in range(rows.shape[1]):
                    rows[size, n] = rows[at, n]
            rows[size, W] = w
            size += 1
        at = following
    return size


# --- merging ----------------------------------------------------------------------------------------------------------


@loop
def merge_loop(a, b, before, out):
    """Write two runs as one; returns the number of rows."""
    i = j = size = 0
    while i < len(a) or j < len(b):
        order = 1
        if j >= len(b):
            order = -1
        elif i < len(a):
            order = compare_all(a, i, b, j)
        if order <= 0:
            for n in range(a.shape[1]):
                out[size, n] = a[i, n]
            i += 1
        else:
            for n in range(a.shape[1]):
                out[size, n] = b[j, n]
        if order == 0:
            out[size, W] += b[j, W]
        if order >= 0:
            j += 1
        size += out[size, W] != 0 and out[size, RE] >= before
    return size


@loop
def how_many_last(rows, before):
    """Returns the number of events of a run that did not end before an instant."""
    size = 0
    for n in range(len(rows)):
        size += rows[n, RE] >= before and rows[n, W] != 0
    return size


@loop
def copy_lasting(rows, before, out, size):
    """Write the events that did not end before an instant after ``size`` others; returns the new size."""
    for n in range(len(rows)):
        if rows[n, RE] >= before and rows[n, W] != 0:
            for c in range(rows.shape[1]):
                out[size, c] = rows[n, c]
            size += 1
    return size


@loop
def cancel(rows, delta):
    """Take negative rows of a delta off equal rows of a run, in place on both sides."""
    for n in range(len(delta)):
        if delta[n, W] >= 0:
            continue
        low, high = 0, len(rows)
        while low < high:
            middle = (low + high) >> 1
            if compare_all(rows, middle, delta, n) < 0:
                low = middle + 1
            else:
                high = middle
        if low < len(rows) and compare_all(rows, low, delta, n) == 0:
            taken = max(0, min(rows[low, W], -delta[n, W]))
            rows[low, W] -= taken
            delta[n, W] += taken


@njit(cache=True)
def latest_ends(rows):
    size = len(rows)
    by_16 = np.full((size + 15) >> 4, LEAST, np.int64)
    by_256 = np.full((size + 255) >> 8, LEAST, np.int64)
    by_4096 = np.full((size + 4095) >> 12, LEAST, np.int64)
    longest, earliest, least_weight = np.int64(0), np.int64(FOREVER), np.int64(FOREVER)
    for n in range(size):
        by_16[n >> 4] = max(by_16[n >> 4], rows[n, RE])
        earliest, least_weight = min(earliest, rows[n, RE]), min(least_weight, rows[n, W])
        longest = max(longest, rows[n, RE] - rows[n, LE] if rows[n, LE] > BEGINNING else np.int64(FOREVER))
    for n in range(len(by_16)):
        by_256[n >> 4] = max(by_256[n >> 4], by_16[n])
    latest = LEAST
    for n in range(len(by_256)):
        by_4096[n >> 4] = max(by_4096[n >> 4], by_256[n])
        latest = max(latest, by_256[n])
    return by_16, by_256, by_4096, latest, longest, earliest, least_weight


@njit(cache=True)
def gather_loop(rows, at, column):
    out = np.empty(len(at), np.int64)
    for n in range(len(at)):
        out[n] = rows[at[n], column]
    return out


@loop
def is_stretch(at):
    """Whether each position, of which there are some, is the next after the one before."""
    for n in range(1, len(at)):
        if at[n] != at[n - 1] + 1:
            return False
    return True


@njit(cache=True)
def pick_loop(rows, at):
    out = np.empty((len(at), rows.shape[1]), np.int64)
    for n in range(len(at)):
        for c in range(rows.shape[1]):
            out[n, c] = rows[at[n], c]
    return out


@loop
def seek(rows, low, key, le):
    """The first row from ``low`` on that is not before (key, le): wider and wider steps, then halving."""
    step = 1
    high = low
    while high < len(rows) and (rows[high, KEY] < key or (rows[high, KEY] == key and rows[high, LE] < le)):
        low = high + 1
        high += step
        step *= 2
    high = min(high, len(rows))
    while low < high:
        middle = (low + high) >> 1
        if rows[middle, KEY] < key or (rows[middle, KEY] == key and rows[middle, LE] < le):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def probe(rows, by_16, by_256, by_4096, key, low, start, end, before, most, listed):
    """Pairs of a query and a row with its key, ``low <= le < end``, ``re > start`` and ``re >= before``.

    Queries in the order of their keys and starts are fast: each search goes on where the last one ended. If there are
    more than ``listed`` pairs, none is written down; last comes their number, counted to beyond ``most``.
    """
    room = 2 * len(key) + 1024
    queries, found = np.empty(room, np.int64), np.empty(room, np.int64)
    tops = by_16, by_256, by_4096
    size = _write_pairs(rows, tops, key, low, start, end, before, most, queries, found)
    if size > most or size > listed:
        return queries[:0], found[:0], size
    if size > room:
        queries, found = np.empty(size, np.int64), np.empty(size, np.int64)
        _write_pairs(rows, tops, key, low, start, end, before, most, queries, found)
    return queries[:size], found[:size], size


@loop
def _write_pairs(rows, tops, key, low, start, end, before, most, queries, found):
    """Write as many pairs as there is room for; returns their number, as far as they are not too many."""
    by_16 = tops[0]
    room = len(found)
    size = segment = past = 0
    for q in range(len(key)):
        if size > most:
            break
        if q > 0 and key[q] < key[q - 1]:
            segment = past = 0
        if q == 0 or key[q] != key[q - 1]:
            segment = past = seek(rows, segment, key[q], LEAST)
        elif start[q] < start[q - 1]:
            past = segment
        after = max(start[q], before - 1)
        while past < len(rows) and rows[past, KEY] == key[q] and rows[past, RE] <= after:
            # later queries of this key start later: they need not look at these rows again
            past += _stretch(past, tops, after)
        at = past if low[q] == LEAST else seek(rows, past, key[q], low[q])
        while at < len(rows) and rows[at, KEY] == key[q] and rows[at, LE] < end[q]:
            if at & 15 == 0 and by_16[at >> 4] <= after:
                at += _stretch(at, tops, after)
                continue
            if rows[at, RE] > after and rows[at, W] != 0:
                if size < room:
                    queries[size] = q
                    found[size] = at
                size += 1
            at += 1
    return size


@njit(cache=True, inline="always")
def _stretch(at, tops, after):
    """Returns the number of rows from this one on that a search may step over: all ended by an instant."""
    by_16, by_256, by_4096 = tops
    if at & 15 or by_16[at >> 4] > after:
        return 1
    if at & 255 or by_256[at >> 8] > after:
        return 16
    return 256 if at & 4095 or by_4096[at >> 12] > after else 4096


@njit(cache=True)
def meeting(rows, by_16, by_256, by_4096, start, end, before):
    """The positions of the rows of all keys with ``le < end``, ``re > start`` and ``re >= before``."""
    after = max(start, before - 1)
    found = np.empty(len(rows), np.int64)
    size = at = 0
    while at < len(rows):
        if at & 15 == 0 and by_16[at >> 4] <= after:
            at += _stretch(at, (by_16, by_256, by_4096), after)
            continue
        if rows[at, RE] > after and rows[at, LE] < end and rows[at, W] != 0:
            found[size] = at
            size += 1
        at += 1
    return found[:size]


@loop
def first_starts(rows, key, start, end, before, best):
    """Lower each query's ``best`` to the first le of its key with ``start <= le < end``, if there is one."""
    segment = 0
    for q in range(len(key)):
        if q > 0 and key[q] < key[q - 1]:
            segment = 0
        if q == 0 or key[q] != key[q - 1]:
            segment = seek(rows, segment, key[q], LEAST)
        at = seek(rows, segment, key[q], start[q])
        while at < len(rows) and rows[at, KEY] == key[q] and rows[at, LE] < min(end[q], best[q]):
            if rows[at, W] != 0 and rows[at, RE] >= before:
                best[q] = rows[at, LE]
                break
            at += 1


@loop
def same_start(rows, wanted, depth, before, answers, offset):
    """For each wanted row without an answer, a row of equal key, le and first ``depth`` payload cells."""
    for n in range(len(wanted)):
        if answers[n] >= 0:
            continue
        low, high = 0, len(rows)
        while low < high:
            middle = (low + high) >> 1
            if compare(rows, middle, wanted, n, depth) < 0:
                low = middle + 1
            else:
                high = middle
        while low < len(rows) and compare(rows, low, wanted, n, depth) == 0:
            if rows[low, W] != 0 and rows[low, RE] >= before:
                answers[n] = offset + low
                break
            low += 1


@njit(cache=True)
def key_rows(rows, keys, before):
    """The positions of all rows of some keys, which come in order; the ended ones excepted."""
    found = np.empty(_write_key_rows(rows, keys, before, np.empty(0, np.int64)), np.int64)
    _write_key_rows(rows, keys, before, found)
    return found


@loop
def _write_key_rows(rows, keys, before, found):
    size = at = 0
    for key in keys:
        at = seek(rows, at, key, LEAST)
        while at < len(rows) and rows[at, KEY] == key:
            if rows[at, W] != 0 and rows[at, RE] >= before:
                if size < len(found):
                    found[size] = at
                size += 1
            at += 1
    return size
