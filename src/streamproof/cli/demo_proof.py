"""The end of the tour: the same query on Spark, live and as backfill; then a planted bug, found and shrunk."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rich.markup import escape

from streamproof.cli.plans import load_plan
from streamproof.cli.screen import note, out
from streamproof.cli.verify import save_found, show_result
from streamproof.engines.job import Job, on
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.session import session
from streamproof.engines.spark.sinks import FileSink
from streamproof.events.compare import explain_difference
from streamproof.events.event import Cti
from streamproof.events.files import ColumnMapping, read
from streamproof.events.files.rejects import free_name
from streamproof.events.files.writer import table_of
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.kernels.join import JoinKernel
from streamproof.kernels.store_loops import KEY, LE, RE
from streamproof.report.verification import write_report
from streamproof.workbench import intent as I  # noqa: N812
from streamproof.workbench.arrivals import reordered
from streamproof.workbench.runner import VerifyOptions, run_suite
from streamproof.workbench.suite import Suite

FILES = 6


def prove(folder: Path) -> None:
    """Live equals backfill, under disorder and a restart; and a bug is found."""
    out.print("\n[bold cyan]3. Does it stay right live, late and restarted?[/]")
    out.print(
        "The swarms again, on Spark: once over the whole month (backfill), once live, with events out of order, six\n"
        "files one by one, stopped in the middle and started again from the checkpoint.\n"
    )
    backfill, live = _both_ways(folder)
    difference = explain_difference(backfill, live)
    verdict = "[bold green]equal[/]" if difference is None else f"[bold red]different[/]: {escape(difference)}"
    out.print(f"backfill {len(backfill):,} rows, live {len(live):,} rows: {verdict}\n")
    out.print("[bold cyan]4. Would we notice if it were wrong?[/]")
    out.print(
        "A bug is planted into the join of this process: an event that starts together with another now counts as\n"
        "following it. The workbench makes queries and streams, and holds every result against SQL.\n"
    )
    _found_out()


# --- live and backfill ------------------------------------------------------------------------------------------------


def _both_ways(folder: Path) -> tuple[History, History]:
    started = perf_counter()
    note("starting Spark: this takes some seconds")
    spark = session(**{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    note(f"Spark is up after {perf_counter() - started:.0f} s")
    plan = load_plan(str(folder / "swarms.json"))
    month = _month(folder)
    note("backfill: the whole month at once …")
    started = perf_counter()
    backfill = on(plan, "spark", session=spark).run({"quakes": month}).history
    note(f"backfill: done after {perf_counter() - started:.0f} s")
    note("live: six files, in two runs …")
    started = perf_counter()
    place = Path(tempfile.mkdtemp(prefix="streamproof-demo-"))
    try:
        live = _live(on(plan, "spark", session=spark), month, place, spark)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    note(f"live, in two runs: {perf_counter() - started:.0f} s")
    return backfill, live


def _month(folder: Path) -> PhysicalStream:
    """The quakes as events of an hour, in ticks, without the columns that nobody asks for."""
    mapping = ColumnMapping(start="time", duration="1h", unit="ms", payload=["latitude", "longitude", "mag"])
    stream = read(folder / "earthquakes.csv", mapping=mapping).stream()
    return PhysicalStream(Schema(stream.schema.columns), stream.rows)


def _live(job: Job, month: PhysicalStream, place: Path, spark: Any) -> History:
    """The month out of order, file by file, in two runs over one checkpoint."""

    late = disordered(month)
    size = -(-len(late) // FILES)
    chunks = [late.slice(start, size) for start in range(0, len(late), size)]
    incoming = place / "in"
    incoming.mkdir()
    for first, last in ((0, FILES // 2), (FILES // 2, FILES)):
        for number in range(first, last):
            file = incoming / f"{number}.parquet"
            pq.write_table(table_of(chunks[number]), file)
            os.utime(file, (1e9 + number, 1e9 + number))
        schema = spark.read.parquet(str(incoming)).schema
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(incoming))
        query = job.stream({"quakes": frame}, checkpoint=place / "checkpoint", buckets=2)
        query.start(FileSink(place / "out", content="cht"), trigger={"availableNow": True}).wait()
        note(f"live: files {first + 1} to {last} done")
    return read_output(place / "out")


def disordered(month: PhysicalStream) -> PhysicalStream:
    """The events as they might arrive, with CTIs that fit, and the end of time."""

    events = sorted((e for e in month.to_events() if not isinstance(e, Cti)), key=lambda event: event.le)
    moved = reordered([*events, Cti(FOREVER)], random.Random(7), most=400)  # noqa: S311  # test data, not secrets
    return PhysicalStream.from_events([*moved, Cti(FOREVER)], schema=month.schema)


# --- a bug ------------------------------------------------------------------------------------------------------------


@contextmanager
def planted_bug() -> Iterator[None]:
    """While it lasts, followed_by also takes events that start together."""

    right = JoinKernel._meet  # what a bug would be in

    def wrong(self: JoinKernel, port: int, rows: Any) -> Any:
        if not self._follows:
            return right(self, port, rows)
        key, le, re = (np.ascontiguousarray(rows[:, n]) for n in (KEY, LE, RE))
        if port == 0:
            return self.stores[1].overlapping(key, le, re, low=le)  # it should be le + 1
        return self.stores[0].overlapping(key, le, le + 1)  # it should end at le

    JoinKernel._meet = wrong  # type: ignore[method-assign]
    try:
        yield
    finally:
        JoinKernel._meet = right  # type: ignore[method-assign]


def _found_out() -> None:
    left, right = I.stream(), I.stream()
    plain = I.events(pattern="dense", speculative=False)
    joins = (
        I.operator(left, right, among=("join", "left_outer", "followed_by", "lasj", "clip")).over(plain).called("joins")
    )
    groups = left.group_apply(I.operator).over(plain).called("groups")
    suite = Suite("demo", (joins, groups), cases=240, about="joins and groups, with a bug planted into the joins")
    place = Path() if os.access(".", os.W_OK) else Path(tempfile.mkdtemp(prefix="streamproof-demo-"))
    report = free_name(place / "streamproof-report.html")
    note("looking for the bug, and then for the smallest case that shows it …")
    with planted_bug():
        result = run_suite(suite, VerifyOptions(most=1, shrink_seconds=20.0))
        save_found(result, place / "streamproof-repros")
    show_result(result)
    write_report([result], report)
    out.print(f"\nThe report, with the picture and the shrunk case: [bold]{report.resolve()}[/]")
    out.print("The bug is gone again with this process: the replay of the case holds.")
