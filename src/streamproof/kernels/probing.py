"""Searching runs: events whose lifetimes meet an interval, the next start, rows of an event or of a key.

A search steps over stretches of the past at once, by the latest ends that lie above a run (see `runs`).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.kernels.compiled import loop
from streamproof.kernels.runs import KEY, LE, LEAST, RE, W, compare


@loop
def seek(rows, low, key, le):  # type: ignore[no-untyped-def]
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
def probe(rows, by_16, by_256, by_4096, key, low, start, end, before, most):  # type: ignore[no-untyped-def]
    """Pairs of a query and a row with its key, ``low <= le < end``, ``re > start`` and ``re >= before``.

    Queries in the order of their keys and starts are fast: each search goes on where the last one ended. If there are
    more than ``most`` pairs, none is written down; the last answer is how many there are, at least.
    """
    room = 2 * len(key) + 1024
    queries, found = np.empty(room, np.int64), np.empty(room, np.int64)
    tops = by_16, by_256, by_4096
    size = _write_pairs(rows, tops, key, low, start, end, before, most, queries, found)
    if size > most:
        return queries[:0], found[:0], size
    if size > room:
        queries, found = np.empty(size, np.int64), np.empty(size, np.int64)
        _write_pairs(rows, tops, key, low, start, end, before, most, queries, found)
    return queries[:size], found[:size], size


@loop
def _write_pairs(rows, tops, key, low, start, end, before, most, queries, found):  # type: ignore[no-untyped-def]
    """Write as many pairs as there is room for; gives how many there are, as far as they are not too many."""
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
def _stretch(at, tops, after):  # type: ignore[no-untyped-def]
    """How many rows from this one on a search may step over: all of them ended by an instant, as this one did."""
    by_16, by_256, by_4096 = tops
    if at & 15 or by_16[at >> 4] > after:
        return 1
    if at & 255 or by_256[at >> 8] > after:
        return 16
    return 256 if at & 4095 or by_4096[at >> 12] > after else 4096


@njit(cache=True)
def meeting(rows, by_16, by_256, by_4096, start, end, before):  # type: ignore[no-untyped-def]
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
def first_starts(rows, key, start, end, before, best):  # type: ignore[no-untyped-def]
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
def same_start(rows, wanted, depth, before, answers, offset):  # type: ignore[no-untyped-def]
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
def key_rows(rows, keys, before):  # type: ignore[no-untyped-def]
    """The positions of all rows of some keys, which come in order; the ended ones excepted."""
    found = np.empty(_write_key_rows(rows, keys, before, np.empty(0, np.int64)), np.int64)
    _write_key_rows(rows, keys, before, found)
    return found


@loop
def _write_key_rows(rows, keys, before, found):  # type: ignore[no-untyped-def]
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
