"""Watching a stream that goes by: the same formulas, also without bounds, as a Spark streaming query.

A step is judged when the watermark has passed it, so late rows within the delay still count. Every change of the
verdict is emitted once, with the step that brought it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamproof.errors import InputError
from streamproof.events.time import Span, duration
from streamproof.properties.formula import Formula, Verdict, formula
from streamproof.properties.progress import Progress
from streamproof.properties.rows import LazyColumns, Window
from streamproof.properties.runs import TimeSteps, WordStep, _moment, instants
from streamproof.properties.streams import WindowedStream, positive
from streamproof.properties.text import said, show

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class VerdictChange:
    """The verdict changed: at which step, to what, what is left to show, and why."""

    step: int
    time: datetime
    verdict: Verdict
    residual: str
    reasons: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The change as one JSON object."""
        return {
            "step": self.step,
            "time": self.time.isoformat(),
            "verdict": self.verdict.name.lower(),
            "residual": self.residual,
            "reasons": list(self.reasons),
        }


class Watcher:
    """Steps as they close, and the formula's way along them. Knows nothing of Spark."""

    def __init__(self, what: Formula, *, every: int, delay: int, restart: bool, sides: int) -> None:
        self.formula, self.every, self.delay, self.restart = what, every, delay, restart
        self.progress = Progress(what)
        self.waiting: list[list[tuple[np.ndarray[Any, Any], pa.Table]]] = [[] for _ in range(sides)]  # rows not judged
        self.begin: int | None = None  # the start of the first step
        self.next = 0  # the number of the next step to judge
        self.seen = -(2**62)  # the latest time of any row
        self.late = 0  # rows that came after their step was judged
        self.last: Verdict | None = None

    def take(self, tables: Sequence[tuple[pa.Table, str]]) -> list[VerdictChange]:
        """More rows of every side; the steps that they close are judged."""
        for side, (table, on) in enumerate(tables):
            if table.num_rows:
                self._keep(side, table, instants(table, on))
        return self._judged(self.seen - self.delay) if self.begin is not None else []

    def _keep(self, side: int, table: pa.Table, times: np.ndarray[Any, Any]) -> None:
        if self.begin is None:
            self.begin = int(times.min()) // self.every * self.every
        self.seen = max(self.seen, int(times.max()))
        open_from = self.begin + self.next * self.every
        kept = np.flatnonzero(times >= open_from)
        self.late += len(times) - len(kept)
        if len(kept):
            self.waiting[side].append((times[kept], table.take(pa.array(kept))))

    def end(self) -> list[VerdictChange]:
        """No more rows: every step that has rows is closed."""
        return [] if self.begin is None else self._judged(self.seen + self.every)

    def _judged(self, until: int) -> list[VerdictChange]:
        assert self.begin is not None
        changes: list[VerdictChange] = []
        while (start := self.begin + self.next * self.every) + self.every <= until:
            sides = [self._taken(side, start + self.every) for side in range(len(self.waiting))]
            step = WordStep(sides[0], sides[1] if len(sides) > 1 else Window(LazyColumns(pa.table({}))), _moment(start))
            changes += self._fed(step)
            self.next += 1
        return changes

    def _taken(self, side: int, end: int) -> Window:
        """The rows of a side before an instant, which are then no longer waiting."""
        taken, left = [], []
        for times, table in self.waiting[side]:
            inside = times < end
            if inside.any():
                taken.append(table.take(pa.array(np.flatnonzero(inside))))
            if not inside.all():
                rest = np.flatnonzero(~inside)
                left.append((times[rest], table.take(pa.array(rest))))
        self.waiting[side] = left
        return Window(LazyColumns(pa.concat_tables(taken) if taken else pa.table({})))

    def _fed(self, step: WordStep) -> list[VerdictChange]:
        before = self.progress.residual
        verdict = self.progress.feed(step)
        if verdict is self.last:
            return []
        self.last = verdict
        reasons = tuple(said(before, step)) if verdict in {Verdict.FAILS, Verdict.ERROR} else ()
        change = VerdictChange(self.next, step.time, verdict, show(self.progress.residual), reasons)
        if verdict.solved and self.restart:
            self.progress, self.last = Progress(self.formula), None
        return [change]


class Monitor:
    """A formula on watch. ``changes`` are the verdicts so far; `stop` ends the query and judges what is open."""

    def __init__(self, watcher: Watcher, on_change: Callable[[VerdictChange], None] | None, file: Path | None) -> None:
        self._watcher = watcher
        self._on_change = on_change
        self._file = file
        self.changes: list[VerdictChange] = []
        self.query: StreamingQuery | None = None

    @property
    def verdict(self) -> Verdict:
        """What is known now."""
        return self.changes[-1].verdict if self.changes else Verdict.UNDECIDED

    @property
    def residual(self) -> Formula:
        """What is left to show."""
        return self._watcher.progress.residual

    @property
    def late_rows(self) -> int:
        """Rows that came after their step was judged."""
        return self._watcher.late

    def _emit(self, changes: Iterable[VerdictChange]) -> None:
        for change in changes:
            self.changes.append(change)
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(change.as_dict()) + "\n")
            if self._on_change is not None:
                self._on_change(change)

    def finish(self, seconds: float | None = None) -> Monitor:
        """Wait until the query ends by itself, then judge what is open."""
        if self.query is not None:
            self.query.awaitTermination(seconds)  # type: ignore[arg-type]  # None waits for as long as it takes
        self._emit(self._watcher.end())
        return self

    def stop(self) -> Monitor:
        """End the query, and judge what is open."""
        if self.query is not None:
            self.query.stop()
        self._emit(self._watcher.end())
        return self

    def __repr__(self) -> str:
        lines = [f"{c.step}  {c.time:%Y-%m-%d %H:%M:%S}  {c.verdict.name.lower()}  {c.residual}" for c in self.changes]
        return "\n".join([f"monitor of {show(self._watcher.formula)}: {self.verdict.name.lower()}", *lines])


def monitor(
    what: object,
    stream: DataFrame | WindowedStream | Sequence[DataFrame],
    *,
    steps: TimeSteps,
    delay: Span = 0,
    restart: bool = False,
    on_change: Callable[[VerdictChange], None] | None = None,
    file: str | Path | None = None,
    trigger: dict[str, Any] | None = None,
    checkpoint: str | None = None,
) -> Monitor:
    """Watch a formula over a stream: a streaming DataFrame, two of them as (input, output), or a recorded stream.

    ``steps`` are tumbling windows whose ``on`` names the time column; a step closes ``delay`` after its end.
    Verdict changes go to ``changes``, to ``on_change`` and as JSON lines to ``file``. ``restart`` begins anew after
    every decided verdict. ``trigger`` is Spark's, e.g. ``{"processingTime": "1 second"}``; everything there is if not
    given. The query runs in the background: `Monitor.finish` waits for it, `Monitor.stop` ends it.
    """
    frames: list[Any] = [stream] if not isinstance(stream, tuple | list) else list(stream)
    on = _columns(steps, frames)
    if steps.size != steps.every:
        raise InputError("a monitor's steps tumble", fix='use tumbling("1 hour", on="…")')
    watcher = Watcher(
        formula(what), every=positive(steps.size, "the step's size"), delay=duration(delay, "us"), restart=restart,
        sides=len(frames),
    )  # fmt: skip
    options = {"checkpointLocation": checkpoint} if checkpoint else {}
    made = Monitor(watcher, on_change, None if file is None else Path(file))
    if isinstance(frames[0], WindowedStream):
        made._emit(watcher.take([(s.table, name) for s, name in zip(frames, on, strict=True)]))
        return made.finish()
    if not frames[0].isStreaming:  # stored: one pass over all there is
        made._emit(watcher.take([(frame.toArrow(), name) for frame, name in zip(frames, on, strict=True)]))
        return made.finish()
    made.query = _started(made, watcher, frames, on).trigger(**trigger or {"availableNow": True}).start(**options)
    return made


def _columns(steps: TimeSteps, frames: Sequence[Any]) -> list[str]:
    named = steps.on if isinstance(steps.on, tuple) else (steps.on,) * len(frames)
    found = [name or getattr(frame, "time", None) for name, frame in zip(named, frames, strict=True)]
    if None in found:
        raise InputError("which column says the time of a row?", fix='name it: steps=tumbling("1 hour", on="…")')
    return [str(name) for name in found]


def _started(made: Monitor, watcher: Watcher, frames: list[Any], on: list[str]) -> Any:
    """One query over all sides: rows of the second travel as structs beside those of the first."""
    from pyspark.sql import functions as F  # noqa: PLC0415, N812

    packed = [_packed(frame, n, frames, F) for n, frame in enumerate(frames)]
    joined = packed[0] if len(packed) == 1 else packed[0].unionByName(packed[1])

    def judge(batch: DataFrame, number: int) -> None:
        table = batch.toArrow()
        made._emit(watcher.take([(_side(table, n), name) for n, name in enumerate(on)]))

    return joined.writeStream.foreachBatch(judge).outputMode("append")


def _packed(frame: DataFrame, n: int, frames: list[DataFrame], functions: Any) -> DataFrame:
    columns = []
    for other, its in enumerate(frames):
        value = functions.struct("*") if other == n else functions.lit(None).cast(its.schema)
        columns.append(value.alias(f"side{other}"))
    return frame.select(*columns)


def _side(table: pa.Table, n: int) -> pa.Table:
    column = table.column(f"side{n}").combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) and column.num_chunks else column
    valid = column.filter(column.is_valid())
    names = [field.name for field in valid.type]
    return pa.table([valid.field(at) for at in range(len(names))], names=names)
