"""What a kind of window knows: which windows there are, which of them a change touches, what may be forgotten."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from streamproof.events.time import FOREVER
from streamproof.kernels.base import State
from streamproof.kernels.cells import Ints
from streamproof.kernels.store import Events as Stored
from streamproof.kernels.store import Store
from streamproof.kernels.windows.changes import Events, Spans
from streamproof.kernels.windows.liveliness import Step
from streamproof.kernels.windows.outputs import Outputs, Part
from streamproof.kernels.windows.segments import Bools, Windows


class Frames(Protocol):
    """One kind of window over the events of all groups."""

    def placed(self, events: Events) -> Events:
        """Events as they lie in the store, where a window's members are those that overlap it."""
        ...

    def apply(self, events: Events) -> None:
        """Take in changes, as placed."""
        ...

    def near(self, spans: Spans, due: int) -> Windows:
        """The due windows that changes in these spans may touch."""
        ...

    def newly_due(self, step: Step, store: Store) -> Windows:
        """The windows that time made due."""
        ...

    def stale(self, spans: Spans, near: Windows, outputs: Part) -> tuple[Bools, Bools]:
        """Which of the near windows need a new result, and which outputs, if they are here, are no longer theirs."""
        ...

    def forget(self, frontier: int, outputs: Outputs, stored: Stored) -> Bools:
        """Forget what only final windows needed; which stored events are still needed."""
        ...

    def opened(self, frontier: int) -> int:
        """The least start of a window that can still get members, now or later."""
        ...

    def snapshot(self) -> State: ...

    def restore(self, state: State) -> None: ...


def least_held(held: Windows, groups: Ints) -> Ints:
    """For each of some sorted groups the least start of a window that is held; FOREVER where none is."""
    out = np.full(len(groups), FOREVER)
    at = np.searchsorted(groups, held.group)
    known = at < len(groups)
    known[known] = groups[at[known]] == held.group[known]
    np.minimum.at(out, at[known], held.le[known])
    return out
