"""streamproof's own local engine: incremental, with corrections and CTIs on the way."""

from __future__ import annotations

import resource
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import streamproof as sp
from engine.protocol import Answer, Run, Task, serve
from streamproof.engines.base import Settings, prepare
from streamproof.engines.local import LocalEngine, in_turn
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.plan.library import installed
from streamproof.plan.modules import Event, Registry, WindowSpan

SCHEMA = Schema.of({"k": "int64", "v": "float64"}, unit="ms")


@sp.uda("weighted", returns="float64", takes="float64", incremental=True, time_sensitive=True)
class Weighted:
    """A time-weighted average that keeps a sum."""

    def start(self) -> float:
        return 0.0

    def add(self, state: float, events: Sequence[Event]) -> float:
        for le, re, value in events:
            state += value * (re - le)
        return state

    def remove(self, state: float, events: Sequence[Event]) -> float:
        for le, re, value in events:
            state -= value * (re - le)
        return state

    def result(self, state: float, window: WindowSpan) -> float:
        return state / (window.re - window.le)


REGISTRY = Registry([*installed(), Weighted])
S, R = sp.source("S", SCHEMA), sp.source("R", SCHEMA)
POINTS = S.to_point()
STREAMS = {
    "Q1": S.where("v > 60").select(k="k", x="v * 2 + 1"),
    "Q2": POINTS.group_by("k").tumbling(1000).aggregate(n=sp.count(), s=sp.sum("v")),
    "Q3": POINTS.group_by("k").hopping(10_000, 1000).aggregate(a=sp.avg("v")),
    "Q4": S.join(R, "l.k = r.k", select={"k": "l.k", "x": "l.v", "y": "r.v"}),
    "Q5g": S.snapshot().aggregate(n=sp.count()),
    "Q5k": S.group_by("k").snapshot().aggregate(n=sp.count(), s=sp.sum("v")),
    "Q6": POINTS.tumbling(1000).top(3, by=sp.desc("v")),
    "Q7": POINTS.group_by("k").tumbling(1000).uda("weighted", "v", as_="a"),
    "Q8": S.group_by("k").snapshot().aggregate(m=sp.max("v")),
}
READ = 100_000  # rows of a file at a time
OF_POINTS = ("Q2", "Q3", "Q6", "Q7")
FILES = {"Q4": {"S": "plain", "R": "other"}, "Q8": {"S": "retracted"}}  # the others read the plain rows as S


def batches(task: Task, kind: str) -> Iterator[Batch]:
    """The file in batches of signed rows, each with a CTI that trails behind. Of points the ends are not read.

    However small the batches, the file is read in the same pieces: small batches come from queues, not from Parquet.
    What the reader would buffer ahead, it keeps until the end of the file: the longer the file, the more memory.
    Without a buffer it reads a column of a whole row group at once.
    """
    latest = -FOREVER
    file = pq.ParquetFile(task.path(kind), pre_buffer=False, buffer_size=1 << 18)
    columns = [name for name in file.schema_arrow.names if name != "re" or task.query not in OF_POINTS]
    for part in file.iter_batches(batch_size=max(task.batch, READ), columns=columns, use_threads=False):
        read = dict(zip(columns, part.columns, strict=True))
        le = read["le"].to_numpy()
        re = read["re"] if "re" in read else pa.array(le + 1)
        weight = read["w"] if "w" in read else pa.array(np.ones(len(le), np.int64))
        rows = pa.Table.from_arrays([read["le"], re, weight, read["k"], read["v"]], schema=SCHEMA.arrow_rows)
        for first in range(0, len(le), task.batch):
            latest = max(latest, int(le[first : first + task.batch].max()))
            yield Batch(SCHEMA, rows.slice(first, task.batch), latest - task.delay)


def run(task: Task) -> Answer:
    """The query from the file to the last batch of output."""
    settings = Settings(registry=REGISTRY)
    files = FILES.get(task.query, {"S": "plain"})
    typed = prepare(STREAMS[task.query].plan, dict.fromkeys(files, SCHEMA), settings)
    inputs = {name: batches(task, kind) for name, kind in files.items()}
    output = pushed(task, inputs) if task.pushed else LocalEngine(latency=task.latency).run(typed, inputs, settings)
    if task.keep:
        history = History.from_batches(typed.schema, output).rows
        pq.write_table(history.append_column("t", history["le"]), task.keep)
        return Answer(pc.sum(history["w"]).as_py())
    rows = sent = 0
    for batch in output:
        sent += batch.rows.num_rows
        rows += sum(int(part.to_numpy().sum()) for part in batch.rows["w"].chunks)
    return Answer(rows, sent, peak_mb())


def pushed(task: Task, inputs: Mapping[str, Iterable[Batch]]) -> Iterator[Batch]:
    """The same from a running query: every batch is pushed, and what has come out is pulled after each."""
    job = STREAMS[task.query].on("local", modules=[Weighted], latency=task.latency)
    query = job.start(dict.fromkeys(inputs, SCHEMA), keep_history=False)
    for name, batch in in_turn(inputs):
        query.push(name, batch)
        yield from query.pull()
    query.finish()
    yield from query.pull()


def peak_mb() -> float:
    """The most memory that this process has held, as Linux tells it of what runs in it now.

    What ``getrusage`` says begins with the peak of the process that started it, here with whoever wrote the rows.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


RUNS: dict[str, Run] = dict.fromkeys(STREAMS, run)

if __name__ == "__main__":
    serve(RUNS)
