"""Choosing the records to delay, piece by piece: draws, limits, the threshold, and how long each must wait at least.

Each function of a piece reads at most two pieces at a time and gives the driver a few numbers; see `stabbing` for the
idea and the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from streamproof.disorder.anchors import FAR, NOWHERE, anchors_of, fresh_state, last_anchors
from streamproof.disorder.hashing import Draws, draws
from streamproof.disorder.records import Records, arrivals_of, fixed_of
from streamproof.disorder.shelf import Shelf
from streamproof.disorder.stabbing import ALWAYS, back_max, later, nearest, window_max, within
from streamproof.events.order import Flags, Ints

GRID: Final = 12  # bits: the threshold is first looked for among 2^12 buckets


class Undelayed(NamedTuple):
    """When the first records of a piece that stay arrive: any, and the first one later than the piece's first time."""

    any: int
    after_first: int
    chosen: int


def draw_piece(records: Records, piece: int, seed: int, anchored: bool) -> int:
    """Draw a number for each record; anchors draw the highest. The largest of them."""
    shelf = records.shelf
    found: Draws = draws(seed, "select", np.asarray(shelf.get(f"rid/{piece}")))
    found[fixed_of(shelf, piece)] = ALWAYS
    if anchored:
        found[np.asarray(shelf.get(f"anchor/{piece}"))] = ALWAYS
    shelf.put(f"u/{piece}", found)
    return int(found.max()) if len(found) else 0


def limit_piece(records: Records, piece: int, longest: int, highest: Sequence[int]) -> None:
    """The limit of each record: at a higher threshold nothing would overtake it, or something needs it."""
    shelf = records.shelf
    mine: Draws = np.asarray(shelf.get(f"u/{piece}"))
    limits = _reach(records, piece, longest, np.array(highest, np.uint64), mine)
    guard_from: Ints = np.asarray(shelf.get(f"rguard/{piece}"))
    guarding = guard_from != NOWHERE
    if guarding.any():
        guards = _guard(records, piece, np.array(highest, np.uint64), mine, guard_from)
        limits[guarding] = np.minimum(limits, guards)[guarding]
    usable = mine < limits
    shelf.put(f"limit/{piece}", limits)
    shelf.put(f"ups/{piece}", np.sort(mine[usable]))
    shelf.put(f"downs/{piece}", np.sort(limits[usable]))


def _reach(records: Records, piece: int, longest: int, highest: Draws, mine: Draws) -> Draws:
    """The largest draw among the records that could overtake each one."""
    shelf = records.shelf
    times, arrivals = np.asarray(shelf.get(f"rt/{piece}")), arrivals_of(shelf, piece)
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
        ahead = np.maximum.accumulate(np.asarray(shelf.get(f"u/{other}")))
        counts = np.searchsorted(arrivals_of(shelf, other), times[some] + longest, side="right")
        reached = some[counts > 0]
        found[reached] = np.maximum(found[reached], ahead[counts[counts > 0] - 1])
    tail = np.flatnonzero(starts == len(times))  # their equals may go on behind: looked up once for all
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
        times, arrivals = np.asarray(records.shelf.get(f"rt/{other}")), arrivals_of(records.shelf, other)
        start = int(np.searchsorted(times, time, side="right"))
        end = int(np.searchsorted(arrivals, time + longest, side="right"))
        if end > start:
            best = max(best, int(np.max(records.shelf.get(f"u/{other}")[start:end])))
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
        suffix = np.maximum.accumulate(np.asarray(records.shelf.get(f"u/{holder}"))[::-1])[::-1]
        found[some] = np.maximum(found[some], suffix[guard_from[some] - starts[holder]])
    return found


def find_anchors(records: Records, longest: int) -> int:
    """Mark the records that must stay, from the last piece to the first; how many, the fixed ones included."""
    state, starts, shelf = fresh_state(), records.starts, records.shelf
    pending, count = np.zeros(0, np.int64), 0
    for piece in range(len(records.splits) - 1, -1, -1):
        fixed = fixed_of(shelf, piece)
        marks = anchors_of(
            np.asarray(shelf.get(f"rt/{piece}")), arrivals_of(shelf, piece), fixed,
            np.asarray(shelf.get(f"rguard/{piece}")), longest=longest, base=int(starts[piece]), state=state,
        )  # fmt: skip
        _put_marks(shelf, records, np.concatenate([pending, marks]), piece)
        pending = np.zeros(0, np.int64)
        count += len(marks) + int(fixed.sum())
    marks = last_anchors(state)
    _put_marks(shelf, records, marks, -1)
    return count + len(marks)


def _put_marks(shelf: Shelf, records: Records, marks: Ints, piece: int) -> None:
    """Keep marks with the pieces they lie in; a mark may lie in a piece that was visited before."""
    starts = records.starts
    holders = np.searchsorted(starts, marks, side="right") - 1
    if piece >= 0:
        shelf.put(f"anchor/{piece}", marks[holders == piece] - starts[piece])
    for other in np.unique(holders[holders != piece]).tolist():
        more = marks[holders == other] - starts[other]
        shelf.put(f"anchor/{other}", np.concatenate([np.asarray(shelf.get(f"anchor/{other}")), more]))


def find_threshold(shelf: Shelf, pieces: int, target: int) -> int | None:
    """The first threshold at which exactly ``target`` records are delayed, or None if there is none."""
    if target == 0:
        return 0
    ups = [shelf.get(f"ups/{piece}") for piece in range(pieces)]
    downs = [shelf.get(f"downs/{piece}") for piece in range(pieces)]
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


def chosen_in(shelf: Shelf, piece: int, threshold: int) -> Flags:
    """The records of a piece that are delayed at a threshold."""
    mine, limits = np.asarray(shelf.get(f"u/{piece}")), np.asarray(shelf.get(f"limit/{piece}"))
    bound = np.uint64(min(threshold, 2**64 - 1))
    return np.asarray((mine < bound) & (bound <= limits)) if threshold else np.zeros(len(mine), np.bool_)


def survey_piece(records: Records, piece: int, threshold: int) -> Undelayed:
    """When the first records of a piece that stay arrive."""
    shelf = records.shelf
    chosen = chosen_in(shelf, piece, threshold)
    if not len(chosen):
        return Undelayed(FAR, FAR, 0)
    times, arrivals = np.asarray(shelf.get(f"rt/{piece}")), arrivals_of(shelf, piece)
    staying = np.flatnonzero(~chosen)
    after = staying[times[staying] > times[0]]
    first = int(arrivals[staying[0]]) if len(staying) else FAR
    return Undelayed(first, int(arrivals[after[0]]) if len(after) else FAR, int(chosen.sum()))


def least_delays(records: Records, piece: int, chosen: Flags, surveys: Sequence[Undelayed]) -> Ints:
    """How long each record must be delayed at least, so that one that stays overtakes it."""
    times = np.asarray(records.shelf.get(f"rt/{piece}"))
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
    near: Ints = nearest(times, arrivals_of(records.shelf, piece), ~chosen, after_chunk, after_tail)
    return np.asarray(near - times)
