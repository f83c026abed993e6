"""The QED scheduler: tasks come in, work goes out in the order of deadlines. It has no clock and runs nothing itself.

Its parts have the names of the paper: the Task Receiver gives tasks their deadlines, the Batch Organizer puts them
together, the Priority Order List knows who is next, the State Manager keeps what remains of tasks that were cut, the
Task Trigger hands out the next piece of work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from streamproof.qos.batching import BatchOrganizer, BatchPlan, Waiting
from streamproof.qos.deadlines import deadlines_for
from streamproof.qos.priority import PriorityOrderList
from streamproof.qos.tasks import Flow


@dataclass(slots=True)
class Work:
    """What to run next: tasks of one flow as one batch, or a piece of a task that is cut."""

    flow: int
    tasks: list[Waiting]
    key: float  # the deadline that put it first
    piece: int = 0  # pieces of its task that ran before
    last: bool = True  # whether its tasks are done after it


class TaskReceiver:
    """Gives the tasks of one flow their deadlines: the promised one, and the improved one for batches."""

    def __init__(self, flow: Flow, plan: BatchPlan | None, capacity: Fraction) -> None:
        self._promised = deadlines_for(flow.service)
        self._improved = None if plan is None else deadlines_for(plan.improved(flow, capacity))

    def receive(self, time: float, content: object) -> Waiting:
        deadline = self._promised.add(time)
        return Waiting(time, deadline, deadline if self._improved is None else self._improved.add(time), content)


class StateManager:
    """What remains of tasks that were cut: the task and the number of the next piece, by flow."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Waiting, int]] = {}

    def keep(self, flow: int, task: Waiting, piece: int) -> None:
        self._kept[flow] = (task, piece)

    def resume(self, flow: int) -> tuple[Waiting, int] | None:
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

    def arrive(self, flow: int, time: float, content: object) -> Waiting:
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
