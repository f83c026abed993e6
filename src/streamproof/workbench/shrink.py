"""Smaller cases with the same difference: fewer events, a smaller plan, simpler values, a plainer run.

Greedy, pass by pass: the first smaller case that still differs is taken, and the pass begins again, until no pass finds
anything or the budget is spent.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from time import monotonic, process_time
from typing import Final

from streamproof.events.time import BEGINNING
from streamproof.plan import nodes
from streamproof.plan.limits import Limits
from streamproof.plan.nodes import Plan
from streamproof.workbench.arrivals import reordered
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.schedule import DEFAULTS, LAW_OF, Schedule
from streamproof.workbench.smaller_plans import repeated_parts, shallower_plans, smaller_plans
from streamproof.workbench.smaller_streams import fewer_columns, fewer_events, moved, simpler_events

Differs = Callable[[Case], bool]
BUDGET: Final = 1500  # tries
SECONDS: Final = 60.0
PATIENCE: Final = 3  # of the clock for each second of work


def shrink(case: Case, differs: Differs, *, budget: int = BUDGET, seconds: float = SECONDS) -> Case:
    """The smallest case that we find for which ``differs`` still holds.

    Law: ``differs(case)`` implies ``differs(shrink(case, differs))``.
    """
    search = _Search(differs, budget, seconds)
    improved = True
    while improved and not search.is_over:
        improved = False
        for smaller in PASSES:
            case, better = search.exhaust(case, smaller)
            improved |= better
    return case


class _Search:
    """What was tried, and how much may still be tried."""

    def __init__(self, differs: Differs, budget: int, seconds: float) -> None:
        self._differs = differs
        self._tries = budget
        self._work = process_time() + seconds  # of this process: a busy machine must not make cases larger
        self._until = monotonic() + PATIENCE * seconds
        self._seen: set[int] = set()

    @property
    def is_over(self) -> bool:
        return self._tries <= 0 or process_time() > self._work or monotonic() > self._until

    def exhaust(self, case: Case, smaller: Callable[[Case], Iterator[Case]]) -> tuple[Case, bool]:
        """The case after as many steps of one pass as help."""
        improved = False
        found: Case | None = case
        while found is not None and not self.is_over:
            found = next((option for option in smaller(case) if self._holds(option)), None)
            if found is not None:
                case, improved = found, True
        return case, improved

    def _holds(self, case: Case) -> bool:
        key = hash(repr((case.plan, tuple(case.streams.items()), case.horizon, case.limits, case.schedule)))
        if self.is_over or key in self._seen:
            return False
        self._seen.add(key)
        self._tries -= 1
        try:
            return self._differs(case)
        except Exception:  # a smaller plan may be no plan at all
            return False


def _plainer_runs(case: Case) -> Iterator[Case]:
    """A plain run, one with a single thing as it is, one with a single thing made plain."""
    plain = Schedule()
    if case.schedule != plain:
        yield replace(case, schedule=plain)
    for name in LAW_OF:
        if getattr(case.schedule, name) != DEFAULTS[name]:
            yield replace(case, schedule=replace(case.schedule, **{name: DEFAULTS[name]}))
    for kept in case.schedule.thresholds:  # one of them alone
        if len(case.schedule.thresholds) > 1:
            yield replace(case, schedule=replace(case.schedule, thresholds=(kept,)))
    if case.schedule.cuts > 0 or (
        case.schedule.restart and not case.schedule.cuts
    ):  # event by event: then fewer events do not move the cuts
        yield replace(case, schedule=replace(case.schedule, cuts=-1))
    if case.schedule.reorder:
        yield _in_order_of_arrival(case)


def _in_order_of_arrival(case: Case) -> Case:
    """The case with its streams as they came, so that fewer events do not move the others."""
    chance = random.Random(case.schedule.seed)  # noqa: S311  # test data, not secrets
    streams = {
        name: CaseStream(stream.schema, tuple(reordered(stream.events, chance)))
        for name, stream in case.streams.items()
    }
    return replace(case, streams=streams, schedule=replace(case.schedule, reorder=False))


def _with_plans(case: Case, plans: Iterable[Plan]) -> Iterator[Case]:
    for plan in plans:
        used = {name: case.streams[name] for name in nodes.sources(plan)}
        yield replace(case, plan=plan, streams=used)


def _shallower_plans(case: Case) -> Iterator[Case]:
    return _with_plans(case, chain(shallower_plans(case.plan), repeated_parts(case.plan)))


def _smaller_plans(case: Case) -> Iterator[Case]:
    yield from _with_plans(case, smaller_plans(case.plan))
    if case.horizon is not None:
        yield replace(case, horizon=None)
    if case.limits != Limits():
        yield replace(case, limits=Limits())


def _fewer_events(case: Case) -> Iterator[Case]:
    for name, stream in case.streams.items():
        for smaller in fewer_events(stream):
            yield replace(case, streams={**case.streams, name: smaller})


def _simpler_payloads(case: Case) -> Iterator[Case]:
    starts = [row[0] for stream in case.streams.values() for row in stream.rows if row[0] != BEGINNING]
    earliest = min(starts, default=0)
    if earliest:  # all streams together, so that what meets goes on meeting
        together = {
            name: CaseStream(stream.schema, tuple(moved(event, -earliest) for event in stream.events))
            for name, stream in case.streams.items()
        }
        yield replace(case, streams=together)
    for name, stream in case.streams.items():
        for smaller in chain(fewer_columns(stream), simpler_events(stream)):
            yield replace(case, streams={**case.streams, name: smaller})


PASSES: Final[tuple[Callable[[Case], Iterator[Case]], ...]] = (
    _plainer_runs, _shallower_plans, _fewer_events, _smaller_plans, _fewer_events, _simpler_payloads,
)  # fmt: skip
"""What makes every later try cheap comes first."""
