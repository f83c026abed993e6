"""Nothing relies on local mode: a master and two workers on this machine, and executors that die on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.cluster import cluster
from tests.spark.stream.tables import events_table, write_files
from tests.spark.stream.test_tables import sales


@pytest.mark.slow
def test_streams_and_batch_on_a_cluster_that_loses_executors(tmp_path: Path) -> None:
    write_files(tmp_path / "in", [events_table(chunk) for chunk in sales(files=8)])
    with cluster(tmp_path) as master:
        command = [sys.executable, "-m", "tests.spark.cluster_target", master, str(tmp_path)]
        done = subprocess.run(
            command, cwd=Path(__file__).parents[2], check=False, timeout=900, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"killed": 2, "rows": found["rows"], "stream": True, "chained": True, "batch": True}
    assert all(count > 0 for count in found["rows"])
