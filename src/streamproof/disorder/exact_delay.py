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

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.hashing import Draws, draws
from streamproof.disorder.records import FAR, NOWHERE, Records, arrivals_of, fixed_of
from streamproof.events.order import Flags, Ints

NEVER = np.uint64(0)  # a limit that no threshold stays below: thresholds are at least 1
ALWAYS = np.uint64(2**64 - 1)  # the draw of a record that must stay: never delayed, whatever the threshold


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
    """Returns for each time the number of the rising arrivals that are at most ``longest`` later."""
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


GRID: Final = 12  # bits: the threshold is first looked for among 2^12 buckets


class Undelayed(NamedTuple):
    """When the first records of a piece that stay arrive: any, and the first one later than the piece's first time."""

    any: int
    after_first: int
    chosen: int


def draw_piece(records: Records, piece: int, seed: int, anchored: bool) -> int:
    """Draw a number for each record, the highest for those that must stay; returns the largest."""
    store = records.store
    found: Draws = draws(seed, "select", np.asarray(store.get(f"rid/{piece}")))
    found[fixed_of(store, piece)] = ALWAYS
    if anchored:
        found[np.asarray(store.get(f"must_stay/{piece}"))] = ALWAYS
    store.put(f"u/{piece}", found)
    return int(found.max()) if len(found) else 0


def limit_piece(records: Records, piece: int, longest: int, highest: Sequence[int]) -> None:
    """The limit of each record: at a higher threshold nothing would overtake it, or something needs it."""
    store = records.store
    mine: Draws = np.asarray(store.get(f"u/{piece}"))
    limits = _reach(records, piece, longest, np.array(highest, np.uint64), mine)
    guard_from: Ints = np.asarray(store.get(f"rguard/{piece}"))
    guarding = guard_from != NOWHERE
    if guarding.any():
        guards = _guard(records, piece, np.array(highest, np.uint64), mine, guard_from)
        limits[guarding] = np.minimum(limits, guards)[guarding]
    usable = mine < limits
    store.put(f"limit/{piece}", limits)
    store.put(f"ups/{piece}", np.sort(mine[usable]))
    store.put(f"downs/{piece}", np.sort(limits[usable]))


def _reach(records: Records, piece: int, longest: int, highest: Draws, mine: Draws) -> Draws:
    """The largest draw among the records that could overtake each one."""
    store = records.store
    times, arrivals = np.asarray(store.get(f"rt/{piece}")), arrivals_of(store, piece)
    if not len(times):
        return np.zeros(0, np.uint64)
    starts, ends = later(times), within(arrivals, times, longest)
    found: Draws = window_max(mine, starts, ends)
    beyond = np.flatnonzero(ends == len(times))  # these reach into the pieces behind
    if not len(beyond) or piece + 1 == len(highest):
        return found
    lasts = records.column("last_arrival")[piece + 1 :]
    whole = np.searchsorted(lasts, times[beyond] + longest, side="right")
    running = np.concatenate([np.zeros(1, np.uint64), np.maximum.accumulate(highest[piece + 1 :])])
    found[beyond] = np.maximum(found[beyond], running[whole])
    for step in np.unique(whole[whole < len(lasts)]).tolist():
        other = piece + 1 + step
        some = beyond[whole == step]
        ahead = np.maximum.accumulate(np.asarray(store.get(f"u/{other}")))
        counts = np.searchsorted(arrivals_of(store, other), times[some] + longest, side="right")
        reached = some[counts > 0]
        found[reached] = np.maximum(found[reached], ahead[counts[counts > 0] - 1])
    tail = np.flatnonzero(starts == len(times))  # their equals may continue in later pieces: looked up once for all
    found[tail] = _after(records, piece, int(times[-1]), longest, highest)
    return found


def _after(records: Records, piece: int, time: int, longest: int, highest: Draws) -> int:
    """The largest draw among the records of later pieces that come after ``time`` and arrive within reach."""
    firsts, lasts = records.column("first"), records.column("last_arrival")
    best = 0
    for other in range(piece + 1, len(highest)):
        if not records.splits[other].records:
            continue
        if firsts[other] > time and lasts[other] <= time + longest:
            best = max(best, int(highest[other]))
            continue
        times, arrivals = np.asarray(records.store.get(f"rt/{other}")), arrivals_of(records.store, other)
        start = int(np.searchsorted(times, time, side="right"))
        end = int(np.searchsorted(arrivals, time + longest, side="right"))
        if end > start:
            best = max(best, int(np.max(records.store.get(f"u/{other}")[start:end])))
        if end < len(arrivals):
            break
    return best


def _guard(records: Records, piece: int, highest: Draws, mine: Draws, guard_from: Ints) -> Draws:
    """The largest draw among the records from ``guard_from[i]`` up to ``i``."""
    starts = records.starts
    inside = np.where(guard_from == NOWHERE, len(mine), guard_from - starts[piece])
    found: Draws = back_max(mine, np.maximum(inside, 0))
    before = np.flatnonzero((guard_from != NOWHERE) & (inside < 0))
    if not len(before):
        return found
    holders = np.searchsorted(starts, guard_from[before], side="right") - 1
    backwards = np.concatenate([np.zeros(1, np.uint64), np.maximum.accumulate(highest[:piece][::-1])])
    found[before] = np.maximum(found[before], backwards[piece - 1 - holders])  # whole pieces in between
    for holder in np.unique(holders).tolist():
        some = before[holders == holder]
        suffix = np.maximum.accumulate(np.asarray(records.store.get(f"u/{holder}"))[::-1])[::-1]
        found[some] = np.maximum(found[some], suffix[guard_from[some] - starts[holder]])
    return found


def find_threshold(store: ArrayStore, pieces: int, target: int) -> int | None:
    """The first threshold at which exactly ``target`` records are delayed, or None if there is none."""
    if target == 0:
        return 0
    ups = [store.get(f"ups/{piece}") for piece in range(pieces)]
    downs = [store.get(f"downs/{piece}") for piece in range(pieces)]
    edges = np.arange(1 << GRID, dtype=np.uint64) << np.uint64(64 - GRID)
    up_at = [np.append(np.searchsorted(run, edges), len(run)) for run in ups]
    down_at = [np.append(np.searchsorted(run, edges), len(run)) for run in downs]
    ups_before, downs_before = np.sum(up_at, axis=0), np.sum(down_at, axis=0)
    most = ups_before[1:] - downs_before[:-1]
    for bucket in np.flatnonzero(most >= target).tolist():
        rising = _merged(ups, up_at, bucket)
        falling = _merged(downs, down_at, bucket)
        delayed = ups_before[bucket] + np.arange(1, len(rising) + 1) - downs_before[bucket]
        delayed -= np.searchsorted(falling, rising, side="right")
        hits = np.flatnonzero(delayed >= target)
        if len(hits):
            return int(rising[hits[0]]) + 1
    return None


def _merged(runs: Sequence[Draws], at: Sequence[Ints], bucket: int) -> Draws:
    parts = [np.asarray(run[places[bucket] : places[bucket + 1]]) for run, places in zip(runs, at, strict=True)]
    return np.sort(np.concatenate(parts))


def chosen_in(store: ArrayStore, piece: int, threshold: int) -> Flags:
    """The records of a piece that are delayed at a threshold."""
    mine, limits = np.asarray(store.get(f"u/{piece}")), np.asarray(store.get(f"limit/{piece}"))
    bound = np.uint64(min(threshold, 2**64 - 1))
    return np.asarray((mine < bound) & (bound <= limits)) if threshold else np.zeros(len(mine), np.bool_)


def survey_piece(records: Records, piece: int, threshold: int) -> Undelayed:
    """When the first records of a piece that stay arrive."""
    store = records.store
    chosen = chosen_in(store, piece, threshold)
    if not len(chosen):
        return Undelayed(FAR, FAR, 0)
    times, arrivals = np.asarray(store.get(f"rt/{piece}")), arrivals_of(store, piece)
    staying = np.flatnonzero(~chosen)
    after = staying[times[staying] > times[0]]
    first = int(arrivals[staying[0]]) if len(staying) else FAR
    return Undelayed(first, int(arrivals[after[0]]) if len(after) else FAR, int(chosen.sum()))


def least_delays(records: Records, piece: int, chosen: Flags, surveys: Sequence[Undelayed]) -> Ints:
    """How long each record must be delayed at least, so that one that stays overtakes it."""
    times = np.asarray(records.store.get(f"rt/{piece}"))
    if not len(times):
        return np.zeros(0, np.int64)
    later_pieces = [other for other in range(piece + 1, len(surveys)) if records.splits[other].records]
    after_chunk = next((surveys[other].any for other in later_pieces if surveys[other].any != FAR), FAR)
    last = int(times[-1])
    tails = (
        surveys[other].any if records.splits[other].first > last else surveys[other].after_first
        for other in later_pieces
    )
    after_tail = next((tail for tail in tails if tail != FAR), FAR)
    near: Ints = nearest(times, arrivals_of(records.store, piece), ~chosen, after_chunk, after_tail)
    return np.asarray(near - times)
