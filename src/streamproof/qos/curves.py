"""Curves: how much may come, and how much is served, in any interval of a given length. Exact and piecewise linear.

A curve is 0 at 0 or above, never falls, and consists of finitely many pieces, the last of which goes on forever.
Between breakpoints it is a line; at a breakpoint it may jump.

>>> alpha, beta = token_bucket(10, 1), rate_latency(1, 20)
>>> alpha(0), alpha(5), beta(50)
(Fraction(0, 1), Fraction(15, 1), Fraction(30, 1))
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from streamproof.errors import PlanError
from streamproof.qos.exact import Exact, exact, positive


@dataclass(frozen=True, slots=True)
class Piece:
    """From one breakpoint to the next: the value at it, the value right after it, and the slope from there."""

    start: Fraction
    value: Fraction
    right: Fraction
    slope: Fraction

    def at(self, time: Fraction) -> Fraction:
        return self.value if time == self.start else self.right + self.slope * (time - self.start)


@dataclass(frozen=True, slots=True)
class Curve:
    """A piecewise linear function of time that never falls. The first piece starts at 0."""

    pieces: tuple[Piece, ...]

    def __post_init__(self) -> None:
        if not self.pieces or self.pieces[0].start != 0:
            raise PlanError("a curve starts at 0", fix="give a piece that starts at 0")
        for before, after in zip(self.pieces, self.pieces[1:], strict=False):
            if after.start <= before.start:
                raise PlanError("the breakpoints of a curve must increase", at=f"breakpoint {after.start}")
            if not before.at(after.start) <= after.value <= after.right:
                raise PlanError("a curve never falls", at=f"breakpoint {after.start}")
        if any(piece.slope < 0 or piece.right < piece.value for piece in self.pieces):
            raise PlanError("a curve never falls", fix="give slopes of at least 0")

    def _piece(self, time: Fraction) -> int:
        return bisect_right(self.pieces, time, key=lambda piece: piece.start) - 1

    def __call__(self, time: Exact) -> Fraction:
        """The value at a time."""
        moment = exact(time)
        return self.pieces[self._piece(moment)].at(moment) if moment >= 0 else Fraction(0)

    def after(self, time: Exact) -> Fraction:
        """The value right after a time."""
        moment = exact(time)
        piece = self.pieces[self._piece(moment)]
        return piece.right + piece.slope * (moment - piece.start)

    def before(self, time: Exact) -> Fraction:
        """The value right before a time."""
        moment = exact(time)
        if moment <= 0:
            return Fraction(0)
        piece = self.pieces[bisect_right(self.pieces, moment, key=lambda p: p.start) - 1]
        if piece.start == moment:
            piece = self.pieces[self._piece(moment) - 1]
        return piece.right + piece.slope * (moment - piece.start)

    @property
    def breakpoints(self) -> tuple[Fraction, ...]:
        return tuple(piece.start for piece in self.pieces)

    @property
    def rate(self) -> Fraction:
        """The slope in the long run."""
        return self.pieces[-1].slope

    def reaches(self, level: Exact) -> Fraction | float:
        """The first time at which the curve is at least this high: its lower inverse.

        >>> rate_latency("1/2", 10).reaches(1)
        Fraction(12, 1)
        """
        wanted = exact(level)
        for number, piece in enumerate(self.pieces):
            if piece.value >= wanted:
                return piece.start
            if piece.right >= wanted:
                return piece.start  # right after the jump
            end = self.pieces[number + 1].start if number + 1 < len(self.pieces) else None
            if piece.slope > 0:
                time = piece.start + (wanted - piece.right) / piece.slope
                if end is None or time < end:
                    return time
        return inf

    def exceeds(self, level: Exact) -> Fraction | float:
        """The time after which the curve is above this level: its upper inverse."""
        wanted = exact(level)
        for number, piece in enumerate(self.pieces):
            if piece.value > wanted or piece.right > wanted:
                return piece.start
            end = self.pieces[number + 1].start if number + 1 < len(self.pieces) else None
            if piece.slope > 0:
                time = piece.start + (wanted - piece.right) / piece.slope
                if end is None or time < end:
                    return time
        return inf

    def __add__(self, other: Curve) -> Curve:
        starts = sorted({*self.breakpoints, *other.breakpoints})
        pieces = [
            Piece(x, self(x) + other(x), self.after(x) + other.after(x), self._slope(x) + other._slope(x))
            for x in starts
        ]
        return simplified(pieces)

    def _slope(self, time: Fraction) -> Fraction:
        return self.pieces[self._piece(time)].slope

    def times(self, factor: Exact) -> Curve:
        """Every value times a factor, for instance a cost."""
        by = exact(factor)
        return Curve(tuple(Piece(p.start, p.value * by, p.right * by, p.slope * by) for p in self.pieces))

    def later(self, by: Exact) -> Curve:
        """The same curve, moved to the right; 0 before."""
        shift = exact(by)
        if shift == 0:
            return self
        first = Piece(Fraction(0), Fraction(0), Fraction(0), Fraction(0))
        return simplified([first, *(Piece(p.start + shift, p.value, p.right, p.slope) for p in self.pieces)])

    def corners(self, until: Exact) -> list[tuple[float, float]]:
        """What a pen draws: points in order, both ends of every jump."""
        end, points = exact(until), []
        for x in [*(x for x in self.breakpoints if x < end), end]:
            points += [(float(x), float(value)) for value in (self.before(x) if x else self(x), self(x), self.after(x))]
        return points[:-1]


def simplified(pieces: Sequence[Piece]) -> Curve:
    """A curve without breakpoints at which nothing happens."""
    kept = [pieces[0]]
    for piece in pieces[1:]:
        last = kept[-1]
        goes_on = last.at(piece.start) == piece.value == piece.right and last.slope == piece.slope
        if not goes_on:
            kept.append(piece)
    return Curve(tuple(kept))


def token_bucket(burst: Exact, rate: Exact) -> Curve:
    """At most ``burst`` at once, and ``rate`` in the long run."""
    zero = Fraction(0)
    return Curve((Piece(zero, zero, exact(burst), exact(rate)),))


def rate_latency(rate: Exact, latency: Exact) -> Curve:
    """Nothing for ``latency``, then ``rate``."""
    zero, start = Fraction(0), exact(latency)
    if start == 0:
        return Curve((Piece(zero, zero, zero, exact(rate)),))
    return Curve((Piece(zero, zero, zero, zero), Piece(start, zero, zero, exact(rate))))


def piecewise(points: Iterable[tuple[Exact, Exact]], *, rate: Exact) -> Curve:
    """Lines through points, which start at time 0, and then ``rate``; two points at one time are a jump.

    >>> piecewise([(0, 0), (0, 2), (4, 10)], rate=1)(5)
    Fraction(11, 1)
    """
    known = [(exact(x), exact(y)) for x, y in points]
    if not known or known[0][0] != 0:
        raise PlanError("the first point of a curve is at time 0", fix="start with [0, 0]")
    pieces: list[Piece] = []
    for number, (x, y) in enumerate(known):
        if pieces and pieces[-1].start == x:
            pieces[-1] = Piece(x, pieces[-1].value, y, Fraction(0))
        else:
            pieces.append(Piece(x, y, y, Fraction(0)))
        following = known[number + 1] if number + 1 < len(known) else None
        last = pieces[-1]
        if following is None:
            pieces[-1] = Piece(x, last.value, last.right, exact(rate))
        elif following[0] > x:
            pieces[-1] = Piece(x, last.value, last.right, (following[1] - last.right) / (following[0] - x))
        elif following[0] < x:
            raise PlanError("the points of a curve must not go back in time", at=f"point {number + 1}")
    return simplified(pieces)


def staircase(step: Exact, period: Exact, *, jitter: Exact = 0, steps: int = 64) -> Curve:
    """What a periodic source sends: ``step`` at once every ``period``, each up to ``jitter`` late.

    Exact for so many steps; after them the line through the upper corners, which bounds the steps from above.

    >>> [int(staircase(1, 5)(t)) for t in (0, 1, 5, 6)]
    [0, 1, 1, 2]
    """
    height, every, late = positive(step, "the step"), positive(period, "the period"), exact(jitter)
    first = late // every + 1  # what may come at once
    pieces = [Piece(Fraction(0), Fraction(0), height * first, Fraction(0))]
    for number in range(1, steps):
        low = height * (first + number - 1)
        pieces.append(Piece((first + number - 1) * every - late, low, low + height, Fraction(0)))
    top = height * (first + steps - 1)
    pieces.append(Piece((first + steps - 1) * every - late, top, top + height, height / every))
    return Curve(tuple(pieces))
