"""A run of registered queries over replayed streams, in real time and in the order of deadlines."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heapify, heappop, heappush
from time import perf_counter, sleep, thread_time
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from streamproof.engines.base import LiveQuery
from streamproof.errors import InputError, did_you_mean
from streamproof.events.batch import Batch
from streamproof.events.order import ints
from streamproof.events.stream import INSERT, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER, TICKS_PER_SECOND
from streamproof.qos.arrivals import Policer, TokenBucket, from_trace
from streamproof.qos.batching import plan_batches
from streamproof.qos.exact import Exact, exact, positive
from streamproof.qos.observed import Fault, Observed
from streamproof.qos.scheduler import QedScheduler, Work
from streamproof.qos.server import QueryServer, TaskShape
from streamproof.qos.verifier import SchedulabilityVerifier

Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EventReplay:
    """A stream in order of arrival, and when each row comes."""

    stream: PhysicalStream
    times: Times

    @staticmethod
    def of(stream: PhysicalStream, *, speed: Exact = 1, ms_per_tick: Exact | None = None) -> EventReplay:
        """A stream by its event times, so many times faster.

        Streams of inserts, and perhaps a last CTI, come in order of their starts; others keep the order of the file.
        """
        if not len(stream):
            raise InputError("there is nothing to replay", fix="give a stream with events")
        unit = stream.schema.unit
        if unit is None and ms_per_tick is None:
            raise InputError("a replay needs the unit of time of its stream", fix='declare it, e.g. unit="ms"')
        factor = exact(ms_per_tick) if ms_per_tick is not None else Fraction(1000, TICKS_PER_SECOND[unit or "ms"])
        if np.all((stream.kinds == INSERT) | (ints(stream.rows["le"]) >= FOREVER)):
            order = pc.sort_indices(stream.rows, sort_keys=[("le", "ascending")])
            stream = PhysicalStream(stream.schema, stream.rows.take(order))
        starts = np.maximum.accumulate(_finite(ints(stream.rows["le"])))
        times = (starts - starts[0]).astype(np.float64) * float(factor / positive(speed, "the speed"))
        return EventReplay(stream, times)

    def arrival(self, *, spare: Exact = "1.1") -> TokenBucket:
        """The smallest token bucket at a little more than the mean rate."""
        mean = Fraction(len(self.times)) / max(Fraction(1), Fraction(float(self.times[-1])).limit_denominator(1000))
        rate = (mean * exact(spare)).limit_denominator(10**6)
        fitted = from_trace(self.times, rate=rate)
        return TokenBucket(Fraction(-int(-fitted.burst // 1)), fitted.rate)

    def part(self, start: int, end: int) -> PhysicalStream:
        return PhysicalStream(self.stream.schema, self.stream.rows.slice(start, end - start))

    def sample(self, rows: int) -> PhysicalStream:
        return self.part(0, min(rows, len(self.times)))

    def __len__(self) -> int:
        return len(self.times)


def _finite(starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Starts, with those at the ends of time (the last CTI) where their neighbours are."""
    known = starts[(starts > BEGINNING) & (starts < FOREVER)]
    if not len(known):
        raise InputError("no event of the stream has a finite start")
    return np.clip(starts, known.min(), known.max())


@dataclass
class RowGroups:
    """The rows of one input as tasks: at every period those that came in it, as far as its arrival curve allows.

    What comes faster than declared waits for later periods: that is how the others stay safe.
    """

    replay: EventReplay
    period: float
    police: Policer  # of whole periods: as much at once as may come in one
    position: int = 0  # rows that were given out
    number: int = 0  # periods that have passed
    held_back: int = 0  # rows that had to wait for a later period
    _held: int = 0  # up to which row they were counted

    @property
    def next_time(self) -> float:
        """When the next period ends."""
        return (self.number + 1) * self.period

    def release(self) -> tuple[int, int]:
        """The rows of the period that ends now."""
        self.number += 1
        now = self.number * self.period
        here = int(np.searchsorted(self.replay.times, now, side="left"))
        start = self.position
        self.position += self.police.admit(here - start, now)
        self.held_back += max(0, here - max(self.position, self._held))
        self._held = max(self._held, here)
        return start, self.position

    def arrived(self, time: float) -> int:
        """How many rows have come by a time."""
        return int(np.searchsorted(self.replay.times, time, side="right"))

    @property
    def ended(self) -> bool:
        return self.position >= len(self.replay)


LONGEST_NAP: Final = 0.05  # seconds
NEAR: Final = 1e-6

Output = Callable[[str, list[Batch]], None]
Tick = Callable[["Serving"], None]


@dataclass
class QueryLane:
    """One source of one query while it runs."""

    query: str
    running: LiveQuery
    shape: TaskShape
    groups: RowGroups
    observed: Observed
    done: int = 0  # events that are through
    siblings: list[QueryLane] = field(default_factory=list)  # the lanes of the same query, this one among them


@dataclass
class Serving:
    """A run and what it observed. ``overrun`` says whether some push took too long since nothing was waiting."""

    server: QueryServer
    lanes: list[QueryLane]
    observed: dict[str, Observed]
    scheduler: QedScheduler
    elapsed: float = 0.0  # seconds
    in_pushes: float = 0.0  # seconds of processor time
    in_all: float = 0.0
    overrun: bool = False
    _releases: list[tuple[float, int]] = field(default_factory=list)
    _started: float = 0.0

    @property
    def scheduling_share(self) -> float:
        """The share of one processor that went into anything but pushes."""
        return max(0.0, self.in_all - self.in_pushes) / self.elapsed if self.elapsed else 0.0

    @property
    def busy_share(self) -> float:
        return self.in_pushes / self.elapsed if self.elapsed else 0.0

    def run(
        self, seconds: float, *, on_output: Output | None = None, on_tick: Tick | None = None, every: float = 0.5
    ) -> Serving:
        """Run for so long, then finish what has come. ``on_tick`` is called now and then while nothing waits."""
        gc.collect()
        gc.freeze()  # what exists now is not looked at again: shorter pauses
        try:
            self._run(seconds * 1000, on_output, on_tick, every * 1000)
        finally:
            gc.unfreeze()
        return self

    def _run(self, end: float, on_output: Output | None, on_tick: Tick | None, every: float) -> None:
        self._releases = [(lane.groups.next_time, number) for number, lane in enumerate(self.lanes)]
        heapify(self._releases)
        self._started, processor, next_tick = perf_counter(), thread_time(), every
        while True:
            now = self._now()
            self._release(min(now, end))
            work = self.scheduler.next()
            if work is not None:
                self._execute(work, on_output)
                continue
            self.overrun = False
            if now >= end or not self._releases:
                break
            if on_tick is not None and now >= next_tick:
                self.elapsed, self.in_all = now / 1000, thread_time() - processor
                on_tick(self)
                next_tick = now + every
                continue
            sleep(min(LONGEST_NAP, max(0.0, (min(self._releases[0][0], end) - self._now()) / 1000)))
        self.elapsed, self.in_all = self._now() / 1000, thread_time() - processor

    def _now(self) -> float:
        return (perf_counter() - self._started) * 1000

    def _release(self, now: float) -> None:
        """Hand over the tasks of all periods that have ended."""
        while self._releases and self._releases[0][0] <= now:
            time, number = heappop(self._releases)
            groups = self.lanes[number].groups
            start, end = groups.release()
            if end > start:
                self.scheduler.arrive(number, time, (start, end))
            if not groups.ended:
                heappush(self._releases, (groups.next_time, number))

    def _execute(self, work: Work, on_output: Output | None) -> None:
        lane = self.lanes[work.flow]
        start, end, last = self._rows(work, lane)
        before, processor = self._now(), thread_time()
        lane.running.push(lane.shape.source, lane.groups.replay.part(start, end))
        batches = lane.running.pull()
        spent = thread_time() - processor
        self.in_pushes += spent
        now = self._now()
        self._account(lane, end - start, now - before, spent * 1000)
        if on_output is not None:
            on_output(lane.query, batches)
        if last:
            self._finish(lane, work, now)

    def _rows(self, work: Work, lane: QueryLane) -> tuple[int, int, bool]:
        """Which rows to push, and whether the work is done after them."""
        first, last = work.tasks[0].content, work.tasks[-1].content
        assert isinstance(first, tuple)
        assert isinstance(last, tuple)
        if lane.shape.pieces == 1 or len(work.tasks) > 1:  # a batch is short enough as it is
            return first[0], last[1], True
        start = first[0] + work.piece * lane.shape.rows
        end = min(first[1], start + lane.shape.rows)
        if end == first[1] and not work.last:
            self.scheduler.finish_early(work.flow)
        return start, end, end == first[1]

    def _account(self, lane: QueryLane, rows: int, wall: float, processor: float) -> None:
        """Compare a push with what was declared for it."""
        found = lane.observed
        found.pushes += 1
        found.worst_push = max(found.worst_push, wall)
        found.stolen += max(0.0, wall - processor)
        if wall > lane.shape.cost.of(rows) / float(self.server.share):
            found.overruns += 1
            self.overrun = True

    def _finish(self, lane: QueryLane, work: Work, now: float) -> None:
        """Count delays, and find out whose fault a miss is."""
        start, end = work.tasks[0].content[0], work.tasks[-1].content[1]  # type: ignore[index]  # tasks hold rows
        replay, window = lane.groups.replay, self.server.promises[lane.query].query.task == "window"
        found = lane.observed
        found.wait(sum(other.groups.arrived(now) - other.done for other in lane.siblings))
        lane.done = end
        came = replay.times[start:end]
        period = lane.groups.period
        due = (came // period + 1) * period  # the end of the period in which a row came
        fault: Fault = "cost" if self.overrun else "scheduler"
        if due[0] < work.tasks[0].came - NEAR:
            fault = "input"
        found.held_back = lane.groups.held_back
        found.done(now - (due if window else came), fault)


def serve(server: QueryServer, inputs: Mapping[str, Mapping[str, EventReplay]]) -> Serving:
    """Make everything ready for a run: lanes, bounds, batches. ``inputs`` has a replay per query and source."""
    promises = list(server.promises.values())
    for name in inputs:
        if name not in server.promises:
            raise InputError(f'no registered query is called "{name}"', fix=did_you_mean(name, server.promises))
    queries = [promise.query for promise in promises]
    verdict = SchedulabilityVerifier(server.machine).check(queries)
    plan = plan_batches(verdict.flows, server.machine) if server.machine.policy != "qed" else None
    observed = {p.name: Observed(p.name, float(p.delay_bound), float(p.backlog_bound)) for p in promises}
    lanes = [
        QueryLane(p.name, server.running[p.name], shape, _groups(p.name, shape, inputs), observed[p.name])
        for p in promises
        for shape in p.shapes
    ]
    for lane in lanes:
        lane.siblings = [other for other in lanes if other.query == lane.query]
    scheduler = QedScheduler(verdict.flows, plan, server.machine.capacity, pieces=_pieces(lanes))
    return Serving(server, lanes, observed, scheduler)


def _pieces(lanes: Sequence[QueryLane]) -> list[int]:
    return [lane.shape.pieces for lane in lanes]


def _groups(query: str, shape: TaskShape, inputs: Mapping[str, Mapping[str, EventReplay]]) -> RowGroups:
    if shape.source not in inputs.get(query, {}):
        raise InputError(f'no stream is given for the source "{shape.source}" of "{query}"')
    periods = TokenBucket(shape.most, shape.arrival.rate)  # what may come in a period may come at its end
    return RowGroups(inputs[query][shape.source], float(shape.period), Policer(periods))
