"""Operators on several streams: joins, clips, unions. Conditions read ``l.column`` and ``r.column``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self, TypeAlias

from streamproof.errors import PlanError
from streamproof.plan import nodes
from streamproof.plan.expr import Expr
from streamproof.plan.nodes import Named, Plan
from streamproof.query.calls import named_expressions, names_the_call
from streamproof.query.column import Expression, to_expr
from streamproof.query.linear import Linear

Columns: TypeAlias = "Mapping[str, Expression] | None"
"""The payload of a join's result: ``{"k": "l.k", "price": "r.price"}``; None is all columns of both sides."""


@dataclass(frozen=True, slots=True, repr=False)
class Pairs(Linear):
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
