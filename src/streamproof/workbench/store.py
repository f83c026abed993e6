"""The state that Spark keeps for one bucket, in memory, behind the few methods of Spark's map that a journal calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Row: TypeAlias = tuple[object, ...]


@dataclass
class Store:
    """The state of one bucket. Rows are tuples as Spark has them, so a copy needs no copies of them.

    >>> store = Store()
    >>> store.updateValue((1,), (b"blob",))
    >>> before = store.copy()
    >>> store.removeKey((1,))
    >>> before.getValue((1,)), store.getValue((1,))
    ((b'blob',), None)
    """

    rows: dict[Row, Row] = field(default_factory=dict)

    def getValue(self, key: Row) -> Row | None:  # noqa: N802  # Spark's names
        return self.rows.get(key)

    def updateValue(self, key: Row, row: Row) -> None:  # noqa: N802
        self.rows[key] = row

    def removeKey(self, key: Row) -> None:  # noqa: N802
        self.rows.pop(key, None)

    def copy(self) -> Store:
        """The state as it is now."""
        return Store(dict(self.rows))
