"""Arrivals for simulations, on a grid of ticks on which every time that matters is whole.

*adversarial*: every input sends as much as it may, as early as it may, all at once, a tick after the costliest task has
begun. *random*: gaps are drawn, and what comes too fast waits at the bucket. A query that floods ignores its bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from streamproof.qos.arrivals import Arrival, TokenBucket
from streamproof.qos.service import RateLatency, Service
from streamproof.qos.simulation_loop import curve_deadlines, line_deadlines, shape
from streamproof.qos.tasks import Flow

Pattern = Literal["adversarial", "random"]
Ints = npt.NDArray[np.int64]

ROOM: Final = 2**60  # products of times and denominators stay below this
COARSE: Final = 1000  # ticks per millisecond at least: "a tick earlier" shall mean nearly at once
FINE: Final = 10**6  # ticks per millisecond where no common grid exists
MOST_TASKS: Final = 5_000_000
TABLE: Final = 5000  # tasks that a curve without a closed form looks back


@dataclass(frozen=True)
class Grid:
    """Ticks per millisecond, and whether every time is a whole number of them."""

    scale: int
    exact: bool

    def ticks(self, time: Fraction) -> int:
        """A length of time, rounded up."""
        return -int(-time * self.scale // 1)


def grid_for(flows: Sequence[Flow], capacity: Fraction, quantum: Fraction | None, duration: Fraction) -> Grid:
    """The coarsest grid on which costs, gaps and deadlines are whole; a fine one where that would not fit."""
    times = [flow.cost / capacity for flow in flows]
    if quantum is not None:
        times.append(quantum / capacity)
    for flow in flows:
        if isinstance(flow.service, RateLatency):
            times += [flow.service.latency, 1 / flow.service.rate]
        for burst, rate in flow.arrival.buckets:
            times += [1 / rate, (burst - 1) / rate]
    scale = lcm(*(time.denominator for time in times)) if times else 1
    scale *= -(-COARSE // scale)
    longest = (duration + 10_000) * 4
    return Grid(scale, True) if scale * longest < ROOM else Grid(FINE, False)


def arrivals_of(
    flow: Flow,
    grid: Grid,
    duration: Fraction,
    pattern: Pattern,
    draw: np.random.Generator,
    *,
    offset: int = 0,
    flood: Fraction | None = None,
) -> Ints:
    """The arrival times of one flow, in ticks. ``flood`` is a rate with which it ignores its bucket."""
    end = int(duration * grid.scale)
    if flood is not None:
        count = min(MOST_TASKS, -int(-duration * flood // 1))
        numbers = np.arange(count, dtype=object) * (grid.scale * flood.denominator) // flood.numerator
        return np.asarray(numbers, dtype=np.int64) + offset
    if not isinstance(flow.arrival, TokenBucket):
        return _along_curve(flow, grid, duration, pattern, draw) + offset
    burst, rate = flow.arrival.buckets[-1]
    count = min(MOST_TASKS, int(burst + rate * duration) + 1)
    wishes = np.full(count, offset, dtype=np.int64)
    if pattern == "random":
        mean = float(grid.scale / rate) * draw.uniform(0.3, 1.2)
        gaps = draw.exponential(mean, count) * (draw.random(count) < draw.uniform(0.3, 1.0))
        wishes = offset + np.cumsum(gaps).astype(np.int64)
    found = _shaped(flow.arrival, wishes, grid)
    return found[found < end + offset]


def _along_curve(flow: Flow, grid: Grid, duration: Fraction, pattern: Pattern, draw: np.random.Generator) -> Ints:
    """As early as a curve allows; at random, gaps only grow, which every curve allows."""
    moments: list[int] = []
    while (time := flow.arrival.moment(len(moments) + 1)) < duration and len(moments) < MOST_TASKS:
        moments.append(grid.ticks(time))
    found = np.array(moments, dtype=np.int64)
    if pattern == "random":
        mean = float(grid.scale / flow.arrival.buckets[-1][1])
        shifts = draw.exponential(mean, len(found)) * (draw.random(len(found)) < 0.3)
        found += np.cumsum(shifts).astype(np.int64)
    return found[found < int(duration * grid.scale)]


def _shaped(arrival: Arrival, wishes: Ints, grid: Grid) -> Ints:
    rows = []
    for burst, rate in arrival.buckets:
        increment, credit = grid.scale / rate, (burst - 1) / rate * grid.scale
        scale = lcm(increment.denominator, credit.denominator)
        if scale * (grid.scale + 1) > ROOM // 10**7:
            increment, scale = Fraction(-int(-increment // 1)), 1
        most = ROOM // (len(wishes) + 1)  # later than any end, and no sum of them overflows
        rows.append((min(int(increment * scale), most), min(int(credit * scale), ROOM), scale))
    columns = np.array(rows, dtype=np.int64).T
    return shape(wishes, *np.ascontiguousarray(columns))


def deadlines_of(arrivals: Ints, service: Service, grid: Grid) -> Ints:
    """The deadlines of tasks under a service curve, in ticks; where the grid is not exact, rounded up."""
    if isinstance(service, RateLatency):
        increment, latency = grid.scale / service.rate, service.latency * grid.scale
        scale = lcm(increment.denominator, latency.denominator)
        if scale * max(int(arrivals.max(initial=1)), 1) > ROOM:
            most = ROOM // (len(arrivals) + 1)
            return line_deadlines(arrivals, min(-int(-increment // 1), most), min(-int(-latency // 1), ROOM), 1, 0)
        most = ROOM // (len(arrivals) + 1)
        gap, wait = min(int(increment * scale), most), min(int(latency * scale), ROOM)
        return line_deadlines(arrivals, gap, wait, scale, 0 if grid.exact else 1)
    table = np.array([grid.ticks(service.time_for(n)) for n in range(1, min(len(arrivals), TABLE) + 1)], dtype=np.int64)
    return curve_deadlines(arrivals, table)


def offsets_of(flows: Sequence[Flow], blocker: int | None) -> list[int]:
    """When each input starts: all others one tick after the one that shall hold them up, by default the costliest."""
    first = max(range(len(flows)), key=lambda n: flows[n].cost) if blocker is None else blocker
    return [0 if n == first else 1 for n in range(len(flows))]


def rates_of(flood: Mapping[str, Fraction] | None, flow: Flow) -> Fraction | None:
    """The rate with which a flow floods, if it does."""
    return None if flood is None else flood.get(flow.query)
