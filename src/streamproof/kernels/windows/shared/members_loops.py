"""Compiled loops over windows and their members: searches, totals, spans of change, and windows on a grid."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.events.time import FOREVER
from streamproof.kernels.columns_loops import same_row
from streamproof.kernels.compiled import loop


@loop
def is_rising(group, le):
    """Whether windows come by group and start already, each once."""
    for n in range(1, len(group)):
        if group[n] < group[n - 1] or (group[n] == group[n - 1] and le[n] <= le[n - 1]):
            return False
    return True


@njit(cache=True)
def find(group, le, wanted_group, wanted_le):
    """Where each wanted pair stands in sorted columns; −1 where it does not."""
    out = np.empty(len(wanted_group), np.int64)
    for i in range(len(wanted_group)):
        at = first_from(group, le, wanted_group[i], wanted_le[i])
        found = at < len(group) and group[at] == wanted_group[i] and le[at] == wanted_le[i]
        out[i] = at if found else -1
    return out


@loop
def first_from(group, le, wanted_group, wanted_le):
    """The first place in sorted columns at or after a pair."""
    low, high = 0, len(group)
    while low < high:
        middle = (low + high) >> 1
        if group[middle] < wanted_group or (group[middle] == wanted_group and le[middle] < wanted_le):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def firsts_from(group, le, wanted_group, wanted_le):
    """`first_from` for many."""
    out = np.empty(len(wanted_group), np.int64)
    for i in range(len(wanted_group)):
        out[i] = first_from(group, le, wanted_group[i], wanted_le[i])
    return out


@loop
def first_of_each(numbers, out):
    """Of numbers in order, where 0, 1, 2, … begin; the last of ``out`` is their number."""
    at = 0
    for number in range(len(out)):
        while at < len(numbers) and numbers[at] < number:
            at += 1
        out[number] = at


@njit(cache=True)
def totals(window, w, known, windows):
    """Per window the weight of its known members."""
    out = np.zeros(windows, np.int64)
    for i in range(len(window)):
        if known[i]:
            out[window[i]] += w[i]
    return out


@njit(cache=True)
def largest(window, values, windows, least):
    """Per window the largest value; ``least`` where there is none."""
    out = np.full(windows, least)
    for i in range(len(window)):
        out[window[i]] = max(out[window[i]], values[i])
    return out


@njit(cache=True)
def best(window, known, first, second, third, windows):
    """Per window the known member with the least keys, by first, second, third; −1 where there is none."""
    out = np.full(windows, -1)
    for i in range(len(window)):
        if not known[i]:
            continue
        at = out[window[i]]
        if (
            at < 0
            or first[i] < first[at]
            or (
                first[i] == first[at] and (second[i] < second[at] or (second[i] == second[at] and third[i] < third[at]))
            )
        ):
            out[window[i]] = i
    return out


@njit(cache=True)
def moves_loop(group, le, re, w, cells):
    size = len(group)
    first, net = np.empty(size, np.int64), np.zeros(size, np.int64)
    least, most = np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for row in range(size):
        same = row > 0 and group[row] == group[row - 1] and le[row] == le[row - 1]
        if not (same and same_row(cells, row, cells, row - 1)):
            first[count], least[count] = row, re[row]
            count += 1
        net[count - 1] += w[row]
        most[count - 1] = re[row]
    return first[:count], net[:count], least[:count], most[:count]


@loop
def merged(group, lo, hi):
    count = 0
    for row in range(len(group)):
        if count and group[count - 1] == group[row] and lo[row] <= hi[count - 1]:
            hi[count - 1] = max(hi[count - 1], hi[row])
            continue
        group[count], lo[count], hi[count] = group[row], lo[row], hi[row]
        count += 1
    return group, lo, hi, count


@njit(cache=True)
def meet(group, lo, hi, wanted_group, le, re):
    out = np.zeros(len(wanted_group), np.bool_)
    for i in range(len(wanted_group)):
        low, high = 0, len(group)  # the first span that ends after the window's start
        while low < high:
            middle = (low + high) >> 1
            before = group[middle] < wanted_group[i] or (group[middle] == wanted_group[i] and hi[middle] <= le[i])
            low, high = (middle + 1, high) if before else (low, middle)
        out[i] = low < len(group) and group[low] == wanted_group[i] and lo[low] < re[i]
    return out


@njit(cache=True)
def rows_of(which, window):
    """The places of the rows of some windows, and which of these windows each is of."""
    number = np.empty(len(which), np.int64)
    count = 0
    for n in range(len(which)):
        number[n] = count
        count += which[n]
    places, windows = np.empty(len(window), np.int64), np.empty(len(window), np.int64)
    found = 0
    for row in range(len(window)):
        if which[window[row]]:
            places[found], windows[found] = row, number[window[row]]
            found += 1
    return places[:found], windows[:found]


@loop
def least(times, hold, here, frontier):
    """The least time of those that are here and held."""
    found = FOREVER
    for n in range(len(times)):
        if hold[n] >= frontier and here[n]:
            found = min(found, times[n])
    return found


@njit(cache=True)
def nets_loop(codes, w):
    """Per number the sum of the weights, and the first row that has it; numbers count up from 0."""
    count = codes.max() + 1
    net, firsts = np.zeros(count, np.int64), np.full(count, -1)
    for row in range(len(codes)):
        net[codes[row]] += w[row]
        if firsts[codes[row]] < 0:
            firsts[codes[row]] = row
    return net, firsts


@njit(cache=True)
def ranges(le, re, moved, offset, size, hop, first_due, last_due):
    """The first and the last window of each event, as far as they are due, and the number of events that have one.

    One that moved counts only windows that start in it.
    """
    first, last = np.empty(len(le), np.int64), np.empty(len(le), np.int64)
    total = first_hop = last_hop = np.int64(0)
    for n in range(len(le)):
        if len(moved) and moved[n]:
            first[n] = -((offset - le[n]) // hop)
        else:
            first_hop = _whole(le[n] - offset - size, hop, first_hop)
            first[n] = first_hop + 1
        first[n] = max(first[n], first_due)
        last_hop = _whole(re[n] - offset - 1, hop, last_hop)
        last[n] = min(last_hop, last_due)
        total += last[n] >= first[n]
    return first, last, total


@njit(cache=True, inline="always")
def _whole(time, hop, known):
    """``time // hop``, which is mostly what it was for the event before: a division costs more than all the rest."""
    beyond = time - known * hop
    return known if 0 <= beyond < hop else time // hop


@loop
def longest(le, re):
    """The longest lifetime."""
    longest = np.int64(0)
    for n in range(len(le)):
        longest = max(longest, re[n] - le[n])
    return longest


@njit(cache=True)
def runs_of(group, first, last, most):
    """For ranges of windows: the row of each window, and its number. Of rows in order, each window comes once.

    If there are more than ``most``, none is listed; last comes their number, at least.
    """
    size = 0
    for written in range(2):
        if size > most:
            return np.empty(0, np.int64), np.empty(0, np.int64), size
        if written:
            source, number = np.empty(size, np.int64), np.empty(size, np.int64)
        size = 0
        reached = 0  # up to where the windows of this group are listed, as long as its rows come in order
        for row in range(len(group)):
            low = first[row]
            if row and group[row] == group[row - 1] and first[row] >= first[row - 1]:
                low = max(low, reached + 1)
                reached = max(reached, last[row])
            else:
                reached = last[row]
            if written:
                for k in range(low, last[row] + 1):
                    source[size], number[size] = row, k
                    size += 1
            else:
                size += max(last[row] + 1 - low, 0)
                if size > most:
                    break
    return source, number, size
