"""The QED scheduler: tasks come in, work goes out in the order of deadlines. It has no clock and runs nothing itself.

Its parts have the names of the paper: the Task Receiver gives tasks their deadlines, the Batch Organizer puts them
together, the Priority Order List knows who is next, the State Manager keeps what remains of tasks that were cut, the
Task Trigger hands out the next piece of work.

Deadlines come from service curves, task by task (SCED).

The n-th task falls due when the service curve, started at any earlier arrival, has caught up with it:
``D_n = max over m <= n of a_m + β⁻¹(n − m + 1)``. For rate-latency curves that is ``F_n = max(F_{n−1}, a_n) + 1/R`` and
``D_n = F_n + T``.

>>> clock = deadlines_for(RateLatency("1/2", 10))
>>> clock.add(0), clock.add(0), clock.add(50)
(12.0, 14.0, 62.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush
from typing import Protocol

from streamproof.qos.batching import BatchOrganizer, BatchPlan, WaitingTask
from streamproof.qos.service import RateLatency, Service
from streamproof.qos.tasks import Flow


class Deadlines(Protocol):
    """Gives every task of one flow its deadline, in order of arrival. Times are milliseconds."""

    def add(self, time: float) -> float: ...


class LineDeadlines:
    """Deadlines under a rate-latency curve: one number is all that is remembered."""

    def __init__(self, service: RateLatency) -> None:
        self._gap, self._latency = float(1 / service.rate), float(service.latency)
        self._finish = float("-inf")  # when the last task would be done at the reserved rate

    def add(self, time: float) -> float:
        self._finish = max(self._finish, time) + self._gap
        return self._finish + self._latency


class CurveDeadlines:
    """Deadlines under any curve: remembers the arrivals that still matter.

    An arrival matters no more once a later one gives later deadlines and a longer queue cannot change that.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._times: list[float] = []  # the inverse of the curve: how long 1, 2, … tasks take
        self._open: list[tuple[float, int]] = []  # arrivals that matter, each with its number
        self._count = 0

    def add(self, time: float) -> float:
        self._count += 1
        self._open.append((time, self._count))
        found = [came + self._time_for(self._count - number + 1) for came, number in self._open]
        latest = max(found)
        if self._open[-1][0] + self._time_for(1) >= latest:  # the queue was empty: nothing before matters
            self._open = [self._open[-1]]
        return latest

    def _time_for(self, count: int) -> float:
        while len(self._times) < count:
            self._times.append(float(self._service.time_for(len(self._times) + 1)))
        return self._times[count - 1]


def deadlines_for(service: Service) -> Deadlines:
    """The deadlines of a flow under its service curve."""
    return LineDeadlines(service) if isinstance(service, RateLatency) else CurveDeadlines(service)


class PriorityOrderList:
    """Flows by the deadline of their next work. A flow has one place; a new deadline replaces the old one.

    >>> order = PriorityOrderList()
    >>> order.put(0, 30.0); order.put(1, 20.0); order.put(1, 40.0)
    >>> order.first(), len(order)
    (0, 2)
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []  # with places that were given up since
        self._keys: dict[int, float] = {}  # the places that hold

    def put(self, flow: int, deadline: float) -> None:
        """Give a flow its place."""
        if self._keys.get(flow) != deadline:
            self._keys[flow] = deadline
            heappush(self._heap, (deadline, flow))

    def drop(self, flow: int) -> None:
        """A flow has nothing to do any more."""
        self._keys.pop(flow, None)

    def first(self) -> int | None:
        """The flow whose work falls due first."""
        while self._heap and self._keys.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def __len__(self) -> int:
        return len(self._keys)


@dataclass(slots=True)
class Work:
    """What to run next: tasks of one flow as one batch, or a piece of a task that is cut."""

    flow: int
    tasks: list[WaitingTask]
    key: float  # the deadline that put it first
    piece: int = 0  # pieces of its task that ran before
    last: bool = True  # whether its tasks are done after it


class TaskReceiver:
    """Gives the tasks of one flow their deadlines: the promised one, and the improved one for batches."""

    def __init__(self, flow: Flow, plan: BatchPlan | None, capacity: Fraction) -> None:
        self._promised = deadlines_for(flow.service)
        self._improved = None if plan is None else deadlines_for(plan.improved(flow, capacity))

    def receive(self, time: float, content: object) -> WaitingTask:
        deadline = self._promised.add(time)
        return WaitingTask(time, deadline, deadline if self._improved is None else self._improved.add(time), content)


class StateManager:
    """What remains of tasks that were cut: the task and the number of the next piece, by flow."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[WaitingTask, int]] = {}

    def keep(self, flow: int, task: WaitingTask, piece: int) -> None:
        self._kept[flow] = (task, piece)

    def resume(self, flow: int) -> tuple[WaitingTask, int] | None:
        """The task that was interrupted, and where it goes on."""
        return self._kept.pop(flow, None)

    def key(self, flow: int) -> float | None:
        """The deadline of what remains: that of the whole task."""
        kept = self._kept.get(flow)
        return None if kept is None else kept[0].improved

    def __len__(self) -> int:
        return len(self._kept)


class TaskTrigger:
    """Hands out work: the batch, or the piece, that falls due first."""

    def __init__(self, organizers: Sequence[BatchOrganizer], pieces: Sequence[int]) -> None:
        self.organizers, self.pieces = organizers, pieces
        self.order, self.state = PriorityOrderList(), StateManager()

    def place(self, flow: int) -> None:
        """Put a flow where its next work belongs."""
        key = self.state.key(flow)
        if key is None and not self.organizers[flow]:
            self.order.drop(flow)
            return
        self.order.put(flow, self.organizers[flow].key if key is None else key)

    def next(self) -> Work | None:
        """The next work; None where nothing waits."""
        flow = self.order.first()
        if flow is None:
            return None
        kept = self.state.resume(flow)
        tasks = [kept[0]] if kept is not None else self.organizers[flow].take()
        piece = 0 if kept is None else kept[1]
        work = Work(flow, tasks, tasks[-1].improved, piece)
        if len(tasks) == 1 and piece + 1 < self.pieces[flow]:
            work.last = False
            self.state.keep(flow, tasks[0], piece + 1)
        self.place(flow)
        return work


class QedScheduler:
    """All parts together. ``pieces`` says into how many pieces the tasks of each flow are cut at most."""

    def __init__(
        self, flows: Sequence[Flow], plan: BatchPlan | None, capacity: Fraction, *, pieces: Sequence[int] | None = None
    ) -> None:
        sizes = [1] * len(flows) if plan is None else plan.sizes
        self.receivers = [TaskReceiver(flow, plan, capacity) for flow in flows]
        self.trigger = TaskTrigger([BatchOrganizer(size) for size in sizes], pieces or [1] * len(flows))

    def arrive(self, flow: int, time: float, content: object) -> WaitingTask:
        """A task has come."""
        task = self.receivers[flow].receive(time, content)
        self.trigger.organizers[flow].add(task)
        self.trigger.place(flow)
        return task

    def next(self) -> Work | None:
        """What to run now."""
        return self.trigger.next()

    def finish_early(self, flow: int) -> None:
        """The task that was cut is done before all its pieces were needed."""
        if self.trigger.state.resume(flow) is not None:
            self.trigger.place(flow)

    def __len__(self) -> int:
        """How many tasks wait, those that are cut among them."""
        return sum(len(organizer) for organizer in self.trigger.organizers) + len(self.trigger.state)
