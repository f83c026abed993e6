"""A graph that one can look into: what every step puts out, as rows that can be told from those of another graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.engines.inputs import Input
from streamproof.engines.local.graph import Graph, GraphStep
from streamproof.errors import InputError
from streamproof.events.advance import Advance
from streamproof.events.batch import Batch
from streamproof.events.event import write_event
from streamproof.events.files import Reader, read
from streamproof.events.history import History
from streamproof.events.notation import show_payload, write_value
from streamproof.events.physical import to_batches
from streamproof.events.schema import Schema, Type
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, show_tick
from streamproof.events.validate import Validator
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


class TracedWindow(NamedTuple):
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

    def _run(self, step: GraphStep, changes: list[tuple[int, Delta]]) -> Delta:
        output = super()._run(step, changes)
        self.put_out[step.identity].append(output)
        self.frontiers[step.identity] = max(self.frontiers.get(step.identity, BEGINNING), output.frontier)
        return output

    def taken(self, step: GraphStep) -> Delta:
        """What a step put out since it was last asked, the keys of the groups around it as columns in front."""
        parts = self.put_out.pop(step.identity, None) or [Delta.empty(output_schema(step))]
        delta = concat(parts, frontier=parts[-1].frontier)
        for groups, _ in self._around(step):
            delta = groups.keyed(delta)
        return delta

    def columns(self, step: GraphStep) -> Columns:
        """The columns of `taken`; a key may be there twice."""
        found = list(output_schema(step))
        for _, key in self._around(step):
            found = [*key, *found]
        return found

    def _around(self, step: GraphStep) -> list[tuple[Groups, Columns]]:
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

    def windows(self, step: GraphStep) -> dict[TracedWindow, int]:
        """The windows that a step holds, with how many events each has."""
        if not isinstance(step.kernel, WindowKernel):
            return {}
        views = step.kernel.inspect().windows
        keys = self._keys(step, [view.group for view in views])
        return {TracedWindow(view.le, view.re, key): view.size for view, key in zip(views, keys, strict=True)}

    def _keys(self, step: GraphStep, groups: Sequence[int]) -> list[str]:
        none = np.zeros(len(groups), np.int64)
        delta, names = Delta(np.array(groups, np.int64), none, none, none, ()), list[str]()
        for around, key in self._around(step):
            delta, names = around.keyed(delta), [*(name for name, _ in key), *names]
        if not names:
            return [""] * len(groups)
        values = zip(*(column.to_pylist() for column in delta.columns), strict=True)
        return [show_payload(dict(zip(names, row, strict=True))) for row in values]


def output_schema(step: GraphStep) -> Schema:
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


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """One push, and how to speak of it."""

    source: str
    batch: Batch
    text: str
    event: dict[str, object] | None = None  # one that is followed, as JSON

    @property
    def frontier(self) -> int:
        return self.batch.frontier


class Moments:
    """One input as moments: its events in batches, those that are followed alone, and CTIs apart from rows."""

    def __init__(self, name: str, value: Input, schema: Schema | None) -> None:
        self.name = name
        self._chunks = iter(_chunks(name, value, schema))
        self._first = next(self._chunks, PhysicalStream.empty(schema or Schema()))
        self.schema = self._first.schema

    def moments(self, event: str | None, advance: Advance | None) -> Iterator[Moment]:
        """The moments, with an event that is followed; ``advance`` makes the CTIs, where the plan says so."""
        frontier, seen, validator = BEGINNING, 0, Validator()
        for chunk in chain([self._first], self._chunks):
            if advance is not None:
                chunk = advance.apply(chunk)  # noqa: PLW2901  # what the plan gets of it
                self._refuse_late(advance, event)
            for piece, followed in _cut(validator.check(chunk), event):
                event_text, event_json = _reported(piece) if followed else ("", None)
                for batch in to_batches(piece):
                    seen += batch.rows.num_rows
                    if batch.rows.num_rows:
                        rows_alone = Batch(batch.schema, batch.rows, frontier)
                        text = event_text or f"rows of {self.name} up to row {seen}"
                        yield Moment(self.name, rows_alone, text, event_json)
                    if batch.frontier > frontier:
                        frontier = batch.frontier
                        empty = Batch.empty(batch.schema, frontier=frontier)
                        yield Moment(self.name, empty, f"CTI {show_tick(frontier)} of {self.name}")

    def _refuse_late(self, advance: Advance, event: str | None) -> None:
        for dropped in advance.take_dropped():
            if event is not None and event in dropped.rows["id"].to_pylist():
                raise InputError(
                    f'the event "{event}" of {self.name} came too late for advance_time and was dropped',
                    fix="give advance_time a longer delay, or late=adjust",
                )


def _reported(piece: PhysicalStream) -> tuple[str, dict[str, object]]:
    """The one event of a piece, as text and as JSON."""
    event = piece.to_events()[0]
    return str(event), write_event(event)


def _chunks(name: str, value: Input, schema: Schema | None) -> Iterable[PhysicalStream]:
    match value:
        case PhysicalStream():
            return [value]
        case Reader():
            return value
        case str() | Path():
            return read(Path(value), schema=schema)
        case History() | pa.Table():
            what = f"the input {name} is a history: its rows have no ids to follow"
            raise InputError(what, fix="give physical events, or a file of them")
    items = list(value)
    return [PhysicalStream.from_dicts([item for item in items if isinstance(item, Mapping)], schema=schema)]


def _cut(chunk: PhysicalStream, event: str | None) -> Iterator[tuple[PhysicalStream, bool]]:
    """A chunk in pieces, each event that is followed in one of its own."""
    found = np.flatnonzero(pc.fill_null(pc.equal(chunk.rows["id"], event or ""), False).to_numpy())
    edges = sorted({0, len(chunk), *found.tolist(), *(found + 1).tolist()}) if event else [0, len(chunk)]
    alone = set(found.tolist()) if event else set()
    for start, end in pairwise(edges):
        yield PhysicalStream(chunk.schema, chunk.rows.slice(start, end - start)), start in alone
