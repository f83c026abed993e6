"""What a user module costs on the local engine: CPU seconds per run, and microseconds per window call.

python benchmarks/bench_modules.py [--events 1000000] [--batch 100000] [--batch 1000] [--disorder] [--module twavg]

Point events, one per millisecond over 1,000 keys, in keyed windows of one second, with a CTI that trails by 5 s. The
modules that do nothing show what the engine itself needs for a call; the others do what such modules do.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from engine.contestants.local import Weighted

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.local import LocalEngine
from streamproof.events.batch import Batch
from streamproof.events.schema import Schema
from streamproof.plan.check import Typed, check
from streamproof.plan.library import installed
from streamproof.plan.modules import Event, Payload, Registry, WindowSpan

KEYS = 1_000
WINDOW = 1_000
DELAY = 5_000
SCHEMA = Schema.of({"k": "int64", "v": "float64"}, unit="ms")


class Nothing:
    """Does nothing: what is left is the engine."""

    def start(self) -> None:
        return None

    def add(self, state: None, events: Sequence[object]) -> None:
        return None

    def remove(self, state: None, events: Sequence[object]) -> None:
        return None

    def result(self, state: None, *window: WindowSpan) -> None:
        return None


@sp.uda("nothing_at_once", returns="float64")
def nothing_at_once(values: Sequence[object]) -> None:
    return None


@sp.udo("rows", returns={"v": "float64"})
def rows(payloads: Sequence[Payload]) -> Iterator[Payload]:
    """Every payload, as it is."""
    yield from payloads


@sp.udo("stamped", returns={"v": "float64"}, time_sensitive=True)
def stamped(events: Sequence[Event], window: WindowSpan) -> Iterator[Event]:
    """One row per window, from its first event on."""
    yield Event(events[0].le, window.re, {"v": events[0].value["v"]})


NOTHING = sp.uda("nothing", returns="float64", incremental=True)(Nothing)
NOTHING_TIMED = sp.uda("nothing_timed", returns="float64", incremental=True, time_sensitive=True)(Nothing)
REGISTRY = Registry([*installed(), Weighted, nothing_at_once, rows, stamped, NOTHING, NOTHING_TIMED])
POINTS = sp.source("S", SCHEMA).to_point().group_by("k").tumbling(WINDOW)
STREAMS = {
    "nothing": POINTS.uda("nothing", "v", as_="a"),
    "nothing_timed": POINTS.uda("nothing_timed", "v", as_="a"),
    "nothing_at_once": POINTS.uda("nothing_at_once", "v", as_="a"),
    "weighted": POINTS.uda("weighted", "v", as_="a"),
    "twavg": POINTS.uda("twavg", "v", as_="a"),
    "mean": POINTS.uda("mean", "v", as_="a"),
    "median": POINTS.uda("median", "v", as_="a"),
    "rows": POINTS.udo("rows", map={"v": "v"}),
    "stamped": POINTS.udo("stamped", map={"v": "v"}, stamp="unchanged", restriction="window_based"),
}


def batches(events: int, size: int, *, disorder: bool) -> list[Batch]:
    """Batches of signed rows; with disorder, one event in ten comes up to 4 s late."""
    random = np.random.default_rng(1)
    le = np.arange(events, dtype=np.int64)
    if disorder:
        late = random.random(events) < 0.1
        le = np.where(late, np.maximum(le - random.integers(1, 4_000, events), 0), le)
    k, v = random.integers(0, KEYS, events), random.integers(0, 1000, events) / 8
    made = []
    for first in range(0, events, size):
        part = slice(first, first + size)
        columns = [le[part], le[part] + 1, np.ones(len(le[part]), np.int64), k[part], v[part]]
        table = pa.Table.from_arrays([pa.array(column) for column in columns], schema=SCHEMA.arrow_rows)
        made.append(Batch(SCHEMA, table, min(first + size, events) - DELAY))
    return made


@dataclass(frozen=True)
class Cost:
    """One run: CPU seconds, rows in and out."""

    seconds: float
    rows_in: int
    rows_out: int


def run(plan: Typed, inputs: list[Batch]) -> Cost:
    start = time.process_time()
    made = sum(len(batch.rows) for batch in LocalEngine().run(plan, {"S": inputs}, Settings(registry=REGISTRY)))
    return Cost(time.process_time() - start, sum(len(batch.rows) for batch in inputs), made)


def measure(name: str, events: int, size: int, *, disorder: bool) -> dict[str, object]:
    plan = check(STREAMS[name].plan, {"S": SCHEMA}, registry=REGISTRY)
    inputs = batches(events, size, disorder=disorder)
    run(plan, batches(5_000, 1_000, disorder=disorder))  # compile
    cost = min((run(plan, inputs) for _ in range(3)), key=lambda each: each.seconds)
    windows = sum(len(np.unique(batch.rows["k"].to_numpy() * events + batch.rows["le"].to_numpy() // WINDOW))
                  for batch in inputs)  # fmt: skip
    return {
        "module": name, "batch": size, "disorder": disorder, "seconds": round(cost.seconds, 3), "out": cost.rows_out,
        "thousand events/s": round(cost.rows_in / cost.seconds / 1000),
        "us per row in and out": round(cost.seconds * 1e6 / (cost.rows_in + cost.rows_out), 2),
        "us per window": round(cost.seconds * 1e6 / windows, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, action="append")
    parser.add_argument("--module", action="append", choices=list(STREAMS))
    parser.add_argument("--disorder", action="store_true")
    options = parser.parse_args()
    for name in options.module or STREAMS:
        for size in options.batch or [100_000]:
            print(json.dumps(measure(name, options.events, size, disorder=options.disorder)), flush=True)


if __name__ == "__main__":
    main()
