"""Flink's Table API in streaming mode: SQL with windows over CSV, a watermark of 5 s.

The wheel on PyPI has no Parquet format. Only Q7 enters Python.
"""

from __future__ import annotations

import shutil
import sys
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyflink.common import Row
from pyflink.table import AggregateFunction, DataTypes, EnvironmentSettings, TableEnvironment
from pyflink.table.udf import udaf

from engine.protocol import Answer, Run, Task, serve

SETTINGS = {
    "parallelism.default": "1",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.managed.size": "256m",
}
SUMS = "SUM(n) OVER held n, SUM(s) OVER held s"
STEPS = """SELECT window_start t, {key} k, SUM(n) n, SUM(s) s, window_time FROM TABLE(TUMBLE(TABLE ends, DESCRIPTOR(ts),
    INTERVAL '0.001' SECOND)) GROUP BY {group}window_start, window_end, window_time"""
RUNNING = f"""SELECT {{out}} FROM (SELECT t, k, {SUMS} FROM ({STEPS})
    WINDOW held AS ({{part}}ORDER BY window_time RANGE UNBOUNDED PRECEDING)) WHERE n > 0"""
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
    "Q5g": ("t TIMESTAMP(3), n BIGINT", RUNNING.format(key="0", group="", part="", out="t, n")),
    "Q5k": ("t TIMESTAMP(3), k BIGINT, n BIGINT, s DOUBLE",
            RUNNING.format(key="k", group="k, ", part="PARTITION BY k ", out="t, k, n, s")),
    "Q6": ("t TIMESTAMP(3), k BIGINT, v DOUBLE",
           f"""SELECT window_start, k, v FROM (SELECT *, ROW_NUMBER() OVER (
               PARTITION BY window_start, window_end ORDER BY v DESC) place FROM {TUMBLING}) WHERE place <= 3"""),
    "Q7": ("t TIMESTAMP(3), k BIGINT, a DOUBLE",
           """SELECT TUMBLE_START(ts, INTERVAL '1' SECOND), k, weighted(v) FROM S
              GROUP BY k, TUMBLE(ts, INTERVAL '1' SECOND)"""),
}  # fmt: skip


class Weighted(AggregateFunction):
    """A time-weighted average over a second that keeps a sum."""

    def create_accumulator(self) -> Row:
        return Row(0.0)

    def accumulate(self, accumulator: Row, value: float) -> None:
        accumulator[0] += value

    def retract(self, accumulator: Row, value: float) -> None:
        accumulator[0] -= value

    def get_value(self, accumulator: Row) -> float:
        return accumulator[0] / 1000


@cache
def environment() -> TableEnvironment:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in SETTINGS.items():
        tables.get_config().set(name, value)
    tables.get_config().set("python.executable", sys.executable)
    state = DataTypes.ROW([DataTypes.FIELD("total", DataTypes.DOUBLE())])
    weighted = udaf(Weighted(), result_type=DataTypes.DOUBLE(), accumulator_type=state)
    tables.create_temporary_function("weighted", weighted)
    return tables


def declare(task: Task) -> None:
    """The inputs, and a sink that fits the query.

    ``ends`` has every start with its values, and every end with their opposites; a lifetime of a second makes ends
    that much later out of order than starts.
    """
    _file(task, "S", "plain", "le", task.delay)
    _file(task, "R", "other", "le", task.delay)
    _file(task, "S_ends", "plain", "re", task.delay + 1000)
    environment().execute_sql("DROP TEMPORARY VIEW IF EXISTS ends")
    environment().execute_sql("""CREATE TEMPORARY VIEW ends AS SELECT k, 1 n, v s, ts FROM S
        UNION ALL SELECT k, -1, -v, ts FROM S_ends""")
    environment().execute_sql("DROP TEMPORARY TABLE IF EXISTS sink")
    kept = f"'connector' = 'filesystem', 'path' = '{task.keep}.csv', 'format' = 'csv'"
    sink = kept if task.keep else "'connector' = 'blackhole'"
    environment().execute_sql(f"CREATE TEMPORARY TABLE sink ({SQL[task.query][0]}) WITH ({sink})")


def _file(task: Task, name: str, kind: str, time: str, delay: int) -> None:
    environment().execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {name}")
    environment().execute_sql(f"""CREATE TEMPORARY TABLE {name} (le BIGINT, re BIGINT, k BIGINT, v DOUBLE,
        ts AS TO_TIMESTAMP_LTZ({time}, 3), WATERMARK FOR ts AS ts - INTERVAL '{delay / 1000:.3f}' SECOND(3))
        WITH ('connector' = 'filesystem', 'path' = '{task.path(kind, "csv")}', 'format' = 'csv')""")


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
