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
def _arrived(arrivals: Ints, first: int, end: int, time: int) -> int:
    """The first task from ``first`` on that comes after a time."""
    while first < end and arrivals[first] <= time:
        first += 1
    return first


@njit(cache=True)
def _batch_end(improved: Ints, end: int, most: int, deadline: int) -> int:
    """The end of a batch that takes tasks along as long as they are due no later than its first."""
    while end < most and improved[end] <= deadline:
        end += 1
    return end


@njit(cache=True)
def _piece(costs: Ints, head: int, end: int, left: int, quantum: int) -> tuple[int, int]:
    """How long the next piece takes, and what remains of a task that is cut."""
    if quantum > 0 and end - head == 1:
        whole = left if left > 0 else costs[head]
        piece = min(whole, quantum)
        return piece, whole - piece
    return costs[head:end].sum(), 0


@njit(cache=True)
def run_machine(  # noqa: PLR0917  # one loop over time, compiled: its state does not survive a cut
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
    """Run all tasks to their end; returns the number of pieces that ran."""
    flows = len(starts) - 1
    heads, known, ends = starts[:-1].copy(), starts[:-1].copy(), starts[:-1].copy()
    left = np.zeros(flows, dtype=np.int64)  # of a cut task: what remains
    now, turn, pieces, todo = 0, 0, 0, len(arrivals)
    while todo > 0:
        best, soonest = _next_flow(starts, arrivals, deadlines, improved, ranks, sizes, policy, now, turn,
                                   heads, known, ends, left)  # fmt: skip
        if best < 0:
            now = soonest
            continue
        pieces += 1
        head, end = heads[best], ends[best]
        piece, left[best] = _piece(costs, head, end, left[best], quanta[best])
        now += piece
        done = head if left[best] > 0 else end
        for f in range(flows):
            known[f] = _arrived(arrivals, known[f], starts[f + 1], now - 1)
            backlogs[f] = max(backlogs[f], known[f] - heads[f])
        finishes[head:done] = now
        todo -= done - head
        heads[best] = done
        turn = (best + 1) % flows if policy == ROUND_ROBIN else 0
    return pieces


@njit(cache=True)
def _next_flow(  # noqa: PLR0917  # the state of the machine
    starts: Ints,
    arrivals: Ints,
    deadlines: Ints,
    improved: Ints,
    ranks: Ints,
    sizes: Ints,
    policy: int,
    now: int,
    turn: int,  # the flow that is looked at first
    heads: Ints,  # per flow the first task that is not done
    known: Ints,  # per flow the first that has not arrived
    ends: Ints,  # per flow the end of its next batch
    left: Ints,
) -> tuple[int, int]:
    """The flow that runs next, or −1; and when the next task comes."""
    flows = len(heads)
    best, best_key, soonest = -1, NEVER, NEVER
    for step in range(flows):
        f = (turn + step) % flows
        known[f] = _arrived(arrivals, known[f], starts[f + 1], now)
        if known[f] < starts[f + 1]:
            soonest = min(soonest, arrivals[known[f]])
        head = heads[f]
        if head == known[f]:
            continue
        ends[f] = max(ends[f], head + 1)
        key = step
        if policy == EDF:
            if left[f] == 0:
                ends[f] = _batch_end(improved, ends[f], min(known[f], head + sizes[f]), deadlines[head])
            key = improved[ends[f] - 1]
        elif policy == FIFO:
            key = arrivals[head]
        elif policy == RATE:
            key = ranks[f]
        if key < best_key:
            best, best_key = f, key
    return best, soonest
