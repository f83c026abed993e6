"""Properties on a cluster: a master and two workers on this machine, files in a folder that all of them see."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.cluster import HOST, cluster

EXAMPLES = Path(__file__).parents[2] / "examples" / "properties"


@pytest.mark.slow
def test_examples_run_on_a_cluster(tmp_path: Path) -> None:
    chosen = [f"{EXAMPLES / 'test_orders.py'}", f"{EXAMPLES / 'test_banned_users.py'}::test_with_state_it_holds"]
    with cluster(tmp_path) as master:
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--streamproof-cases=4"]
        command = [sys.executable, "-m", "pytest", *options, f"--streamproof-master={master}", "--junit-xml=junit.xml"]
        (tmp_path / "files").mkdir()
        environment = {**os.environ, "STREAMPROOF_FOLDER": str(tmp_path / "files"), "SPARK_LOCAL_IP": HOST}
        ran = subprocess.run(
            [*command, *chosen], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900, check=False
        )
    assert ran.returncode == 0, ran.stdout[-5000:]
    assert "2 passed" in ran.stdout
    assert (tmp_path / "junit.xml").read_text(encoding="utf-8").count('name="streamproof.judged" value="4"') == 2
    started = [
        line for line in (tmp_path / "master.log").read_text().splitlines() if "Registered app streamproof" in line
    ]
    assert len(started) == 1  # it ran there, not in this machine's own process
    assert not list((tmp_path / "files").iterdir())
