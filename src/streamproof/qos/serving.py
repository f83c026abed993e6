"""A run of registered queries over replayed streams, in real time and in the order of deadlines."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from time import perf_counter, sleep, thread_time
from typing import Final

from streamproof.engines.base import LiveQuery
from streamproof.errors import InputError, did_you_mean
from streamproof.events.batch import Batch
from streamproof.qos.arrivals import Policer, TokenBucket
from streamproof.qos.batching import plan_batches
from streamproof.qos.observed import Fault, Observed
from streamproof.qos.replay import Groups, Replay
from streamproof.qos.scheduler import QedScheduler, Work
from streamproof.qos.server import QueryServer, Shape
from streamproof.qos.verifier import SchedulabilityVerifier

LONGEST_NAP: Final = 0.05  # seconds
NEAR: Final = 1e-6

Output = Callable[[str, list[Batch]], None]
Tick = Callable[["Serving"], None]


@dataclass
class Lane:
    """One source of one query while it runs."""

    query: str
    running: LiveQuery
    shape: Shape
    groups: Groups
    observed: Observed
    done: int = 0  # events that are through
    siblings: list[Lane] = field(default_factory=list)  # the lanes of the same query, this one among them


@dataclass
class Serving:
    """A run and what it observed. ``overrun`` says whether some push took too long since nothing was waiting."""

    server: QueryServer
    lanes: list[Lane]
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

    def _rows(self, work: Work, lane: Lane) -> tuple[int, int, bool]:
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

    def _account(self, lane: Lane, rows: int, wall: float, processor: float) -> None:
        """Compare a push with what was declared for it."""
        found = lane.observed
        found.pushes += 1
        found.worst_push = max(found.worst_push, wall)
        found.stolen += max(0.0, wall - processor)
        if wall > lane.shape.cost.of(rows) / float(self.server.share):
            found.overruns += 1
            self.overrun = True

    def _finish(self, lane: Lane, work: Work, now: float) -> None:
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


def serve(server: QueryServer, inputs: Mapping[str, Mapping[str, Replay]]) -> Serving:
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
        Lane(p.name, server.running[p.name], shape, _groups(p.name, shape, inputs), observed[p.name])
        for p in promises
        for shape in p.shapes
    ]
    for lane in lanes:
        lane.siblings = [other for other in lanes if other.query == lane.query]
    scheduler = QedScheduler(verdict.flows, plan, server.machine.capacity, pieces=_pieces(lanes))
    return Serving(server, lanes, observed, scheduler)


def _pieces(lanes: Sequence[Lane]) -> list[int]:
    return [lane.shape.pieces for lane in lanes]


def _groups(query: str, shape: Shape, inputs: Mapping[str, Mapping[str, Replay]]) -> Groups:
    if shape.source not in inputs.get(query, {}):
        raise InputError(f'no stream is given for the source "{shape.source}" of "{query}"')
    periods = TokenBucket(shape.most, shape.arrival.rate)  # what may come in a period may come at its end
    return Groups(inputs[query][shape.source], float(shape.period), Policer(periods))
