"""What kernels share that keep rows in stores and settle them up to a base that follows the frontiers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamproof.kernels.base import State, array, number
from streamproof.kernels.cells import Ints, Layout
from streamproof.kernels.pairs import Keys
from streamproof.kernels.store import Store
from streamproof.kernels.store_loops import PAYLOAD


class Held(NamedTuple):
    """A store, and how its rows hold a payload; None where they hold none."""

    store: Store
    layout: Layout | None = None


class Settling:
    """The part of the protocol that such kernels have in common; each says what it holds and how it settles."""

    keys: Keys
    frontiers: list[int]
    base: int  # up to here all is settled

    def held(self) -> dict[str, Held]:
        """The stores, by the name that they have in snapshots."""
        raise NotImplementedError

    def move_base(self, frontier: int) -> None:
        """Settle everything before the frontiers, and forget what no longer matters."""
        raise NotImplementedError

    def settle_now_and_then(self) -> None:
        """Settle whenever as many rows have come as there are, so that small batches cost little."""
        if self.keys.wants_collection() or any(part.store.wants_tidying() for part in self.held().values()):
            self.settle()

    def settle(self) -> None:
        frontier = min(self.frontiers)
        if frontier > self.base:
            self.move_base(frontier)
            self.base = frontier
        for part in self.held().values():
            part.store.tidy()
        if self.keys.wants_collection():
            self._collect()

    def _collect(self) -> None:
        self.keys.collect(np.unique(np.concatenate([part.store.keys() for part in self.held().values()])))

    def _tidy(self) -> None:
        self.settle()
        self._collect()

    def snapshot(self) -> State:
        self._tidy()
        rows = {name: part.store.all_rows() for name, part in self.held().items()}
        return {**self.keys.snapshot(), **rows, "frontiers": np.array(self.frontiers), "base": self.base}

    def restore(self, state: State) -> None:
        self.keys.restore(state)
        for name, part in self.held().items():
            part.store.replace(array(state, name).copy())
        self.frontiers = array(state, "frontiers").tolist()
        self.base = number(state, "base")

    def live_strings(self) -> Ints:
        self._tidy()
        parts = [
            part.layout.string_codes(part.store.all_rows()[:, PAYLOAD : PAYLOAD + part.layout.width])
            for part in self.held().values()
            if part.layout is not None
        ]
        return np.concatenate([self.keys.live_strings(), *parts])

    def live_groups(self) -> Ints:
        self._tidy()
        return self.keys.live_groups()

    def live_rows(self) -> int:
        self.settle()
        return sum(len(part.store) for part in self.held().values())
