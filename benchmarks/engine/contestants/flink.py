"""Flink's Table API in streaming mode: SQL with windows over CSV, a watermark of 5 s.

The wheel on PyPI has no Parquet format. Result and input never enter Python.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyflink.table import EnvironmentSettings, TableEnvironment

from engine.protocol import Answer, Run, Task, serve

SETTINGS = {
    "parallelism.default": "1",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.managed.size": "256m",
}
TUMBLING = "TABLE(TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '1' SECOND))"
HOPPING = "TABLE(HOP(TABLE S, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '10' SECOND))"
SQL = {
    "Q1": ("le BIGINT, re BIGINT, k BIGINT, x DOUBLE", "SELECT le, re, k, v * 2 + 1 FROM S WHERE v > 60"),
    "Q2": ("t TIMESTAMP(3), k BIGINT, n BIGINT, s DOUBLE",
           f"SELECT window_start, k, COUNT(*), SUM(v) FROM {TUMBLING} GROUP BY k, window_start, window_end"),
    "Q3": ("t TIMESTAMP(3), k BIGINT, a DOUBLE",
           f"SELECT window_start, k, AVG(v) FROM {HOPPING} GROUP BY k, window_start, window_end"),
    "Q4": ("le BIGINT, re BIGINT, k BIGINT, x DOUBLE, y DOUBLE",
           """SELECT GREATEST(l.le, r.le), LEAST(l.re, r.re), l.k, l.v, r.v FROM S l JOIN R r ON l.k = r.k
              AND r.ts BETWEEN l.ts - INTERVAL '1' SECOND AND l.ts + INTERVAL '1' SECOND
              AND l.le < r.re AND r.le < l.re"""),
    "Q6": ("t TIMESTAMP(3), k BIGINT, v DOUBLE",
           f"""SELECT window_start, k, v FROM (SELECT *, ROW_NUMBER() OVER (
               PARTITION BY window_start, window_end ORDER BY v DESC) place FROM {TUMBLING}) WHERE place <= 3"""),
}  # fmt: skip


@cache
def environment() -> TableEnvironment:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in SETTINGS.items():
        tables.get_config().set(name, value)
    return tables


def declare(task: Task) -> None:
    """The inputs S and R, and a sink that fits the query."""
    for name, kind in (("S", "plain"), ("R", "other")):
        environment().execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {name}")
        environment().execute_sql(f"""CREATE TEMPORARY TABLE {name} (le BIGINT, re BIGINT, k BIGINT, v DOUBLE,
            ts AS TO_TIMESTAMP_LTZ(le, 3), WATERMARK FOR ts AS ts - INTERVAL '{task.delay / 1000:.3f}' SECOND(3))
            WITH ('connector' = 'filesystem', 'path' = '{task.path(kind, "csv")}', 'format' = 'csv')""")
    environment().execute_sql("DROP TEMPORARY TABLE IF EXISTS sink")
    sink = f"'connector' = 'filesystem', 'path' = '{task.keep}.csv', 'format' = 'csv'"
    environment().execute_sql(f"""CREATE TEMPORARY TABLE sink ({SQL[task.query][0]})
        WITH ({sink if task.keep else "'connector' = 'blackhole'"})""")


def run(task: Task) -> Answer:
    """The query from the CSV file to a sink that forgets; such a sink does not count."""
    declare(task)
    environment().execute_sql(f"INSERT INTO sink {SQL[task.query][1]}").wait()
    return Answer(_kept(task) if task.keep else None)


def _kept(task: Task) -> int:
    """What the sink wrote, as one Parquet file with the starts of windows in milliseconds."""
    names = [column.split()[0] for column in SQL[task.query][0].split(", ")]
    options = pyarrow.csv.ReadOptions(column_names=names)
    parts = [path for path in Path(f"{task.keep}.csv").rglob("*") if path.is_file() and path.stat().st_size]
    table = pa.concat_tables([pyarrow.csv.read_csv(path, read_options=options) for path in parts])
    if "t" in names:
        starts = table["t"].cast(pa.timestamp("ms")).cast(pa.int64())
        table = table.set_column(names.index("t"), "t", starts)
    pq.write_table(table, task.keep)
    shutil.rmtree(f"{task.keep}.csv")
    return len(table)


RUNS: dict[str, Run] = dict.fromkeys(SQL, run)

if __name__ == "__main__":
    environment()
    serve(RUNS)
