"""Compiled loops that walk events one after the other: folds of ranges, firings, pairs, and the questions they ask."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE, W
from streamproof.kernels.windows.shared import sums_loops

VALUE, KNOWN = PAYLOAD, PAYLOAD + 1  # the value that decides, and whether there is one


@njit(cache=True)
def _find(memory, key, start):
    """Where the memory of a key stands, from a place on; keys come in order."""
    while start < len(memory) and memory[start, KEY] < key:
        start += 1
    return start


@njit(cache=True)
def _remembered(memory, kept, last, last_known, keys):
    """The memories of all keys: those that were not asked, and the new ones, in the order of keys."""
    out = np.zeros((len(memory) + len(keys), memory.shape[1]), np.int64)
    i = count = 0
    for j in range(len(keys)):
        while i < len(memory) and memory[i, KEY] < keys[j]:
            out[count] = memory[i]
            count += 1
            i += 1
        if i < len(memory) and memory[i, KEY] == keys[j]:
            i += 1
        if last_known[j]:
            out[count, KEY], out[count, LE], out[count, RE], out[count, W] = keys[j], kept, kept + 1, 1
            out[count, VALUE], out[count, KNOWN] = last[j], 1
            count += 1
    while i < len(memory):
        out[count] = memory[i]
        count += 1
        i += 1
    return out[:count]


@njit(cache=True)
def run(rows, order, memory, step, way, is_transition):
    fired = np.empty(len(rows), np.int64)
    keys = np.empty(len(rows), np.int64)
    last, known = np.empty(len(rows), np.int64), np.empty(len(rows), np.bool_)
    count, groups, at = 0, 0, 0
    for n in range(len(order)):
        row = order[n]
        if n == 0 or rows[row, KEY] != rows[order[n - 1], KEY]:
            at = _find(memory, rows[row, KEY], at)
            there = at < len(memory) and memory[at, KEY] == rows[row, KEY]
            keys[groups] = rows[row, KEY]
            last[groups] = memory[at, VALUE] if there else 0
            known[groups] = there
            groups += 1
        g = groups - 1
        if not rows[row, KNOWN] or rows[row, W] <= 0:
            continue
        value = rows[row, VALUE]
        if is_transition:
            fires = value == 1 and last[g] == 0
            last[g], known[g] = value, True
        else:
            fires = known[g] and _moved(value, last[g], step, way)
            if fires or not known[g]:
                last[g], known[g] = value, True
        if fires:
            fired[count] = row
            count += 1
    return fired[:count], _remembered(memory, np.int64(-(2**62)), last, known, keys[:groups])


@njit(cache=True)
def _moved(now, then, step, way):
    """Whether the distance is at least the step; ways from 3 on are of floats, given as bits."""
    if way < 3:
        if now >= then:
            return way != 2 and np.uint64(now) - np.uint64(then) >= np.uint64(step)
        return way != 1 and np.uint64(then) - np.uint64(now) >= np.uint64(step)
    a, b, limit = np.int64(now).view(np.float64), np.int64(then).view(np.float64), np.int64(step).view(np.float64)
    if way == 4:
        return a - b >= limit
    if way == 5:
        return b - a >= limit
    return abs(a - b) >= limit


@njit(cache=True)
def simulated(begins, order, ends, longest, last_first):
    """Key by key, ends in order of time: each closes the first (or last) begin that is open then."""
    most = 2 * len(order) + len(ends)
    which, closed, weight = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    left = np.empty(len(order), np.int64)  # how often each begin is still open
    waiting = np.empty(len(order), np.int64)  # open begins: a queue or a stack
    count = i = j = 0
    while i < len(order):
        key = begins[order[i], KEY]
        while j < len(ends) and ends[j, KEY] < key:
            j += 1
        head = tail = 0
        while i < len(order) and begins[order[i], KEY] == key:
            begin = begins[order[i], LE]
            while j < len(ends) and ends[j, KEY] == key and ends[j, LE] <= begin:  # ends come before begins
                count, head, tail = _close(
                    begins, ends[j, LE], ends[j, W], longest, last_first, waiting, left, head, tail,
                    which, closed, weight, count,
                )  # fmt: skip
                j += 1
            left[order[i]] = begins[order[i], W]
            waiting[tail] = order[i]
            tail += 1
            i += 1
        while j < len(ends) and ends[j, KEY] == key:
            count, head, tail = _close(
                begins, ends[j, LE], ends[j, W], longest, last_first, waiting, left, head, tail,
                which, closed, weight, count,
            )  # fmt: skip
            j += 1
        for n in range(head, tail):
            row = waiting[n]
            if left[row] != 0:
                which[count], weight[count] = row, left[row]
                closed[count] = 2**62 if longest == 0 else begins[row, LE] + longest
                count += 1
    return which[:count], closed[:count], weight[:count]


@njit(cache=True)
def _close(begins, t, times, longest, last_first, waiting, left, head, tail, which, closed, weight, count):
    """One end, or several at one instant: gives the number of pairs and where the waiting ones begin and end."""
    while head < tail and longest != 0 and begins[waiting[head], LE] + longest <= t:  # it is over by itself
        row = waiting[head]
        which[count], closed[count], weight[count] = row, begins[row, LE] + longest, left[row]
        count += left[row] != 0
        head += 1
    while times > 0 and head < tail:
        row = waiting[tail - 1] if last_first else waiting[head]
        taken = min(times, left[row])
        which[count], closed[count], weight[count] = row, t, taken
        count += taken > 0
        times -= max(taken, 0)
        left[row] -= max(taken, 0)
        if left[row] <= 0:
            if last_first:
                tail -= 1
            else:
                head += 1
    return count, head, tail


@njit(cache=True)
def _next_hop(le, hop, t):
    """The first of le, le + hop, … at or after t."""
    return le if t <= le else le + -((le - t) // hop) * hop


@njit(cache=True)
def _place(sub, le, wanted, t):
    low, high = 0, len(sub)
    while low < high:
        middle = (low + high) >> 1
        if sub[middle] < wanted or (sub[middle] == wanted and le[middle] < t):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def _walk_hops(sub, times, wanted, le, re, since, until, hop, reach, most, out, at, which):
    """The instants of one observing event that see something, written to ``out`` from ``at`` on if there is room."""
    begin = _place(sub, times, wanted, le)
    end = _place(sub, times, wanted, 2**62)
    if begin == end:
        return 0
    final = min(re - 1, until)
    if reach:
        final = min(final, times[end - 1] + reach - 1)
    t = _next_hop(le, hop, max(since, times[begin]))
    first, last, count = begin, begin, 0
    while t <= final and count <= most:
        while last < end and times[last] <= t:
            last += 1
        while reach and first < last and times[first] <= t - reach:
            first += 1
        if first == last:  # nothing is seen until the next tuple
            t = _next_hop(le, hop, times[last])
            continue
        if len(out):
            out[at + count, 0], out[at + count, 1], out[at + count, 2], out[at + count, 3] = which, t, first, last
        count += 1
        t += hop
    return count


@njit(cache=True)
def count_hops(sub, times, subs, le, re, since, until, hop, reach, most):
    none = np.empty((0, 4), np.int64)
    counts = np.empty(len(subs), np.int64)
    for n in range(len(subs)):
        counts[n] = _walk_hops(sub, times, subs[n], le[n], re[n], since[n], until[n], hop, reach, most, none, 0, n)
    return counts


@njit(cache=True)
def list_hops(sub, times, subs, le, re, since, until, hop, reach, total):
    out = np.empty((total, 4), np.int64)
    at = 0
    if total:
        for n in range(len(subs)):
            at += _walk_hops(sub, times, subs[n], le[n], re[n], since[n], until[n], hop, reach, total, out, at, n)
    return out[:, 0].copy(), out[:, 1].copy(), out[:, 2].copy(), out[:, 3].copy()


ADD: Final = 0
NOTHING: Final = -(2**63)  # the greatest of no values


@njit(cache=True, inline="always")
def _combine(out, n, rows, m, ops):
    for c in range(len(ops)):
        if ops[c] == ADD:
            out[n, c] += rows[m, c]
        elif rows[m, c] > out[n, c]:
            out[n, c] = rows[m, c]


@njit(cache=True, inline="always")
def _clear(out, n, ops):
    for c in range(len(ops)):
        out[n, c] = 0 if ops[c] == ADD else NOTHING


@njit(cache=True)
def _nothing(count, ops):
    out = np.empty((count, len(ops)), np.int64)
    for n in range(count):
        _clear(out, n, ops)
    return out


@njit(cache=True)
def delayed_loop(rows, ops, first, last):
    out = _nothing(len(first), ops)
    for n in range(len(first)):
        for row in range(first[n], last[n]):
            _combine(out, n, rows, row, ops)
    return out


@njit(cache=True)
def running_loop(rows, ops, first, last, order):
    out = _nothing(len(first), ops)
    is_open = np.empty(len(first), np.int64)
    count = begun = 0
    for row in range(len(rows)):
        while begun < len(order) and first[order[begun]] <= row:
            is_open[count] = order[begun]
            count += 1
            begun += 1
        kept = 0
        for n in range(count):
            if last[is_open[n]] > row:  # what has ended is let go
                is_open[kept] = is_open[n]
                kept += 1
                _combine(out, is_open[n], rows, row, ops)
        count = kept
    return out


@njit(cache=True)
def slices_loop(rows, ops, first, last, begins, order):
    """Ranges in the order of their ends. Slices are kept in a list; one that no open range begins at joins the one
    before it, so there are never more than open ranges."""
    out = _nothing(len(first), ops)
    wanted = np.zeros(len(begins) + 1, np.int64)  # how many open ranges begin at each slice
    slice_of = np.searchsorted(begins, first)
    for n in range(len(first)):
        wanted[slice_of[n]] += 1
    values = _nothing(len(begins), ops)
    after = np.arange(1, len(begins) + 1)  # the next slice that is there
    before = np.arange(-1, len(begins))
    row = begins[0] if len(begins) else 0
    opened = -1  # the last slice that has begun
    for k in range(len(order)):
        n = order[k]
        while row < last[n]:
            while opened + 1 < len(begins) and begins[opened + 1] <= row:
                opened += 1
            _combine(values, opened, rows, row, ops)
            row += 1
        if last[n] > first[n]:
            at = slice_of[n]
            while at < len(begins) and begins[at] < last[n]:
                _combine(out, n, values, at, ops)
                at = after[at]
        wanted[slice_of[n]] -= 1
        at = slice_of[n]
        if wanted[at] == 0 and at < opened and before[at] >= 0:  # it joins the slice before it
            _combine(values, before[at], values, at, ops)
            after[before[at]] = after[at]
            if after[at] < len(begins):
                before[after[at]] = before[at]
    return out


@njit(cache=True)
def two_stacks_loop(rows, ops, first, last):
    """``older`` holds combined suffixes up to ``turn``; what came later is combined in one row."""
    out = _nothing(len(first), ops)
    older = np.empty_like(rows)
    newer = _nothing(1, ops)
    turn = end = 0
    for n in range(len(first)):
        start = first[n]
        if start >= turn:  # everything older has ended: turn the newer rows over
            for row in range(last[n] - 1, start - 1, -1):
                for c in range(len(ops)):
                    older[row, c] = rows[row, c]
                if row + 1 < last[n]:
                    _combine(older, row, older, row + 1, ops)
            turn = end = last[n]
            _clear(newer, 0, ops)
        while end < last[n]:
            _combine(newer, 0, rows, end, ops)
            end += 1
        if last[n] > start:
            if start < turn:
                _combine(out, n, older, start, ops)
            _combine(out, n, newer, 0, ops)
    return out


@njit(cache=True)
def prefixes_loop(rows, first, last):
    width = rows.shape[1]
    sums = np.zeros((len(rows) + 1, width), np.int64)
    for row in range(len(rows)):
        for c in range(width):
            sums[row + 1, c] = sums[row, c] + rows[row, c]
    out = np.zeros((len(first), width), np.int64)
    for n in range(len(first)):
        if last[n] > first[n]:
            for c in range(width):
                out[n, c] = sums[last[n], c] - sums[first[n], c]
    return out


@njit(cache=True)
def carry(rows, at, count):
    for row in range(len(rows)):
        sums_loops.carry(rows, row, at, count)
