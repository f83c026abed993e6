"""Rows and windows as predicates see them: columns underneath, converted when first looked at.

>>> import pyarrow as pa
>>> window = Window(LazyColumns(pa.table({"zone": [1, 2], "level": ["Safe", "Danger"]})))
>>> [row.level for row in window], window[1]["zone"], len(window)
(['Safe', 'Danger'], 2, 2)
>>> window[0]
WindowRow(zone=1, level='Safe')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, overload

import numpy as np
import pyarrow as pa

SHOWN = 6  # rows of a window that its text shows


class LazyColumns:
    """A table whose columns become Python values when somebody looks at them."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.names: tuple[str, ...] = tuple(table.column_names)
        self.lists: dict[str, list[Any]] = {}  # the columns that somebody looked at

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def values(self, name: str) -> list[Any]:
        """All values of a column."""
        found = self.lists.get(name)
        if found is None:
            if name not in self.names:
                raise AttributeError(f"no column {name!r}; there are {', '.join(self.names) or 'none'}")
            found = self.lists[name] = _python(self.table.column(name))
        return found


def _python(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_struct(column.type):
        joined = column.combine_chunks()
        names = [field.name for field in column.type]
        inner = LazyColumns(pa.table([pa.chunked_array([joined.field(n)]) for n in range(len(names))], names=names))
        return [WindowRow(inner, at) if valid else None for at, valid in enumerate(joined.is_valid().to_pylist())]
    values: list[Any] = column.to_pylist()
    return values


class WindowRow:
    """One row: ``row.name`` or ``row["name"]``. Rows with equal names and values are equal."""

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: LazyColumns, at: int) -> None:
        self._columns = columns
        self._at = at

    def __getattr__(self, name: str) -> Any:
        found = self._columns.lists.get(name)
        if found is not None:  # somebody looked at the column before
            return found[self._at]
        if name.startswith("__"):
            raise AttributeError(name)
        return self._columns.values(name)[self._at]

    def __getitem__(self, name: str) -> Any:
        return self._columns.values(name)[self._at]

    def as_dict(self) -> dict[str, Any]:
        """The row as a dictionary."""
        return {name: self._columns.values(name)[self._at] for name in self._columns.names}

    def __eq__(self, other: object) -> bool:
        if isinstance(other, WindowRow):
            return self.as_dict() == other.as_dict()
        return isinstance(other, Mapping) and self.as_dict() == dict(other)

    def __hash__(self) -> int:
        return hash(tuple(self._columns.values(name)[self._at] for name in self._columns.names))

    def __repr__(self) -> str:
        return f"WindowRow({row_text(self)})"


def row_text(row: WindowRow) -> str:
    """A row in one line: times are short and come last."""
    values = row.as_dict()
    late = [name for name, value in values.items() if isinstance(value, datetime | WindowRow)]
    order = [name for name in values if name not in late] + late
    return ", ".join(f"{name}={_value(values[name])}" for name in order)


def _value(value: Any) -> str:
    if isinstance(value, datetime):
        return (
            value.strftime("%H:%M:%S.%f").rstrip("0").rstrip(".") if value.microsecond else value.strftime("%H:%M:%S")
        )
    if isinstance(value, WindowRow):
        return "–".join(_value(part) for part in value.as_dict().values())
    if isinstance(value, float):
        return f"{value:g}" if abs(value) >= 1e-4 or value == 0 else repr(value)
    return repr(value)


class Window(Sequence[WindowRow]):
    """The rows of one window, or of one step: a sequence that reads its columns lazily."""

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: LazyColumns, at: Sequence[int] | np.ndarray[Any, Any] | None = None) -> None:
        self._columns = columns
        self._at: Sequence[int] | np.ndarray[Any, Any] = range(len(columns)) if at is None else at

    def __len__(self) -> int:
        return len(self._at)

    def __iter__(self) -> Iterator[WindowRow]:
        columns = self._columns
        return map(partial(WindowRow, columns), self._at)

    @overload
    def __getitem__(self, index: int) -> WindowRow: ...
    @overload
    def __getitem__(self, index: slice) -> Window: ...
    def __getitem__(self, index: int | slice) -> WindowRow | Window:
        if isinstance(index, slice):
            return Window(self._columns, self._at[index])
        if not -len(self) <= index < len(self):
            raise IndexError(f"no row {index}: the window has {len(self)}")
        return WindowRow(self._columns, int(self._at[index]))

    def column(self, name: str) -> list[Any]:
        """The values of one column: the fast way where only one matters."""
        values = self._columns.values(name)
        if isinstance(self._at, range):
            return values[self._at.start : self._at.stop]
        return [values[at] for at in self._at]

    def to_arrow(self) -> pa.Table:
        """The rows as a table."""
        return self._columns.table.take(pa.array(self._at, type=pa.int64()))

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame."""
        return self.to_arrow().to_pandas()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        more = [f"… {len(self) - SHOWN} more"] if len(self) > SHOWN else []
        return f"[{', '.join([repr(row) for row in self[:SHOWN]] + more)}]"


def as_record(element: object) -> dict[str, Any]:
    """An element of a window as a row: mappings, dataclasses, named tuples and Spark's rows have columns of their own.

    >>> as_record({"v": 1}), as_record(7), as_record(("a", 1))
    ({'v': 1}, {'value': 7}, {'_1': 'a', '_2': 1})
    """
    if isinstance(element, Mapping):
        return dict(element)
    if hasattr(element, "_asdict"):
        return dict(element._asdict())
    if hasattr(element, "asDict"):
        return dict(element.asDict())
    if hasattr(element, "__dataclass_fields__"):
        return {name: getattr(element, name) for name in element.__dataclass_fields__}
    if isinstance(element, tuple):
        return {f"_{n}": value for n, value in enumerate(element, 1)}
    return {"value": element}
