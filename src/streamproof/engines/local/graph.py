"""Typed plans as one graph of kernels, and how a change of a source runs through it.

Equal sub-plans are one kernel: within a plan, and between the plans that run on one graph. A group_apply is two
kernels, in and out, around the kernels of its apply branch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from streamproof.engines.local.rules import KERNELS, SealKernel, is_settled
from streamproof.errors import RunError
from streamproof.events import weights
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Kernel, State
from streamproof.kernels.base import number as number_of
from streamproof.kernels.cells import Layout
from streamproof.kernels.delta import Delta, concat, consolidate, without_cancelling
from streamproof.kernels.groups import EnterGroups, Groups, LeaveGroups
from streamproof.kernels.linear import lifetime
from streamproof.plan import nodes
from streamproof.plan.check import Typed, group_inputs
from streamproof.plan.labels import label
from streamproof.plan.limits import too_many_rows
from streamproof.plan.rewrites.normal_form import as_written
from streamproof.thresholds import STRINGS_HELD

EVENTS_OUT = "events out"  # beside the state of a kernel


@dataclass(slots=True, eq=False)
class GraphStep:
    """One kernel in the graph, and where its output goes."""

    kernel: Kernel
    typed: Typed
    name: str  # the operator in words
    identity: str  # equal for equal operators over equal inputs, in every graph
    readers: list[tuple[int, int]] = field(default_factory=list)  # step and port
    groups: Groups | None = None  # whose numbers its rows carry
    source: str | None = None  # the source that feeds it from outside
    rows_in: int = 0
    rows_out: int = 0
    events_out: int = 0  # what all rows that came out add up to
    _layout: Layout | None = None

    @property
    def layout(self) -> Layout:
        """The cells of its output; asked for only where rows are compared, for very wide rows have none."""
        if self._layout is None:
            self._layout = Layout.of(self.typed.schema)
        return self._layout


class Made(NamedTuple):
    """A new kernel with its node, and the groups whose numbers its rows carry."""

    kernel: Kernel
    typed: Typed
    groups: Groups | None


@dataclass(slots=True)
class _Placing:
    """One plan on its way into the graph."""

    start_offsets: Mapping[str, int]
    done: dict[int, int] = field(default_factory=dict)  # the step of each typed node, by identity
    used: list[Typed] = field(default_factory=list)  # keeps the nodes alive, so that no identity is given twice


class Graph:
    """The kernels of one or several plans, inputs before readers."""

    def __init__(
        self, typed: Typed | None, context: Context, *, advance_apart: bool = False, seal: bool = True
    ) -> None:
        """``advance_apart``: whoever feeds the graph does the work of advance_time, and feeds those steps directly.

        ``seal`` off: with emission ``final``, whoever reads the output can take what may still change.
        """
        self.context = context
        self.steps: list[GraphStep] = []
        self.sources: dict[str, int] = {}  # the step of each source
        self.outputs: Counter[int] = Counter()  # steps whose output is wanted, and by how many
        self._advance_apart, self._seal = advance_apart, seal
        self._by_identity: dict[str, int] = {}
        self._groups: list[Groups] = []  # outer ones before inner ones
        self._collect_at = STRINGS_HELD.now
        self._output = -1 if typed is None else self.add(typed)

    # --- plans come and go --------------------------------------------------------------------------------------------

    def add(self, typed: Typed, *, start_offsets: Mapping[str, int] | None = None) -> int:
        """The step that gives a plan's output. Steps that are there already are used again.

        ``start_offsets`` says from when on the plan reads each source: plans of different offsets share nothing.
        """
        placing = _Placing(start_offsets or {})
        step = self._place(typed, None, placing)
        if self._seal and self.context.emission == "final" and not is_settled(typed):
            step = self._step("seal", "", [step], lambda: Made(SealKernel(typed, self.context), typed, None))
        self.outputs[step] += 1
        return step

    def _place(self, typed: Typed, groups: Groups | None, placing: _Placing) -> int:
        """The step of a node, made with all it reads if it is new."""
        if id(typed) not in placing.done:
            grouped = isinstance(typed.node, nodes.GroupApply)
            step = (self._place_group if grouped else self._place_node)(typed, groups, placing)
            placing.done[id(typed)] = step
            placing.used.append(typed)
        return placing.done[id(typed)]

    def _place_node(self, typed: Typed, groups: Groups | None, placing: _Placing) -> int:
        node = typed.node
        text = f"{nodes.parameters(as_written(node))!r} {typed.schema.columns} {typed.schema.unit} {typed.module}"
        feeds: list[int] = []
        if self._is_root(node):
            source = source_of(typed)
            text += f" {source} {placing.start_offsets.get(source, 0)}"
        else:
            feeds = [self._place(part, groups, placing) for part in typed.inputs]
        step = self._step(label(node), text, feeds, lambda: Made(KERNELS[node](typed, self.context), typed, groups))
        if not feeds:
            self.steps[step].source = source_of(typed)
        if isinstance(node, nodes.Source):
            self.sources[node.name] = step
        return step

    def _is_root(self, node: nodes.Node) -> bool:
        return isinstance(node, nodes.Source) or (self._advance_apart and isinstance(node, nodes.AdvanceTime))

    def _place_group(self, typed: Typed, groups: Groups | None, placing: _Placing) -> int:
        source, branch = typed.inputs
        assert isinstance(typed.node, nodes.GroupApply)
        key, feeds = f"{typed.node.key}", [self._place(source, groups, placing)]
        name = f"group by {', '.join(typed.node.key)}"
        enter = self._step(name, key, feeds, lambda: Made(EnterGroups(self._new_groups(typed)), typed, groups))
        kernel = self.steps[enter].kernel
        assert isinstance(kernel, EnterGroups)
        inner = kernel.groups
        for leaf in group_inputs(branch):
            placing.done[id(leaf)] = enter
            self.context.keys[id(leaf)] = inner.key_of
            placing.used.append(leaf)
        last = self._place(branch, inner, placing)
        text = f"{key} {typed.schema.columns}"
        return self._step("group end", text, [last], lambda: Made(LeaveGroups(inner), typed, groups))

    def _new_groups(self, typed: Typed) -> Groups:
        self._groups.append(Groups(typed, self.context))
        return self._groups[-1]

    def _step(self, name: str, text: str, feeds: list[int], make: Callable[[], Made]) -> int:
        """The step with this name, text and inputs: the one that is there, or a new one."""
        known = "\n".join([name, text, *(self.steps[feed].identity for feed in feeds)])
        identity = sha256(known.encode()).hexdigest()[:24]
        if identity in self._by_identity:
            return self._by_identity[identity]
        made = make()
        self.steps.append(GraphStep(made.kernel, made.typed, name, identity, groups=made.groups))
        number = self._by_identity[identity] = len(self.steps) - 1
        for port, feed in enumerate(feeds):
            self.steps[feed].readers.append((number, port))
        return number

    def remove(self, output: int) -> None:
        """One who wanted this output does no longer; steps that nobody reads any more are freed."""
        self.outputs -= Counter([output])  # what is wanted by nobody is no longer there
        wanted: list[int] = []
        for number in reversed(range(len(self.steps))):  # readers come before what they read
            step = self.steps[number]
            step.readers = [(reader, port) for reader, port in step.readers if reader in wanted]
            if step.readers or number in self.outputs:
                wanted.append(number)
        self._renumber({old: new for new, old in enumerate(reversed(wanted))})

    def _renumber(self, new: dict[int, int]) -> None:
        self.steps = [self.steps[old] for old in new]
        for step in self.steps:
            step.readers = [(new[reader], port) for reader, port in step.readers]
        self.outputs = Counter({new[old]: count for old, count in self.outputs.items()})
        self.sources = {name: new[old] for name, old in self.sources.items() if old in new}
        self._by_identity = {step.identity: number for number, step in enumerate(self.steps)}
        held = [step.kernel.groups for step in self.steps if isinstance(step.kernel, EnterGroups)]
        self._groups = [groups for groups in self._groups if groups in held]

    def number(self, step: GraphStep) -> int:
        """Where a step stands now."""
        return self._by_identity[step.identity]

    def connect(self, feed: int, reader: int) -> None:
        """Let one step's output flow into another's first port."""
        self.steps[feed].readers.append((reader, 0))

    # --- changes flow -------------------------------------------------------------------------------------------------

    def push(self, source: str, delta: Delta) -> Delta:
        """The change of the plan's output that a change of one source makes, without anything that cancels."""
        return self.push_together({source: delta})

    def push_together(self, changes: Mapping[str, Delta]) -> Delta:
        """The change of the plan's output that changes of several sources at once make.

        Law: nothing is seen in between, as if only some of the sources had changed.
        """
        roots = {self.sources[source]: delta for source, delta in changes.items()}
        found = self._flow_to_the_end({root: self._without_cancelling(root, delta) for root, delta in roots.items()})
        return found[self._output] if self._output in found else Delta.empty(self.steps[self._output].typed.schema)

    def flow(self, roots: Sequence[int], delta: Delta) -> dict[int, Delta]:
        """The changes of all outputs that one change of some steps' input makes."""
        return self._flow_to_the_end(dict.fromkeys(roots, self._without_cancelling(roots[0], delta)))

    def _flow_to_the_end(self, changes: Mapping[int, Delta]) -> dict[int, Delta]:
        """The end of time comes alone, after the last rows: what they take back must not be looked for up to there."""
        ending = [root for root, delta in changes.items() if delta.frontier >= FOREVER]
        if not ending or not any(map(len, changes.values())):
            return self._flow(changes)
        rows = {root: delta.at(BEGINNING) if root in ending else delta for root, delta in changes.items()}
        ends = {root: Delta.empty(self.steps[root].typed.schema, frontier=FOREVER) for root in ending}
        return self.total([self._flow(rows), self._flow(ends)])

    def _without_cancelling(self, root: int, delta: Delta) -> Delta:
        """What cancels within a change was never there."""
        if not len(delta) or delta.extent.least_w >= 0:
            return delta
        return without_cancelling(delta, self.steps[root].layout, self.context.strings)

    def _flow(self, changes: Mapping[int, Delta]) -> dict[int, Delta]:
        waiting: dict[int, list[tuple[int, Delta]]] = {root: [(0, delta)] for root, delta in changes.items()}
        result: dict[int, Delta] = {}
        for number, step in enumerate(self.steps):
            if number not in waiting:
                continue
            output = self._run(step, waiting.pop(number))
            for reader, port in step.readers:
                waiting.setdefault(reader, []).append((port, output))
            if number in self.outputs:
                result[number] = consolidate(output, step.layout, self.context.strings)
        self._collect()
        return result

    def _run(self, step: GraphStep, changes: list[tuple[int, Delta]]) -> Delta:
        """What a step makes of the changes of its inputs.

        Where one push changes several of its inputs, rows that only the first of them seems to make must not be seen.
        """
        port, part = changes[0]
        most = self.context.limits.events_listed
        output = _fed(step, port, part)
        if len(output) > most:
            raise too_many_rows(most, at=f"{len(output):,} rows at once, in {step.name}")
        step.rows_in += len(part)
        if len(changes) > 1:
            parts = [output, *(_fed(step, port, part) for port, part in changes[1:])]
            output = concat(parts, frontier=max(part.frontier for part in parts))
            output = consolidate(output, step.layout, self.context.strings)
            step.rows_in += sum(len(part) for _, part in changes[1:])
        step.rows_out += len(output)
        return output

    def total(self, changes: Sequence[Mapping[int, Delta]]) -> dict[int, Delta]:
        """Several changes of the outputs as one, without anything that cancels."""
        result: dict[int, Delta] = {}
        for number in {number: None for found in changes for number in found}:
            parts = [found[number] for found in changes if number in found]
            if len(parts) == 1:
                result[number] = parts[0]
                continue
            both = concat(parts, frontier=max(part.frontier for part in parts))
            result[number] = consolidate(both, self.steps[number].layout, self.context.strings)
        return result

    def _collect(self) -> None:
        """Forget groups and strings that no kernel holds, once there are many."""
        for groups in reversed(self._groups):  # inner ones first: they hold outer groups
            if groups.wants_collection():
                self._forget_groups(groups)
        if len(self.context.strings) >= self._collect_at:
            self._forget_strings()

    def forget(self) -> None:
        """Forget all groups and strings that no kernel holds."""
        for groups in reversed(self._groups):
            self._forget_groups(groups)
        self._forget_strings()

    def _forget_groups(self, groups: Groups) -> None:
        live = [step.kernel.live_groups() for step in self.steps if step.groups is groups]
        groups.collect(np.unique(np.concatenate(live)) if live else np.empty(0, np.int64))

    def _forget_strings(self) -> None:
        strings = self.context.strings
        strings.keep_only(np.concatenate([step.kernel.live_strings() for step in self.steps]))
        self._collect_at = max(STRINGS_HELD.now, 2 * len(strings))

    # --- looking inside, and state ------------------------------------------------------------------------------------

    @property
    def schemas(self) -> dict[str, Schema]:
        """The schema of each source."""
        return {name: self.steps[step].typed.schema for name, step in self.sources.items()}

    def live_rows(self) -> int:
        """How many rows all kernels hold together."""
        return sum(step.kernel.live_rows() for step in self.steps)

    def save(self) -> list[State]:
        """The state of every kernel, in the order of the graph, without groups and strings that no kernel holds."""
        states = [step.kernel.save() for step in self.steps]  # they let go of what can change no more
        self.forget()
        for number, step in enumerate(self.steps):
            if isinstance(step.kernel, EnterGroups):
                states[number] = step.kernel.save()
        return [{**state, EVENTS_OUT: step.events_out} for step, state in zip(self.steps, states, strict=True)]

    def restore(self, states: list[State]) -> None:
        for step, state in zip(self.steps, states, strict=True):
            step.events_out = number_of(state, EVENTS_OUT)
            step.kernel.restore({name: value for name, value in state.items() if name != EVENTS_OUT})


def _fed(step: GraphStep, port: int, part: Delta) -> Delta:
    """What a step makes of a change of one input; what cannot be counted or held says in which step."""
    try:
        return _weighed(step, step.kernel.on_batch(port, part))
    except RunError as error:
        if error.name in ("overflow", "limit_exceeded"):
            error.at = f"{error.at}, in {step.name}" if error.at else step.name
        raise


def _weighed(step: GraphStep, output: Delta) -> Delta:
    """The same rows. All that an operator gave stand for a bounded number of events: so no sum of weights can wrap in
    what reads them, and what is held of them counts exactly."""
    if len(output):
        step.events_out += output.total()
        if not -weights.MOST <= step.events_out <= weights.MOST:
            largest = lifetime(output, int(np.argmax(np.abs(output.w.astype(np.float64)))))
            raise weights.too_many(abs(step.events_out), at=largest)
    return output


def source_of(typed: Typed) -> str:
    """The source that a root reads: its own name, or that of what advance_time stands on."""
    node = typed.node if isinstance(typed.node, nodes.Source) else typed.inputs[0].node
    assert isinstance(node, nodes.Source)
    return node.name
