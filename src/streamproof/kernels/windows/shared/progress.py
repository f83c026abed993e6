"""How far a windowed node has come: when a window is due, sealed, closed and final.

Every strategy is a `Progress`; `Liveliness` says what time means for the results of one node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Emission
from streamproof.kernels.cells import Bools, Ints
from streamproof.kernels.delta import Delta
from streamproof.kernels.state import Declared, Fields
from streamproof.kernels.windows.shared.members import Watch, Windows
from streamproof.kernels.windows.shared.outputs import OutputPart, Outputs
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.windows import Snapshot


class Progress(Declared):
    """One node over all groups, at some time."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self.typed, self.context = typed, context
        self.lively = liveliness_of(typed, context.emission)
        self.frontier = BEGINNING
        self.seen = BEGINNING  # the latest start
        self.sealed = BEGINNING  # the output's frontier

    @property
    def time(self) -> Fields:
        """The part of the state that all strategies have."""
        return Fields(self, "frontier", "seen", "sealed")

    def _advance(self, delta: Delta) -> Step:
        """Move time on."""
        before, due_before = self.frontier, self.lively.due(self.frontier, self.seen)
        self.frontier = max(self.frontier, delta.frontier)
        if len(delta):
            self.seen = max(self.seen, delta.extent.greatest_le)
        return Step(before, self.frontier, due_before, self.lively.due(self.frontier, self.seen))


Stamp: TypeAlias = Literal["window", "point_end", "own"]
"""Whose lifetime rows carry: the window's, the point at its end, or what a module says."""


@dataclass(frozen=True, slots=True)
class Step:
    """The step that time makes with a batch: the frontier, and up to where windows are due, before and after."""

    frontier_before: int
    frontier: int
    due_before: int
    due: int


@dataclass(frozen=True, slots=True)
class Liveliness:
    """The rules of one node."""

    watch: Watch
    stamp: Stamp
    sealable: bool  # False: a time-sensitive module without restriction, whose output nothing ever seals
    time_bound: bool  # the module promises that changes from s on change its rows only from s on
    stable: bool  # a snapshot that is cut in two gives the same rows on both sides
    snapshot: bool
    emission: Emission

    @property
    def by_start(self) -> bool:
        """Whether windows are due by their start, before they end."""
        if self.emission == "final":
            return False
        return self.emission == "eager" or self.snapshot or self.time_bound

    def due(self, frontier: int, seen: int) -> int:
        """Windows are due whose start (or end, by `by_start`) is at most this."""
        reached = frontier if self.emission == "final" else max(frontier, seen)
        strict = self.snapshot if self.emission == "final" else self.by_start and self.emission != "eager"
        return reached - 1 if strict and BEGINNING < reached < FOREVER else reached

    def is_due(self, windows: Windows, due: int) -> Bools:
        return (windows.le if self.by_start else windows.re) <= due

    def is_closed(self, re: Ints, frontier: int) -> Bools:
        """Windows that can get no new members. The end of a snapshot at the frontier itself may still move."""
        if self.snapshot and frontier < FOREVER:
            return re < frontier
        return re <= frontier

    def closed(self, outputs: Outputs, frontier: int) -> Windows:
        """Those of some windows that can get no new members."""
        return outputs.chosen(outputs.where(lambda part: self.is_closed(part.windows.re, frontier)))

    def is_final(self, outputs: OutputPart, frontier: int) -> Bools:
        """Windows that nothing can change any more."""
        if frontier >= FOREVER:
            return np.ones(len(outputs.hold), np.bool_)
        return self.is_closed(outputs.windows.re, frontier) & (outputs.hold < frontier)

    def sealed(self, frontier: int, opened: int, outputs: Outputs | None = None) -> int:
        """The output's frontier. ``opened`` is the least start of a window that can still get members.

        ``outputs`` has every window that is out and not final, where they are kept. One whose rows an end may still
        change, even where its members stay, changes from its start on.
        """
        if frontier >= FOREVER:
            return FOREVER
        if not self.sealable:
            return BEGINNING
        if self.stamp == "point_end":
            return frontier if outputs is None else min(frontier, outputs.least_held("re", frontier))
        if self.time_bound and self.emission != "final":
            return frontier
        held = frontier if outputs is None else min(frontier, outputs.least_held("le", frontier))
        if self.snapshot and self.stable and self.emission != "final":
            return held  # what lies before the frontier stays: rows are shortened and continued, not replaced
        return min(held, opened)


def liveliness_of(typed: Typed, emission: Emission) -> Liveliness:
    """The rules for a node."""
    node = typed.node
    assert isinstance(node, nodes.WindowNode)
    module = typed.module
    snapshot = isinstance(node.window, Snapshot)
    if isinstance(node, nodes.Aggregation | nodes.TopK):
        ordered = isinstance(node, nodes.Aggregation) and any(agg.function.ordered for _, agg in node.aggs)
        stamp: Stamp = "point_end" if node.output == "point_end" else "window"
        return Liveliness("ties" if ordered else "members", stamp, True, False, True, snapshot, emission)
    assert isinstance(node, nodes.Uda | nodes.Udo)
    assert module is not None
    own = isinstance(node, nodes.Udo) and module.time_sensitive and node.stamp != "align"
    stamp = "own" if own else "point_end" if isinstance(node, nodes.Uda) and node.output == "point_end" else "window"
    return Liveliness(
        watch=_watch(typed, node),
        stamp=stamp,
        sealable=not (module.time_sensitive and node.restriction == "none"),
        time_bound=own and node.restriction == "time_bound",
        stable=module.properties.deterministic and not module.time_sensitive,
        snapshot=snapshot,
        emission=emission,
    )


def _watch(typed: Typed, node: nodes.Uda | nodes.Udo) -> Watch:
    assert typed.module is not None
    if typed.module.time_sensitive:
        return "clipped" if node.clip in ("right", "full") else "ends"
    return "members" if typed.module.properties.order_insensitive else "ends"
