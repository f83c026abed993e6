"""What a kernel holds, declared by name. Saving, restoring and counting follow from the declaration.

A kernel says in `parts` what it is made of. A part is itself something with parts (an operator in an operator, keys),
or one of those below: `Fields` for numbers and arrays that are attributes, `StoredRows` for a store, `Numbered` for
groups and keys, `Matrix` for what is laid out as rows only to be saved.

    AntiJoin.parts  ┬ keys     Numbered      "keys.codes", "keys.rows"
                    ├ lefts    StoredRows    "lefts.rows"
                    ├ rights   StoredRows    "rights.rows"
                    └ time     Fields        "time.frontiers", "time.base"

>>> class Clock(Declared):
...     def __init__(self):
...         self.now, self.frontiers = 5, [1, 2]
...     def parts(self):
...         return {"time": Fields(self, "now", "frontiers")}
>>> other = Clock()
>>> other.now, saved = 0, Clock().save()
>>> other.restore(saved)
>>> other.now, other.frontiers, sorted(saved)
(5, [1, 2], ['time.frontiers', 'time.now'])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from streamproof.kernels.base import Part, State, array, number
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.interning import Interner
from streamproof.kernels.store import Store
from streamproof.kernels.store_loops import PAYLOAD

if TYPE_CHECKING:
    from streamproof.kernels.pairs import Keys

NOTHING = np.empty(0, np.int64)


class Declared:
    """The part of the kernel protocol that follows from `parts`; a kernel without state declares none."""

    def parts(self) -> Mapping[str, Part]:
        """What is held, by the name that it has in saved state; restored in this order."""
        return {}

    def settle(self) -> None:
        """Let go of rows that no longer matter: called before anybody looks at the parts."""

    def collect(self) -> None:
        """Let go of keys that no row holds: called before the parts are saved, or asked for strings and groups."""

    def restored(self) -> None:
        """Make anew what is derived from the parts: called when all are restored."""

    def save(self) -> State:
        self.settle()
        self.collect()
        parts = self.parts().items()
        return {f"{name}.{inner}": value for name, part in parts for inner, value in part.save().items()}

    def restore(self, state: State) -> None:
        for name, part in self.parts().items():
            lead = f"{name}."
            part.restore({key[len(lead) :]: value for key, value in state.items() if key.startswith(lead)})
        self.restored()

    def live_strings(self) -> Ints:
        self.settle()
        self.collect()
        return np.concatenate([NOTHING, *(part.live_strings() for part in self.parts().values())])

    def live_groups(self) -> Ints:
        self.settle()
        self.collect()
        return np.unique(np.concatenate([NOTHING, *(part.live_groups() for part in self.parts().values())]))

    def live_rows(self) -> int:
        self.settle()
        return sum(part.live_rows() for part in self.parts().values())


class Plain:
    """A part without strings, groups and rows."""

    def live_strings(self) -> Ints:
        return NOTHING

    def live_groups(self) -> Ints:
        return NOTHING

    def live_rows(self) -> int:
        return 0


class Fields(Plain):
    """Attributes that are numbers, lists of numbers or arrays of numbers."""

    def __init__(self, owner: Any, *names: str) -> None:
        self._owner, self._names = owner, names

    def save(self) -> State:
        values = {name: getattr(self._owner, name) for name in self._names}
        return {name: value if isinstance(value, int) else np.array(value, np.int64) for name, value in values.items()}

    def restore(self, state: State) -> None:
        for name in self._names:
            before = getattr(self._owner, name)
            if isinstance(before, int):
                setattr(self._owner, name, number(state, name))
            else:
                setattr(
                    self._owner, name, array(state, name).tolist() if isinstance(before, list) else array(state, name)
                )


class StoredRows:
    """The events of a store. ``layout`` says how the cells from ``first`` on hold a payload; None where they hold none.

    ``grouped``: the store's keys are groups; others are numbers that some `Numbered` part hands out.
    """

    def __init__(self, store: Store, layout: Layout | None = None, *, first: int = 0, grouped: bool = False) -> None:
        self.store, self._layout, self._first, self._grouped = store, layout, PAYLOAD + first, grouped

    def save(self) -> State:
        return {"rows": self.store.all_rows().copy()}

    def restore(self, state: State) -> None:
        self.store.replace(array(state, "rows").copy())

    def live_strings(self) -> Ints:
        if self._layout is None:
            return NOTHING
        return self._layout.string_codes(self.store.all_rows()[:, self._first : self._first + self._layout.width])

    def live_groups(self) -> Ints:
        return self.store.keys() if self._grouped else NOTHING

    def live_rows(self) -> int:
        return len(self.store)


class Numbered:
    """Groups with keys as dense numbers. Numbers that nobody holds any more are handed out again."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.known = Interner(1 + layout.width)  # the group, then the key's cells
        self._collect_at = self.most()

    def most(self) -> int:
        """So many numbers may be known before dead ones are looked for."""
        raise NotImplementedError

    def wants_collection(self) -> bool:
        return len(self.known) >= self._collect_at

    def collect(self, live: Ints) -> None:
        """Forget every number that is not among these."""
        self.known.keep_only(live)
        self._collect_at = max(self.most(), 2 * len(self.known))

    def save(self) -> State:
        codes, rows = self.known.export()
        return {"codes": codes, "rows": rows}

    def restore(self, state: State) -> None:
        self.known = Interner.restore(self.known.width, array(state, "codes"), array(state, "rows"))

    def live_strings(self) -> Ints:
        return self.layout.string_codes(self.known.export()[1][:, 1:])

    def live_groups(self) -> Ints:
        return self.known.export()[1][:, 0].copy()

    def live_rows(self) -> int:
        return 0


class Matrix(Plain):
    """Rows that are laid out to be saved, with their group first. Where they are ``counted``, they are live."""

    def __init__(self, read: Callable[[], Cells], write: Callable[[Cells], None], *, counted: bool = True) -> None:
        self._read, self._write, self._counted = read, write, counted

    def save(self) -> State:
        return {"rows": self._read()}

    def restore(self, state: State) -> None:
        self._write(array(state, "rows"))

    def live_groups(self) -> Ints:
        return self._read()[:, 0] if self._counted else NOTHING

    def live_rows(self) -> int:
        return len(self._read()) if self._counted else 0


def by_number(values: Ints, *, nothing: int = 0) -> Cells:
    """The numbers that have a value, each with it."""
    numbers = np.flatnonzero(values != nothing)
    return np.column_stack([numbers, values[numbers]])


# --- kernels that settle ----------------------------------------------------------------------------------------------


class Settling(Declared):
    """A kernel that keeps rows by key in stores, and settles them up to a base that follows the frontiers."""

    keys: Keys
    frontiers: list[int]
    base: int  # up to here all is settled

    def stores(self) -> Mapping[str, StoredRows]:
        """The stores, by the name that they have in saved state."""
        raise NotImplementedError

    def move_base(self, frontier: int) -> None:
        """Settle everything before the frontiers, and forget what no longer matters."""
        raise NotImplementedError

    def parts(self) -> dict[str, Part]:
        return {"keys": self.keys, **self.stores(), "time": Fields(self, "frontiers", "base")}

    def settle_now_and_then(self) -> None:
        """Settle whenever as many rows have come as there are, so that small batches cost little."""
        if self.keys.wants_collection() or any(part.store.wants_tidying() for part in self.stores().values()):
            self.settle()

    def settle(self) -> None:
        frontier = min(self.frontiers)
        if frontier > self.base:
            self.move_base(frontier)
            self.base = frontier
        for part in self.stores().values():
            part.store.tidy()
        if self.keys.wants_collection():
            self.collect()

    def collect(self) -> None:
        self.keys.collect(np.unique(np.concatenate([part.store.keys() for part in self.stores().values()])))
