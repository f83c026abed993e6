"""A streaming run over files, as the command line does it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.spark.metrics import StreamMetrics
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.sinks import FileSink, OutputBatch
from streamproof.engines.spark.stream.files import FileRun, run_files
from streamproof.errors import InputError
from tests.spark.stream.tables import events_table, write_files
from tests.spark.stream.test_tables import SALES, local, sales

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_files_of_any_format_are_read_to_the_end(spark: SparkSession, folder: Path) -> None:
    whole = sp.PhysicalStream.concat(sales())
    sp.write(whole.slice(0, len(whole) - 1), folder / "sales.jsonl")
    (folder / "rates.csv").write_text("at,k,rate\n0,k1,1.5\n50,k2,2.5\n90,k1,3.5\n")
    stream = SALES.join(sp.source("R"), on="l.k = r.name", select={"k": "l.k", "n": "l.n", "rate": "r.rate"})
    mapping = sp.ColumnMapping(start="at", duration=40, rename={"k": "name"})
    told: list[tuple[int, int]] = []

    def watcher(batch: OutputBatch, metrics: StreamMetrics) -> None:
        told.append((batch.number, metrics.as_dict()["events"]))

    inputs = {"S": folder / "sales.jsonl", "R": folder / "rates.csv"}
    run = FileRun(stream.plan, inputs, folder / "cp", Settings(), time={"R": mapping}, options={"buckets": 2})
    metrics = run_files(spark, run, FileSink(folder / "out", content="cht"), watcher=watcher)
    rates = sp.read(folder / "rates.csv", mapping=mapping)
    assert read_output(folder / "out") == local(stream, {"S": whole, "R": rates})
    assert metrics.as_dict()["cti"] == "inf"
    assert told[-1] == (len(told) - 1, 153)
    again = run_files(spark, run, FileSink(folder / "out", content="cht"))
    assert again.as_dict()["batches"] == 0, "all is done already"


def test_a_folder_of_csv_files_is_taken_in_order_and_may_grow(spark: SparkSession, folder: Path) -> None:
    place = folder / "in"
    place.mkdir()
    for number, rows in enumerate(["1,a,2\n3,b,4\n", "5,a,6.5\nnever,a,1\n", "7,b,8\n"]):
        (place / f"{'cab'[number]}.csv").write_text(f"at,k,v\n{rows}")
        os.utime(place / f"{'cab'[number]}.csv", (1e9 + number, 1e9 + number))
    whole = "at,k,v\n1,a,2\n3,b,4\n5,a,6.5\n7,b,8\n9,a,1\n"
    (folder / "whole.csv").write_text(whole)
    stream = sp.source("S", {"k": "string", "v": "float64"}).group_by("k").tumbling(4).aggregate(s=sp.sum("v"))
    mapping = sp.ColumnMapping(start="at")
    for final in (False, True):
        run = FileRun(stream.plan, {"S": place}, folder / "cp", Settings(), time=mapping, final=final)
        metrics = run_files(spark, run, FileSink(folder / "out", content="cht"))
        assert metrics.as_dict()["events"] == (4 if not final else 1)
        (place / "0-late.csv").write_text("at,k,v\n9,a,1\n")
    assert read_output(folder / "out") == local(stream, {"S": sp.read(folder / "whole.csv", mapping=mapping)})
    assert {file.name: count for file, count in run.rejected().items()} == {"_a.csv.rejects.jsonl": 1}


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([("a", 5, 20, None), (10,), ("a", 5, 20, 8)], "cti_violation"),
        ([("a", 5, 20, None), (10,), (7,)], "cti_backwards"),
        ([("a", 5, 20, None), ("a", 5, 15, 9)], "unmatched_retraction"),
        ([("a", 5, 20, None), ("a", 6, 20, None)], "duplicate_id"),
    ],
)
def test_a_file_that_breaks_a_rule_is_refused(
    rows: list[tuple[Any, ...]], name: str, spark: SparkSession, folder: Path
) -> None:
    events = [
        sp.Cti(row[0])
        if len(row) == 1
        else sp.Insert(*row[:3], {"v": 1})
        if row[3] is None
        else sp.Retract(*row[:4], {"v": 1})
        for row in rows
    ]
    sp.write(sp.PhysicalStream.from_events(events), folder / "S.parquet")
    plan = sp.source("S").tumbling(10).aggregate(n=sp.count()).plan
    run = FileRun(plan, {"S": folder / "S.parquet"}, folder / "cp", Settings())
    with pytest.raises(InputError) as raised:
        run_files(spark, run, FileSink(folder / "out", content="cht"))
    assert raised.value.name == name


def test_inputs_that_are_not_there(spark: SparkSession, folder: Path) -> None:
    (folder / "empty").mkdir()
    for inputs, text in (
        ({}, 'no input is given for the source "S"'),
        ({"S": folder / "no.parquet"}, "does not exist"),
        ({"S": folder / "empty"}, "there are no files of events in"),
    ):
        run = FileRun(SALES.plan, inputs, folder / "cp", Settings())
        with pytest.raises(InputError, match=text):
            run.query(spark)


def _group(leader: int) -> str:
    """The processes of a group that are still there."""
    return subprocess.run(["pgrep", "-g", str(leader)], capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_behind(folder: Path) -> None:
    write_files(folder / "in", [events_table(chunk) for chunk in sales(files=40)])
    command = [sys.executable, "-m", "tests.spark.stream.kill_target", str(folder), "keyed"]
    driver = subprocess.Popen(command, cwd=Path(__file__).parents[3], start_new_session=True, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not list(folder.glob("out/sealed-*")) and time.monotonic() < deadline:
        time.sleep(0.2)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(120) != 0
    deadline = time.monotonic() + 60
    while (left := _group(driver.pid)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == "", "no Java and no worker is left"
    done = subprocess.run(command, cwd=Path(__file__).parents[3], check=False, timeout=600).returncode
    assert done == 0
    assert read_output(folder / "out") == local(SALES, {"S": sp.PhysicalStream.concat(sales(files=40))})


def test_a_file_without_events_is_a_stream_without_events(spark: SparkSession, folder: Path) -> None:
    (folder / "none.csv").write_text("at,k,v\n")
    stream = sp.source("S", {"k": "string", "v": "int64"}).tumbling(4).aggregate(n=sp.count())
    mapping = {"S": sp.ColumnMapping(start="at")}
    run = FileRun(stream.plan, {"S": folder / "none.csv"}, folder / "cp", Settings(), time=mapping)
    run_files(spark, run, FileSink(folder / "out", content="cht"))
    assert len(read_output(folder / "out")) == 0
