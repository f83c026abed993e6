"""User-defined aggregates and operators over windows: one call per window that changed, with its events in order.

An incremental module keeps a state per window and is told only what came and went; an event whose (clipped) lifetime
changed goes and comes. Such states are not part of a snapshot: after `restore` the state of a window is made anew from
all its members when the window changes next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from streamproof.errors import RunError
from streamproof.events.schema import FLOAT64, Type
from streamproof.events.time import show_tick
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Ints, Layout
from streamproof.kernels.expressions.decimals import rounded
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.segments import Members, Rows, Windows
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.modules import Event, Module, WindowSpan, module_failed

Named: TypeAlias = "tuple[int, int, int]"
"""A window: its group, start and end."""


class Modules:
    """The module of one node, with its state per window if it is incremental."""

    def __init__(self, typed: Typed, kept: Kept, layout: Layout, context: Context) -> None:
        assert isinstance(typed.node, nodes.Uda | nodes.Udo)
        assert typed.module is not None
        self.node, self.module, self._kept = typed.node, typed.module, kept
        self._schema, self._layout, self._context = typed.schema, layout, context
        self._params = dict(self.node.params)
        self._columns = _arguments(self.node, self.module, kept)
        self._unit: Any = self.module.implementation(**self._params) if self.module.incremental else None
        self._states: dict[Named, Any] = {}

    # --- calls --------------------------------------------------------------------------------------------------------

    def rows(self, members: Members, change: Members | None) -> Rows:
        """The rows of all windows. ``change`` has the signed events that changed since the last call."""
        answers = self._answers(members, change)
        if isinstance(self.node, nodes.Uda):
            return self._values(members.windows, list(answers))
        return self._stamped(members.windows, list(answers))

    def _answers(self, members: Members, change: Members | None) -> Iterator[Any]:
        names = list(zip(*(column.tolist() for column in members.windows), strict=True))
        known = np.array([name in self._states for name in names], np.bool_)
        whole = _Slices(self, members, ~known[members.window])
        parts = _Slices(self, change, known[change.window]) if change is not None and known.any() else None
        for number, name in enumerate(names):
            span = WindowSpan(name[1], name[2])
            if self._unit is None:
                yield self.module.evaluate(whole.events(number), span, self._params)
            elif known[number]:
                yield self._changed(name, span, parts.signed(number) if parts else ([], []))
            else:
                yield self._begun(name, span, whole.events(number))

    def _begun(self, name: Named, span: WindowSpan, events: list[Event]) -> Any:
        unit = self._unit
        return self._guarded(name, span, events, lambda: unit.add(unit.start(), self._seen(events)))

    def _changed(self, name: Named, span: WindowSpan, parts: tuple[list[Event], list[Event]]) -> Any:
        gone, new = parts
        unit, state = self._unit, self._states[name]

        def update() -> Any:
            kept = unit.remove(state, self._seen(gone)) if gone else state
            return unit.add(kept, self._seen(new)) if new else kept

        return self._guarded(name, span, gone + new, update)

    def _guarded(self, name: Named, span: WindowSpan, events: list[Event], update: Callable[[], Any]) -> Any:
        try:
            state = self._states[name] = update()
            answer = self._unit.result(state, *((span,) if self.module.time_sensitive else ()))
            return list(answer) if self.module.kind == "udo" else answer
        except Exception as error:
            raise module_failed(self.module, error, span, events) from error

    def _seen(self, events: list[Event]) -> Sequence[Any]:
        return events if self.module.time_sensitive else [event.value for event in events]

    def forget(self, windows: Windows) -> None:
        """Windows that are gone need no state."""
        for name in zip(*(column.tolist() for column in windows), strict=True) if self._states else ():
            self._states.pop(name, None)

    # --- events -------------------------------------------------------------------------------------------------------

    def clipped(self, members: Members) -> tuple[Ints, Ints]:
        """The lifetimes that a module sees."""
        le, re = members.le, members.re
        if self.node.clip in ("left", "full"):
            le = np.maximum(le, members.windows.le[members.window])
        if self.node.clip in ("right", "full"):
            re = np.minimum(re, members.windows.re[members.window])
        return le, re

    def ranks(self, members: Members) -> Ints:
        return self._kept.ranks(members)

    def values(self, members: Members) -> list[Any]:
        """What the module sees of each member besides its lifetime."""
        columns: list[list[Any]] = [
            members.layout.column(members.cells, number, members.strings).to_pylist() for _, number in self._columns
        ]
        if isinstance(self.node, nodes.Uda):
            return columns[0]
        names = [name for name, _ in self._columns]
        if not names:
            return [{} for _ in range(len(members.cells))]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    # --- results ------------------------------------------------------------------------------------------------------

    def _values(self, windows: Windows, answers: list[Any]) -> Rows:
        assert isinstance(self.node, nodes.Uda)
        name, kind = self._schema.columns[0]
        column = self._column(name, kind, answers)
        cells = self._layout.encode([column], self._context.strings)
        window = np.arange(len(windows.le))
        return Rows(window, windows.le, windows.re, np.ones(len(window), np.int64), cells)

    def _stamped(self, windows: Windows, answers: list[list[Any]]) -> Rows:
        spans = list(zip(windows.le.tolist(), windows.re.tolist(), strict=True))
        made = [(n, *self._stamp(spans[n], row)) for n, rows in enumerate(answers) for row in rows]
        made = [row for row in made if row[1] < row[2]]
        window, le, re = (np.array([row[n] for row in made], np.int64) for n in range(3))
        columns = [
            self._column(name, kind, [_column_of(self.module, row[3], name) for row in made])
            for name, kind in self._schema
        ]
        cells = self._layout.encode(columns, self._context.strings) if columns else np.zeros((len(made), 1), np.int64)
        return Rows(window, le, re, np.ones(len(made), np.int64), cells)

    def _stamp(self, span: tuple[int, int], answer: Any) -> tuple[int, int, Any]:
        assert isinstance(self.node, nodes.Udo)
        le, re, value = answer if isinstance(answer, Event) else (*span, answer)
        if self.node.stamp == "align":
            return *span, value
        if self.node.stamp == "clip":
            return max(le, span[0]), min(re, span[1]), value
        if le < span[0]:
            raise RunError(
                f"{self.module} gave a row from {show_tick(le)} on, before its window",
                at=f"window [{show_tick(span[0])}, {show_tick(span[1])})",
                fix='clip its input on the left, or stamp its output with "clip" or "align"',
                name="output_in_past",
            )
        return le, re, value

    def _column(self, name: str, kind: Type, values: list[Any]) -> pa.Array:
        try:
            return pa.array([_widened(value, kind) for value in values], kind.arrow)
        except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
            raise RunError(
                f'{self.module} gave a value for "{name}" that is no {kind}: {error}',
                fix=f"return values of type {kind}",
                name="module_failed",
            ) from error


class _Slices:
    """Some members as the events that a module sees, window by window."""

    def __init__(self, modules: Modules, members: Members, chosen: Any) -> None:
        le, re = modules.clipped(members)
        ranks = modules.ranks(members)
        at = np.flatnonzero(chosen)
        at = at[np.lexsort((ranks[at], re[at], le[at], members.window[at]))]
        self._window = members.window[at]
        self._slot = members.slot[at].tolist()
        values = modules.values(_picked(members, at))
        self._events = list(map(Event, le[at].tolist(), re[at].tolist(), values))
        self._weights = members.w[at].tolist()
        self._timeless = not modules.module.time_sensitive
        self._is_rows = isinstance(modules.node, nodes.Udo)

    def _range(self, number: int) -> range:
        first, last = np.searchsorted(self._window, [number, number + 1])
        return range(int(first), int(last))

    def events(self, number: int) -> list[Event]:
        """The events of a window, equal ones as often as they are there."""
        return [event for at in self._range(number) for event in self._copies(at, self._weights[at])]

    def _copies(self, at: int, count: int) -> list[Event]:
        event = self._events[at]
        if count == 1 or not self._is_rows:
            return [event] * count
        return [event._replace(value=dict(event.value)) for _ in range(count)]

    def signed(self, number: int) -> tuple[list[Event], list[Event]]:
        """The events that went and those that came. What the module sees unchanged did neither."""
        net: dict[Any, int] = {}
        for at in self._range(number):
            event = self._events[at]
            seen = repr(event.value) if self._timeless else repr(event)
            net[seen] = net.get(seen, 0) + self._weights[at]
        gone: list[Event] = []
        new: list[Event] = []
        for at in self._range(number):
            event = self._events[at]
            count = net.pop(repr(event.value) if self._timeless else repr(event), 0)
            (gone if count < 0 else new).extend(self._copies(at, abs(count)))
        return gone, new


def _picked(members: Members, at: Ints) -> Members:
    return Members(
        members.windows, members.window[at], members.le[at], members.re[at], members.w[at], members.slot[at],
        members.cells[at], members.layout, members.strings,
    )  # fmt: skip


def _arguments(node: nodes.Uda | nodes.Udo, module: Module, kept: Kept) -> list[tuple[str, int]]:
    if isinstance(node, nodes.Uda):
        return [("value", kept.column(node.arg, to=module.takes[0] if module.takes else None))]
    return [(name, kept.column(expr)) for name, expr in node.map or ()]


def _widened(value: Any, kind: Type) -> Any:
    """A number as one of a wider type."""
    if value is None or isinstance(value, bool):
        return value
    if kind == FLOAT64:
        return float(value)
    return rounded(Decimal(value), kind.scale) if kind.kind == "decimal" else value


def _column_of(module: Module, row: Any, name: str) -> Any:
    if not isinstance(row, dict) or name not in row:
        what = f'{module} gave a row without the column "{name}": {row!r}'
        raise RunError(what, fix="give every column it declares", name="module_failed")
    return row[name]
