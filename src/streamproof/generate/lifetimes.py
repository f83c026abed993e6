"""Lifetimes by index: event ``i`` has the same lifetime whoever asks, in whatever order. Starts never decrease.

>>> lives = lifetimes(Facets(pattern="back_to_back", duration=5), 4, seed=7)
>>> index = np.arange(4)
>>> lives.starts(index).tolist(), lives.ends(index).tolist()
([0, 5, 10, 15], [5, 10, 15, 20])
>>> lives.first_from(np.array([7])).tolist()
[2]
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Final, Protocol

import numpy as np

from streamproof.errors import InputError, PlanError
from streamproof.events.order import Ints
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.generate.draws import below, exactly, key_of, part_of, words
from streamproof.generate.facets import Facets, Lifetime

GROUP: Final = 4  # equal events of the pattern "duplicates"
ENDLESS: Final = 16  # the most events that have no start either, where the duration is infinite
_NOMINAL: Final = Fraction(11)  # how far apart infinite lifetimes start, divided by the overlap: as short ones


class EventLifetimes(Protocol):
    """The lifetimes of a stream's events, each a function of the event's index."""

    @property
    def count(self) -> int: ...

    def starts(self, index: Ints) -> Ints: ...

    def ends(self, index: Ints) -> Ints: ...

    def origins(self, index: Ints) -> Ints:
        """The event that each is a copy of: itself, where it is not a copy."""
        ...

    def first_from(self, time: Ints) -> Ints:
        """The first event that starts at each time or later; ``count`` where none does."""
        ...


def lifetimes(facets: Facets, count: int, *, seed: int) -> EventLifetimes:
    """The lifetimes that the facets speak of."""
    if callable(facets.pattern):
        known: EventLifetimes = _from_function(facets, count)
    else:
        known = _slots(facets, count, seed)
    share = facets.numbers.copies
    copies = part_of(count, share) if share < 1 else 0
    if not copies:
        return known
    return Copied(known, key_of(seed, "copies"), min(copies, count - 1))


@dataclass(frozen=True, slots=True)
class Slots:
    """Starts in slots of equal length: slot ``n`` begins at ``start + n·spacing``, and so far apart are starts."""

    count: int
    start: int
    whole: int  # the spacing's whole ticks
    part: Fraction  # and the rest, below 1
    duration: Lifetime | None  # least and greatest, None for infinite
    jitter: int  # starts lie in the first so many ticks of their slot; 0 is as many as the lifetime leaves free
    group: int = 1  # events per slot
    odd: bool = False  # lengths are made odd
    endless: int = 0  # the first so many slots have no start
    keys: tuple[int, int] = (0, 0)  # for starts and lengths

    def origins(self, index: Ints) -> Ints:
        return index - index % self.group if self.group > 1 else index

    def starts(self, index: Ints) -> Ints:
        slot = index // self.group if self.group > 1 else index
        begin = slot * self.whole + slot * self.part.numerator // self.part.denominator + self.start
        if self.jitter != 1:
            room = self.jitter or self.whole - self._lengths(slot)
            begin += below(words(self.keys[0], slot), room)
        return np.where(slot < self.endless, BEGINNING, begin) if self.endless else begin

    def ends(self, index: Ints) -> Ints:
        if self.duration is None:
            return np.full(len(index), FOREVER, np.int64)
        return self.starts(index) + self._lengths(index // self.group)

    def _lengths(self, slot: Ints) -> Ints:
        assert self.duration is not None
        least, greatest = self.duration
        if least == greatest:
            lengths = np.full(len(slot), least, np.int64)
        else:
            lengths = least + below(words(self.keys[1], slot), greatest - least + 1)
        return lengths | 1 if self.odd else lengths

    def first_from(self, time: Ints) -> Ints:
        spacing = self.whole + float(self.part)
        guess = np.clip((time - self.start) / spacing * self.group * (1 - 1e-9), 0, self.count)
        return _step_up(self, np.maximum(guess.astype(np.int64) - 3 * self.group, 0), time)


@dataclass(frozen=True, slots=True)
class Given:
    """Lifetimes that a user's function gave, by start."""

    count: int
    le: Ints
    re: Ints

    def starts(self, index: Ints) -> Ints:
        return self.le[index]

    def ends(self, index: Ints) -> Ints:
        return self.re[index]

    def origins(self, index: Ints) -> Ints:
        return index

    def first_from(self, time: Ints) -> Ints:
        return np.searchsorted(self.le, time, side="left")


@dataclass(frozen=True, slots=True)
class Copied:
    """Other lifetimes, where exactly so many events are copies of the one before."""

    of: EventLifetimes
    key: int
    copies: int

    @property
    def count(self) -> int:
        return self.of.count

    def origins(self, index: Ints) -> Ints:
        return self.of.origins(self._sources(index))

    def _sources(self, index: Ints) -> Ints:
        source = index.copy()
        asking = np.arange(len(source))
        while len(asking):
            asking = asking[exactly(self.key, source[asking] - 1, self.count - 1, self.copies) & (source[asking] > 0)]
            source[asking] -= 1
        return source

    def starts(self, index: Ints) -> Ints:
        return self.of.starts(self._sources(index))

    def ends(self, index: Ints) -> Ints:
        return self.of.ends(self._sources(index))

    def first_from(self, time: Ints) -> Ints:
        return _step_up(self, self.of.first_from(time), time)


def _step_up(lives: EventLifetimes, index: Ints, time: Ints) -> Ints:
    """From indices that are too low, or right, to the first events that start at ``time`` or later."""
    asking = np.flatnonzero(index < lives.count)
    while len(asking):
        asking = asking[lives.starts(index[asking]) < time[asking]]
        index[asking] += 1
        asking = asking[index[asking] < lives.count]
    return index


def _slots(facets: Facets, count: int, seed: int) -> Slots:
    numbers, pattern = facets.numbers, facets.pattern
    duration = numbers.duration
    mean = Fraction(sum(duration), 2) if duration else _NOMINAL
    group = GROUP if pattern == "duplicates" else 1
    spacing, jitter = group * mean / numbers.overlap, None
    if pattern == "disjoint":
        spacing, jitter = Fraction(2 * (duration or (0, 0))[1]), 0
    elif pattern == "back_to_back":
        spacing, jitter = Fraction(max(1, int(mean))), 1
        duration = (int(spacing), int(spacing))
    elif pattern == "staggered":
        spacing, jitter = Fraction(2), 1
    spacing = spacing.limit_denominator(10**6)
    whole = int(spacing)
    _refuse_overflow(facets, count, spacing, duration)
    return Slots(
        count, facets.start, whole, spacing - whole, duration, max(whole, 1) if jitter is None else jitter, group,
        odd=pattern == "staggered", endless=_endless(count, group) if duration is None else 0,
        keys=(key_of(seed, "start"), key_of(seed, "length")),
    )  # fmt: skip


def _endless(count: int, group: int) -> int:
    return min(ENDLESS, -(-count // 16), -(-count // group))


def _refuse_overflow(facets: Facets, count: int, spacing: Fraction, duration: Lifetime | None) -> None:
    last = facets.start + count * spacing + 4 * (duration or (0, 1000))[1] + 1000
    if last >= FOREVER:
        raise PlanError(
            "the lifetimes lie outside ±2^62 ticks", at=str(facets), name="overflow",
            fix="start earlier, make fewer or shorter events, or more overlap",
        )  # fmt: skip


def _from_function(facets: Facets, count: int) -> Given:
    """The first ``count`` lifetimes of the user's function, in order of their starts."""
    pattern = facets.pattern
    assert callable(pattern)
    name = getattr(pattern, "__name__", "the pattern")
    pairs = [_pair(pair, number, name) for number, pair in enumerate(islice(pattern(), count))]
    if len(pairs) < count:
        what = f"{name} gave {len(pairs):,} lifetimes, and {count:,} events are wanted"
        raise InputError(what, fix="let it yield more, or ask for fewer events")
    le, re = np.array(pairs, np.int64).reshape(-1, 2).T
    if facets.shape == "point" and np.any(re != le + 1):
        bad = int(np.argmax(re != le + 1))
        fix = 'yield (t, t + 1), or use shape="interval"'
        raise InputError("a point lasts one tick", at=f"{name}, lifetime {bad}: {pairs[bad]}", fix=fix)
    order = np.lexsort((re, le))
    return Given(count, le[order], re[order])


def _pair(pair: object, number: int, name: str) -> Lifetime:
    """A lifetime as the user's function gave it, if it is one."""
    match pair:
        case (int(le), int(re)) if BEGINNING <= le < re <= FOREVER and le < FOREVER:
            return le, re
    fix = "yield pairs of whole numbers (le, re) with le < re; FOREVER and BEGINNING are the infinities"
    raise InputError(f"{pair!r} is not a lifetime", at=f"{name}, lifetime {number}", fix=fix)
