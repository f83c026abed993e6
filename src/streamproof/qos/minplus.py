"""Min-plus algebra: what curves become in series, and how far one can run ahead of another.

>>> from streamproof.qos.curves import rate_latency, token_bucket
>>> alpha, beta = token_bucket(10, 1), rate_latency(1, 20)
>>> horizontal(alpha, beta), vertical(alpha, beta)
(Fraction(30, 1), Fraction(30, 1))

Law: ``h(α, β) `` bounds the delay and ``v(α, β)`` the backlog of a flow with arrival curve α under service curve β.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from math import inf
from typing import NamedTuple

from streamproof.errors import PlanError
from streamproof.qos.curves import Curve, Piece, simplified
from streamproof.qos.exact import Exact, exact

ZERO = Fraction(0)
MOST_ROUNDS = 64  # of squaring, in a closure


class CurveStretch(NamedTuple):
    """A line over an open interval, or one point where both ends are the same."""

    start: Fraction
    end: Fraction | float
    value: Fraction  # right after the start
    slope: Fraction

    @property
    def is_point(self) -> bool:
        return self.start == self.end

    def at(self, time: Fraction) -> Fraction:
        return self.value + self.slope * (time - self.start)


def _stretches(curve: Curve) -> Iterator[CurveStretch]:
    ends: list[Fraction | float] = [*curve.breakpoints[1:], inf]
    for piece, end in zip(curve.pieces, ends, strict=True):
        yield CurveStretch(piece.start, piece.start, piece.value, ZERO)
        yield CurveStretch(piece.start, end, piece.right, piece.slope)


# --- convolution ------------------------------------------------------------------------------------------------------


def convolve(left: Curve, right: Curve) -> Curve:
    """``(f ⊗ g)(t) = inf { f(s) + g(t − s) : 0 <= s <= t }``: service curves in series, or a flow through a server.

    >>> from streamproof.qos.curves import rate_latency
    >>> convolve(rate_latency(3, 2), rate_latency(2, 5)) == rate_latency(2, 7)
    True

    Law: commutative, associative, and never above either curve where both are 0 at 0.
    """
    return _envelope((part for a in _stretches(left) for b in _stretches(right) for part in _in_series(a, b)), min)


def _in_series(a: CurveStretch, b: CurveStretch) -> Iterator[CurveStretch]:
    """Two stretches one after the other: the flatter one comes first, for that is lowest."""
    start, value = a.start + b.start, a.value + b.value
    if a.is_point or b.is_point:
        line = b if a.is_point else a
        length = line.end - line.start
        yield CurveStretch(start, start + length, value, line.slope)
        return
    flat, steep = (a, b) if a.slope <= b.slope else (b, a)
    length = flat.end - flat.start
    yield CurveStretch(start, start + length, value, flat.slope)
    if isinstance(length, Fraction):
        corner, high = start + length, value + flat.slope * length
        yield CurveStretch(corner, corner, high, ZERO)
        yield CurveStretch(corner, corner + (steep.end - steep.start), high, steep.slope)


# --- deconvolution ----------------------------------------------------------------------------------------------------


def deconvolve(left: Curve, right: Curve) -> Curve:
    """``(f ⊘ g)(t) = sup { f(t + u) − g(u) : u >= 0 }``: the arrival curve of what leaves a server.

    >>> from streamproof.qos.curves import rate_latency, token_bucket
    >>> deconvolve(token_bucket(10, 1), rate_latency(2, 20)).after(0)
    Fraction(30, 1)
    """
    if left.rate > right.rate:
        raise PlanError(
            "the deconvolution is infinite: more comes in the long run than is served",
            fix="give the service curve a larger rate",
        )
    return _envelope((part for a in _stretches(left) for b in _stretches(right) for part in _apart(a, b)), max)


def _apart(a: CurveStretch, b: CurveStretch) -> Iterator[CurveStretch]:
    """``f(x) − g(u)`` over ``t = x − u``, the largest for every t, where t is not negative."""
    lines = _descending(a, b) if isinstance(a.end, Fraction) else _ascending(a, b)
    for line in lines:
        if line.end >= 0 and not (line.end == 0 and not line.is_point):
            yield line if line.start >= 0 else CurveStretch(ZERO, line.end, line.at(ZERO), line.slope)
            if line.start < 0 < line.end:  # 0 itself lies inside
                yield CurveStretch(ZERO, ZERO, line.at(ZERO), ZERO)


def _descending(a: CurveStretch, b: CurveStretch) -> Iterator[CurveStretch]:
    """From the right end on, which is finite: the flatter line comes last, so from the right it comes first."""
    end = Fraction(a.end) - b.start
    value = a.at(Fraction(a.end)) - b.value
    if a.is_point and b.is_point:
        yield CurveStretch(end, end, value, ZERO)
    parts = sorted(((line.slope, line.end - line.start) for line in (a, b) if not line.is_point), key=lambda p: p[0])
    for number, (slope, length) in enumerate(parts):
        start = end - Fraction(length) if isinstance(length, Fraction) else min(ZERO, end) - 1
        if number:  # the corner between the two
            yield CurveStretch(end, end, value, ZERO)
        low = value - slope * (end - start)
        yield CurveStretch(start, end, low, slope)
        value, end = low, start
        if not isinstance(length, Fraction):
            return


def _ascending(a: CurveStretch, b: CurveStretch) -> Iterator[CurveStretch]:
    """The first stretch never ends: the steeper line comes first."""
    if isinstance(b.end, Fraction):
        start, value, length = a.start - b.end, a.value - b.at(b.end), b.end - b.start
        if a.slope < b.slope and length:
            yield CurveStretch(start, start + length, value, b.slope)
            start, value = start + length, value + b.slope * length
            yield CurveStretch(start, start, value, ZERO)
        yield CurveStretch(start, inf, value, a.slope)
        return
    corner, value = a.start - b.start, a.value - b.value
    begin = min(ZERO, corner) - 1
    yield CurveStretch(begin, corner, value - b.slope * (corner - begin), b.slope)
    yield CurveStretch(corner, corner, value, ZERO)
    yield CurveStretch(corner, inf, value, a.slope)


# --- envelopes --------------------------------------------------------------------------------------------------------


def minimum(*curves: Curve) -> Curve:
    """The lowest of curves, everywhere: what all of them allow."""
    return _envelope((part for curve in curves for part in _stretches(curve)), min)


def maximum(*curves: Curve) -> Curve:
    """The highest of curves, everywhere."""
    return _envelope((part for curve in curves for part in _stretches(curve)), max)


def _envelope(stretches: Iterable[CurveStretch], choose: Callable[..., Fraction]) -> Curve:
    known = list(stretches)
    ends = {part.start for part in known} | {part.end for part in known if isinstance(part.end, Fraction)}
    borders: list[Fraction | float] = [*sorted(ends), inf]
    pieces: list[Piece] = []
    for number, start in enumerate(borders[:-1]):
        begin, end = Fraction(start), borders[number + 1]
        over = [part for part in known if not part.is_point and part.start <= begin and part.end >= end]
        here = [part.value for part in known if part.is_point and part.start == begin]
        here += [part.at(begin) for part in known if not part.is_point and part.start < begin < part.end]
        at = choose(here)
        for x, value, slope in _lines(over, begin, end, choose):
            pieces.append(Piece(x, at if x == begin else value, value, slope))
    return simplified(pieces)


def _lines(
    over: list[CurveStretch], begin: Fraction, end: Fraction | float, choose: Callable[..., Fraction]
) -> Iterator[tuple[Fraction, Fraction, Fraction]]:
    """The lowest (or highest) of lines over an interval, corner by corner."""
    sign = 1 if choose is min else -1
    x = begin
    best = min(over, key=lambda part: (sign * part.at(begin), sign * part.slope))
    while True:
        yield x, best.at(x), best.slope
        crossings = [
            (x + (part.at(x) - best.at(x)) / (best.slope - part.slope), sign * part.slope, part)
            for part in over
            if sign * part.slope < sign * best.slope
        ]
        later = [crossing for crossing in crossings if x < crossing[0] < end]
        if not later:
            return
        x, _, best = min(later, key=lambda crossing: crossing[:2])


# --- deviations -------------------------------------------------------------------------------------------------------


def vertical(arrival: Curve, service: Curve) -> Fraction | float:
    """The most that can wait: ``sup { α(t) − β(t) }``."""
    if arrival.rate > service.rate:
        return inf
    found = ZERO
    for x in {*arrival.breakpoints, *service.breakpoints}:
        sides = (arrival(x) - service(x), arrival.after(x) - service.after(x), arrival.before(x) - service.before(x))
        found = max(found, *sides)
    return found


def horizontal(arrival: Curve, service: Curve) -> Fraction | float:
    """The longest that anything can wait: how far β lies to the right of α."""
    if arrival.rate > service.rate:
        return inf
    levels = {level for curve in (arrival, service) for level in _levels(curve)}
    found: Fraction | float = ZERO
    for level in levels:
        for here, there in ((arrival.reaches, service.reaches), (arrival.exceeds, service.exceeds)):
            if (start := here(level)) < inf:  # else nothing ever gets so far
                found = max(found, there(level) - start)
    return found


def _levels(curve: Curve) -> Iterator[Fraction]:
    for x in curve.breakpoints:
        yield from (curve.before(x), curve(x), curve.after(x))


def closure(curve: Curve, until: Exact) -> Curve:
    """The sub-additive closure up to a time: the least that long intervals allow, given what short ones do.

    Beyond that time it is a line above the closure, which is safe for an arrival curve.

    >>> from streamproof.qos.curves import piecewise
    >>> loose = piecewise([(0, 0), (0, 1), (5, 1)], rate=3)
    >>> loose(10), closure(loose, 20)(10)
    (Fraction(16, 1), Fraction(2, 1))

    Law: ``f(s + t) <= f(s) + f(t)`` up to that time, and never above the curve.
    """
    horizon = exact(until)
    first = curve.pieces[0]
    found = _up_to(Curve((Piece(ZERO, ZERO, first.right, first.slope), *curve.pieces[1:])), horizon)
    for _ in range(MOST_ROUNDS):
        better = _up_to(minimum(found, convolve(found, found)), horizon)
        if better == found:
            return found
        found = better
    raise PlanError(f"no closure after {MOST_ROUNDS} rounds", fix="ask for a shorter time")


def _up_to(curve: Curve, horizon: Fraction) -> Curve:
    """The curve up to a time, and then a line that no sub-additive curve with this start exceeds."""
    kept = [piece for piece in curve.pieces if piece.start < horizon]
    height = curve(horizon)
    return Curve((*kept, Piece(horizon, height, 2 * height, height / horizon)))
