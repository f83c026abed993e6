"""A graph that one can look into: what every step puts out, as rows that can be told from those of another graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from streamproof.engines.local.graph import Graph, Step
from streamproof.events.notation import show_payload, write_value
from streamproof.events.schema import Schema, Type
from streamproof.events.time import BEGINNING, show_tick
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Layout, Strings
from streamproof.kernels.delta import Delta, concat, consolidate
from streamproof.kernels.groups import EnterGroups, Groups
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.check import Typed

Columns: TypeAlias = list[tuple[str, Type]]


class Signed(NamedTuple):
    """A row with its sign, for people: the lifetime, the payload, and how often it came (+) or went (−)."""

    le: int
    re: int
    payload: tuple[tuple[str, object], ...]
    w: int

    @property
    def identity(self) -> str:
        """What tells rows apart, whatever their sign."""
        return repr(self[:3])

    def __str__(self) -> str:
        sign = "+" if self.w > 0 else "−"
        times = f" ×{abs(self.w)}" if abs(self.w) > 1 else ""
        return f"{sign} [{show_tick(self.le)}, {show_tick(self.re)}) {show_payload(dict(self.payload))}{times}".rstrip()

    def to_json(self) -> dict[str, object]:
        payload = {name: write_value(value) for name, value in self.payload}
        return {"le": show_tick(self.le), "re": show_tick(self.re), "payload": payload, "w": self.w}


class Span(NamedTuple):
    """A window of a group; the key is text, empty where there are no groups."""

    le: int
    re: int
    key: str

    def __str__(self) -> str:
        return f"[{show_tick(self.le)}, {show_tick(self.re)}) {self.key}".rstrip()


class WatchedGraph(Graph):
    """The graph of a plan; after each push, `put_out` has the output of every step that ran."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self.plan = typed
        self.put_out: dict[str, list[Delta]] = defaultdict(list)  # by the step's identity
        self.frontiers: dict[str, int] = {}  # how far each step has sealed its output
        super().__init__(typed, context)

    def _run(self, step: Step, changes: list[tuple[int, Delta]]) -> Delta:
        output = super()._run(step, changes)
        self.put_out[step.identity].append(output)
        self.frontiers[step.identity] = max(self.frontiers.get(step.identity, BEGINNING), output.frontier)
        return output

    def taken(self, step: Step) -> Delta:
        """What a step put out since it was last asked, the keys of the groups around it as columns in front."""
        parts = self.put_out.pop(step.identity, None) or [Delta.empty(output_schema(step))]
        delta = concat(parts, frontier=parts[-1].frontier)
        for groups, _ in self._around(step):
            delta = groups.keyed(delta)
        return delta

    def columns(self, step: Step) -> Columns:
        """The columns of `taken`; a key may be there twice."""
        found = list(output_schema(step))
        for _, key in self._around(step):
            found = [*key, *found]
        return found

    def _around(self, step: Step) -> list[tuple[Groups, Columns]]:
        """The groups that a step's output is in and their keys, innermost first."""
        entrances = {id(s.kernel.groups): s for s in self.steps if isinstance(s.kernel, EnterGroups)}
        groups = step.kernel.groups if isinstance(step.kernel, EnterGroups) else step.groups
        found = []
        while groups is not None:
            entrance = entrances[id(groups)]
            assert isinstance(entrance.typed.node, nodes.GroupApply)
            schema = entrance.typed.inputs[0].schema
            found.append((groups, [(name, schema[name]) for name in entrance.typed.node.key]))
            groups = entrance.groups
        return found

    def windows(self, step: Step) -> dict[Span, int]:
        """The windows that a step holds, with how many events each has."""
        if not isinstance(step.kernel, WindowKernel):
            return {}
        views = step.kernel.inspect().windows
        keys = self._keys(step, [view.group for view in views])
        return {Span(view.le, view.re, key): view.size for view, key in zip(views, keys, strict=True)}

    def _keys(self, step: Step, groups: Sequence[int]) -> list[str]:
        none = np.zeros(len(groups), np.int64)
        delta, names = Delta(np.array(groups, np.int64), none, none, none, ()), list[str]()
        for around, key in self._around(step):
            delta, names = around.keyed(delta), [*(name for name, _ in key), *names]
        if not names:
            return [""] * len(groups)
        values = zip(*(column.to_pylist() for column in delta.columns), strict=True)
        return [show_payload(dict(zip(names, row, strict=True))) for row in values]


def output_schema(step: Step) -> Schema:
    """The schema of what a step puts out."""
    return step.typed.inputs[0].schema if isinstance(step.kernel, EnterGroups) else step.typed.schema


def differing(one: Delta, other: Delta, columns: Columns) -> Delta:
    """What the first has more (+) or less (−) than the second. Law: nothing differs from itself."""
    both = concat([one, replace(other, w=-other.w)], frontier=one.frontier)
    return consolidate(both, Layout.of(kind for _, kind in columns), Strings())


def within(delta: Delta, starts: Delta, columns: Columns) -> Delta:
    """The net rows of a delta that start where a row of ``starts`` does: few, of perhaps many."""
    near = delta.take(np.isin(delta.le, starts.le))
    return consolidate(near, Layout.of(kind for _, kind in columns), Strings())


def rows(delta: Delta, columns: Columns) -> list[Signed]:
    """The rows of a small delta, what goes before what comes."""
    names = [name for name, _ in columns]
    payloads: Iterable[tuple[object, ...]] = zip(*(column.to_pylist() for column in delta.columns), strict=True)
    if not delta.columns:
        payloads = [()] * len(delta)
    found = [
        Signed(le, re, tuple(zip(names, payload, strict=True)), w)
        for le, re, payload, w in zip(delta.le.tolist(), delta.re.tolist(), payloads, delta.w.tolist(), strict=True)
    ]
    return sorted(found, key=lambda row: (row.le, row.w > 0, row.re, str(row)))
