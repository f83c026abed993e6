"""A typed plan as a graph of kernels, and how a change of a source runs through it.

Every node that is one object in the typed plan is one kernel, so a stream that is read twice is computed once. A
group_apply is two kernels, in and out, around the kernels of its apply branch.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from streamproof.engines.local.rules import KERNELS
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Kernel, State
from streamproof.kernels.cells import Layout
from streamproof.kernels.delta import Delta, concat, consolidate
from streamproof.kernels.groups import EnterGroups, Groups, LeaveGroups
from streamproof.plan import nodes
from streamproof.plan.check import Typed

STRINGS_BEFORE_COLLECTION = 100_000


@dataclass(slots=True)
class Step:
    """One kernel in the graph, and where its output goes."""

    kernel: Kernel
    typed: Typed
    readers: list[tuple[int, int]] = field(default_factory=list)  # step and port


class Graph:
    """The kernels of one plan, inputs before readers."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self.typed, self.context = typed, context
        self.steps: list[Step] = []
        self.sources: dict[str, int] = {}  # the step of each source
        self._places: dict[int, int] = {}  # the step of each typed node, by identity
        self._inside: list[tuple[Groups, set[int]]] = []  # each group_apply and the steps that count its groups
        self._output = self._place(typed)
        self._layout = Layout.of(typed.schema)
        self._collect_at = STRINGS_BEFORE_COLLECTION

    def _place(self, typed: Typed) -> int:
        """The step of a node, made with all it reads if it is new."""
        if id(typed) in self._places:
            return self._places[id(typed)]
        if isinstance(typed.node, nodes.GroupApply):
            step = self._place_group(typed)
        else:
            feeds = [self._place(part) for part in typed.inputs]
            step = self._add(KERNELS[typed.node](typed, self.context), typed, feeds)
            if isinstance(typed.node, nodes.Source):
                self.sources[typed.node.name] = step
        self._places[id(typed)] = step
        return step

    def _place_group(self, typed: Typed) -> int:
        source, branch = typed.inputs
        groups = Groups(typed, self.context)
        enter = self._add(EnterGroups(groups), typed, [self._place(source)])
        for leaf in _leaves(branch):
            self._places[id(leaf)] = enter
        last = self._place(branch)
        deeper = set[int]().union(*(steps for _, steps in self._inside))  # those count groups of their own
        self._inside.append((groups, set(range(enter + 1, len(self.steps))) - deeper))
        return self._add(LeaveGroups(groups), typed, [last])

    def _add(self, kernel: Kernel, typed: Typed, feeds: list[int]) -> int:
        self.steps.append(Step(kernel, typed))
        number = len(self.steps) - 1
        for port, feed in enumerate(feeds):
            self.steps[feed].readers.append((number, port))
        return number

    def push(self, source: str, delta: Delta) -> Delta:
        """The change of the output that a change of one source makes, without anything that cancels.

        The end of time comes alone, after the last rows: what they take back must not be looked for up to there.
        """
        if delta.frontier < FOREVER or not len(delta):
            return self._push(source, delta)
        last = Delta.empty(self.schemas[source], frontier=FOREVER)
        parts = [self._push(source, delta.at(BEGINNING)), self._push(source, last)]
        both = concat(parts, frontier=max(part.frontier for part in parts))
        return consolidate(both, self._layout, self.context.strings)

    def _push(self, source: str, delta: Delta) -> Delta:
        waiting: dict[int, list[tuple[int, Delta]]] = defaultdict(list)
        waiting[self.sources[source]].append((0, delta))
        result = Delta.empty(self.typed.schema)
        for number, step in enumerate(self.steps):
            if number not in waiting:
                continue
            parts = [step.kernel.on_batch(port, part) for port, part in waiting.pop(number)]
            output = concat(parts, frontier=max(part.frontier for part in parts))
            for reader, port in step.readers:
                waiting[reader].append((port, output))
            if number == self._output:
                result = consolidate(output, self._layout, self.context.strings)
        self._collect()
        return result

    def _collect(self) -> None:
        """Forget groups and strings that no kernel holds, once there are many."""
        for groups, steps in self._inside:  # inner ones first: they hold outer groups
            if groups.wants_collection():
                live = [self.steps[n].kernel.live_groups() for n in steps]
                groups.collect(np.unique(np.concatenate(live)) if live else np.empty(0, np.int64))
        strings = self.context.strings
        if len(strings) >= self._collect_at:
            strings.keep_only(np.concatenate([step.kernel.live_strings() for step in self.steps]))
            self._collect_at = max(STRINGS_BEFORE_COLLECTION, 2 * len(strings))

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schema of each source."""
        return {name: self.steps[step].typed.schema for name, step in self.sources.items()}

    def live_rows(self) -> int:
        """How many rows all kernels hold together."""
        return sum(step.kernel.live_rows() for step in self.steps)

    def snapshot(self) -> list[State]:
        """The state of every kernel, in the order of the graph."""
        return [step.kernel.snapshot() for step in self.steps]

    def restore(self, states: list[State]) -> None:
        for step, state in zip(self.steps, states, strict=True):
            step.kernel.restore(state)


def _leaves(branch: Typed) -> list[Typed]:
    """The group_input leaves of an apply branch; inner group_applys have their own."""
    if isinstance(branch.node, nodes.GroupInput):
        return [branch]
    inputs = branch.inputs[:1] if isinstance(branch.node, nodes.GroupApply) else branch.inputs
    return [leaf for part in inputs for leaf in _leaves(part)]
