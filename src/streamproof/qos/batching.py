"""Batches (B-QED): how many tasks of a query may run as one, decided offline, and the Batch Organizer that forms them.

Offline, all rates are raised by ``k = C / Σ c R``, as far as the machine allows, and all latencies become ``B / C``:
the improved curves. A batch of a query may then hold ``M = max(1, min(⌊k R (T − B/C) + k⌋, ⌊B / c⌋))`` tasks, so that
none takes longer than ``B``. Online, a batch grows while the improved deadline of its last task is not after the
promised deadline of its first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from streamproof.qos.service import RateLatency
from streamproof.qos.tasks import Flow
from streamproof.qos.verifier import Machine

MOST_LENGTHS: Final = 5_000  # of batches that are compared
MOST_EXACT: Final = 32


@dataclass(frozen=True)
class BatchPlan:
    """How tasks are put together: the factor of the rates, the longest batch in operations, tasks per flow."""

    factor: Fraction
    longest: Fraction
    sizes: tuple[int, ...]

    def improved(self, flow: Flow, capacity: Fraction) -> RateLatency:
        """The improved curve of a flow, from which batches get their deadlines."""
        assert isinstance(flow.service, RateLatency)
        return RateLatency(self.factor * flow.service.rate, self.longest / capacity)


def plan_batches(flows: Sequence[Flow], machine: Machine) -> BatchPlan | None:
    """The plan with the largest batches; None where nothing is reserved that could be improved."""
    services = [flow.service for flow in flows if isinstance(flow.service, RateLatency)]
    if not flows or len(services) < len(flows):
        return None
    section = max(machine.sections(flows))
    needed = sum((f.cost * s.rate for f, s in zip(flows, services, strict=True)), Fraction(0))
    factor, most = machine.capacity / needed, machine.capacity * min(service.latency for service in services)
    if factor < 1 or section > most:
        return None
    lengths = _lengths(flows, factor, section, most, machine.capacity)
    totals = _totals(flows, factor, lengths, machine.capacity)
    order = sorted(range(len(lengths)), key=lambda n: (-totals[n], lengths[n]))
    near = [lengths[n] for n in order[:MOST_EXACT]]  # floats may be off by one: the best ones are counted again
    longest = max(near, key=lambda length: (sum(_sizes(flows, factor, length, machine.capacity)), -length))
    return BatchPlan(factor, longest, tuple(_sizes(flows, factor, longest, machine.capacity)))


def _lengths(
    flows: Sequence[Flow], factor: Fraction, section: Fraction, most: Fraction, capacity: Fraction
) -> list[Fraction]:
    """The lengths that matter: sizes grow only at whole multiples of a cost."""
    found = {section}
    for flow in flows:
        assert isinstance(flow.service, RateLatency)
        room = factor * flow.service.rate * (flow.service.latency - section / capacity) + factor
        top = int(min(room, most / flow.cost))
        bottom = int(section / flow.cost) + 1
        stride = max(1, (top - bottom) * len(flows) // MOST_LENGTHS)
        found |= {flow.cost * count for count in range(bottom, top + 1, stride)}
    return sorted(length for length in found if section <= length <= most)


def _totals(flows: Sequence[Flow], factor: Fraction, lengths: Sequence[Fraction], capacity: Fraction) -> list[float]:
    """About how many tasks all batches hold together, for every length."""
    services = [flow.service for flow in flows if isinstance(flow.service, RateLatency)]
    rate = np.array([float(factor * service.rate) for service in services])
    latency = np.array([float(service.latency) for service in services])
    cost = np.array([float(flow.cost) for flow in flows])
    found = []
    for length in map(float, lengths):
        room = np.floor(rate * (latency - length / float(capacity)) + float(factor) + 1e-9)
        found.append(float(np.maximum(1, np.minimum(room, np.floor(length / cost + 1e-9))).sum()))
    return found


def _sizes(flows: Sequence[Flow], factor: Fraction, length: Fraction, capacity: Fraction) -> list[int]:
    found = []
    for flow in flows:
        assert isinstance(flow.service, RateLatency)
        room = factor * flow.service.rate * (flow.service.latency - length / capacity) + factor
        found.append(max(1, min(room // 1, length // flow.cost)))
    return found


@dataclass(slots=True)
class WaitingTask:
    """A task that waits: when it came, its promised deadline, its improved deadline, and what it is."""

    came: float
    deadline: float
    improved: float
    content: object


class BatchOrganizer:
    """Forms the next batch of one flow from the tasks that wait.

    >>> organizer = BatchOrganizer(size=3)
    >>> for n in range(4):
    ...     organizer.add(WaitingTask(n, 10.0 + n, 8.0 + n, n))
    >>> organizer.key, organizer.length
    (10.0, 3)
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.waiting: deque[WaitingTask] = deque()
        self.length = 0  # tasks of the next batch; it only grows until the batch is taken

    def add(self, task: WaitingTask) -> None:
        self.waiting.append(task)
        if self.length == len(self.waiting) - 1:
            self._grow()

    def _grow(self) -> None:
        waiting, first = self.waiting, self.waiting[0]
        while self.length < min(len(waiting), self.size):
            if self.length and waiting[self.length].improved > first.deadline:
                return
            self.length += 1

    @property
    def key(self) -> float:
        """The deadline of the next batch: the improved one of its last task."""
        return self.waiting[self.length - 1].improved

    def take(self) -> list[WaitingTask]:
        """The next batch, which waits no more."""
        batch = [self.waiting.popleft() for _ in range(self.length)]
        self.length = 0
        if self.waiting:
            self._grow()
        return batch

    def __len__(self) -> int:
        return len(self.waiting)
