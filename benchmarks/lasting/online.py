"""The sharing algorithms one tuple at a time: what a tuple costs, how long a result takes, and what is held.

Each keeps the sum of one column for events that begin and end. A tuple, a begin and an end are separate calls, so that
the answer to an end can be timed alone. The library's own folds (`kernels.event_driven.folds`) do the same
over whole batches.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numba import njit

SIZE = 1 << 20  # places in rings; more is never live at once here


class Delayed:
    """DWM: keeps every tuple of the longest event, and scans those of an event when it ends."""

    name = "DWM"

    def __init__(self, most: int) -> None:
        self.values = np.zeros(SIZE)
        self.count = 0
        self.begins: deque[int] = deque()
        self.peak = 0

    def tuples(self, values: np.ndarray) -> None:
        _ring(self.values, self.count, values)
        self.count += len(values)
        self.peak = max(self.peak, self.count - (self.begins[0] if self.begins else self.count))

    def begin(self) -> None:
        self.begins.append(self.count)

    def end(self) -> float:
        return float(_scan(self.values, self.begins.popleft(), self.count))


class Running:
    """SLES: a running aggregate for each open event, which every tuple is added to."""

    name = "SLES"

    def __init__(self, most: int) -> None:
        self.sums = np.zeros(2 * most + 16)
        self.first = self.last = 0  # the open events, in the order of their begins
        self.peak = 0

    def tuples(self, values: np.ndarray) -> None:
        _add_to_all(self.sums, self.first, self.last, values)

    def begin(self) -> None:
        if self.last == len(self.sums):
            self.sums[: self.last - self.first] = self.sums[self.first : self.last].copy()
            self.last -= self.first
            self.first = 0
        self.sums[self.last] = 0.0
        self.last += 1
        self.peak = max(self.peak, self.last - self.first)

    def end(self) -> float:
        self.first += 1
        return float(self.sums[self.first - 1])


class Slices:
    """SLES*: a tuple is added to the last slice alone; an end combines the slices from its begin on."""

    name = "SLES*"

    def __init__(self, most: int) -> None:
        self.slices = np.zeros(SIZE)
        self.last = 0  # the slice that grows
        self.grew = False
        self.begins: deque[int] = deque()
        self.peak = 0

    def tuples(self, values: np.ndarray) -> None:
        self.slices[self.last & (SIZE - 1)] += _total(values)
        self.grew = True

    def begin(self) -> None:
        if self.grew:  # only if data came since the last begin
            self.last += 1
            self.slices[self.last & (SIZE - 1)] = 0.0
            self.grew = False
        self.begins.append(self.last)
        self.peak = max(self.peak, self.last - self.begins[0] + 1)

    def end(self) -> float:
        return float(_scan(self.slices, self.begins.popleft(), self.last + 1))


class TwoStacks(Slices):
    """FIFO: slices that are older are combined once, from the last back, so that an end looks at two numbers."""

    name = "FIFO"

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.older = np.zeros(SIZE)
        self.turn = 0  # slices before it are combined
        self.newer = 0.0  # what came since

    def tuples(self, values: np.ndarray) -> None:
        super().tuples(values)
        self.newer += _total(values)

    def end(self) -> float:
        first = self.begins.popleft()
        if first >= self.turn:
            _combine(self.slices, self.older, first, self.last + 1)
            self.turn, self.newer = self.last + 1, 0.0
            self.last += 1  # what comes now is newer
            self.slices[self.last & (SIZE - 1)] = 0.0
            self.grew = False
        return float(self.older[first & (SIZE - 1)] + self.newer)


class Prefixes:
    """For sums: the total so far, which a begin remembers and an end subtracts."""

    name = "prefix"

    def __init__(self, most: int) -> None:
        self.total = 0.0
        self.begins: deque[float] = deque()
        self.peak = 0

    def tuples(self, values: np.ndarray) -> None:
        self.total += _total(values)

    def begin(self) -> None:
        self.begins.append(self.total)
        self.peak = max(self.peak, len(self.begins))

    def end(self) -> float:
        return self.total - self.begins.popleft()


ALGORITHMS = (Delayed, Running, Slices, TwoStacks, Prefixes)


@njit(cache=True)
def _ring(ring, at, values):  # type: ignore[no-untyped-def]
    for n in range(len(values)):
        ring[(at + n) & (len(ring) - 1)] = values[n]


@njit(cache=True)
def _scan(ring, first, last):  # type: ignore[no-untyped-def]
    total = 0.0
    for n in range(first, last):
        total += ring[n & (len(ring) - 1)]
    return total


@njit(cache=True)
def _add_to_all(sums, first, last, values):  # type: ignore[no-untyped-def]
    for value in values:
        for n in range(first, last):
            sums[n] += value


@njit(cache=True)
def _total(values):  # type: ignore[no-untyped-def]
    total = 0.0
    for value in values:
        total += value
    return total


@njit(cache=True)
def _combine(slices, older, first, last):  # type: ignore[no-untyped-def]
    total = 0.0
    for n in range(last - 1, first - 1, -1):
        total += slices[n & (len(slices) - 1)]
        older[n & (len(older) - 1)] = total
