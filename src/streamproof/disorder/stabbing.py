"""Interval stabbing: which in-order events to delay so that exactly as many as asked for are out of order.

The *records* of a stream are its in-order events; in arrival order their times never fall. Record ``i`` draws a number
``u[i]``. Let ``reach[i]`` be the largest draw among the records that could overtake it: later times, arriving within
the longest delay. Let ``guard[i]`` be the largest draw among the records that keep the out-of-order events behind ``i``
out of order. At the threshold ``τ`` record ``i`` is delayed iff ``u[i] < τ <= min(reach[i], guard[i])``:

- some record that is not delayed overtakes it (the one with the largest draw in reach has ``u >= τ``),
- no event that was out of order loses its last overtaker.

As ``τ`` rises past a draw, one more record is delayed; past a limit, some fewer. So the number of delayed records rises
by at most one at a time, and the first ``τ`` that reaches a target hits it exactly.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NEVER = np.uint64(0)  # a limit that no threshold stays below: thresholds are at least 1
ALWAYS = np.uint64(2**64 - 1)  # the draw of an anchor: never delayed, whatever the threshold


@njit(cache=True)
def window_max(draws, starts, ends):  # type: ignore[no-untyped-def]
    """The largest of ``draws[starts[i]:ends[i]]``, 0 where that is empty. Starts and ends never fall."""
    out = np.zeros(len(starts), np.uint64)
    queue = np.empty(len(draws), np.int64)  # positions of falling draws: the first one is the largest of the window
    head, tail, taken = 0, 0, 0
    for i in range(len(starts)):
        while taken < ends[i]:
            while tail > head and draws[queue[tail - 1]] <= draws[taken]:
                tail -= 1
            queue[tail] = taken
            tail += 1
            taken += 1
        while head < tail and queue[head] < starts[i]:
            head += 1
        if head < tail and ends[i] > starts[i]:
            out[i] = draws[queue[head]]
    return out


@njit(cache=True)
def back_max(draws, starts):  # type: ignore[no-untyped-def]
    """The largest of ``draws[starts[i] : i + 1]``, 0 where that is empty; starts may jump."""
    out = np.zeros(len(starts), np.uint64)
    stack = np.empty(len(draws), np.int64)  # positions of draws that no later one exceeds, falling
    size = 0
    for i in range(len(starts)):
        while size and draws[stack[size - 1]] <= draws[i]:
            size -= 1
        stack[size] = i
        size += 1
        if starts[i] <= i:
            low, high = 0, size - 1  # the first position on the stack that is not before the start
            while low < high:
                middle = (low + high) // 2
                if stack[middle] < starts[i]:
                    low = middle + 1
                else:
                    high = middle
            out[i] = draws[stack[low]]
    return out


@njit(cache=True)
def later(times):  # type: ignore[no-untyped-def]
    """For each of rising times, where the first strictly later one stands."""
    out = np.empty(len(times), np.int64)
    following = len(times)
    for i in range(len(times) - 1, -1, -1):
        if i + 1 < len(times) and times[i + 1] > times[i]:
            following = i + 1
        out[i] = following
    return out


@njit(cache=True)
def within(arrivals, times, longest):  # type: ignore[no-untyped-def]
    """For each time, how many of the rising arrivals are at most ``longest`` later."""
    out = np.empty(len(times), np.int64)
    at = 0
    for i in range(len(times)):
        while at < len(arrivals) and arrivals[at] <= times[i] + longest:
            at += 1
        out[i] = at
    return out


@njit(cache=True)
def nearest(times, arrivals, stays, after_chunk, after_tail):  # type: ignore[no-untyped-def]
    """For each record, when the first later one that stays arrives.

    ``after_chunk`` is the arrival of the first record behind these that stays, ``after_tail`` of the first one whose
    time is later than the last time here.
    """
    out = np.empty(len(times), np.int64)
    near, found = after_tail, after_chunk  # for this time; for every earlier one
    for i in range(len(times) - 1, -1, -1):
        if i + 1 < len(times) and times[i + 1] > times[i]:
            near = found
        out[i] = near
        if stays[i]:
            found = arrivals[i]
    return out
