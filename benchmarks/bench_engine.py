"""The local engine beside DuckDB's batch run of the same query on the same Parquet file, in one process.

python benchmarks/bench_engine.py [--events 1000000] [--batch 100000] [--query Q2 --query Q4] [--disorder]

Every figure is CPU seconds of this process, from the Parquet file to the last output row; the output is counted and
thrown away. The local engine also gives corrections and CTIs, which a batch run does not need. The ratio is DuckDB's
time divided by ours: above 1 we are faster.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.local import LocalEngine
from streamproof.events.batch import Batch
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.plan.check import check
from streamproof.plan.rewrite import rewrite

KEYS = 1_000
DELAY = 5_000  # how far the CTI trails behind the greatest start, in ms
SCHEMA = Schema.of({"k": "int64", "v": "float64"}, unit="ms")
PEER = "DuckDB"
RESULTS = Path(__file__).parent / "results"


def rows(events: int, *, seed: int, disorder: bool, longest: int) -> pa.Table:
    """One event per millisecond on average, over 1,000 keys; with disorder, one in ten comes up to 4 s late."""
    random = np.random.default_rng(seed)
    le = np.arange(events, dtype=np.int64)
    if disorder:
        late = random.random(events) < 0.1
        le = np.where(late, np.maximum(le - random.integers(1, 4_000, events), 0), le)
    re = le + random.integers(1, longest + 1, events)
    return pa.table(
        {"le": le, "re": re, "k": random.integers(0, KEYS, events), "v": random.integers(0, 1000, events) / 8}
    )


def retracted(table: pa.Table, *, seed: int) -> pa.Table:
    """The same rows, one in ten of them taken back soon after."""
    random = np.random.default_rng(seed)
    count = table.num_rows
    gone = np.flatnonzero(random.random(count) < 0.1)
    places = np.concatenate([np.arange(count, dtype=float), gone + random.random(len(gone)) * 2_000 + 0.5])
    order = np.argsort(places, kind="stable")
    weight = np.concatenate([np.ones(count, np.int64), -np.ones(len(gone), np.int64)])[order]
    source = np.concatenate([np.arange(count), gone])[order]
    return table.take(pa.array(source)).append_column("w", pa.array(weight))


def batches(path: Path, size: int) -> Iterator[Batch]:
    """The file in batches of signed rows, each with a CTI that trails behind."""
    latest = -FOREVER
    for part in pq.ParquetFile(path).iter_batches(batch_size=size):
        table = pa.Table.from_batches([part])
        weight = table["w"] if "w" in table.column_names else pa.array(np.ones(len(table), np.int64))
        latest = max(latest, int(table["le"].to_numpy().max()))
        columns = [table["le"], table["re"], weight, table["k"], table["v"]]
        yield Batch(SCHEMA, pa.Table.from_arrays(columns, schema=SCHEMA.arrow_rows), latest - DELAY)


@dataclass(frozen=True)
class Query:
    """One query for both: a stream, and SQL over the files."""

    name: str
    stream: sp.Stream
    sql: str
    files: dict[str, str]  # source → kind of file


S, R = sp.source("S", SCHEMA), sp.source("R", SCHEMA)
POINTS = S.to_point()
SNAPSHOT = """
    WITH ends AS (SELECT {key} k, le t, {value} FROM S UNION ALL SELECT {key} k, re, {minus} FROM S),
         steps AS (SELECT k, t, {sums} FROM ends GROUP BY k, t)
    SELECT k, t, lead(t) OVER w, {running} FROM steps WINDOW w AS (PARTITION BY k ORDER BY t)"""
QUERIES = (
    Query("Q1 filter, project", S.where("v > 60").select(k="k", x="v * 2 + 1"),
          "SELECT le, re, k, v * 2 + 1 x FROM S WHERE v > 60", {"S": "plain"}),
    Query("Q2 keyed tumbling count, sum", POINTS.group_by("k").tumbling(1000).aggregate(n=sp.count(), s=sp.sum("v")),
          "SELECT k, le // 1000, count(*), sum(v) FROM S GROUP BY ALL", {"S": "plain"}),
    Query("Q3 keyed hopping avg", POINTS.group_by("k").hopping(10_000, 1000).aggregate(a=sp.avg("v")),
          "SELECT k, le // 1000 + h, avg(v) FROM S, range(10) t(h) GROUP BY ALL", {"S": "plain"}),
    Query("Q4 keyed temporal join", S.join(R, "l.k = r.k", select={"k": "l.k", "x": "l.v", "y": "r.v"}),
          """SELECT l.k, greatest(l.le, r.le), least(l.re, r.re), l.v, r.v FROM S l JOIN R r
             ON l.k = r.k AND l.le < r.re AND r.le < l.re""", {"S": "plain", "R": "other"}),
    Query("Q5 global snapshot count", S.snapshot().aggregate(n=sp.count()),
          SNAPSHOT.format(key="0", value="1 n", minus="-1", sums="sum(n) n", running="sum(n) OVER w"), {"S": "plain"}),
    Query("Q5 keyed snapshot count, sum", S.group_by("k").snapshot().aggregate(n=sp.count(), s=sp.sum("v")),
          SNAPSHOT.format(key="k", value="1 n, v s", minus="-1, -v", sums="sum(n) n, sum(s) s",
                          running="sum(n) OVER w, sum(s) OVER w"), {"S": "plain"}),
    Query("Q6 top 3 per second", POINTS.tumbling(1000).top(3, by=sp.desc("v")),
          "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY le // 1000 ORDER BY v DESC) r FROM S) WHERE r <= 3",
          {"S": "plain"}),
    Query("Q7 time-weighted average in Python", POINTS.group_by("k").tumbling(1000).uda("twavg", "v", as_="a"),
          "SELECT k, le // 1000, sum(v) / 1000 FROM S GROUP BY ALL", {"S": "plain"}),
    Query("Q8 keyed snapshot max, retractions", S.group_by("k").snapshot().aggregate(m=sp.max("v")),
          """WITH live AS (SELECT k, le, re, v FROM S GROUP BY ALL HAVING sum(w) > 0),
             ends AS (SELECT k, le t FROM live UNION SELECT k, re FROM live),
             cuts AS (SELECT k, t, lead(t) OVER (PARTITION BY k ORDER BY t) u FROM ends)
             SELECT c.k, t, u, max(v) FROM cuts c JOIN live l ON c.k = l.k AND le < u AND re > t GROUP BY ALL""",
          {"S": "retracted"}),
)  # fmt: skip


def run_local(query: Query, files: dict[str, Path], size: int) -> int:
    schemas = dict.fromkeys(query.files, SCHEMA)
    typed = check(rewrite(query.stream.plan, schemas), schemas)
    inputs = {name: batches(files[kind], size) for name, kind in query.files.items()}
    return sum(batch.rows.num_rows for batch in LocalEngine().run(typed, inputs, Settings()))


def run_duckdb(query: Query, files: dict[str, Path]) -> int:
    database = duckdb.connect()
    for name, kind in query.files.items():
        database.execute(f"CREATE VIEW {name} AS SELECT * FROM '{files[kind]}'")
    return sum(len(part) for part in database.execute(query.sql).to_arrow_reader(100_000))


def cpu(work: Callable[[], int]) -> tuple[float, int]:
    start = time.process_time()
    output = work()
    return time.process_time() - start, output


def measure(query: Query, files: dict[str, Path], events: int, size: int) -> dict[str, object]:
    run_local(query, {kind: path.with_name(f"small-{path.name}") for kind, path in files.items()}, 1000)  # compile
    ours, output = min(cpu(lambda: run_local(query, files, size)) for _ in range(3))
    theirs, _ = min(cpu(lambda: run_duckdb(query, files)) for _ in range(3))
    result: dict[str, object] = {
        "query": query.name, "events": events, "batch": size, "output": output, "ours": round(ours, 3),
        PEER: round(theirs, 3), "ratio": round(theirs / ours, 2), "thousand events/s": round(events / ours / 1000),
    }  # fmt: skip
    print(json.dumps(result), flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--query", action="append", default=[])
    parser.add_argument("--disorder", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder) / f"{kind}.parquet" for kind in ("plain", "other", "retracted")}
        for prefix, count in (("", options.events), ("small-", 5_000)):
            plain = rows(count, seed=1, disorder=options.disorder, longest=1000)
            tables = {"plain": plain, "retracted": retracted(plain, seed=3),
                      "other": rows(count, seed=2, disorder=options.disorder, longest=1000)}  # fmt: skip
            for kind, table in tables.items():
                pq.write_table(table, files[kind].with_name(f"{prefix}{kind}.parquet"))
        chosen = [q for q in QUERIES if not options.query or q.name.split()[0] in options.query]
        results = [measure(query, files, options.events, options.batch) for query in chosen]
    RESULTS.mkdir(exist_ok=True)
    name = f"engine-{datetime.now(UTC):%Y-%m-%d}{'-disorder' if options.disorder else ''}.json"
    (RESULTS / name).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
