"""How long the oracle takes for 100,000 events (1,000,000 where it says so).

python benchmarks/bench_oracle.py [--engine postgres --dsn …] [--events 100000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from streamproof.engines.base import Settings
from streamproof.engines.oracle import duckdb_engine, postgres_engine
from streamproof.engines.oracle.engine import Oracle
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.nodes import Plan, Source
from streamproof.plan.parse import parse
from streamproof.plan.windows import Hopping, Snapshot, Tumbling

SCHEMA = Schema.of({"k": "int64", "v": "int64", "x": "float64"})


def events(count: int, keys: int, seed: int, *, ticks: int | None = None, infinite: int = 20) -> pa.Table:
    """Lifetimes of 1 to 100 ticks, a few of them endless, about one start per tick."""
    random = np.random.default_rng(seed)
    le = np.sort(random.integers(0, ticks or count, count))
    re = le + random.integers(1, 101, count)
    re[random.choice(count, infinite, replace=False)] = FOREVER
    return pa.table({"le": le, "re": re, "k": random.integers(0, keys, count), "v": random.integers(0, 1000, count),
                     "x": random.random(count)})  # fmt: skip


def aggregates(source: Plan, window: Tumbling | Hopping | Snapshot) -> Plan:
    aggs = (("n", Aggregate("count")), ("s", Aggregate("sum", Col("v"))), ("a", Aggregate("avg", Col("x"))))
    return nodes.Aggregation(source, window, aggs)


def keyed(plan: Callable[[Plan], Plan]) -> Plan:
    return nodes.GroupApply(Source("S"), ("k",), plan(nodes.GroupInput()))


def cases(count: int) -> Iterator[tuple[str, Plan, dict[str, pa.Table]]]:
    points = nodes.ToPoint(Source("S"))
    yield "tumbling 100, points", aggregates(points, Tumbling(100)), {"S": events(count, 10, 1)}
    yield "hopping 10/1, points", aggregates(points, Hopping(10, 1)), {"S": events(count, 10, 1)}
    yield f"tumbling 100, {10 * count:,} points", aggregates(points, Tumbling(100)), {"S": events(10 * count, 10, 1)}
    for keys in (10, 100, 1000):
        streams = {"S": events(count, keys, 1), "R": events(count, keys, 2)}
        select = (("k", Col("k", "l")), ("v", Col("v", "l")), ("u", Col("v", "r")))
        yield f"join, {keys} keys", nodes.Join(Source("S"), Source("R"), parse("l.k = r.k"), select), streams
        yield f"lasj, {keys} keys", nodes.AntiJoin(Source("S"), Source("R"), parse("l.k = r.k")), streams
        snapshots = keyed(lambda group: aggregates(group, Snapshot()))
        yield f"snapshot, {keys} keys", snapshots, {"S": events(count, keys, 1)}
    lasting = nodes.AlterDuration(Source("S"), None)
    clipped = nodes.Clip(lasting, Source("S"), parse("l.k = r.k"))
    yield "clip of endless, 100 keys", clipped, {"S": events(count, 100, 1)}
    yield "stitch of chop 7", nodes.Stitch(nodes.Chop(points, 7)), {"S": events(count, 10, 1)}
    yield "session 3 max 50 by k", nodes.Session(Source("S"), 3, 50, ("k",)), {"S": events(count, 10, 1)}
    yield "coalesce", nodes.Coalesce(nodes.Select(Source("S"), (("k", Col("k")),))), {"S": events(count, 10, 1)}
    yield "distinct", nodes.Distinct(nodes.Select(Source("S"), (("k", Col("k")),))), {"S": events(count, 10, 1)}


def measure(engine: Oracle, plan: Plan, streams: dict[str, pa.Table]) -> tuple[float, float, int]:
    """Seconds by the clock, seconds of this process on all cores, and rows."""
    typed = check(plan, dict.fromkeys(streams, SCHEMA))
    began, worked = time.perf_counter(), time.process_time()
    rows = engine.run_history(typed, streams, Settings())
    return time.perf_counter() - began, time.process_time() - worked, rows.num_rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--dsn")
    parser.add_argument("--events", type=int, default=100_000)
    given = parser.parse_args()
    engine = duckdb_engine() if given.engine == "duckdb" else postgres_engine(dsn=given.dsn)
    for name, plan, streams in cases(given.events):
        seconds, worked, rows = measure(engine, plan, streams)
        print(f"{name:32} {seconds:7.2f} s {worked:7.2f} s of CPU {rows:12,} rows", flush=True)


if __name__ == "__main__":
    main()
