"""Files of one micro-batch are taken in their order, though Spark takes the largest first."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.sinks import FileSink
from streamproof.engines.spark.stream.files import FileRun, run_files
from tests.spark.stream.tables import events_table, write_files
from tests.spark.stream.test_tables import SALES, local, sales

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("policy", ["fail", "drop"])
def test_nothing_is_late_because_of_the_sizes_of_files(policy: str, spark: SparkSession, folder: Path) -> None:
    chunks = sales(count=60)
    sizes = [0, 3, 9, 30, len(sp.PhysicalStream.concat(chunks))]  # each file is larger than the one before it
    whole = sp.PhysicalStream.concat(chunks)
    pieces = [whole.slice(start, end - start) for start, end in pairwise(sizes)]
    write_files(folder / "in", [events_table(piece) for piece in pieces])
    run = FileRun(
        SALES.plan, {"S": folder / "in"}, folder / "cp", Settings(), files_per_batch=4, final=False,
        options={"on_error": policy, "buckets": 2},
    )  # fmt: skip
    metrics = run_files(spark, run, FileSink(folder / "out", content="cht"))
    assert metrics.as_dict()["dropped"] == 0
    assert metrics.as_dict()["batches"] == 1
    assert read_output(folder / "out") == local(SALES, {"S": whole})
