"""A stream divided into windows: what `tumbling`, `hopping`, `snapshot` and the count windows give.

>>> from streamproof.query.aggregates import avg, count
>>> source("S").tumbling("1 minute").aggregate(n=count(), mean=avg("v"))
source(S) → agg(tumbling(size=1 minute), n=count(), mean=avg(v))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from streamproof.arguments import Knows
from streamproof.errors import PlanError
from streamproof.events.time import Span
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.durations import read_span
from streamproof.plan.expr import Col, Expr, Value
from streamproof.plan.modules import Clipping, Restriction, Stamping
from streamproof.plan.nodes import Direction, Output, Plan
from streamproof.plan.results import window_of_results
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window
from streamproof.query.calls import named_expressions, names_the_call
from streamproof.query.column import Expression, Ordering, to_expr

if TYPE_CHECKING:
    from streamproof.query.stream import Stream

Params: TypeAlias = "Mapping[str, Value] | None"


class Divisible(Protocol):
    """Something to divide into windows: a stream, or each group of one."""

    @property
    def results(self) -> Plan:
        """The events to divide, of all groups."""
        ...

    def in_windows(self, window: Window) -> Windowed:
        """What the windows below are made with."""
        ...


class WindowOperators:
    """The five ways to divide time (or the sequence of events)."""

    __slots__ = ()

    @names_the_call
    def tumbling(self: Divisible, size: Span, *, offset: Span = 0) -> Windowed:
        """Windows ``[offset + k·size, offset + (k+1)·size)``.

        >>> source("S").tumbling(10).aggregate(n=count())
        source(S) → agg(tumbling(size=10), n=count())

        Law: ``s.tumbling(n)`` is ``s.hopping(n, hop=n)``.
        """
        return self.in_windows(Tumbling(read_span(size), read_span(offset)))

    @names_the_call
    def hopping(self: Divisible, size: Span, hop: Span, *, offset: Span = 0) -> Windowed:
        """Windows ``[offset + k·hop, offset + k·hop + size)``; a hop above the size leaves gaps.

        >>> source("S").hopping("1 hour", hop="5 minutes").aggregate(n=count())
        source(S) → agg(hopping(size=1 hour, hop=5 minutes), n=count())

        Law: an event of length 1 is in ``size / hop`` windows, if that is whole.
        """
        return self.in_windows(Hopping(read_span(size), read_span(hop), read_span(offset)))

    @names_the_call
    def snapshot(self: Divisible) -> Windowed:
        """Windows between consecutive distinct endpoints of the (group's) events.

        >>> source("S").alter_duration(10).snapshot().aggregate(n=count())  # a sliding window of 10
        source(S) → alter_duration(10) → agg(snapshot, n=count())

        Law: inside a snapshot the set of events does not change.
        """
        return self.in_windows(Snapshot())

    @names_the_call
    def same_window(self: Divisible) -> Windowed:
        """Results of the same (tumbling or hopping) window: what belongs to one window, and nothing of its neighbours.

        >>> source("S").group_by("k").hopping(10, hop=5).aggregate(n=count()).same_window().top(2, by=desc("n"))
        source(S) → group_apply(k) → to_point → topk(tumbling(size=5), k=2, by=n desc) → alter_duration(10)

        Law: over results of ``tumbling(n)`` it is ``tumbling(n)``.
        """
        return _same_window(self)

    @names_the_call
    def count_start(self: Divisible, n: int) -> Windowed:
        """Windows over n consecutive distinct start times, with the events that start there.

        >>> source("S").count_start(3).aggregate(n=count())
        source(S) → agg(count_start(n=3), n=count())

        Law: ``m`` distinct starts give ``max(0, m - n + 1)`` windows.
        """
        return self.in_windows(CountStart(n))

    @names_the_call
    def count_end(self: Divisible, n: int) -> Windowed:
        """Windows over n consecutive distinct end times, with the events that end there.

        >>> source("S").count_end(3).aggregate(n=count())
        source(S) → agg(count_end(n=3), n=count())

        Law: events that never end are in no window.
        """
        return self.in_windows(CountEnd(n))


@dataclass(frozen=True, slots=True)
class Windowed(Knows):
    """A stream (or each group of one) in windows, waiting for what to compute in each."""

    input: Plan
    window: Window
    finish: Callable[[Plan], Stream]  # makes a stream of the computed node; adds the group around it

    @names_the_call
    def aggregate(
        self, aggs: Mapping[str, Aggregate] | None = None, /, *, output: Output = "window", **more: Aggregate
    ) -> Stream:
        """One row per window with a column for each aggregate.

        >>> source("S").tumbling(10).aggregate(n=count(), output="point_end")
        source(S) → agg(tumbling(size=10), n=count(), output=point_end)

        ``output="point_end"`` gives a point at the window's end instead of its lifetime. Names that are no Python
        names come as a mapping.
        Law: windows without events give no row.
        """
        named = {**(aggs or {}), **more}
        for name, agg in named.items():
            if not isinstance(agg, Aggregate):
                raise PlanError(f'the column "{name}" is no aggregate: {agg!r}', fix='write e.g. sum("v") or count()')
        return self.finish(nodes.Aggregation(self.input, self.window, tuple(named.items()), output))

    @names_the_call
    def top(
        self,
        k: int,
        *,
        by: Ordering | Iterable[Ordering],
        rank: str | None = None,
        keep: Iterable[str] | None = None,
        output: Output = "window",
    ) -> Stream:
        """The events of rank at most k in each window; ties are all kept and leave gaps, nulls come last.

        >>> source("S").tumbling(10).top(3, by=desc("v"), rank="place")
        source(S) → topk(tumbling(size=10), k=3, by=v desc, rank=place)

        ``keep`` names the columns to keep (all); in groups the key is kept by itself.
        Law: ``top(1, by=desc("v"))`` has the events whose v is the window's max.
        """
        ranked = nodes.TopK(self.input, self.window, k, _orderings(by), rank, output)
        if keep is None:
            return self.finish(ranked)
        kept = [*keep, *([] if rank is None else [rank])]
        return self.finish(nodes.Select(ranked, tuple((name, Col(name)) for name in kept)))

    @names_the_call
    def uda(
        self,
        fn: str,
        arg: Expression,
        *,
        as_: str | None = None,
        params: Params = None,
        clip: Clipping = "none",
        output: Output = "window",
        restriction: Restriction = "none",
    ) -> Stream:
        """One value per window from a user-defined aggregate, in the column ``as_`` (the module's name).

        >>> source("S").tumbling(10).uda("twavg", "v", clip="full")
        source(S) → uda(tumbling(size=10), twavg=twavg(v), clip=full)

        Law: a deterministic module gives equal values for equal windows.
        """
        name = fn.partition("@")[0] if as_ is None else as_
        given = tuple((params or {}).items())
        return self.finish(
            nodes.Uda(self.input, self.window, fn, to_expr(arg), name, given, clip, output, restriction)
        )  # fmt: skip

    @names_the_call
    def udo(
        self,
        fn: str,
        *,
        map: Mapping[str, Expression] | None = None,  # noqa: A002  # the notation's word
        params: Params = None,
        clip: Clipping = "none",
        stamp: Stamping = "align",
        restriction: Restriction = "none",
    ) -> Stream:
        """Zero or more rows per window from a user-defined operator; ``map`` says which columns it sees (all).

        >>> source("S").tumbling(10).udo("passthrough", map={"v": "v * 2"}, clip="full")
        source(S) → udo(tumbling(size=10), passthrough(v=v * 2), clip=full)

        Law: a time-insensitive module's rows carry the window's lifetime.
        """
        seen = None if map is None else named_expressions(map)
        given = tuple((params or {}).items())
        return self.finish(nodes.Udo(self.input, self.window, fn, seen, given, clip, stamp, restriction))


def _same_window(results: Divisible) -> Windowed:
    """The results begin with their windows, so their starts tell windows apart."""
    window = window_of_results(results.results)
    match window:
        case Tumbling():
            return results.in_windows(window)
        case Hopping(size, hop, offset):
            starts = results.in_windows(Tumbling(hop, offset))

            def lasting(made: Plan) -> Stream:
                _refuse_other_lifetimes(made.input if isinstance(made, nodes.Select) else made)
                return starts.finish(nodes.AlterDuration(made, size))

            return Windowed(nodes.ToPoint(starts.input), starts.window, lasting)
    raise PlanError(
        "same_window is for results of tumbling and hopping windows" + ("" if window is None else f", not of {window}"),
        fix="write it behind .tumbling(…) or .hopping(…), or name the windows: .tumbling(…), .snapshot()",
    )


def _refuse_other_lifetimes(made: Plan) -> None:
    """What is computed of starts gets the lifetime of the window afterwards, so it may not have one of its own."""
    if not isinstance(made, nodes.Aggregation | nodes.TopK):
        raise PlanError("modules do not see windows that overlap as one window", fix="use aggregate or top")
    if made.output != "window":
        raise PlanError(
            f'same_window gives results in their windows, not as output="{made.output}"',
            fix="leave output out, and write .point_at_end() behind it",
        )


def _orderings(by: Ordering | Iterable[Ordering]) -> tuple[tuple[Expr, Direction], ...]:
    given = (by,) if isinstance(by, Ordering | str) else tuple(by)
    for part in given:
        if not isinstance(part, Ordering):
            raise PlanError(
                f"which end of {part!r} is the top?",
                fix='write by=desc("v") for the greatest first, by=asc("v") for the least',
            )
    return tuple((part.expr, part.direction) for part in given)
