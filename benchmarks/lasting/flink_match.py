"""The time-bounded query as Flink's MATCH_RECOGNIZE; runs in Flink's own environment.

python flink_match.py TUPLES OVERLAP DURATION: one JSON line with CPU seconds and how many results came.
"""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import sys
import tempfile
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {"parallelism.default": "1", "pipeline.object-reuse": "true", "taskmanager.memory.managed.size": "256m"}
QUERY = """
    SELECT b, e, a FROM S MATCH_RECOGNIZE (
        ORDER BY ts
        MEASURES B.t AS b, E.t AS e, AVG(X.v) AS a
        ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
        PATTERN (B X* E)
        DEFINE B AS B.kind = 1, X AS X.t < B.t + {duration}, E AS E.t >= B.t + {duration}
    )
"""


def main() -> None:
    tuples, overlap, duration = map(int, sys.argv[1:4])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.csv"
        _write(path, tuples, overlap, duration)
        tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for name, value in SETTINGS.items():
            tables.get_config().set(name, value)
        tables.execute_sql(f"""CREATE TEMPORARY TABLE S (t BIGINT, kind INT, v DOUBLE,
            ts AS TO_TIMESTAMP_LTZ(t, 3), WATERMARK FOR ts AS ts)
            WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')""")
        before = _seconds()
        with tables.execute_sql(QUERY.format(duration=duration)).collect() as rows:
            results = sum(1 for _ in rows)
    print(json.dumps({"results": results, "seconds": _seconds() - before}))


def _write(path: Path, tuples: int, overlap: int, duration: int) -> None:
    chance = random.Random(7)
    begins = {chance.randrange(tuples) for _ in range(max(1, tuples * overlap // duration))}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        for t in range(tuples):
            writer.writerow([t, 1 if t in begins else 0, round(chance.gauss(20, 5), 1)])


def _seconds() -> float:
    """CPU time of this process and of the Java process below it, as far as it is known."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command = (stat.parent / "comm").read_text().strip()
        except OSError:
            continue
        if command == "java" and int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / 100
    return total


if __name__ == "__main__":
    main()
