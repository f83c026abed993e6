"""The gaps in covers: which stretches of each lifetime nothing covers, and how they change.

>>> from streamproof.kernels.store import ints
>>> gaps(ints(0), ints(10), ints(0, 0), ints(2, 4), ints(4, 6))
Spans(row=array([0, 0]), le=array([0, 6]), re=array([ 2, 10]))
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamproof.kernels.cells import Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.runs import LEAST


class Lifetimes(NamedTuple):
    """Lifetimes by key."""

    key: Ints
    le: Ints
    re: Ints


class Spans(NamedTuple):
    """Stretches of time, each of a numbered row; in the order of rows, then of time."""

    row: Ints
    le: Ints
    re: Ints


class Change(NamedTuple):
    """Stretches that come (+1) or go (−1)."""

    row: Ints
    le: Ints
    re: Ints
    sign: Ints


def gaps(start: Ints, end: Ints, row: Ints, le: Ints, re: Ints) -> Spans:
    """What is left of ``[start, end)`` of each row by the covers ``[le, re)``, which come by row, then le."""
    return Spans(*_gaps(start, end, row, le, re))


def gaps_by_key(lefts: Lifetimes, since: Ints, covers: Lifetimes) -> Spans:
    """What is left of ``[since, end)`` of each row by all covers of its key.

    Rows and covers come in the order of keys, then starts; the start of a row is where covers begin to matter.
    """
    return Spans(*_gaps_by_key(*lefts, since, *_united(*covers)))


def last_ends(key: Ints, since: Ints, limit: int, covers: Lifetimes) -> Ints:
    """``since``, or the latest end of a cover of the key if that is later; ends after the limit count as the limit."""
    later: Ints = _last_ends(key, since, limit, covers.key, covers.re)
    return later


def difference(old: Spans, new: Spans) -> Change:
    """What turns the old stretches into the new ones; stretches that stay are left out."""
    return Change(*_difference(*old, *new))


def apart(key: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Intervals, in the order of keys and starts, united to stretches that do not meet.

    Gives key, low, start and end of each stretch, where low is the end of the key's stretch before. A lifetime that
    meets several stretches and starts before the end of the first is found by the first alone, if others ask for
    ``le >= low``: so a search by stretches finds each event once.
    """
    keys, low, first, last = _apart(key, start, end)
    return keys, low, first, last


@njit(cache=True)
def _gaps(start, end, row, le, re):  # type: ignore[no-untyped-def]
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
def _united(key, le, re):  # type: ignore[no-untyped-def]
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
def _gaps_by_key(key, start, end, since, cover_key, cover_le, cover_re):  # type: ignore[no-untyped-def]
    """Two passes: count the gaps, then write them."""
    nowhere = np.empty(0, np.int64)
    size = _write_gaps(key, start, end, since, cover_key, cover_le, cover_re, nowhere, nowhere, nowhere)
    row, le, re = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    _write_gaps(key, start, end, since, cover_key, cover_le, cover_re, row, le, re)
    return row, le, re


@loop
def _write_gaps(key, start, end, since, cover_key, cover_le, cover_re, row, le, re):  # type: ignore[no-untyped-def]
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
def _last_ends(key, since, limit, cover_key, cover_re):  # type: ignore[no-untyped-def]
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
def _difference(old_row, old_le, old_re, new_row, new_le, new_re):  # type: ignore[no-untyped-def]
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
def _apart(key, start, end):  # type: ignore[no-untyped-def]
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
