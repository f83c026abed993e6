"""Typed plans as one graph of kernels, and how a change of a source runs through it.

Equal sub-plans are one kernel: within a plan, and between the plans that run on one graph. A group_apply is two
kernels, in and out, around the kernels of its apply branch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from streamproof.engines.local.rules import KERNELS
from streamproof.engines.local.seal import SealKernel, is_settled
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Kernel, State
from streamproof.kernels.cells import Ints, Layout
from streamproof.kernels.delta import Delta, concat, consolidate
from streamproof.kernels.groups import EnterGroups, Groups, LeaveGroups
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.labels import label

STRINGS_BEFORE_COLLECTION = 100_000


@dataclass(slots=True, eq=False)
class Step:
    """One kernel in the graph, and where its output goes."""

    kernel: Kernel
    typed: Typed
    name: str  # the operator in words
    identity: str  # equal for equal operators over equal inputs, in every graph
    readers: list[tuple[int, int]] = field(default_factory=list)  # step and port
    groups: Groups | None = None  # whose numbers its rows carry
    rows_in: int = 0
    rows_out: int = 0


@dataclass(slots=True)
class _Placing:
    """One plan on its way into the graph."""

    eras: Mapping[str, int]
    done: dict[int, int] = field(default_factory=dict)  # the step of each typed node, by identity
    used: list[Typed] = field(default_factory=list)  # keeps the nodes alive, so that no identity is given twice


class Graph:
    """The kernels of one or several plans, inputs before readers."""

    def __init__(self, typed: Typed | None, context: Context, *, advance_apart: bool = False) -> None:
        """``advance_apart``: whoever feeds the graph does the work of advance_time, and feeds those steps directly."""
        self.context = context
        self.steps: list[Step] = []
        self.sources: dict[str, int] = {}  # the step of each source
        self.outputs: Counter[int] = Counter()  # steps whose output is wanted, and by how many
        self._advance_apart = advance_apart
        self._by_identity: dict[str, int] = {}
        self._groups: list[Groups] = []  # outer ones before inner ones
        self._collect_at = STRINGS_BEFORE_COLLECTION
        self._output = -1 if typed is None else self.add(typed)

    # --- plans come and go --------------------------------------------------------------------------------------------

    def add(self, typed: Typed, *, eras: Mapping[str, int] | None = None) -> int:
        """The step that gives a plan's output. Steps that are there already are used again.

        ``eras`` says from when on the plan reads each source: plans of different eras share nothing.
        """
        placing = _Placing(eras or {})
        step = self._place(typed, None, placing)
        if self.context.emission == "final" and not is_settled(typed):
            step = self._step("seal", "", [step], typed, None, lambda: SealKernel(typed, self.context))
        self.outputs[step] += 1
        return step

    def _place(self, typed: Typed, groups: Groups | None, placing: _Placing) -> int:
        """The step of a node, made with all it reads if it is new."""
        if id(typed) in placing.done:
            return placing.done[id(typed)]
        node = typed.node
        if isinstance(node, nodes.GroupApply):
            step = self._place_group(typed, groups, placing)
        else:
            root = isinstance(node, nodes.Source) or (self._advance_apart and isinstance(node, nodes.AdvanceTime))
            feeds = [] if root else [self._place(part, groups, placing) for part in typed.inputs]
            era = placing.eras.get(_source_of(typed), 0) if root else 0
            text = f"{nodes.parameters(node)!r} {typed.schema.columns} {typed.schema.unit} {typed.module} {era}"
            if root and typed.inputs:
                text += f" {_source_of(typed)}"
            step = self._step(label(node), text, feeds, typed, groups, lambda: KERNELS[node](typed, self.context))
            if isinstance(node, nodes.Source):
                self.sources[node.name] = step
        placing.done[id(typed)] = step
        placing.used.append(typed)
        return step

    def _place_group(self, typed: Typed, groups: Groups | None, placing: _Placing) -> int:
        source, branch = typed.inputs
        assert isinstance(typed.node, nodes.GroupApply)
        key = f"{typed.node.key}"
        enter = self._step(
            f"group by {', '.join(typed.node.key)}", key, [self._place(source, groups, placing)], typed, groups,
            lambda: EnterGroups(self._new_groups(typed)),
        )  # fmt: skip
        kernel = self.steps[enter].kernel
        assert isinstance(kernel, EnterGroups)
        inner = kernel.groups
        for leaf in _leaves(branch):
            placing.done[id(leaf)] = enter
            placing.used.append(leaf)
        last = self._place(branch, inner, placing)
        text = f"{key} {typed.schema.columns}"
        return self._step("group end", text, [enter, last], typed, groups, lambda: LeaveGroups(inner), port_from=1)

    def _new_groups(self, typed: Typed) -> Groups:
        self._groups.append(Groups(typed, self.context))
        return self._groups[-1]

    def _step(self, name, text, feeds, typed, groups, make, *, port_from=0):  # type: ignore[no-untyped-def]
        raise NotImplementedError
