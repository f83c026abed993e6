"""What a kernel is: one node, run incrementally. No threads, no clock, no I/O, and no memory but its own.

A kernel gets deltas on its ports and answers each with a delta. The frontier travels in the delta: after it, no change
of history before it will come. State is bounded by what is live; `inspect` shows it, `save` writes it down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from streamproof.kernels.cells import Ints, Strings
from streamproof.kernels.delta import Delta
from streamproof.kernels.expressions.columns import LostRows
from streamproof.plan.check import Typed
from streamproof.plan.failures import DeadLetter, OnModuleError
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Registry

Emission: TypeAlias = Literal["speculative", "eager", "final"]
KeyOf: TypeAlias = "Callable[[int], dict[str, Any]]"
State: TypeAlias = "dict[str, npt.NDArray[np.int64] | int | None]"
"""What saved state is: int64 arrays and numbers by name; nothing that would need code to be read back."""


@dataclass(slots=True)
class Context:
    """What the kernels of one running query share."""

    registry: Registry
    limits: Limits = field(default_factory=Limits)
    emission: Emission = "speculative"
    horizon: int | None = None
    strings: Strings = field(default_factory=Strings)
    on_module_error: OnModuleError = "fail"
    dead_letters: list[DeadLetter] = field(default_factory=list)  # what failed since the engine last looked
    keys: dict[int, KeyOf] = field(default_factory=dict)  # per leaf of a group_apply, by identity: how to read groups

    def lost_rows(self, rows: int) -> LostRows | None:
        """What notes the rows of a batch that functions fail on; None where a failure ends the run."""
        return LostRows(rows, self.dead_letters) if self.on_module_error == "dead_letter" else None

    def key_of(self, typed: Typed, group: int) -> dict[str, Any] | None:
        """The key of a group that a node inside a group_apply knows by its number; None outside."""
        while typed.inputs:
            typed = typed.inputs[0]
        read = self.keys.get(id(typed))
        return None if read is None else read(group)


class Part(Protocol):
    """One thing that a kernel holds: how it is saved and restored, and what in it is alive."""

    def save(self) -> State:
        """The whole of it; `restore` of that into a new one goes on to the same output."""
        ...

    def restore(self, state: State) -> None: ...

    def live_strings(self) -> Ints:
        """The numbers of all strings in it."""
        ...

    def live_groups(self) -> Ints:
        """The numbers of all groups in it."""
        ...

    def live_rows(self) -> int:
        """Returns the number of rows it holds: what cleanup must bound."""
        ...


class Kernel(Part, Protocol):
    """One node, run incrementally. What it holds is declared, see `kernels.state`."""

    def on_batch(self, port: int, delta: Delta) -> Delta:
        """The change of the output that a change of one input makes."""
        ...


def array(state: State, name: str) -> npt.NDArray[np.int64]:
    """An array of saved state."""
    value = state[name]
    assert isinstance(value, np.ndarray), f"{name} is an array"
    return value


def number(state: State, name: str) -> int:
    """A number of saved state."""
    value = state[name]
    assert isinstance(value, int), f"{name} is a number"
    return value
