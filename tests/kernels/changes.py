"""Legal streams of changes for kernels, and the laws that every incremental kernel obeys.

A script is a list of steps: a port, signed rows, and the port's frontier after them. The laws compare a kernel, after
every step, with the meaning of its node over the complete histories so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Kernel
from streamproof.kernels.delta import Delta
from streamproof.plan.check import Typed, check
from streamproof.plan.library import installed
from streamproof.plan.nodes import Plan
from streamproof.workbench.draw.choices import Choices
from streamproof.workbench.evaluator.evaluate import evaluate
from streamproof.workbench.evaluator.values import Row, payload_identity

EARLIEST = -3
Values = tuple[Any, ...]
Event = tuple[int, int, int, Values]  # group, le, re, payload
Signed = tuple[int, int, int, int, Values]  # group, le, re, w, payload
VALUES: dict[str, Sequence[Any]] = {
    "k": (1, 2, None),
    "v": (0, 1, 2),
    "s": ("a", "b", None),
    "f": (1.0, 2.0, float("nan"), -0.0),
    "d": (Decimal("0.00"), Decimal("1.00"), Decimal("1.50"), None),
}
TYPES = {"k": "int64", "v": "int64", "s": "string", "f": "float64", "d": "decimal(6,2)"}


@dataclass(frozen=True, slots=True)
class Step:
    """Signed rows on a port, and its frontier after them."""

    port: int
    rows: tuple[Signed, ...]
    frontier: int


@dataclass(frozen=True, slots=True)
class Shape:
    """What random streams look like."""

    steps: int = 12
    changes: int = 4  # most in one step
    longest: int = 6
    groups: int = 2
    forever: bool = True


class Port:
    """One input under way: what lives, and how far it is sealed.

    Times are often those where something already happens, and events that reach the frontier change often: that is
    where incremental kernels go wrong.
    """

    def __init__(self, choices: Choices, schema: Schema, shape: Shape) -> None:
        self.choices, self.schema, self.shape = choices, schema, shape
        self.live: list[Event] = []
        self.frontier = BEGINNING
        self.peers: list[Port] = [self]

    def step(self, port: int) -> Step:
        rows: list[Signed] = []
        for _ in range(self.choices.integer(0, self.shape.changes)):
            rows += self._change() if self.live and self.choices.chance(50) else self._insert()
        if self.choices.chance(60):
            self.frontier = self._time(self.frontier)
        return Step(port, tuple(rows), self.frontier)

    def _time(self, low: int) -> int:
        """A finite time from ``low`` on, preferably one where something happens."""
        low = max(low, EARLIEST)
        known = [t for peer in self.peers for t in (peer.frontier, *(t for e in peer.live for t in e[1:3]))]
        near = sorted({t for t in known if low <= t <= low + self.shape.longest})
        if near and self.choices.chance(60):
            return self.choices.pick(near)
        return low + self.choices.integer(0, self.shape.longest)

    def _insert(self) -> list[Signed]:
        event = self._event()
        self.live.append(event)
        return [_signed(event, 1)]

    def _event(self) -> Event:
        le = self._time(self.frontier)
        if self.shape.forever and self.frontier == BEGINNING and self.choices.chance(3):
            le = BEGINNING
        group, payload = self.choices.integer(0, self.shape.groups - 1), self._payload()
        if self.live and self.choices.chance(30):  # like one that is there
            group, old_le, _, payload = self.choices.pick(self.live)
            le = old_le if old_le >= self.frontier and self.choices.chance(50) else le
        return group, le, self._end(le), payload

    def _payload(self) -> Values:
        return tuple(self.choices.pick(VALUES[name]) for name in self.schema.names)

    def _end(self, le: int) -> int:
        if self.shape.forever and self.choices.chance(8):
            return FOREVER
        return self._time(max(self.frontier, le + 1))

    def _change(self) -> list[Signed]:
        """Another end for an event, or none."""
        at = self.choices.pick(self._open() or [0])
        group, le, re, payload = event = self.live[at]
        if le >= self.frontier and self.choices.chance(40):
            del self.live[at]
            return [_signed(event, -1)]
        if le < self.frontier and re < self.frontier:
            return []
        self.live[at] = (group, le, self._end(le), payload)
        return [_signed(event, -1), _signed(self.live[at], 1)]

    def _open(self) -> list[int]:
        """The events that may still change."""
        return [at for at, (_, le, re, _) in enumerate(self.live) if max(le, re) >= self.frontier]


def _signed(event: Event, w: int) -> Signed:
    return (*event[:3], w, event[3])


def script(choices: Choices, schemas: Sequence[Schema], shape: Shape | None = None) -> list[Step]:
    """Random steps on random ports, and at the end the frontier ∞ on all."""
    shape = shape or Shape()
    ports = [Port(choices, schema, shape) for schema in schemas]
    for port in ports:
        port.peers = ports
    steps = []
    for _ in range(choices.integer(1, shape.steps)):
        number = choices.integer(0, len(ports) - 1)
        steps.append(ports[number].step(number))
    return steps + [Step(number, (), FOREVER) for number in range(len(ports))]


def joined(steps: Sequence[Step], choices: Choices) -> list[Step]:
    """The same changes in other batches: neighbouring steps of one port become one."""
    result: list[Step] = []
    for step in steps:
        if result and result[-1].port == step.port and choices.chance(60):
            result[-1] = Step(step.port, result[-1].rows + step.rows, step.frontier)
        else:
            result.append(step)
    return result


# --- kernels ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A node over sources L and R (or only one), and the kernel that runs it."""

    typed: Typed
    make: Callable[[Typed, Context], Kernel]

    @staticmethod
    def of(plan: Plan, make: Callable[[Typed, Context], Kernel], **schemas: Schema) -> Case:
        return Case(check(plan, schemas), make)

    @property
    def schemas(self) -> list[Schema]:
        return [part.schema for part in self.typed.inputs]

    def kernel(self, context: Context | None = None) -> Kernel:
        return self.make(self.typed, context or Context(installed()))

    def meaning(self, histories: Sequence[Counter[Event]]) -> Counter[Event]:
        """What the node means over complete histories, group by group."""
        groups = {event[0] for history in histories for event in history}
        total: Counter[Event] = Counter()
        for group in groups:
            total.update((group, *row) for row in self._of_group(group, histories))
        return total

    def _of_group(self, group: int, histories: Sequence[Counter[Event]]) -> Iterable[tuple[int, int, Values]]:
        sources: dict[str, list[Row]] = {}
        for part, history in zip(self.typed.inputs, histories, strict=True):
            name: str = part.node.name  # type: ignore[attr-defined]
            sources[name] = [
                (le, re, dict(zip(part.schema.names, payload, strict=True)))
                for (owner, le, re, payload), count in history.items()
                for _ in range(count)
                if owner == group
            ]
        names = self.typed.schema.names
        for le, re, payload in evaluate(self.typed, sources):
            yield le, re, payload_identity(payload, names)


def columns(*names: str) -> Schema:
    """A schema of columns that random payloads know."""
    return Schema.of({name: TYPES[name] for name in names})


def delta_of(rows: Sequence[Signed], schema: Schema, frontier: int) -> Delta:
    numbers = [np.array([row[n] for row in rows], np.int64) for n in range(4)]
    arrays = [pa.array([row[4][n] for row in rows], kind.arrow) for n, (_, kind) in enumerate(schema.columns)]
    return Delta(*numbers, tuple(arrays), frontier)


def rows_of(delta: Delta, names: Sequence[str]) -> Counter[Event]:
    """The sum of a delta's rows."""
    total: Counter[Event] = Counter()
    payloads = zip(*(column.to_pylist() for column in delta.columns), strict=True) if delta.columns else None
    for n in range(len(delta)):
        payload = next(payloads) if payloads else ()
        values = payload_identity(dict(zip(names, payload, strict=True)), names)
        total[int(delta.group[n]), int(delta.le[n]), int(delta.re[n]), values] += int(delta.w[n])
    return total


# --- the laws ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Run:
    """A kernel under way, with all that went in and came out."""

    case: Case
    kernel: Kernel
    inputs: list[Counter[Event]]
    output: Counter[Event]
    frontiers: list[int]
    announced: int = BEGINNING

    @staticmethod
    def of(case: Case) -> Run:
        ports = len(case.schemas)
        return Run(case, case.kernel(), [Counter() for _ in range(ports)], Counter(), [BEGINNING] * ports)

    def push(self, step: Step) -> Counter[Event]:
        """One step, with the laws that hold at every step."""
        given = delta_of(step.rows, self.case.schemas[step.port], step.frontier)
        made = self.kernel.on_batch(step.port, given)
        for group, le, re, w, payload in step.rows:
            names = self.case.schemas[step.port].names
            values = payload_identity(dict(zip(names, payload, strict=True)), names)
            self.inputs[step.port][group, le, re, values] += w
        change = rows_of(made, self.case.typed.schema.names)
        assert all(change.values()), f"rows that cancel were emitted: {change}"
        keeps_history(change, self.announced)
        self.output.update(change)
        self.output = Counter({event: count for event, count in self.output.items() if count})
        self.frontiers[step.port] = max(self.frontiers[step.port], step.frontier)
        assert made.frontier == min(self.frontiers)
        self.announced = made.frontier
        return change

    def agrees(self) -> None:
        """The sum of what came out is the meaning of the sum of what went in."""
        live = [Counter({e: n for e, n in history.items() if n}) for history in self.inputs]
        assert self.output == self.case.meaning(live)


def keeps_history(change: Counter[Event], frontier: int) -> None:
    """No history before the frontier changes: what began before it only moves its end, at or after it."""
    balance: Counter[tuple[int, int, Values]] = Counter()
    for (group, le, re, payload), w in change.items():
        if w and le < frontier:
            assert re >= frontier, f"a row that ended at {re} changed after the frontier {frontier}"
            balance[group, le, payload] += w
    assert not any(balance.values()), f"history before {frontier} changed: {change}"


def check_laws(case: Case, choices: Choices, shape: Shape | None = None) -> None:
    """Agreement after every step, whatever is tidied up or restored on the way, and nothing left at the end."""
    run = Run.of(case)
    for step in script(choices, case.schemas, shape):
        run.push(step)
        run.agrees()
        if choices.chance(40):
            run.kernel.live_rows()  # tidies up
        elif choices.chance(20):
            run.kernel = restored(run.kernel, case)
    assert run.kernel.live_rows() == 0
    assert not len(run.kernel.live_strings())
    assert not len(run.kernel.live_groups())


def restored(kernel: Kernel, case: Case) -> Kernel:
    """A new kernel from a snapshot."""
    state = kernel.save()
    for value in state.values():
        assert value is None or isinstance(value, int) or value.dtype == np.int64
    context: Context = kernel._context if hasattr(kernel, "_context") else kernel.keys.context  # type: ignore[attr-defined]
    other = case.kernel(replace(context))
    other.restore({name: value.copy() if isinstance(value, np.ndarray) else value for name, value in state.items()})
    return other


def check_splits(case: Case, choices: Choices, shape: Shape | None = None) -> None:
    """The same changes in other batches give the same sum."""
    steps = script(choices, case.schemas, shape)
    runs = [Run.of(case), Run.of(case)]
    for run, batches in zip(runs, (steps, joined(steps, choices)), strict=True):
        for step in batches:
            run.push(step)
    assert runs[0].output == runs[1].output


def check_flat(case: Case, choices: Choices, *, rounds: int = 40, most: int) -> None:
    """In a long stream with steady frontiers, state stays below a bound that does not depend on its length."""
    shape = Shape(forever=False)
    ports = [Port(choices, schema, shape) for schema in case.schemas]
    run = Run.of(case)
    for now in range(0, 10 * rounds, 10):
        for number, port in enumerate(ports):
            port.live = [event for event in port.live if event[2] >= port.frontier]
            port.frontier = max(now, port.frontier)
            run.push(Step(number, port.step(number).rows, port.frontier))
        assert run.kernel.live_rows() <= most
