"""Spark's Python workers: which Python they are, and what they have loaded when they serve one task after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamproof.engines.spark.workers import worker_python

WORK = """
import gc
from streamproof.engines.spark.workers import settle
settle()
first = gc.get_freeze_count()
settle()
assert gc.get_freeze_count() == first, "nothing was loaded since"
import fractions
settle()
print(0 < first < gc.get_freeze_count())
"""


def test_what_is_loaded_is_not_looked_through_for_garbage() -> None:
    """In a process of its own: it is for good."""
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "True"


def test_a_host_is_asked_for_its_state_without_arrow_and_kernels() -> None:
    asked = "import sys, streamproof.engines.spark.stream.processor; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60)
    assert not {"pyarrow", "numba", "pandas", "streamproof.plan.nodes"} & set(done.stdout.split())


def test_archives_of_spark_are_left_out_and_nothing_else() -> None:
    places = [
        "/a b/python/lib/pyspark.zip",
        "/home/mine.zip",
        "/x/python/lib/py4j-0.10.9.9-src.zip",
        "/it's here",
        "/*",
    ]
    asked = "import os, sys; print(os.environ['PYTHONPATH']); print(sys.executable); print(sys.argv[1:])"
    done = subprocess.run(
        [worker_python("local[2]"), "-c", asked, "an argument", "'"],
        env={**os.environ, "PYTHONPATH": ":".join(places)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["/home/mine.zip:/it's here:/*", sys.executable, """['an argument', "'"]"""]


def test_other_machines_and_another_spark_get_the_plain_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert worker_python("spark://somewhere:7077") == sys.executable
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert worker_python("local[2]") == sys.executable
