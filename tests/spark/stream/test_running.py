"""How a query is set up: the files of its checkpoint and what a crash can leave there, Arrow, and its workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import streamproof as sp
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.session import FILE_MANAGER, TINY
from streamproof.engines.spark.sinks import FileSink
from streamproof.engines.spark.stream.running import EVEN_ROWS, forget_checksums, state_store
from tests.spark.stream.tables import events_table, table_stream, write_files
from tests.spark.stream.test_tables import NOW, SALES, job, local, sales

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = next(iter(FILE_MANAGER))


@pytest.mark.slow
def test_a_checksum_of_the_file_before_does_not_stop_a_restart(spark: SparkSession, folder: Path) -> None:
    """A file and its checksum are renamed one after the other, and a kill may come in between."""
    chunks = sales()
    for number, chunk in enumerate(chunks):
        write_files(folder / "in", [events_table(chunk)], first=number)
        frame = table_stream(spark, folder / "in")
        query = job(spark, SALES).stream({"S": frame}, checkpoint=folder / "cp", buckets=2)
        query.start(FileSink(folder / "out", content="cht"), trigger=NOW).wait()
        sums = list((folder / "cp").rglob(".*.crc"))
        assert sums, "they are written; the usual way of Spark leaves none"
        for file in sums:
            file.write_bytes(b"crc\0\0\0\2\0" + b"\1\2\3\4" * 64)
    assert read_output(folder / "out") == local(SALES, {"S": sp.PhysicalStream.concat(chunks)})


def test_only_checksums_are_forgotten(tmp_path: Path) -> None:
    names = ["state/0/0/.1.changelog.crc", "state/0/0/1.changelog", "offsets/.0.crc", "offsets/0", "1.changelog.crc"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    forget_checksums(tmp_path)
    left = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert left == {"state/0/0/1.changelog", "offsets/0", "1.changelog.crc"}
    forget_checksums(tmp_path / "not yet there")


def test_whoever_chose_a_way_of_writing_keeps_it(spark: SparkSession, tmp_path: Path) -> None:
    with state_store(spark, checkpoint=str(tmp_path)):
        assert spark.conf.get(NAME) == FILE_MANAGER[NAME]
    assert spark.conf.get(NAME, None) is None
    spark.conf.set(NAME, "mine")
    try:
        with state_store(spark, checkpoint=str(tmp_path)):
            assert spark.conf.get(NAME) == "mine"
    finally:
        spark.conf.unset(NAME)
    with state_store(spark):
        assert spark.conf.get(NAME, None) is None


def test_rows_of_one_size_are_not_measured(spark: SparkSession) -> None:
    name = next(iter(EVEN_ROWS))
    before = spark.conf.get(name)
    with state_store(spark, even=True):
        assert spark.conf.get(name) == EVEN_ROWS[name]
    with state_store(spark):
        assert spark.conf.get(name) == before


def test_workers_of_tiny_plans_are_forked_from_a_process_with_the_kernels() -> None:
    assert TINY["spark.python.daemon.module"] == "streamproof.engines.spark.workers"
    asked = "from streamproof.engines.spark.workers import load; load(); import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=120)
    assert {"streamproof.kernels.join", "streamproof.engines.spark.stream.journal"} <= set(done.stdout.split())
