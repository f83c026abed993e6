"""Physical rows while they are made: plain columns without payloads, which follow from the event and the tag.

Rows that break one rule of physical streams, and no other, are planted where everything before them has arrived and
nothing before the time ``c`` is still to come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamproof.errors import PlanError
from streamproof.events.order import Ints
from streamproof.events.stream import CTI, INSERT, RETRACT
from streamproof.events.time import FOREVER
from streamproof.generate.facets import Illegal

Codes = npt.NDArray[np.int8]

OWN_ID: Final = 1  # a guess under an id of its own
GUESS: Final = 2  # a payload that turns out wrong
COPY: Final = 4  # the second reader of a multicast
PLANTED: Final = 8  # put there to break a rule
PREFIXES: Final = ("e", "g", "e", "g", "c", "h", "c", "h", *["x"] * 8)
"""What ids begin with, by tag; the number of the event follows."""


@dataclass(frozen=True, slots=True)
class DraftRows:
    """Rows in some order; a CTI has its time in ``le`` and nothing else."""

    turn: Ints
    kind: Codes
    event: Ints
    tag: Codes
    le: Ints
    re: Ints
    re_new: Ints  # as re, where the row is not a retraction

    @staticmethod
    def of(
        kind: int, *, turn: Ints, event: Ints, le: Ints, re: Ints, re_new: Ints | None = None, tag: int = 0
    ) -> DraftRows:
        """Rows of one kind."""
        kinds, tags = (np.full(len(event), code, np.int8) for code in (kind, tag))
        return DraftRows(turn, kinds, event, tags, le, re, re if re_new is None else re_new)

    @staticmethod
    def none() -> DraftRows:
        empty = np.zeros(0, np.int64)
        return DraftRows.of(INSERT, turn=empty, event=empty, le=empty, re=empty)

    @staticmethod
    def ctis(times: Ints) -> DraftRows:
        zeros = np.zeros(len(times), np.int64)
        return DraftRows.of(CTI, turn=zeros, event=zeros, le=times, re=zeros)

    @staticmethod
    def concat(parts: Iterable[DraftRows]) -> DraftRows:
        return DraftRows(*(np.concatenate(columns) for columns in zip(*(part.columns for part in parts), strict=True)))

    def __len__(self) -> int:
        return len(self.turn)

    def take(self, indices: Ints | slice) -> DraftRows:
        return DraftRows(*(column[indices] for column in self.columns))

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        return self.turn, self.kind, self.event, self.tag, self.le, self.re, self.re_new

    @property
    def sync(self) -> Ints:
        """From when on each row changes history; a CTI changes nothing."""
        sync = np.where(self.kind == RETRACT, np.minimum(self.re, np.maximum(self.re_new, self.le)), self.le)
        return np.where(self.kind == CTI, FOREVER, sync)


def planted(rule: Illegal, c: int, shape: str) -> DraftRows:
    """Rows of which the last breaks ``rule``, for a stream of this shape.

    >>> planted("cti_violation", 50, "interval").le.tolist()
    [50, 49]
    """
    end = c + 1 if shape == "point" else FOREVER if shape == "edge" else c + 9
    match rule:
        case "empty_lifetime":
            return _insert(c, c)
        case "cti_violation":
            return DraftRows.concat([_cti(c), _insert(c - 1, c if shape == "point" else end)])
        case "cti_backwards":
            return DraftRows.concat([_cti(c), _cti(c - 1)])
        case "duplicate_id":
            return DraftRows.concat([_insert(c, end), _insert(c, end)])
        case "unmatched_retraction":  # a start that the event does not have
            return DraftRows.concat([_insert(c, end), _retraction(c + 1, end + (shape == "point"))])
        case "unknown_retraction":
            return _retraction(c, end)
        case "shape":
            return _insert(c, c + 5)
        case "order":
            return DraftRows.concat([_insert(c + 1, end + (shape == "point")), _insert(c, end, number=1)])
    raise PlanError(f"there is no way to break {rule}")  # pragma: no cover


def _row(kind: int, le: int, re: int, re_new: int, number: int = 0) -> DraftRows:
    turn, event, start, end, changed = (np.array([value]) for value in (0, number, le, re, re_new))
    return DraftRows.of(kind, turn=turn, event=event, le=start, re=end, re_new=changed, tag=PLANTED)


def _insert(le: int, re: int, number: int = 0) -> DraftRows:
    return _row(INSERT, le, re, re, number)


def _retraction(le: int, re: int) -> DraftRows:
    return _row(RETRACT, le, re, le)


def _cti(time: int) -> DraftRows:
    return _row(CTI, time, 0, 0)
