"""Windows counted by Flink's Table API over CSV files, with a bounded watermark; run by Flink's own Python.

Reads lines of JSON: the files of one run and the delay in milliseconds; answers each with how many events were counted.
The first run starts the engine and is thrown away.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {
    "parallelism.default": "1",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.managed.size": "256m",
}


def counted(tables: TableEnvironment, path: str, columns: str, delay: int) -> int:
    """All events that windows of ten seconds counted."""
    out = Path(tempfile.mkdtemp())
    for name in ("S", "sink"):
        tables.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {name}")
    tables.execute_sql(f"""CREATE TEMPORARY TABLE S ({columns}, ts AS TO_TIMESTAMP_LTZ(event_time, 3),
        WATERMARK FOR ts AS ts - INTERVAL '{delay / 1000:.3f}' SECOND(3))
        WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')""")
    tables.execute_sql(f"""CREATE TEMPORARY TABLE sink (t TIMESTAMP(3), n BIGINT)
        WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'csv')""")
    tables.execute_sql("""INSERT INTO sink SELECT window_start, COUNT(*) FROM TABLE(
        TUMBLE(TABLE S, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end""").wait()
    lines = [line for file in out.rglob("*") if file.is_file() for line in file.read_text().splitlines()]
    shutil.rmtree(out)
    return sum(int(line.rpartition(",")[2]) for line in lines)


def main() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in SETTINGS.items():
        tables.get_config().set(name, value)
    for line in sys.stdin:
        task = json.loads(line)
        print("answer " + json.dumps(counted(tables, task["path"], task["columns"], task["delay"])), flush=True)


if __name__ == "__main__":
    main()
