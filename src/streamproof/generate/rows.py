"""Physical rows while they are made: plain columns without payloads, which follow from the event and the tag."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from streamproof.events.order import Ints
from streamproof.events.stream import CTI, INSERT, RETRACT
from streamproof.events.time import FOREVER

Codes = npt.NDArray[np.int8]

OWN_ID: Final = 1  # a guess under an id of its own
GUESS: Final = 2  # a payload that turns out wrong
COPY: Final = 4  # the second reader of a multicast
PLANTED: Final = 8  # put there to break a rule
PREFIXES: Final = ("e", "g", "e", "g", "c", "h", "c", "h", *["x"] * 8)
"""What ids begin with, by tag; the number of the event follows."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in some order; a CTI has its time in ``le`` and nothing else."""

    turn: Ints
    kind: Codes
    event: Ints
    tag: Codes
    le: Ints
    re: Ints
    re_new: Ints  # as re, where the row is not a retraction

    @staticmethod
    def of(kind: int, *, turn: Ints, event: Ints, le: Ints, re: Ints, re_new: Ints | None = None, tag: int = 0) -> Rows:
        """Rows of one kind."""
        kinds, tags = (np.full(len(event), code, np.int8) for code in (kind, tag))
        return Rows(turn, kinds, event, tags, le, re, re if re_new is None else re_new)

    @staticmethod
    def none() -> Rows:
        empty = np.zeros(0, np.int64)
        return Rows.of(INSERT, turn=empty, event=empty, le=empty, re=empty)

    @staticmethod
    def ctis(times: Ints) -> Rows:
        zeros = np.zeros(len(times), np.int64)
        return Rows.of(CTI, turn=zeros, event=zeros, le=times, re=zeros)

    @staticmethod
    def concat(parts: Iterable[Rows]) -> Rows:
        return Rows(*(np.concatenate(columns) for columns in zip(*(part.columns for part in parts), strict=True)))

    def __len__(self) -> int:
        return len(self.turn)

    def take(self, indices: Ints | slice) -> Rows:
        return Rows(*(column[indices] for column in self.columns))

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        return self.turn, self.kind, self.event, self.tag, self.le, self.re, self.re_new

    @property
    def sync(self) -> Ints:
        """From when on each row changes history; a CTI changes nothing."""
        sync = np.where(self.kind == RETRACT, np.minimum(self.re, np.maximum(self.re_new, self.le)), self.le)
        return np.where(self.kind == CTI, FOREVER, sync)
