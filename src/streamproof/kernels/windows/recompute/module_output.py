"""From what a module answers to rows: every value checked against the declared type, every lifetime stamped.

Columns are checked by the types that occur in them. Only where that does not settle it, each value is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from types import NoneType
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from streamproof.errors import RunError
from streamproof.events.schema import INT64, Schema, Type
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.kernels.cells import Ints, Layout, Strings
from streamproof.kernels.expressions.udf import of_type
from streamproof.kernels.windows.shared.members import Rows, Windows
from streamproof.kernels.windows.shared.outputs import no_rows
from streamproof.plan.modules import Event, Module, Stamping

Fail: TypeAlias = "Callable[[int, RunError], None]"
"""Told the number of a window whose answer is no good, and why."""
_PLAIN: Final[dict[str, set[type]]] = {
    "int64": {int, NoneType},
    "float64": {float, NoneType},
    "string": {str, NoneType},
    "bool": {bool, NoneType},
    "date": {date, NoneType},
    "null": {NoneType},
}


class ModuleOutput:
    """How the answers of one module become rows."""

    def __init__(self, module: Module, schema: Schema, layout: Layout, strings: Strings) -> None:
        self._module, self._schema = module, schema
        self._layout, self._strings = layout, strings

    def values(self, windows: Windows, answers: list[Any], lost: set[int], fail: Fail) -> Rows:
        """One row per window, with the window's lifetime; none for the windows that are or get lost."""
        _, kind = self._schema.columns[0]
        column = _column(answers, kind)
        if column is None:
            given = enumerate(answers)
            checked = [None if n in lost else self._checked(n, value, kind, fail) for n, value in given]
            column = pa.array(checked, kind.arrow)
        window = np.arange(len(windows.le))
        if lost:
            window = np.delete(window, sorted(lost))
            column = column.take(pa.array(window))
        cells = self._layout.encode([column], self._strings)
        return Rows(window, windows.le[window], windows.re[window], np.ones(len(window), np.int64), cells)

    def _checked(self, number: int, value: Any, kind: Type, fail: Fail) -> Any:
        try:
            return declared(self._module, value, kind)
        except RunError as error:
            fail(number, error)
            return None

    def rows(self, windows: Windows, answers: list[list[Any]], stamp: Stamping, lost: set[int], fail: Fail) -> Rows:
        """The rows of all windows, stamped; none for the windows that are or get lost."""
        made = self._stamped(windows, answers, stamp, lost)
        columns = None if made is None else self._columns(made[3])
        if made is None or columns is None:
            made, columns = self._one_by_one(windows, answers, stamp, lost, fail)
        window, le, re, _ = made
        if not len(window):
            return no_rows(self._layout.width)
        cells = np.zeros((len(window), 1), np.int64)
        if columns:
            cells = self._layout.encode(columns, self._strings)
        alive = le < re
        every = Rows(window, le, re, np.ones(len(window), np.int64), cells)
        return every if alive.all() else Rows(*(column[alive] for column in every))

    def _stamped(self, windows: Windows, answers: list[list[Any]], stamp: Stamping, lost: set[int]) -> _Made | None:
        """The rows of plain dicts and events, stamped; None if others are among them, or some that break a rule."""
        kept = [[] if n in lost else rows for n, rows in enumerate(answers)] if lost else answers
        flat = [row for rows in kept for row in rows]
        types = set(map(type, flat))
        window = np.repeat(np.arange(len(kept)), list(map(len, kept)))
        le, re = windows.le[window], windows.re[window]
        if types <= {dict}:
            return window, le, re, flat
        if not types <= {dict, Event}:
            return None
        payloads = [row[2] if type(row) is Event else row for row in flat]
        if stamp != "align":
            own = _own_lifetimes(flat, le, re)
            if own is None or (stamp == "unchanged" and (own[0] < le).any()):
                return None
            le, re = (np.maximum(own[0], le), np.minimum(own[1], re)) if stamp == "clip" else own
        return (window, le, re, payloads) if set(map(type, payloads)) <= {dict} else None

    def _columns(self, payloads: Sequence[Mapping[str, Any]]) -> list[pa.Array] | None:
        """The columns of payloads that name them all and nothing else, of types that need no second look."""
        names = set(self._schema.names)
        if not all(payload.keys() == names for payload in payloads):
            return None
        columns = []
        for name, kind in self._schema:
            column = _column([payload[name] for payload in payloads], kind)
            if column is None:
                return None
            columns.append(column)
        return columns

    def _one_by_one(
        self, windows: Windows, answers: list[list[Any]], stamp: Stamping, lost: set[int], fail: Fail
    ) -> tuple[_Made, list[pa.Array]]:
        """The rows of all windows, each row and value looked at."""
        spans = zip(windows.le.tolist(), windows.re.tolist(), strict=True)
        made: list[tuple[int, int, int, list[Any]]] = []
        for number, (span, rows) in enumerate(zip(spans, answers, strict=True)):
            if number in lost:
                continue
            try:
                made += [(number, *checked_row(self._module, self._schema, span, row, stamp)) for row in rows]
            except RunError as error:
                fail(number, error)
        window, le, re = (np.array([row[n] for row in made], np.int64) for n in range(3))
        payloads = [row[3] for row in made]
        columns = [
            pa.array([payload[n] for payload in payloads], kind.arrow) for n, (_, kind) in enumerate(self._schema)
        ]
        return (window, le, re, []), columns


_Made: TypeAlias = "tuple[Ints, Ints, Ints, list[Any]]"
"""Rows before they are checked: windows, starts, ends, payloads."""


def _own_lifetimes(rows: list[Any], le: Ints, re: Ints) -> tuple[Ints, Ints] | None:
    """The lifetimes that events say; those given for others. None if one of them is no time."""
    found = []
    for place, default in enumerate((le, re)):
        times = [row[place] if type(row) is Event else given for row, given in zip(rows, default.tolist(), strict=True)]
        if not set(map(type, times)) <= {int} or not BEGINNING <= min(times) <= max(times) <= FOREVER:
            return None
        found.append(np.array(times, np.int64))
    return found[0], found[1]


def _column(values: list[Any], kind: Type) -> pa.Array | None:
    """Values as a column if their Python types leave no doubt; None if each has to be looked at."""
    if not set(map(type, values)) <= _PLAIN.get(kind.kind, set()):
        return None
    try:
        return pa.array(values, kind.arrow)
    except (pa.ArrowException, ArithmeticError, ValueError):
        return None


def declared(module: Module, value: Any, kind: Type) -> Any:
    """A value, if it is of the type that the module declares."""
    try:
        return None if value is None else pa.scalar(of_type(value, kind), kind.arrow).as_py()
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        raise RunError(
            f"{module} gave {value!r}, which is not of type {kind}",
            fix=f"return a value of type {kind} or None",
            name="module_failed",
        ) from None


def checked_row(
    module: Module, schema: Schema, span: tuple[int, int], answer: Any, stamp: Stamping | None = None
) -> tuple[int, int, list[Any]]:
    """The lifetime and the values of one row, if it keeps to the rules of its stamp; without one, of none."""
    if isinstance(answer, Mapping):
        return span[0], span[1], _payload(module, schema, answer)
    if not (isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[2], Mapping)):
        what = f"{module} gave {answer!r}, which is no row"
        raise RunError(what, fix="give dicts, or Event(le, re, dict)", name="module_failed")
    le, re, payload = answer
    if stamp == "align":
        return span[0], span[1], _payload(module, schema, payload)
    le, re = _time(module, le), _time(module, re)
    if stamp == "clip":
        return max(le, span[0]), min(re, span[1]), _payload(module, schema, payload)
    if stamp == "unchanged" and le < span[0]:
        raise RunError(
            f"{module} gave a row from {show_tick(le)} on, before its window",
            fix='clip its input on the left, or stamp its output with "clip" or "align"',
            name="output_in_past",
        )
    return le, re, _payload(module, schema, payload)


def _payload(module: Module, schema: Schema, row: Mapping[str, Any]) -> list[Any]:
    unknown = [name for name in row if name not in schema]
    if unknown:
        raise RunError(
            f'{module} gave a column "{unknown[0]}" that it does not declare',
            fix="give the columns " + ", ".join(schema.names),
            name="module_failed",
        )
    return [declared(module, row.get(name), kind) for name, kind in schema]


def _time(module: Module, time: Any) -> int:
    found: Any = declared(module, time, INT64)
    if found is None:
        raise RunError(f"{module} gave a row whose lifetime is no time: None", name="module_failed")
    if not BEGINNING <= found <= FOREVER:
        what = f"{module} gave a row whose lifetime lies outside ±2^62 ticks: {found}"
        raise RunError(what, fix="use a coarser time unit", name="overflow")
    return int(found)
