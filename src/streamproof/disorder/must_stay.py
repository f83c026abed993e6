"""The fewest records that must not be delayed: what bounds the highest factor that can be reached.

Every delayed record needs one that stays, later in time and arriving within the longest delay; every event that was out
of order needs one that stays among those that overtook it. From the last record to the first, a record is made to stay
only when it must be, and then the leftmost one that does: a lone record that nothing can overtake stays itself; for
several at the same time, which cannot overtake each other, the first of the next time stays, if it is near enough.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.records import FAR, NOWHERE, Records, arrivals_of, fixed_of
from streamproof.events.order import Flags, Ints

# what is carried from a piece to the one before it
(
    _TIME, _OPEN, _FREE, _LAST_FREE, _FIRST, _FIRST_ARRIVAL, _STAY, _COVER, _NEXT, _NEXT_ARRIVAL, _BARE, _REACHED,
    _DUE, _DUE_HERE, _SIZE,
) = range(15)  # fmt: skip


def fresh_state() -> Ints:
    """The state behind the last record: nothing stays there."""
    state = np.zeros(_SIZE, np.int64)
    state[[_STAY, _COVER, _NEXT_ARRIVAL]] = FAR
    state[[_NEXT, _DUE, _DUE_HERE, _FIRST, _LAST_FREE]] = NOWHERE
    return state


def must_stay_in(
    times: Ints, arrivals: Ints, fixed: Flags, guard_from: Ints, *, longest: int, base: int, state: Ints
) -> Ints:
    """The places of records that must stay, as far as this piece decides them; pieces come last to first.

    ``base`` is the place of the first record here. ``guard_from[i]`` is the place from which on, up to ``i``, some
    record must stay; `NOWHERE` where nothing is behind ``i``.
    """
    found: Ints = _sweep(times, arrivals, fixed, guard_from, longest, base, state)
    return found


def must_stay_at_last(state: Ints) -> Ints:
    """What the first group of all decides, after the last piece."""
    out = np.empty(2, np.int64)
    count = _finish(state, out, 0) if state[_OPEN] else 0
    return out[:count]


@njit(cache=True)
def _sweep(times, arrivals, fixed, guard_from, longest, base, state):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    out = np.empty(len(times) + 2, np.int64)
    count = 0
    for i in range(len(times) - 1, -1, -1):
        if not state[_OPEN] or times[i] != state[_TIME]:
            if state[_OPEN]:
                count = _finish(state, out, count)
            _begin(state, times[i], longest)
        if guard_from[i] != NOWHERE:
            state[_DUE_HERE] = max(state[_DUE_HERE], guard_from[i])
        state[_FIRST], state[_FIRST_ARRIVAL] = base + i, arrivals[i]
        stays = fixed[i]
        if not stays and state[_BARE] and not state[_REACHED]:  # nothing can ever overtake it
            out[count] = base + i
            count += 1
            stays = True
        if stays:
            state[_STAY] = arrivals[i]
            state[_DUE] = state[_DUE_HERE] = NOWHERE
        else:
            state[_FREE] += 1
            state[_LAST_FREE] = base + i
    return out[:count]


@njit(cache=True)
def _begin(state, time, longest):  # type: ignore[no-untyped-def]
    state[_OPEN], state[_TIME], state[_FREE] = 1, time, 0
    state[_BARE] = state[_COVER] > time + longest
    state[_REACHED] = state[_NEXT] != NOWHERE and state[_NEXT_ARRIVAL] <= time + longest
    state[_STAY] = FAR


@njit(cache=True)
def _finish(state, out, count):  # type: ignore[no-untyped-def]
    """Decide a group of equal times when its first record has been seen."""
    if state[_BARE] and state[_FREE] == 1:
        out[count] = state[_LAST_FREE]
        count += 1
        state[_STAY] = min(state[_STAY], state[_FIRST_ARRIVAL])
        state[_FREE] = 0
        state[_DUE] = NOWHERE
        if state[_LAST_FREE] == state[_FIRST]:
            state[_DUE_HERE] = NOWHERE
    elif state[_BARE] and state[_FREE] > 1:
        out[count] = state[_NEXT]
        count += 1
        state[_COVER] = state[_NEXT_ARRIVAL]
        state[_DUE] = NOWHERE
    state[_DUE] = max(state[_DUE], state[_DUE_HERE])
    state[_DUE_HERE] = NOWHERE
    if state[_DUE] >= state[_FIRST]:
        out[count] = state[_FIRST]
        count += 1
        state[_STAY] = state[_FIRST_ARRIVAL]
        state[_DUE] = NOWHERE
    if state[_STAY] != FAR:
        state[_COVER] = state[_STAY]
    state[_NEXT], state[_NEXT_ARRIVAL] = state[_FIRST], state[_FIRST_ARRIVAL]
    return count


def mark_must_stay(records: Records, longest: int) -> int:
    """Mark the records that must stay, from the last piece to the first; returns their number, with the fixed ones."""
    state, starts, store = fresh_state(), records.starts, records.store
    pending, count = np.zeros(0, np.int64), 0
    for piece in range(len(records.splits) - 1, -1, -1):
        fixed = fixed_of(store, piece)
        marks = must_stay_in(
            np.asarray(store.get(f"rt/{piece}")), arrivals_of(store, piece), fixed,
            np.asarray(store.get(f"rguard/{piece}")), longest=longest, base=int(starts[piece]), state=state,
        )  # fmt: skip
        _put_marks(store, records, np.concatenate([pending, marks]), piece)
        pending = np.zeros(0, np.int64)
        count += len(marks) + int(fixed.sum())
    marks = must_stay_at_last(state)
    _put_marks(store, records, marks, -1)
    return count + len(marks)


def _put_marks(store: ArrayStore, records: Records, marks: Ints, piece: int) -> None:
    """Keep marks with the pieces they lie in; a mark may lie in a piece that was visited before."""
    starts = records.starts
    holders = np.searchsorted(starts, marks, side="right") - 1
    if piece >= 0:
        store.put(f"must_stay/{piece}", marks[holders == piece] - starts[piece])
    for other in np.unique(holders[holders != piece]).tolist():
        more = marks[holders == other] - starts[other]
        store.put(f"must_stay/{other}", np.concatenate([np.asarray(store.get(f"must_stay/{other}")), more]))
