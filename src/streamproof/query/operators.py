"""Operators on one stream: payloads, lifetimes, equal payloads together, sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

from streamproof.arguments import Knows
from streamproof.errors import PlanError
from streamproof.events.time import Span
from streamproof.plan import nodes
from streamproof.plan.durations import read_duration, read_span
from streamproof.plan.expr import Expr
from streamproof.plan.nodes import Named, Plan
from streamproof.query.calls import kept_and_named, named_expressions, names_the_call
from streamproof.query.column import Column, Expression, to_expr


@dataclass(frozen=True, slots=True, repr=False)
class Linear(Knows):
    """The operators that read one stream."""

    plan: Plan

    def _then(self, plan: Plan) -> Self:
        return type(self)(plan)

    # --- payloads ---

    @names_the_call
    def where(self, condition: Expression) -> Self:
        """Only the events whose payload satisfies the condition; null is no. The condition may read ``le``.

        >>> source("S").where("v > 1")
        source(S) → where(v > 1)

        Law: ``s.where(a).where(b) == s.where(a & b)``.
        """
        return self._then(nodes.Where(self.plan, to_expr(condition)))

    @names_the_call
    def select(self, /, *keep: str | Mapping[str, Expression], **exprs: Expression) -> Self:
        """The same lifetimes with a new payload: columns kept by name, and new ones as expressions.

        >>> source("S").select("k", double="v * 2")
        source(S) → select(k, double=v * 2)
        >>> source("S").select({"two words": "v"})
        source(S) → select(two words=v)

        Law: duplicates stay, so ``s.select(…)`` has as many events as ``s``.
        """
        return self._then(nodes.Select(self.plan, kept_and_named(keep, exprs)))

    # --- lifetimes ---

    @names_the_call
    def shift(self, by: Span) -> Self:
        """Every lifetime moved later by ``by`` (earlier, if negative); infinite ends stay.

        >>> source("S").shift("5s")
        source(S) → shift(5s)

        Law: ``s.shift(x).shift(y) == s.shift(x + y)``.
        """
        return self._then(nodes.Shift(self.plan, read_span(by)))

    @names_the_call
    def extend(self, by: Span) -> Self:
        """Every end moved later by ``by``; a negative ``by`` shrinks, and empty lifetimes vanish.

        >>> source("S").extend(3)
        source(S) → extend(3)

        Law: for x and y of one sign, ``s.extend(x).extend(y) == s.extend(x + y)``.
        """
        return self._then(nodes.Extend(self.plan, read_span(by)))

    @names_the_call
    def alter_duration(self, dur: Span | Column) -> Self:
        """Lifetimes ``[le, le + dur)``: a length of time, ``"inf"``, or an expression over le, re and the payload.

        >>> source("S").alter_duration("minutes * 60")
        source(S) → alter_duration(minutes * 60)

        An infinite end that the expression reads stays; a duration of 0 or less gives no event.
        Law: ``s.alter_duration(1) == s.to_point()``.
        """
        return self._then(nodes.AlterDuration(self.plan, dur.expr if isinstance(dur, Column) else read_duration(dur)))

    @names_the_call
    def to_point(self) -> Self:
        """Lifetimes ``[le, le + 1)``.

        >>> source("S").to_point()
        source(S) → to_point

        Law: ``s.to_point().to_point() == s.to_point()``.
        """
        return self._then(nodes.ToPoint(self.plan))

    @names_the_call
    def point_at_end(self) -> Self:
        """Lifetimes ``[re, re + 1)``, for every event that ends.

        >>> source("S").point_at_end()
        source(S) → point_at_end

        Law: ``s.to_point().point_at_end() == s.to_point().shift(1)``.
        """
        return self._then(nodes.PointAtEnd(self.plan))

    @names_the_call
    def chop(self, period: Span, *, offset: Span = 0) -> Self:
        """Every lifetime cut at ``offset + k·period``, for every integer k.

        >>> source("S").chop(10)
        source(S) → chop(period=10)

        Law: ``s.chop(p).coalesce() == s.coalesce()``.
        """
        return self._then(nodes.Chop(self.plan, read_span(period), read_span(offset)))

    # --- equal payloads together ---

    @names_the_call
    def stitch(self) -> Self:
        """Touching lifetimes of equal payload become one; overlapping ones stay as they are.

        >>> source("S").chop(10).stitch()
        source(S) → chop(period=10) → stitch

        Law: ``s.chop(p).stitch() == s.stitch()`` where no two events of equal payload overlap.
        """
        return self._then(nodes.Stitch(self.plan))

    @names_the_call
    def coalesce(self) -> Self:
        """Touching or overlapping lifetimes of equal payload merge into one.

        >>> source("S").coalesce()
        source(S) → coalesce

        Law: ``s.coalesce().coalesce() == s.coalesce()``.
        """
        return self._then(nodes.Coalesce(self.plan))

    @names_the_call
    def distinct(self) -> Self:
        """Per payload, each snapshot with at least one event, once; the snapshots are not merged.

        >>> source("S").distinct()
        source(S) → distinct

        Law: ``s.distinct().distinct() == s.distinct()``.
        """
        return self._then(nodes.Distinct(self.plan))

    # --- sequences ---

    @names_the_call
    def session(
        self,
        timeout: Span,
        *,
        max: Span | None = None,  # noqa: A002  # the notation's word
        key: str | tuple[str, ...] | list[str] = (),
    ) -> Self:
        """Each event lasts until ``timeout`` after the last start of its session, per ``key`` if one is given.

        >>> source("clicks").session("30 minutes", key="user")
        source(clicks) → session(timeout=30 minutes, key=user)

        A gap of at least ``timeout`` begins a new session, and so does a start ``max`` after the session's first.
        Law: no event starts later or is lost.
        """
        longest = None if max is None else read_span(max)
        keys = (key,) if isinstance(key, str) else tuple(key)
        return self._then(nodes.Session(self.plan, read_span(timeout), longest, keys))

    @names_the_call
    def advance_time(
        self,
        *,
        every: int | None = None,
        every_duration: Span | None = None,
        delay: Span = 0,
        late: Literal["drop", "adjust"] = "drop",
        final: bool = True,
    ) -> Self:
        """CTIs for a source without: every N events or every duration, at the greatest start minus ``delay``.

        >>> source("S").advance_time(every=100, delay="5s")
        source(S) → advance_time(every=100, delay=5s, late=drop)

        Late events are dropped and counted, or adjusted to start at the CTI. It stands directly above its source.
        Law: over complete input it is the identity.
        """
        step = None if every_duration is None else read_span(every_duration)
        return self._then(nodes.AdvanceTime(self.plan, every, step, read_span(delay), late, final))


Columns: TypeAlias = "Mapping[str, Expression] | None"
"""The payload of a join's result: ``{"k": "l.k", "price": "r.price"}``; None is all columns of both sides."""


@dataclass(frozen=True, slots=True, repr=False)
class BinaryOperators(Linear):
    """The operators that read several streams."""

    @names_the_call
    def join(self, other: Linear, on: Expression = True, *, select: Columns = None) -> Self:
        """Matching pairs whose lifetimes meet, over the intersection of both lifetimes.

        >>> source("A").join(source("B"), "l.k = r.k", select={"k": "l.k", "v": "r.v"})
        source(A) → join(on=l.k = r.k, k=l.k, v=r.v)

        Law: ``a.join(b, on)`` has every pair as often as the product of both counts.
        """
        return self._then(nodes.Join(self.plan, *_operands(other, on, select)))

    @names_the_call
    def left_outer(self, other: Linear, on: Expression = True, *, select: Columns = None) -> Self:
        """The join, and every fragment of a left lifetime that no matching right event covers, with nulls.

        >>> source("A").left_outer(source("B"), left.k == right.k, select={"k": "l.k", "v": "r.v"})
        source(A) → left_outer(on=l.k = r.k, k=l.k, v=r.v)

        Law: ``a.left_outer(b, on)`` is ``a.join(b, on) | a.without(b, on)`` with nulls.
        """
        return self._then(nodes.LeftOuter(self.plan, *_operands(other, on, select)))

    @names_the_call
    def full_outer(self, other: Linear, on: Expression = True, *, select: Columns = None) -> Self:
        """The left outer join, and every fragment of a right lifetime that no matching left event covers.

        >>> source("A").full_outer(source("B"), "l.k = r.k", select={"a": "l.k", "b": "r.k"})
        source(A) → full_outer(on=l.k = r.k, a=l.k, b=r.k)

        Law: swapping both sides (and ``l.`` and ``r.``) changes nothing.
        """
        return self._then(nodes.FullOuter(self.plan, *_operands(other, on, select)))

    @names_the_call
    def followed_by(self, other: Linear, on: Expression = True, *, select: Columns = None) -> Self:
        """Pairs where the right event starts strictly inside the left one: ``[r.le, min(l.re, r.re))``.

        >>> source("A").followed_by(source("B"), "l.k = r.k", select={"k": "l.k"})
        source(A) → followed_by(on=l.k = r.k, k=l.k)

        Law: every pair is also one of ``a.join(b, on)``, starting no earlier.
        """
        return self._then(nodes.FollowedBy(self.plan, *_operands(other, on, select)))

    @names_the_call
    def without(self, other: Linear, on: Expression = True) -> Self:
        """Per event, the maximal fragments of its lifetime that no matching event of ``other`` covers.

        >>> source("alarms").without(source("maintenance"), "l.machine = r.machine")
        source(alarms) → lasj(on=l.machine = r.machine)

        Law: ``a.without(b, on).without(b, on) == a.without(b, on)``.
        """
        return self._then(nodes.AntiJoin(self.plan, _plan(other), to_expr(on)))

    anti_join = without

    @names_the_call
    def clip(self, by: Linear, on: Expression = True) -> Self:
        """Every lifetime cut at the first strictly later start of a matching event of ``by``.

        >>> states = source("states")
        >>> states.alter_duration("inf").clip(states, "l.machine = r.machine")
        source(states) → alter_duration(inf) → clip(on=l.machine = r.machine)

        Law: ``s.clip(b, on).clip(b, on) == s.clip(b, on)``.
        """
        return self._then(nodes.Clip(self.plan, _plan(by), to_expr(on)))

    @names_the_call
    def union(self, *others: Linear) -> Self:
        """The events of all streams; they need the same columns. Also written ``a | b``.

        >>> source("A") | source("B")
        source(A) → union

        Law: bag union: ``a | b == b | a``, and ``a | a`` has every event twice.
        """
        return self._then(nodes.Union((self.plan, *map(_plan, others))))

    def __or__(self, other: Linear) -> Self:
        return self.union(other)


def _operands(other: Linear, on: Expression, select: Columns) -> tuple[Plan, Expr, Named | None]:
    return _plan(other), to_expr(on), None if select is None else named_expressions(select)


def _plan(other: Linear) -> Plan:
    if not isinstance(other, Linear):
        raise PlanError(f"{other!r} is not a stream", fix='give a stream, e.g. source("S")')
    return other.plan
