"""The in-order events of a stream, its *records*, and what each of them keeps out of order.

A stream lies on a store in pieces: ``t/0``, ``t/1``… are the event times in arrival order, ``id/…`` the row ids and,
where outages or clocks move arrivals, ``g/…`` the arrivals. Without them an event arrives at the running maximum of the
times so far, itself included, so that a stable sort by arrival gives back the source with its disorder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from streamproof.disorder.array_store import ArrayStore
from streamproof.events.order import Flags, Ints

LOWEST = -(2**63) + 1  # before every time
FAR = 2**62  # beyond every arrival
NOWHERE = -1  # before every place


def prefix_maxima(highest: Sequence[int]) -> list[int]:
    """The latest time before each piece, from the latest time of each.

    >>> prefix_maxima([5, 3, 9]) == [LOWEST, 5, 5]
    True
    """
    return [int(value) for value in np.maximum.accumulate([LOWEST, *highest])[:-1]]


@dataclass(frozen=True)
class Split:
    """What one piece found out about itself."""

    records: int
    late: int
    head_top: int  # the latest time of the out-of-order events before the first record here
    first: int = 0
    last: int = 0
    first_arrival: int = 0
    last_arrival: int = 0


@dataclass(frozen=True)
class Records:
    """The records of all pieces: how many, from when to when, and where each piece starts."""

    store: ArrayStore
    splits: Sequence[Split]
    carries: Sequence[int]  # the running maximum before each piece
    tops: dict[int, int] = field(default_factory=dict)  # what following pieces add to a piece's last record

    @property
    def late(self) -> int:
        return sum(split.late for split in self.splits)

    @property
    def count(self) -> int:
        return sum(split.records for split in self.splits)

    @property
    def starts(self) -> Ints:
        return np.concatenate([[0], np.cumsum([split.records for split in self.splits])]).astype(np.int64)

    def column(self, of: str) -> Ints:
        """One figure of all pieces that have records; the others repeat the piece before them."""
        return np.array([getattr(split, of) for split in self.splits], np.int64)


def split_piece(store: ArrayStore, piece: int, carry: int) -> Split:
    """Tell records from out-of-order events, and remember for each record the latest time that it keeps late."""
    times: Ints = np.asarray(store.get(f"t/{piece}"))
    late, places, tops, head_top = _split(times, carry)
    moved = store.has(f"g/{piece}")
    found = times[places]
    arrivals = np.asarray(store.get(f"g/{piece}"))[places] if moved else found
    store.put(f"late/{piece}", late)
    store.put(f"rt/{piece}", found)
    store.put(f"rid/{piece}", np.asarray(store.get(f"id/{piece}"))[places])
    store.put(f"rtop/{piece}", tops)
    if moved:
        store.put(f"rg/{piece}", arrivals)
    if not len(found):
        return Split(0, len(times), int(head_top), carry, carry, carry, carry)
    ends = (found[0], found[-1], arrivals[0], arrivals[-1])
    return Split(len(found), len(times) - len(found), int(head_top), *map(int, ends))


@njit(cache=True)
def _split(times, carry):  # type: ignore[no-untyped-def]
    late = np.zeros(len(times), np.bool_)
    places, tops = np.empty(len(times), np.int64), np.empty(len(times), np.int64)
    count, top, head_top, highest = 0, LOWEST, LOWEST, carry
    for i in range(len(times)):
        if times[i] < highest:
            late[i] = True
            if count:
                top = max(top, times[i])
                tops[count - 1] = top
            else:
                head_top = max(head_top, times[i])
        else:
            highest, top = times[i], LOWEST
            places[count], tops[count] = i, LOWEST
            count += 1
    return late, places[:count], tops[:count].copy(), head_top


def latest_kept_late(splits: Sequence[Split]) -> dict[int, int]:
    """For pieces whose last record keeps events of following pieces late: the latest time of those."""
    found: dict[int, int] = {}
    holder = -1
    for piece, split in enumerate(splits):
        if holder >= 0 and split.head_top > LOWEST:
            found[holder] = max(found.get(holder, LOWEST), split.head_top)
        if split.records:
            holder = piece
    return found


def guard_piece(records: Records, piece: int) -> None:
    """For each record, from which place on one must stay so that nothing behind it loses its last overtaker."""
    store = records.store
    times: Ints = np.asarray(store.get(f"rt/{piece}"))
    tops: Ints = np.array(store.get(f"rtop/{piece}"))
    if piece in records.tops:
        tops[-1] = max(tops[-1], records.tops[piece])
    start = records.starts[piece]
    guarding = np.flatnonzero(tops > LOWEST)
    found = np.full(len(tops), NOWHERE, np.int64)
    inside = np.searchsorted(times, tops[guarding], side="right")
    found[guarding] = start + inside
    before = guarding[inside == 0]
    if len(before) and piece:
        found[before] = _places(records, tops[before], piece)
    store.put(f"rguard/{piece}", found)


def _places(records: Records, times: Ints, piece: int) -> Ints:
    """The place of the first record later than each time; it lies in this piece or in one before it."""
    lasts, starts = records.column("last")[:piece], records.starts
    holders = np.searchsorted(lasts, times, side="right")
    found = np.full(len(times), starts[piece], np.int64)
    for holder in np.unique(holders[holders < piece]).tolist():
        mine = holders == holder
        inside = np.searchsorted(records.store.get(f"rt/{holder}"), times[mine], side="right")
        found[mine] = starts[holder] + inside
    return found


def arrivals_of(store: ArrayStore, piece: int) -> Ints:
    """When the records of a piece arrive."""
    name = f"rg/{piece}" if store.has(f"rg/{piece}") else f"rt/{piece}"
    return np.asarray(store.get(name))


def fixed_of(store: ArrayStore, piece: int) -> Flags:
    """The records whose arrival is given: an outage or a clock moved them, so they are not to be delayed again."""
    times: Ints = np.asarray(store.get(f"rt/{piece}"))
    return np.asarray(arrivals_of(store, piece) != times)
