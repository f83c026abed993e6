"""Admission of micro-batches: every period a batch of what has come, at a cost per batch and per row.

A batch of ``m`` rows costs ``o + c·m``. What comes within a latency ``d`` must be asked for in
``dbf(t) = o (⌊(t − d + P) / P⌋ + 1) + c ⌊α(t − d + 2P)⌋`` for ``t >= d − P``; the longest batch of a query is
``o + c ⌊σ + ρP⌋``, and it can hold up batches with earlier deadlines once.

>>> flow = MicroBatches("alerts", TokenBucket(100, "1/2"), period=1000, latency=4000, batch_ms=200, row_ms="1/10")
>>> admit_batches([flow], share=1).admitted, flow.rows_per_trigger
(True, 600)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Final

from streamproof.errors import PlanError
from streamproof.qos.admission import least_value, most_value
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.costs import PushCost
from streamproof.qos.demand import DemandViolation
from streamproof.qos.exact import Exact, exact, millis, positive, shown, shown_ms

MOST_STEPS: Final = 200_000
SHORTEST: Final = 64  # a period is at least the latency over this


@dataclass(frozen=True)
class MicroBatches:
    """One streaming query: how rows come, how often it is triggered, how late results may be, what batches cost."""

    name: str
    arrival: TokenBucket
    period: Fraction
    latency: Fraction
    batch_ms: Fraction
    row_ms: Fraction

    def __init__(
        self, name: str, arrival: TokenBucket, *, period: Exact, latency: Exact, batch_ms: Exact, row_ms: Exact
    ) -> None:
        every, wanted = millis(period, at=f"{name}.period"), millis(latency, at=f"{name}.latency")
        if every <= 0 or wanted <= every:
            raise PlanError(
                f"a latency of {shown_ms(wanted)} cannot be kept with a trigger every {shown_ms(every)}", at=name,
                fix="trigger more often than the latency; every half of it at most",
            )  # fmt: skip
        per_row = exact(row_ms, at=f"{name}.row_ms")
        if per_row < 0:
            raise PlanError(f"a cost must not be negative, got {shown(per_row)}", at=f"{name}.row_ms")
        values = (name, arrival, every, wanted, positive(batch_ms, "a cost", at=f"{name}.batch_ms"), per_row)
        for field, value in zip(("name", "arrival", "period", "latency", "batch_ms", "row_ms"), values, strict=True):
            object.__setattr__(self, field, value)

    @property
    def rows_per_trigger(self) -> int:
        """The most rows of a batch, ``⌊σ + ρP⌋``: what the source is told to give."""
        return int(self.arrival.burst + self.arrival.rate * self.period)

    @property
    def longest(self) -> Fraction:
        """The cost of the longest batch, in ms."""
        return self.batch_ms + self.row_ms * self.rows_per_trigger

    @property
    def load(self) -> Fraction:
        return self.batch_ms / self.period + self.row_ms * self.arrival.rate

    def demand(self, time: Fraction, *, whole: bool = True) -> Fraction:
        """The work that falls due by a time, in ms; ``whole`` False counts parts of rows, which is never less."""
        if time < self.latency - self.period:
            return Fraction(0)
        batches = (time - self.latency + self.period) // self.period + 1
        rows = self.arrival.burst + self.arrival.rate * (time - self.latency + 2 * self.period)
        return self.batch_ms * batches + self.row_ms * (int(rows) if whole else rows)

    def releases(self, until: Fraction) -> Iterator[Fraction]:
        """When batches fall due."""
        time = self.latency - self.period
        while time <= until:
            yield time
            time += self.period

    def with_latency(self, latency: Fraction) -> MicroBatches:
        return _changed(self, latency=latency)

    def with_rate(self, rate: Fraction) -> MicroBatches:
        return _changed(self, arrival=TokenBucket(self.arrival.burst, rate))


def _changed(flow: MicroBatches, **changes: object) -> MicroBatches:
    known = {
        "arrival": flow.arrival, "period": flow.period, "latency": flow.latency, "batch_ms": flow.batch_ms,
        "row_ms": flow.row_ms,
    }  # fmt: skip
    values = {**known, **changes}
    return MicroBatches(flow.name, values.pop("arrival"), **values)  # type: ignore[arg-type]  # the same kinds as before


@dataclass(frozen=True)
class BatchVerdict:
    """Whether all queries keep their latencies, or where they do not."""

    flows: tuple[MicroBatches, ...]
    share: Fraction
    violation: DemandViolation | None

    @property
    def admitted(self) -> bool:
        return self.violation is None

    @property
    def text(self) -> str:
        """The verdict for people, with what would help the last query."""
        found, last = self.violation, self.flows[-1]
        if found is None:
            return "; ".join(f"{flow.name} keeps {shown_ms(flow.latency)}" for flow in self.flows)
        blocking = f" plus {shown_ms(found.blocking)} of blocking by `{found.blocker}`" if found.blocker else ""
        reason = (
            f"{last.name} wants {shown_ms(last.latency)}: at {shown_ms(found.at)} the demand of "
            f"{shown_ms(found.total)}{blocking} exceeds the supply by {shown_ms(found.excess)}"
        )
        helps = self.remedies()
        texts = [f"{shown_ms(exact(str(helps['latency_ms'])))} would be admitted"] if "latency_ms" in helps else []
        if "rate_per_ms" in helps:
            texts.append(f"a rate of {shown(exact(str(helps['rate_per_ms'])))} rows per ms would")
        return f"{reason}; {', or '.join(texts) or 'nothing simple would help'}"

    def remedies(self) -> dict[str, float]:
        """The least latency and the largest rate with which the last query would be admitted."""
        *others, last = self.flows

        def fits(flow: MicroBatches) -> bool:
            return admit_batches([*others, flow], share=self.share).admitted

        found = {
            "latency_ms": least_value(last.latency, lambda value: fits(last.with_latency(value))),
            "rate_per_ms": most_value(last.arrival.rate, lambda value: fits(last.with_rate(value))),
        }
        return {name: value for name, value in found.items() if value is not None}


def admit_batches(flows: Sequence[MicroBatches], *, share: Exact = 1) -> BatchVerdict:
    """Whether batches that run one at a time, earliest deadline first, keep all latencies."""
    part = positive(share, "the share", at="share")
    load = sum((flow.load for flow in flows), Fraction(0))
    if load >= part:
        return BatchVerdict(tuple(flows), part, _overload(flows, part))
    horizon = _horizon(flows, part, load)
    times = sorted({time for flow in flows for time in flow.releases(horizon)})
    if len(times) > MOST_STEPS:
        raise PlanError("admission would look at too many batches", fix="leave more room", name="limit_exceeded")
    for time, after in zip(times, [*times[1:], horizon], strict=True):
        found = _between(flows, part, time, after)
        if found is not None:
            return BatchVerdict(tuple(flows), part, found)
    return BatchVerdict(tuple(flows), part, None)


def _horizon(flows: Sequence[MicroBatches], share: Fraction, load: Fraction) -> Fraction:
    """After this time, demand and blocking stay below the supply."""
    base = Fraction(0)
    for flow in flows:
        rows = flow.arrival.burst + flow.arrival.rate * (2 * flow.period - flow.latency)
        base += flow.batch_ms * (2 - flow.latency / flow.period) + flow.row_ms * rows
    longest = max(flow.longest for flow in flows)
    return max((base + longest) / (share - load), *(flow.latency for flow in flows)) + 1


def _between(flows: Sequence[MicroBatches], share: Fraction, time: Fraction, after: Fraction) -> DemandViolation | None:
    """From one release to the next only rows fall due, slower than they are served: the release itself decides,
    unless parts of rows were counted; then every whole row does.
    """
    if _excess(flows, share, time, whole=False) <= 0:
        return None
    steps = {time}
    for flow in flows:
        start = flow.arrival.burst + flow.arrival.rate * (time - flow.latency + 2 * flow.period)
        number = ceil(start)
        while (moment := (number - flow.arrival.burst) / flow.arrival.rate + flow.latency - 2 * flow.period) < after:
            steps.add(max(moment, time))
            number += 1
    for step in sorted(steps):
        if _excess(flows, share, step, whole=True) > 0:
            return _violation(flows, share, step)
    return None


def _excess(flows: Sequence[MicroBatches], share: Fraction, time: Fraction, *, whole: bool) -> Fraction:
    work = sum((flow.demand(time, whole=whole) for flow in flows), Fraction(0))
    blocking = max((f.longest for f in flows if f.latency - f.period > time), default=Fraction(0))
    return work + blocking - share * time


def _violation(flows: Sequence[MicroBatches], share: Fraction, time: Fraction) -> DemandViolation:
    """In ms of a machine that runs at this share."""
    blockers = [flow for flow in flows if flow.latency - flow.period > time]
    blocker = max(blockers, key=lambda flow: flow.longest, default=None)
    blocking = Fraction(0) if blocker is None else blocker.longest / share
    demand = {flow.name: flow.demand(time) / share for flow in flows}
    return DemandViolation(time, demand, blocking, None if blocker is None else blocker.name, share)


def _overload(flows: Sequence[MicroBatches], share: Fraction) -> DemandViolation:
    """More comes than can be done: the time at which that shows."""
    time = max(flow.latency for flow in flows)
    while _excess(flows, share, time, whole=True) <= 0:
        time *= 2
        if time > 10**12:
            break
    return _violation(flows, share, time)


def plan_triggers(
    name: str, arrival: TokenBucket, latency: Exact, cost: PushCost, *, others: Sequence[MicroBatches], share: Exact = 1
) -> BatchVerdict:
    """The longest period with which a query is admitted beside others: from half its latency downwards."""
    wanted = millis(latency)
    batch, row = Fraction(cost.push_ms).limit_denominator(1000), Fraction(cost.row_ms).limit_denominator(10**6)
    period, first = wanted / 2, None
    while period >= wanted / SHORTEST:
        flow = MicroBatches(name, arrival, period=period, latency=wanted, batch_ms=batch, row_ms=row)
        verdict = admit_batches([*others, flow], share=share)
        if verdict.admitted:
            return verdict
        first = first or verdict
        period = period * 4 / 5
    assert first is not None
    return replace(first)
