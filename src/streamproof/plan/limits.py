"""Named limits: what would otherwise eat all memory is refused with a clear error.

>>> Limits().windows_per_event
1000000
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamproof.errors import PlanError, RunError
from streamproof.events.weights import MOST, MOST_LISTED


@dataclass(frozen=True, slots=True)
class Limits:
    """The most of each that a run may produce.

    ``windows_per_event``: tumbling or hopping windows that one event falls into, or pieces that chop makes of it. All
    of them count, as far as a horizon goes. In a stream they count when they are due, for the event as it then stands.
    Of an event that has no end, and no horizon ends it, those count that are due at once: its age alone is no fault.

    ``events_listed``: equal events are one row that counts, wherever that is possible. Databases, Spark's batch mode
    and user modules see each event by itself: so many at once. The local engine takes as many pairs of events, or of
    events and windows, for one push, and no operator gives more rows for it.
    """

    windows_per_event: int = 1_000_000
    events_listed: int = MOST_LISTED

    def __post_init__(self) -> None:
        check_count(self.windows_per_event, "windows_per_event", "windows")
        check_count(self.events_listed, "events_listed")


def check_count(count: object, name: str, of: str = "events") -> None:
    """Refuse what is no number of events, or of something else: from 1 to 2^62, as engines count them.

    >>> check_count(2**63, "k")
    Traceback (most recent call last):
    ...
    streamproof.errors.PlanError: k is at most 2^62, got 9223372036854775808
      fix: give a smaller one
    """
    if isinstance(count, bool) or not isinstance(count, int):
        raise PlanError(f"{name} is a number of {of}, got {count!r}", fix="write a whole number, e.g. 5")
    if count < 1:
        raise PlanError(f"{name} must be positive, got {count}", fix=f"give {name} of at least 1")
    if count > MOST:
        raise PlanError(f"{name} is at most 2^62, got {count}", fix="give a smaller one", name="overflow")


LONGEST_TEXT: Final = 10_000_000
"""The most bytes, in UTF-8, of a text that an expression makes of others. What comes from outside is as it is."""

LARGEST_COLUMN: Final = 2**30
"""The most bytes of all texts that an expression makes of one batch, where events are held in memory."""


def too_long_text(size: int | str) -> RunError:
    """The error of an expression that would make a longer text."""
    return RunError(
        f"a text of {size} bytes would be made; the limit is {LONGEST_TEXT}",
        fix="shorten the parts before, e.g. with substr",
        name="limit_exceeded",
    )


def too_large_column(size: int) -> RunError:
    """The error of texts that would together take more memory than a batch may."""
    return RunError(
        f"texts of {size} bytes would be made in one batch; the limit is {LARGEST_COLUMN}",
        fix="shorten them, e.g. with substr, or use smaller batches",
        name="limit_exceeded",
    )


def too_many_rows(limit: int, *, at: str) -> RunError:
    """The error of an operator that would list more events, or pairs of events, than allowed."""
    return RunError(
        f"more than {limit:,} events, or pairs of them, would have to be listed one by one; the limit events_listed is "
        f"{limit:,}",
        at=at,
        fix="join on more columns, shorten lifetimes or windows, group before, or raise the limit",
        name="limit_exceeded",
    )


def too_many_windows(count: int, limit: int, *, at: str) -> RunError:
    """The error for an event that falls into more windows than allowed."""
    return RunError(
        f"one event falls into {count} windows; the limit windows_per_event is {limit}",
        at=at,
        fix="use a longer hop or period, shorten the lifetimes, or raise the limit",
        name="limit_exceeded",
    )
