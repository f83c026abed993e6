"""Watching a running stream: how disordered it has been so far, in memory that does not grow.

Lateness is counted in bins that are at most 1/64 wide, so that a quantile is at most that much too large; counts of
events and of late events are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streamproof.arguments import door
from streamproof.disorder.figures import LOSSES, QUANTILES
from streamproof.disorder.frames import frame_layout
from streamproof.disorder.records import LOWEST
from streamproof.disorder.rows import table_columns
from streamproof.disorder.scanning import GOOD
from streamproof.disorder.units import TimeUnit, shown, spark_interval
from streamproof.events.order import Ints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

FINE: Final = 6  # bits of a bin's place within its power of two
BINS: Final = (64 - FINE) << FINE


def bins_of(values: Ints) -> Ints:
    """The bin of each number that is not negative.

    >>> bins_of(np.array([0, 5, 63, 64, 127, 128])).tolist()
    [0, 5, 63, 64, 127, 128]
    """
    powers = np.maximum(np.frexp(values.astype(np.float64))[1] - FINE - 1, 0).astype(np.int64)
    return np.asarray((powers << FINE) + (values >> powers))


def highest_in(bin_number: int) -> int:
    """The largest number of a bin."""
    power = max(0, (bin_number >> FINE) - 1)
    return ((bin_number - (power << FINE) + 1) << power) - 1


class RunningDisorder:
    """Figures of a stream so far."""

    def __init__(self, event_time: str, unit: TimeUnit) -> None:
        self.event_time, self.unit = event_time, unit
        self.events = self.late = self.batches = self.rejected = 0
        self.highest = LOWEST  # the latest time so far
        self.latest = 0  # the longest lateness so far
        self._bins = np.zeros(BINS, np.int64)

    def update(self, times: Ints) -> None:
        """Count the events of one micro-batch, in the order of their arrival."""
        self.batches += 1
        if not len(times):
            return
        highest = np.maximum(np.maximum.accumulate(times), self.highest)
        before = np.concatenate([[self.highest], highest[:-1]])
        late = times < before
        lateness = (before - times)[late]
        self.events += len(times)
        self.late += len(lateness)
        self.highest = int(highest[-1])
        if len(lateness):
            self.latest = max(self.latest, int(lateness.max()))
            self._bins += np.bincount(bins_of(lateness), minlength=BINS)

    def lateness(self, rank: int) -> int:
        """About the lateness with this rank among the late events, counted from 0; never less than it."""
        found = int(np.searchsorted(np.cumsum(self._bins), rank, side="right"))
        return min(self.latest, highest_in(found))

    def as_dict(self) -> dict[str, Any]:
        """The figures under the names that an analysis uses."""
        shares = {name: max(0, -int(-(q * self.late) // 1) - 1) for name, q in QUANTILES.items()}
        lost = {name: int(share * self.events // 1) for name, share in LOSSES.items()}
        return {
            "event_time": self.event_time, "unit": self.unit, "batches": self.batches, "events": self.events,
            "out_of_order": self.late, "factor": 100 * self.late / self.events if self.events else 0.0,
            "lateness": {
                **{name: self.lateness(rank) if self.late else None for name, rank in shares.items()},
                "max": self.latest if self.late else None,
            },
            "delay_for_loss": {
                name: 0 if self.late <= allowed else self.lateness(self.late - allowed - 1)
                for name, allowed in lost.items()
            },
            "rejected": self.rejected,
        }  # fmt: skip

    def __str__(self) -> str:
        figures = self.as_dict()
        wait = figures["delay_for_loss"]["0.1%"]
        return (
            f"{self.events:,} events in {self.batches:,} micro-batches, {figures['factor']:.4g} % out of order, "
            f"the latest by {shown(self.latest, self.unit)}; to lose at most 0.1 %: "
            f'.withWatermark("{self.event_time}", "{spark_interval(wait, self.unit)}")'
        )


class Monitor:
    """A running query that watches a stream; ``figures()`` at any time, ``stop()`` at the end."""

    def __init__(self, query: StreamingQuery, running: RunningDisorder, lock: Lock) -> None:
        self.query, self._running, self._lock = query, running, lock

    def figures(self) -> dict[str, Any]:
        with self._lock:
            return self._running.as_dict()

    def __str__(self) -> str:
        with self._lock:
            return str(self._running)

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415

        return f"<pre>{escape(str(self))}</pre>"

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the stream ends, at most so long; whether it has ended. What failed in it is raised here."""
        ended = self.query.awaitTermination(None if seconds is None else max(1, round(seconds)))
        return True if ended is None else bool(ended)

    def stop(self) -> dict[str, Any]:
        """Stop watching; the last figures."""
        self.query.stop()
        return self.figures()


@door
def watch(
    frame: DataFrame, event_time: str, *, unit: TimeUnit | None = None, zone: str | None = None,
    on_update: Callable[[dict[str, Any]], None] | None = None, checkpoint: str | Path | None = None,
    available_now: bool = False, **unknown: Any,
) -> Monitor:  # fmt: skip
    """Watch a streaming DataFrame; ``on_update`` gets the figures after every micro-batch."""
    if unknown:
        from streamproof.errors import InputError  # noqa: PLC0415

        raise InputError(
            f"a running monitor has no {', '.join(unknown)}", at="analyze(streaming DataFrame)",
            fix="it takes unit, zone, on_update, checkpoint and available_now",
        )  # fmt: skip
    layout = frame_layout(frame, event_time, None, None, unit, zone)
    running, lock = RunningDisorder(event_time, layout.unit), Lock()

    def count(batch: DataFrame, number: int) -> None:
        table = batch.select(batch["`" + event_time.replace("`", "``") + "`"]).toArrow()
        status, columns = table_columns(layout, table)
        with lock:
            running.rejected += int((status != GOOD).sum())
            running.update(columns.times[status == GOOD])
            figures = running.as_dict()
        if on_update is not None:
            on_update(figures)

    writer = frame.writeStream.foreachBatch(count)
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", str(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    return Monitor(writer.start(), running, lock)
