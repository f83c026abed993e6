"""Measuring a stream piece by piece: who is late and by how much, who made them late, and when.

The running maximum before a piece is known from the pieces before it, so that every piece is measured by itself; what
lies across borders (descents, the holder of the maximum) is stitched together afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.records import LOWEST
from streamproof.events.order import Ints

KEPT: Final = 20  # holders that a piece reports
BINS: Final = 60  # over the stream in arrival order


class Holder(NamedTuple):
    """An event that set a new running maximum, and how many events came late because of it."""

    made_late: int
    time: int
    ahead: int  # how far beyond the maximum before it
    id: int


@dataclass(frozen=True)
class MeasuredPiece:
    """What one piece found."""

    rows: int
    late: int
    falls: int  # times an event is older than the one just before it, inside the piece
    first: int
    last: int
    highest: int
    head_late: int  # late events before the first new maximum here
    holders: tuple[Holder, ...]
    last_holder: Holder | None
    bins: Any = field(repr=False, default=None)  # events and late events by place in the stream
    negatives: int = 0


def measure_piece(  # noqa: PLR0917
    store: ArrayStore, piece: int, carry: int, place: tuple[int, int], without: Sequence[int] = (), keep: str = ""
) -> MeasuredPiece:
    """Measure one piece; lateness, times and delays go into the store as sorted runs under ``keep``."""
    times: Ints = np.asarray(store.get(f"t/{piece}"))
    ids: Ints = np.asarray(store.get(f"id/{piece}"))
    if without:
        wanted = ~np.isin(ids, np.array(without))
        times, ids = times[wanted], ids[wanted]
    lateness, late_at, falls, starts, counts, ahead, head = _measure(times, carry)
    store.put(f"{keep}lateness/{piece}", np.sort(lateness))
    store.put(f"{keep}times/{piece}", np.sort(times))
    negatives = 0
    if store.has(f"arrival/{piece}") and not without:
        delays = np.asarray(store.get(f"arrival/{piece}")) - times
        negatives = int((delays < 0).sum())
        store.put(f"{keep}delays/{piece}", np.sort(delays))
    first, total = place
    bins = np.zeros((2, BINS), np.int64)
    spots = (first + np.arange(len(times))) * BINS // max(1, total)
    bins[0] = np.bincount(spots, minlength=BINS)
    bins[1] = np.bincount(spots[late_at], minlength=BINS)
    if not len(times):
        return MeasuredPiece(0, 0, 0, 0, 0, carry, 0, (), None, bins)
    found = _holders(times, ids, starts, counts, ahead)
    last = Holder(int(counts[-1]), *_holder(times, ids, ahead, starts, len(starts) - 1)) if len(starts) else None
    return MeasuredPiece(
        len(times), len(lateness), int(falls), int(times[0]), int(times[-1]), max(carry, int(times.max())), int(head),
        found, last, bins, negatives,
    )  # fmt: skip


def _holder(times: Ints, ids: Ints, ahead: Ints, starts: Ints, n: int) -> tuple[int, int, int]:
    return int(times[starts[n]]), int(ahead[n]), int(ids[starts[n]])


def _holders(times: Ints, ids: Ints, starts: Ints, counts: Ints, ahead: Ints) -> tuple[Holder, ...]:
    """Those that made most events late; the last one is reported by itself, for it may continue in the next piece."""
    inner = counts[:-1]
    top = np.argsort(-inner, kind="stable")[:KEPT]
    return tuple(Holder(int(inner[n]), *_holder(times, ids, ahead, starts, n)) for n in top.tolist() if inner[n])


@njit(cache=True)
def _measure(times, carry):  # type: ignore[no-untyped-def]
    """Lateness and places of late events; falls; where new maxima are, how many each made late, how far ahead it is."""
    n = len(times)
    lateness, late_at = np.empty(n, np.int64), np.empty(n, np.int64)
    starts, counts, ahead = np.empty(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    late, falls, holders, head, highest = 0, 0, 0, 0, carry
    for i in range(n):
        if i and times[i] < times[i - 1]:
            falls += 1
        if times[i] < highest:
            lateness[late] = highest - times[i]
            late_at[late] = i
            late += 1
            if holders:
                counts[holders - 1] += 1
            else:
                head += 1
        elif times[i] > highest:
            starts[holders] = i
            ahead[holders] = times[i] - highest if highest > LOWEST else 0
            highest = times[i]
            holders += 1
    return lateness[:late], late_at[:late], falls, starts[:holders], counts[:holders], ahead[:holders], head


def holders_across_pieces(found: Sequence[MeasuredPiece]) -> list[Holder]:
    """The holders of all pieces, those that made most events late first."""
    holders: list[Holder] = []
    current: Holder | None = None
    for piece in found:
        if current is not None and piece.head_late:
            current = current._replace(made_late=current.made_late + piece.head_late)
        if piece.last_holder is not None:
            if current is not None:
                holders.append(current)
            current = piece.last_holder
        holders += piece.holders
    if current is not None:
        holders.append(current)
    return sorted((holder for holder in holders if holder.made_late), key=lambda holder: (-holder.made_late, holder.id))


def runs_of(found: Sequence[MeasuredPiece]) -> int:
    """The number of ascending runs: falls, those between pieces included, and one."""
    filled = [piece for piece in found if piece.rows]
    between = sum(b.first < a.last for a, b in pairwise(filled))
    return sum(piece.falls for piece in filled) + between + (1 if filled else 0)


def sort_hashes(store: ArrayStore, piece: int) -> None:
    store.put(f"sorted_row/{piece}", np.sort(np.asarray(store.get(f"row/{piece}"))))


def distinct_between(store: ArrayStore, pieces: int, part: int, parts: int) -> int:
    """How many different rows there are, by hash, in one part of all hashes."""
    width = 2**64 // parts
    low, high = (
        np.uint64(part * width),
        np.uint64(min(2**64 - 1, (part + 1) * width - 1) if part + 1 < parts else 2**64 - 1),
    )
    found = []
    for piece in range(pieces):
        run = store.get(f"sorted_row/{piece}")
        found.append(np.asarray(run[np.searchsorted(run, low, "left") : np.searchsorted(run, high, "right")]))
    merged = np.sort(np.concatenate(found))
    return int((merged[1:] != merged[:-1]).sum()) + 1 if len(merged) else 0


class KeyTable(NamedTuple):
    """What a piece found about its keys: hashes, events, late events, the longest lateness, one row of each."""

    keys: Any
    events: Ints
    late: Ints
    longest: Ints
    row: Ints  # the id and length of one row, so that the key can be read again
    length: Ints


def keys_of_piece(store: ArrayStore, piece: int, carry: int) -> KeyTable:
    """Events and late events by key."""
    times: Ints = np.asarray(store.get(f"t/{piece}"))
    keys = np.asarray(store.get(f"key/{piece}"))
    before = np.maximum(np.concatenate([[carry], np.maximum.accumulate(times)[:-1]]), carry) if len(times) else times
    lateness = np.where(times < before, before - times, 0)
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]])) if len(keys) else order
    if not len(keys):
        nothing = np.zeros(0, np.int64)
        return KeyTable(keys, nothing, nothing, nothing, nothing, nothing)
    events = np.diff(np.append(starts, len(keys)))
    late = np.add.reduceat((lateness[order] > 0).astype(np.int64), starts)
    longest = np.maximum.reduceat(lateness[order], starts)
    ids, lengths = np.asarray(store.get(f"id/{piece}")), np.asarray(store.get(f"length/{piece}"))
    rows = order[starts]
    return KeyTable(sorted_keys[starts], events, late, longest, ids[rows], lengths[rows].astype(np.int64))


def merged_keys(tables: Sequence[KeyTable]) -> KeyTable:
    """The keys of all pieces together."""
    keys = np.concatenate([table.keys for table in tables])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.zeros(0, np.int64)

    def column(name: str) -> Ints:
        return np.asarray(np.concatenate([getattr(table, name) for table in tables])[order])

    if not len(keys):
        return tables[0]
    return KeyTable(
        keys[starts], np.add.reduceat(column("events"), starts), np.add.reduceat(column("late"), starts),
        np.maximum.reduceat(column("longest"), starts), column("row")[starts], column("length")[starts],
    )  # fmt: skip
