"""What Spark starts as Python: this program, without the archives of Spark's modules in front."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamproof.engines.spark.python import worker_python


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
