"""Times as events: one instant, multiples of a length of time, minutes of the calendar.

A clock never stops, so its instants are only made where something is alive that needs them: `ticks` gives those that
lie in a lifetime. Everything is made of other nodes: a hopping window of one tick is a clock.
"""

from __future__ import annotations

from datetime import UTC, datetime
from math import gcd

from streamproof.errors import InputError, PlanError
from streamproof.events.notation import exact_moment
from streamproof.events.schema import INT64
from streamproof.events.time import TICKS_PER_SECOND, Unit, to_tick
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.eql.query import Clock, Cron, Every, Once
from streamproof.plan.expr import LIFE_START, Call, Expr, Lit, all_of
from streamproof.plan.expr import Col as Column
from streamproof.plan.nodes import Plan
from streamproof.plan.windows import Hopping

ONE = "one"
"""The column of events that carry nothing else."""
LE = Column(LIFE_START)
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_FIELDS = (("second", 60), ("minute", 60), ("hour", 24))


def whole(value: int) -> Lit:
    return Lit(value, INT64)


def pick(plan: Plan, names: tuple[str, ...]) -> Plan:
    """Some columns, or the one that stands for none."""
    exprs: nodes.Named = tuple((name, Column(name)) for name in names) or ((ONE, whole(1)),)
    return nodes.Select(plan, exprs)


def ticks(clock: Clock, alive: Plan, key: tuple[str, ...], unit: Unit | None) -> Plan:
    """The instants of a clock, as points, at which at least one event (of each key) is alive."""
    if isinstance(clock, Once):
        return _at_moment(moment_of(clock, unit), alive, key)
    hop, offset, condition = _grid(clock, unit)
    beats: Plan = nodes.Aggregation(
        nodes.GroupInput() if key else alive, Hopping(1, hop, offset), ((ONE, Aggregate("count")),)
    )
    if key:
        beats = nodes.GroupApply(alive, key, beats)
    return pick(nodes.Where(beats, condition) if condition is not None else beats, key)


def _at_moment(moment: int, alive: Plan, key: tuple[str, ...]) -> Plan:
    """The instant, if anything begins before it and is alive then."""
    begun = nodes.Where(nodes.ToPoint(alive), Call("lte", (LE, whole(moment))))
    until = nodes.AlterDuration(begun, Call("sub", (whole(moment + 1), LE)))
    instant = nodes.Distinct(pick(nodes.Shift(nodes.PointAtEnd(until), -1), key))
    return semi_join(instant, alive, key, key)


def semi_join(points: Plan, alive: Plan, key: tuple[str, ...], kept: tuple[str, ...]) -> Plan:
    """The points at which an event of equal key is alive, as often as they are."""
    covered = nodes.Coalesce(pick(alive, key))
    names = kept or (ONE,)
    select: nodes.Named = tuple((name, Column(name, "l")) for name in names)
    return nodes.Join(points, covered, same(key), select)


def same(key: tuple[str, ...]) -> Expr:
    """Equal keys of two sides; null is a key of its own."""
    return all_of([Call("same", (Column(name, "l"), Column(name, "r"))) for name in key])


def moment_of(clock: Once, unit: Unit | None) -> int:
    """The tick of ``TIME('…')``."""
    if unit is None:
        raise _needs_unit()
    try:
        moment = exact_moment(clock.moment.strip())
    except ValueError:
        what = f"{clock.moment!r} is not a time"
        raise PlanError(what, fix="write an ISO time with a zone, e.g. '2026-01-01T00:00Z'") from None
    if moment.microsecond * TICKS_PER_SECOND[unit] % 10**6:
        raise PlanError(f"{clock.moment!r} is not a whole number of ticks of 1 {unit}", fix="use a finer unit")
    try:
        return to_tick(moment, unit)
    except InputError as error:
        raise PlanError(error.what, fix="write an ISO time with a zone, e.g. '2026-01-01T00:00Z'") from None


def _needs_unit() -> PlanError:
    return PlanError(
        "times of day need a stream with a tick unit", fix='declare the unit of the source: source("S", unit="us")'
    )


def longest_gap(clock: Every | Cron, unit: Unit | None) -> int:
    """An upper bound of the time from any instant to the clock's next one."""
    if isinstance(clock, Every):
        assert isinstance(clock.span, int)
        return clock.span
    cron = _parsed(clock)
    assert unit is not None
    often = len(cron.months) == 12 and len(cron.weekdays) >= 7
    days = 1 if often and len(cron.days) == 31 else 62 if often else 8 * 366 + 1
    return days * _DAY * TICKS_PER_SECOND[unit]


def _grid(clock: Every | Cron, unit: Unit | None) -> tuple[int, int, Expr | None]:
    """Hop and offset of a grid that has all the clock's instants, and the condition that those alone fulfil."""
    if isinstance(clock, Every):
        assert isinstance(clock.span, int)
        return clock.span, 0, None
    if unit is None:
        raise _needs_unit()
    cron = _parsed(clock)
    hop, offset = _coarsest(cron)
    return hop * TICKS_PER_SECOND[unit], offset * TICKS_PER_SECOND[unit], _condition(cron)


def _coarsest(cron: _Fields) -> tuple[int, int]:
    """The longest step in seconds that meets every instant of the day, and its first."""
    seconds = [h * _HOUR + m * _MINUTE + s for h in cron.hours for m in cron.minutes for s in cron.seconds]
    first = min(seconds)
    return gcd(_DAY, *(second - first for second in seconds)), first


def _condition(cron: _Fields) -> Expr | None:
    conditions: list[Expr] = []
    for name, size in _FIELDS:
        chosen = getattr(cron, f"{name}s")
        if len(chosen) < size:
            conditions.append(_one_of(name, chosen))
    if len(cron.months) < 12:
        conditions.append(_one_of("month", cron.months))
    days = [_one_of("day", cron.days)] if len(cron.days) < 31 else []
    weekdays = {7 if day == 0 else day for day in cron.weekdays}
    days += [_one_of("day_of_week", weekdays)] if len(weekdays) < 7 else []
    if len(days) == 2 and not cron.day_and:
        days = [Call("or", (days[0], days[1]))]
    conditions += days
    return all_of(conditions) if conditions else None


def _one_of(part: str, chosen: set[int]) -> Expr:
    return Call("in", (Call(part, (LE,)), *map(whole, sorted(chosen))))


class _Fields:
    """What a cron pattern chooses."""

    seconds: set[int]
    minutes: set[int]
    hours: set[int]
    days: set[int]
    months: set[int]
    weekdays: set[int]
    day_and: bool


def _parsed(clock: Cron) -> _Fields:
    from cronsim import CronSim, CronSimError  # noqa: PLC0415  # only these queries need it

    try:
        found = CronSim(clock.pattern, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise PlanError(
            f"{clock.pattern!r} is not a cron pattern: {error}",
            fix="write minute, hour, day of month, month and day of week, e.g. '0 * * * *' for every full hour",
        ) from None
    if min(found.days) < 1 or any(isinstance(day, tuple) for day in found.weekdays):
        raise PlanError(f"{clock.pattern!r} uses L, W or #, which are not supported", fix="give days by number")
    return found  # type: ignore[return-value]  # it has these fields
