"""Named limits: what would otherwise eat all memory is refused with a clear error.

>>> Limits().windows_per_event
1000000
"""

from __future__ import annotations

from dataclasses import dataclass

from streamproof.errors import RunError


@dataclass(frozen=True, slots=True)
class Limits:
    """The most of each that a run may produce."""

    windows_per_event: int = 1_000_000  # one event in a hopping window, or one lifetime under chop


def too_many_windows(count: int, limit: int, *, at: str) -> RunError:
    """The error for an event that falls into more windows than allowed."""
    return RunError(
        f"one event falls into {count} windows; the limit windows_per_event is {limit}",
        at=at,
        fix="use a longer hop or period, shorten the lifetimes, or raise the limit",
        name="limit_exceeded",
    )
