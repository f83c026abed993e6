"""User-defined aggregates and operators over windows: one call per window that changed, with its events in order.

An incremental module keeps a state per window and is told only what came and went; an event whose (clipped) lifetime
changed goes and comes. Such states are not part of saved state: after `restore` the state of a window is made anew from
all its members when the window changes next.

A call that fails ends the run, or leaves a dead letter and no rows: then the window is tried again, from all its
members, when it changes next.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, repeat
from typing import Any, TypeAlias

import numpy as np

from streamproof.errors import RunError
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Bools, Layout
from streamproof.kernels.windows.recompute.module_input import ModuleInput
from streamproof.kernels.windows.recompute.module_output import ModuleOutput
from streamproof.kernels.windows.shared.members import Members, Rows
from streamproof.kernels.windows.shared.outputs import UNKNOWN, Memory
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.failures import MOST_EVENTS, DeadLetter, module_failed, place
from streamproof.plan.modules import WindowSpan
from streamproof.thresholds import SEEN_AT_ONCE

_Pieces: TypeAlias = Iterable[list[Any]]


class ModuleCalls:
    """The module of one node."""

    def __init__(self, typed: Typed, stored: StoredColumns, layout: Layout, context: Context) -> None:
        assert isinstance(typed.node, nodes.Uda | nodes.Udo)
        assert typed.module is not None
        self.node, self.module = typed.node, typed.module
        self.lost: set[int] = set()  # the windows of the last call that failed
        self._typed, self._context = typed, context
        params = dict(self.node.params)
        self._sight = ModuleInput(
            _arguments(self.node, stored),
            clip=self.node.clip,
            timed=self.module.time_sensitive,
            as_rows=isinstance(self.node, nodes.Udo),
            ranks=stored.ranks,
            most=context.limits.events_listed,
        )
        self._answers = ModuleOutput(self.module, typed.schema, layout, context.strings)
        made = self.module.implementation
        self._unit: Any = made(**params) if self.module.incremental else None
        self._whole: Callable[..., Any] = partial(made, **params) if params else made

    def rows(self, members: Members, change: Members | None, memory: Memory) -> Rows:
        """The rows of all windows. ``change`` has the signed events that changed since the last call.

        The memory is that of before, and after the call that of now.
        """
        self.lost = set()
        with _undisturbed():
            stateful = self.module.incremental
            answers = self._incremental(members, change, memory) if stateful else self._at_once(members)
        fail = partial(self._refuse, members)
        if isinstance(self.node, nodes.Uda):
            made = self._answers.values(members.windows, answers, self.lost, fail)
        else:
            made = self._answers.rows(members.windows, answers, self.node.stamp, self.lost, fail)
        for number in self.lost:
            memory.states[number] = UNKNOWN
        return made

    # --- calls --------------------------------------------------------------------------------------------------------

    def _at_once(self, members: Members) -> list[Any]:
        """What the module says to all events of each window."""
        answers: list[Any] = []
        call, timed, as_rows = self._whole, self._timed, self.module.kind == "udo"
        for seen, span in zip(self._sight.whole(members), self._spans(members), strict=True):
            try:
                answer = call(seen, span) if timed else call(seen)
                answers.append(list(answer) if as_rows else answer)
            except Exception as error:
                self._raised(members, len(answers), error)
                answers.append(None)
        return answers

    def _incremental(self, members: Members, change: Members | None, memory: Memory) -> list[Any]:
        """What the module says to each window's state, after it was told what changed."""
        answers: list[Any] = []
        after: list[Any] = []
        parts = self._parts(members, change, memory.known)
        unit, timed, as_rows = self._unit, self._timed, self.module.kind == "udo"
        start, add, remove, result = unit.start, unit.add, unit.remove, unit.result
        for known, gone, new, span in zip(memory.states.tolist(), *parts, self._spans(members), strict=True):
            state = known
            try:
                if state is UNKNOWN:
                    state = start()
                if gone:
                    state = remove(state, gone)
                if new:
                    state = add(state, new)
                answer = result(state, span) if timed else result(state)
                answers.append(list(answer) if as_rows else answer)
            except Exception as error:
                self._raised(members, len(answers), error)
                answers.append(None)
            after.append(state)
        memory.states[:] = np.fromiter(after, object, len(after))
        return answers

    def _parts(self, members: Members, change: Members | None, known: Bools) -> tuple[_Pieces, _Pieces]:
        """Per window what went and what came: all members, where there is no state yet."""
        nothing: list[Any] = []
        gone: _Pieces = repeat(nothing, len(members))
        if not known.any():
            return gone, self._sight.whole(members)
        new: _Pieces = repeat(nothing, len(members))
        if change is not None:
            gone, new = self._sight.changes(change)
        if not known.all():  # a window has news from one side only
            new = [first or second for first, second in zip(self._sight.whole(members, ~known), new, strict=True)]
        return gone, new

    def _spans(self, members: Members) -> Iterator[WindowSpan | None]:
        """The windows as a module sees them, if it does."""
        if not self._timed:
            return repeat(None, len(members))
        le, re = members.windows.le, members.windows.re
        together = SEEN_AT_ONCE.now
        parts = (slice(first, first + together) for first in range(0, len(members), together))
        bounds = chain.from_iterable(zip(le[part].tolist(), re[part].tolist(), strict=True) for part in parts)
        return map(tuple.__new__, repeat(WindowSpan), bounds)

    @property
    def _timed(self) -> bool:
        return self.module.time_sensitive

    # --- failures -----------------------------------------------------------------------------------------------------

    def _raised(self, members: Members, number: int, error: Exception) -> None:
        """The module raised on a window."""
        window, events = _span(members, number), self._sight.events(members, number)
        found = module_failed(self.module, error, window, events, group=self._group(members, number))
        found.__cause__ = error
        self._give_up(members, number, found)

    def _refuse(self, members: Members, number: int, error: RunError) -> None:
        """What the module said about a window is no good."""
        events, group = self._sight.events(members, number), self._group(members, number)
        error.located(place(_span(members, number), events, group=group))
        self._give_up(members, number, error)

    def _give_up(self, members: Members, number: int, error: RunError) -> None:
        if self._context.on_module_error == "fail":
            raise error
        self.lost.add(number)
        window, group = _span(members, number), self._group(members, number)
        events = self._sight.events(members, number)
        letter = DeadLetter(str(self.module), error, window, group, tuple(events[:MOST_EVENTS]), count=len(events))
        self._context.dead_letters.append(letter)

    def _group(self, members: Members, number: int) -> dict[str, Any] | None:
        return self._context.key_of(self._typed, int(members.windows.group[number]))


def _span(members: Members, number: int) -> WindowSpan:
    return WindowSpan(int(members.windows.le[number]), int(members.windows.re[number]))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No garbage collection while thousands of short-lived objects are made; it comes to its right between batches."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _arguments(node: nodes.Uda | nodes.Udo, stored: StoredColumns) -> list[tuple[str, int]]:
    if isinstance(node, nodes.Uda):
        return [("value", stored.column(node.arg))]
    return [(name, stored.column(expr)) for name, expr in node.map or ()]
