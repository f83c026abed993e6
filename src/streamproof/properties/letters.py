"""From a run to a word: the letters cover the whole horizon of the inputs, padded with empty windows.

>>> tumbling(50).split([0, 49, 50, 149], start=0)
[(0, [0, 49]), (50, [50]), (100, [149])]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from streamproof.errors import InputError
from streamproof.events.time import Span
from streamproof.properties.rows import Columns, Window
from streamproof.properties.runs import Output, SubjectRun, instants, time_column
from streamproof.properties.streams import Ints, WindowedStream, event_times, positive

MOST = 1_000_000  # letters that a word may have


class Letter(NamedTuple):
    """One step of a word. With two inputs or outputs, a window for each in a tuple."""

    input: Any
    output: Any
    time: Any  # the window's start, or the number of the micro-batch


class Letters(Protocol):
    """A way to cut a run into letters."""

    def word(self, run: SubjectRun) -> list[Letter]:
        """The letters of a run, in order."""
        ...


@dataclass(frozen=True)
class Tumbling:
    """Letters by event time: windows of a size, one every ``every``."""

    size: int
    every: int
    on: str | tuple[str, ...] | None = None

    def split(self, times: Sequence[int], start: int = 0) -> list[tuple[int, list[int]]]:
        """The windows from ``start`` up to the last time, each with the times inside."""
        if not times:
            return []
        last = max(times)
        starts = range(start, last + 1, self.every)
        return [(low, [t for t in sorted(times) if low <= t < low + self.size]) for low in starts]

    def word(self, run: SubjectRun) -> list[Letter]:
        begin = min(stream.start for stream in run.inputs)
        placed_in = [_sorted(stream.table, event_times(stream.table, stream.time)) for stream in run.inputs]
        names = [self._column(output, n, run.inputs) for n, output in enumerate(run.outputs)]
        placed_out = [_sorted(o.table, instants(o.table, on)) for o, on in zip(run.outputs, names, strict=True)]
        ends = [stream.end for stream in run.inputs] + [int(t[-1]) + 1 for _, t in placed_out if len(t)]
        many = max(0, -(-(max(ends) - begin) // self.every))
        if many > MOST:
            raise InputError(f"{many:,} letters from {_moment(begin)} on are too many", fix="give larger letters")
        starts = begin + np.arange(many, dtype=np.int64) * self.every
        inputs = [_cut(columns, times, starts, self.size) for columns, times in placed_in]
        outputs = [_cut(columns, times, starts, self.size) for columns, times in placed_out]
        return [Letter(_one(inputs, n), _one(outputs, n), _moment(at)) for n, at in enumerate(starts.tolist())]

    def _column(self, output: Output, number: int, inputs: Sequence[WindowedStream]) -> str:
        named = self.on[number] if isinstance(self.on, tuple) else self.on
        found = named or time_column(output.table.schema, [stream.time for stream in inputs])
        if found is None:
            listed = ", ".join(output.table.column_names)
            raise InputError(
                f"which column of the output says its time? It has {listed}",
                fix='name it: letters=tumbling("1 hour", on="…"), or use letters=micro_batches()',
            )
        return found


@dataclass(frozen=True)
class MicroBatches:
    """Letters as emitted: what went into a micro-batch, and what came out of it."""

    def word(self, run: SubjectRun) -> list[Letter]:
        if not run.batches:
            raise InputError(f"a run {run.how} has no micro-batches", fix="use letters=tumbling(…), or run_stream")
        many = len(run.batches[0])
        inputs = []
        for stream, sizes in zip(run.inputs, run.batches, strict=True):
            edges = np.concatenate([[0], np.cumsum(sizes)]).tolist()
            columns = Columns(stream.table)
            inputs.append([Window(columns, range(a, b)) for a, b in pairwise(edges)])
        numbers = np.arange(many)
        outputs = [_cut(*_sorted(output.table, output.batch), numbers, 1) for output in run.outputs]
        return [Letter(_one(inputs, n), _one(outputs, n), n) for n in range(many)]


def _sorted(table: pa.Table, times: Ints) -> tuple[Columns, Ints]:
    order = np.argsort(times, kind="stable")
    return Columns(table.take(pa.array(order))), times[order]


def _cut(columns: Columns, times: Ints, starts: Ints, size: int) -> list[Window]:
    low = np.searchsorted(times, starts).tolist()
    high = np.searchsorted(times, starts + size).tolist()
    return [Window(columns, range(a, b)) for a, b in zip(low, high, strict=True)]


def _one(sides: list[list[Window]], n: int) -> Any:
    return sides[0][n] if len(sides) == 1 else tuple(side[n] for side in sides)


def _moment(micros: int) -> Any:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def tumbling(size: Span, *, on: str | tuple[str, ...] | None = None) -> Tumbling:
    """Letters of a size by event time. ``on`` names the output's column with a time or a window.

    A row with a window belongs to the letter of the window's last instant.
    """
    width = positive(size, "the letter's size")
    return Tumbling(width, width, on)


def sliding(size: Span, slide: Span, *, on: str | tuple[str, ...] | None = None) -> Tumbling:
    """Letters by event time that overlap: one of a size every ``slide``."""
    return Tumbling(positive(size, "the letter's size"), positive(slide, "the slide"), on)


def micro_batches() -> MicroBatches:
    """Letters as emitted, one per micro-batch. Run with ``batches="window"`` to have one per window."""
    return MicroBatches()
