"""Kernels of event-driven queries: what makes events happen, what pairs them, and what is seen meanwhile.

Events are tuples at their starts, so a start must have a next instant.
"""

from __future__ import annotations

from streamproof.errors import RunError
from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Ints
from streamproof.kernels.delta import Delta


def refuse_late(delta: Delta) -> None:
    """Refuse starts that have no next instant."""
    refuse_times(delta.le)


def refuse_times(times: Ints) -> None:
    """Refuse instants whose point would end outside of time."""
    if len(times) and times.max() + 1 >= FOREVER:
        raise RunError(
            f"a point ends after 2^62 ticks: at {times.max() + 1}", fix="use a coarser time unit", name="overflow"
        )
