"""Streams replayed by event time: when each row comes, in milliseconds of the run, and groups of them as tasks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from streamproof.errors import InputError
from streamproof.events.order import ints
from streamproof.events.stream import INSERT, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER, TICKS_PER_SECOND
from streamproof.qos.arrivals import Policer, TokenBucket, from_trace
from streamproof.qos.exact import Exact, exact, positive

Times = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Replay:
    """A stream in order of arrival, and when each row comes."""

    stream: PhysicalStream
    times: Times

    @staticmethod
    def of(stream: PhysicalStream, *, speed: Exact = 1, ms_per_tick: Exact | None = None) -> Replay:
        """A stream by its event times, so many times faster.

        Streams of inserts, and perhaps a last CTI, come in order of their starts; others keep the order of the file.
        """
        if not len(stream):
            raise InputError("there is nothing to replay", fix="give a stream with events")
        unit = stream.schema.unit
        if unit is None and ms_per_tick is None:
            raise InputError("a replay needs the unit of time of its stream", fix='declare it, e.g. unit="ms"')
        factor = exact(ms_per_tick) if ms_per_tick is not None else Fraction(1000, TICKS_PER_SECOND[unit or "ms"])
        if np.all((stream.kinds == INSERT) | (ints(stream.rows["le"]) >= FOREVER)):
            order = pc.sort_indices(stream.rows, sort_keys=[("le", "ascending")])
            stream = PhysicalStream(stream.schema, stream.rows.take(order))
        starts = np.maximum.accumulate(_finite(ints(stream.rows["le"])))
        times = (starts - starts[0]).astype(np.float64) * float(factor / positive(speed, "the speed"))
        return Replay(stream, times)

    def arrival(self, *, spare: Exact = "1.1") -> TokenBucket:
        """The smallest token bucket at a little more than the mean rate."""
        mean = Fraction(len(self.times)) / max(Fraction(1), Fraction(float(self.times[-1])).limit_denominator(1000))
        rate = (mean * exact(spare)).limit_denominator(10**6)
        fitted = from_trace(self.times, rate=rate)
        return TokenBucket(Fraction(-int(-fitted.burst // 1)), fitted.rate)

    def part(self, start: int, end: int) -> PhysicalStream:
        return PhysicalStream(self.stream.schema, self.stream.rows.slice(start, end - start))

    def sample(self, rows: int) -> PhysicalStream:
        return self.part(0, min(rows, len(self.times)))

    def __len__(self) -> int:
        return len(self.times)


def _finite(starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Starts, with those at the ends of time (the last CTI) where their neighbours are."""
    known = starts[(starts > BEGINNING) & (starts < FOREVER)]
    if not len(known):
        raise InputError("no event of the stream has a finite start")
    return np.clip(starts, known.min(), known.max())


@dataclass
class Groups:
    """The rows of one input as tasks: at every period those that came in it, as far as its arrival curve allows.

    What comes faster than declared waits for later periods: that is how the others stay safe.
    """

    replay: Replay
    period: float
    police: Policer  # of whole periods: as much at once as may come in one
    position: int = 0  # rows that were given out
    number: int = 0  # periods that have passed
    held_back: int = 0  # rows that had to wait for a later period
    _held: int = 0  # up to which row they were counted

    @property
    def next_time(self) -> float:
        """When the next period ends."""
        return (self.number + 1) * self.period

    def release(self) -> tuple[int, int]:
        """The rows of the period that ends now."""
        self.number += 1
        now = self.number * self.period
        here = int(np.searchsorted(self.replay.times, now, side="left"))
        start = self.position
        self.position += self.police.admit(here - start, now)
        self.held_back += max(0, here - max(self.position, self._held))
        self._held = max(self._held, here)
        return start, self.position

    def arrived(self, time: float) -> int:
        """How many rows have come by a time."""
        return int(np.searchsorted(self.replay.times, time, side="right"))

    @property
    def ended(self) -> bool:
        return self.position >= len(self.replay)
