"""Bytewax: a dataflow of Python functions with event-time windows, one worker.

It has no join over time intervals and no snapshot windows, so Q4, Q5 and Q8 are not here. Its windows count real time
as well as event time; the clock is held still, so that a busy machine makes no event late.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
from bytewax import operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.operators import windowing
from bytewax.operators.windowing import EventClock, SlidingWindower, TumblingWindower, Windower
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

from engine.protocol import Answer, Run, Task, serve

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STILL = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TUMBLING = TumblingWindower(length=SECOND, align_to=EPOCH)
SLIDING = SlidingWindower(length=10 * SECOND, offset=SECOND, align_to=EPOCH)
Timed = tuple[datetime, float, str]


class Part(StatefulSourcePartition):
    """The file, some thousand rows at a time."""

    def __init__(self, rows: Iterator[list[tuple]]) -> None:
        self._rows = rows

    def next_batch(self) -> list[tuple]:
        return next(self._rows)

    def snapshot(self) -> None:
        return None


class File(FixedPartitionedSource):
    """One partition: rows as tuples, made by ``rows`` from a record batch."""

    def __init__(self, path: str, rows: Callable[[pa.RecordBatch], list[tuple]]) -> None:
        self._path, self._rows = path, rows

    def list_parts(self) -> list[str]:
        return ["all"]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> Part:
        return Part(map(self._rows, pq.ParquetFile(self._path).iter_batches(batch_size=5_000)))


class Counting(StatelessSinkPartition):
    """Counts rows, and keeps them if someone asked for them."""

    def __init__(self, kept: list[tuple] | None) -> None:
        self.count, self._kept = 0, kept

    def write_batch(self, items: list[tuple]) -> None:
        self.count += len(items)
        if self._kept is not None:
            self._kept.extend(items)


class Sink(DynamicSink):
    def __init__(self, part: Counting) -> None:
        self._part = part

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Counting:
        return self._part


def lifetimes(part: pa.RecordBatch) -> list[tuple]:
    return list(zip(*(part[name].to_pylist() for name in ("le", "re", "k", "v")), strict=True))


def keyed(part: pa.RecordBatch) -> list[tuple]:
    """(key, (time, value, key)): keys are text in Bytewax, times have ``datetime.UTC`` itself as zone."""
    keys = part["k"].cast(pa.string()).to_pylist()
    times = [datetime.fromtimestamp(le / 1000, UTC) for le in part["le"].to_pylist()]
    return list(zip(keys, zip(times, part["v"].to_pylist(), keys, strict=True), strict=True))


def unkeyed(part: pa.RecordBatch) -> list[tuple]:
    return [("", value) for _, value in keyed(part)]


def add(state: tuple[int, float], event: Timed) -> tuple[int, float]:
    return state[0] + 1, state[1] + event[1]


def best(state: list[tuple[float, str]], event: Timed) -> list[tuple[float, str]]:
    if len(state) < 3:
        heapq.heappush(state, (event[1], event[2]))
    else:
        heapq.heappushpop(state, (event[1], event[2]))
    return state


def weigh(state: float, event: Timed) -> float:
    return state + event[1] * 1  # a point lasts one millisecond


def windows(task: Task, windower: Windower, start: Callable, fold: Callable, *, rows: Callable = keyed) -> tuple:
    """A dataflow that folds the events of each window, and the stream (key, (window, state))."""
    flow = Dataflow("bench")
    events = op.input("in", flow, File(task.path("plain"), rows))
    wait = timedelta(milliseconds=task.delay)
    clock = EventClock(lambda event: event[0], wait_for_system_duration=wait, now_getter=lambda: STILL)
    return flow, windowing.fold_window("fold", events, clock, windower, start, fold, lambda a, b: a).down


def q1(task: Task) -> tuple:
    flow = Dataflow("bench")
    events = op.input("in", flow, File(task.path("plain"), lifetimes))
    kept = op.flat_map_batch("q", events, lambda part: [(le, re, k, v * 2 + 1) for le, re, k, v in part if v > 60])
    return flow, kept


def q2(task: Task) -> tuple:
    flow, folded = windows(task, TUMBLING, lambda: (0, 0.0), add)
    return flow, op.map("out", folded, lambda row: (row[1][0] * 1000, int(row[0]), *row[1][1]))


def q3(task: Task) -> tuple:
    flow, folded = windows(task, SLIDING, lambda: (0, 0.0), add)
    return flow, op.map("out", folded, lambda row: (row[1][0] * 1000, int(row[0]), row[1][1][1] / row[1][1][0]))


def q6(task: Task) -> tuple:
    flow, folded = windows(task, TUMBLING, list, best, rows=unkeyed)
    return flow, op.flat_map("out", folded, lambda row: [(row[1][0] * 1000, int(k), v) for v, k in row[1][1]])


def q7(task: Task) -> tuple:
    flow, folded = windows(task, TUMBLING, float, weigh)
    return flow, op.map("out", folded, lambda row: (row[1][0] * 1000, int(row[0]), row[1][1] / 1000))


def run(make: Callable[[Task], tuple], columns: str) -> Run:
    """A run of the dataflow that ``make`` builds, to the end of its file."""

    def once(task: Task) -> Answer:
        sink = Counting([] if task.keep else None)
        flow, stream = make(task)
        op.output("sink", stream, Sink(sink))
        run_main(flow)
        if task.keep:
            values = zip(*sink._kept, strict=True)
            pq.write_table(pa.table(dict(zip(columns.split(), map(list, values), strict=True))), task.keep)
        return Answer(sink.count)

    return once


RUNS: dict[str, Run] = {
    "Q1": run(q1, "le re k x"),
    "Q2": run(q2, "t k n s"),
    "Q3": run(q3, "t k a"),
    "Q6": run(q6, "t k v"),
    "Q7": run(q7, "t k a"),
}

if __name__ == "__main__":
    serve(RUNS)
