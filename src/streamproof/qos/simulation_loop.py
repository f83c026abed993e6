"""The inner loops of the simulation, compiled: shaping arrivals, deadlines, and one machine under a policy.

All times are whole ticks. Tasks of all flows lie in one array, flow after flow, in order of arrival.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]

FIFO: Final = 0
ROUND_ROBIN: Final = 1
RATE: Final = 2
EDF: Final = 3
NEVER: Final = 2**62


@njit(cache=True)
def shape(wishes: Ints, increments: Ints, allowances: Ints, scales: Ints) -> Ints:
    """Arrivals that come as soon as they wish and as their buckets allow; one row of each argument per bucket.

    A bucket lets a task pass at ``TAT − τ`` and then moves ``TAT`` by one over the rate.
    """
    found = np.empty_like(wishes)
    due = np.zeros(len(increments), dtype=np.int64)
    for n in range(len(wishes)):
        time = wishes[n]
        for j in range(len(increments)):
            earliest = -((allowances[j] - due[j]) // scales[j])  # rounded up
            time = max(time, earliest)
        for j in range(len(increments)):
            due[j] = max(due[j], time * scales[j]) + increments[j]
        found[n] = time
    return found


@njit(cache=True)
def line_deadlines(arrivals: Ints, increment: int, latency: int, scale: int, up: int) -> Ints:
    """``F_n = max(F_{n−1}, a_n) + 1/R``, ``D_n = F_n + T``; all but the arrivals are in ticks times ``scale``."""
    found = np.empty_like(arrivals)
    finish = -NEVER
    for n in range(len(arrivals)):
        finish = max(finish, arrivals[n] * scale) + increment
        found[n] = (finish + latency + up * (scale - 1)) // scale
    return found


@njit(cache=True)
def curve_deadlines(arrivals: Ints, times: Ints) -> Ints:
    """``D_n = max over m <= n of a_m + β⁻¹(n − m + 1)``, from a table of β⁻¹(1), β⁻¹(2), …"""
    found = np.empty_like(arrivals)
    for n in range(len(arrivals)):
        latest = np.int64(0)
        for m in range(max(0, n + 1 - len(times)), n + 1):
            latest = max(latest, arrivals[m] + times[n - m])
        found[n] = latest
    return found


@njit(cache=True)
def run_machine(  # noqa: PLR0912, PLR0915, PLR0917  # one loop over time, compiled: its state does not survive a cut
    starts: Ints,  # where each flow's tasks begin, and the end of all
    arrivals: Ints,
    deadlines: Ints,
    improved: Ints,
    costs: Ints,
    ranks: Ints,  # per flow, for the rate-based policy: the lowest comes first
    sizes: Ints,  # per flow, tasks in a batch
    quanta: Ints,  # per flow, the longest piece; 0 where tasks are not cut
    policy: int,
    finishes: Ints,  # out: when each task is done
    backlogs: Ints,  # out: per flow, the most tasks that waited or ran at once
) -> int:
    """Run all tasks to their end; how many pieces were run."""
    flows = len(starts) - 1
    heads = starts[:-1].copy()  # the first task of each flow that is not done
    known = starts[:-1].copy()  # the first that has not arrived
    ends = starts[:-1].copy()  # the end of each flow's next batch
    left = np.zeros(flows, dtype=np.int64)  # of a cut task: what remains
    now, turn, pieces, todo = np.int64(0), 0, 0, len(arrivals)
    while todo > 0:
        best, best_key, soonest = -1, np.int64(NEVER), np.int64(NEVER)
        for step in range(flows):
            f = (turn + step) % flows
            while known[f] < starts[f + 1] and arrivals[known[f]] <= now:
                known[f] += 1
            if known[f] < starts[f + 1]:
                soonest = min(soonest, arrivals[known[f]])
            head = heads[f]
            if head == known[f]:
                continue
            if ends[f] <= head:
                ends[f] = head + 1
            if policy == EDF:
                while ends[f] < known[f] and ends[f] - head < sizes[f] and left[f] == 0:
                    if improved[ends[f]] > deadlines[head]:
                        break
                    ends[f] += 1
                key = improved[ends[f] - 1]
            elif policy == FIFO:
                key = arrivals[head]
            elif policy == RATE:
                key = ranks[f]
            else:
                key = np.int64(step)
            if key < best_key:
                best, best_key = f, key
        if best < 0:
            now = soonest
            continue
        pieces += 1
        head, end = heads[best], ends[best]
        done = end
        if quanta[best] > 0 and end - head == 1:
            if left[best] == 0:
                left[best] = costs[head]
            piece = min(left[best], quanta[best])
            left[best] -= piece
            now += piece
            done = head if left[best] > 0 else end
        else:
            for n in range(head, end):
                now += costs[n]
        for f in range(flows):
            while known[f] < starts[f + 1] and arrivals[known[f]] < now:
                known[f] += 1
            backlogs[f] = max(backlogs[f], known[f] - heads[f])
        for n in range(head, done):
            finishes[n] = now
        todo -= done - head
        heads[best] = done
        turn = (best + 1) % flows if policy == ROUND_ROBIN else 0
    return pieces
