"""The state that Spark keeps for one bucket, in memory, behind the few methods of Spark's that a journal calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Row: TypeAlias = tuple[object, ...]


@dataclass
class Store:
    """The state of one bucket. Rows are tuples as Spark has them, so a copy needs no copies of them.

    >>> store = Store()
    >>> store.getMapState("entries", "", "").updateValue((1,), ("token", b"parts"))
    >>> before = store.copy()
    >>> store.getMapState("entries", "", "").removeKey((1,))
    >>> before.getMapState("entries", "", "").getValue((1,))
    ('token', b'parts')
    """

    values: dict[str, ValueState] = field(default_factory=dict)
    lists: dict[str, ListState] = field(default_factory=dict)
    maps: dict[str, MapState] = field(default_factory=dict)

    def getValueState(self, name: str, schema: str) -> ValueState:  # noqa: N802  # Spark's names
        return self.values.setdefault(name, ValueState())

    def getListState(self, name: str, schema: str) -> ListState:  # noqa: N802
        return self.lists.setdefault(name, ListState())

    def getMapState(self, name: str, key: str, schema: str) -> MapState:  # noqa: N802
        return self.maps.setdefault(name, MapState())

    def copy(self) -> Store:
        """The state as it is now."""
        return Store(
            {name: ValueState(state.row) for name, state in self.values.items()},
            {name: ListState(list(state.rows)) for name, state in self.lists.items()},
            {name: MapState(dict(state.rows)) for name, state in self.maps.items()},
        )


@dataclass
class ValueState:
    row: Row | None = None

    def get(self) -> Row | None:
        return self.row

    def update(self, row: Row) -> None:
        self.row = row


@dataclass
class ListState:
    rows: list[Row] = field(default_factory=list)

    def get(self) -> Iterator[Row]:
        return iter(self.rows)

    def put(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)


@dataclass
class MapState:
    rows: dict[Row, Row] = field(default_factory=dict)

    def getValue(self, key: Row) -> Row | None:  # noqa: N802
        return self.rows.get(key)

    def updateValue(self, key: Row, row: Row) -> None:  # noqa: N802
        self.rows[key] = row

    def removeKey(self, key: Row) -> None:  # noqa: N802
        self.rows.pop(key, None)
