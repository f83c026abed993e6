"""Live and backfill over a month of earthquakes: five queries, each as a stream on Spark and as a batch job on Spark.

python examples/backfill.py

The stream gets the reports in the order in which they were last revised, which is far from the order in which the earth
shook, in eight files and so in eight micro-batches. The batch job gets the whole month at once.
"""

from __future__ import annotations

import csv
import os
import tempfile
from pathlib import Path

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.session import TINY, session
from streamproof.engines.spark.sinks import FileSink
from streamproof.engines.spark.stream.files import FileRun, run_files

HOME = Path(__file__).parent
MAPPING = sp.ColumnMapping(start="time", duration="1h", unit="ms")
quakes = sp.source("quakes")
boxed = quakes.select(
    "id", "mag", north="cast(floor(latitude / 0.9) as int64)", east="cast(floor(longitude / 0.9) as int64)"
)
QUERIES = {
    "per type and day": quakes.to_point().group_by("type").tumbling("1d").aggregate(n=sp.count(), most=sp.max("mag")),
    "mean of a sliding day": quakes.to_point().hopping("1d", "6h").aggregate(mean=sp.avg("mag")),
    "strongest three a day": quakes.to_point().tumbling("1d").top(3, by=sp.desc("mag")),
    "pairs nearby": boxed.multicast(
        lambda quakes: quakes.join(
            quakes,
            on="l.north = r.north and l.east = r.east and l.id < r.id",
            select={"first": "l.id", "second": "r.id"},
        )
    ),
    "shaking at once, per network": quakes.group_by("net").snapshot().aggregate(n=sp.count()),
}


def in_order_of_arrival(folder: Path, *, files: int = 8) -> Path:
    """The reports in the order of their last revision, in several files."""
    with (HOME / "earthquakes.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    rows.sort(key=lambda row: row[header.index("updated")])
    folder.mkdir()
    for number in range(files):
        part = folder / f"{number}.csv"
        with part.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows[number * len(rows) // files : (number + 1) * len(rows) // files]])
        os.utime(part, (number, number))
    return folder


def main() -> None:
    spark = session(**TINY)  # a month is little: starting work would cost more than doing it
    month = sp.read(HOME / "earthquakes.csv", mapping=MAPPING).stream()
    with tempfile.TemporaryDirectory() as place:
        arriving = in_order_of_arrival(Path(place) / "arriving")
        for number, (title, query) in enumerate(QUERIES.items()):
            folder = Path(place) / str(number)
            live = FileRun(query.plan, {"quakes": arriving}, folder / "checkpoint", Settings(), time=MAPPING)
            metrics = run_files(spark, live, FileSink(folder / "out", content="cht")).as_dict()
            backfill = query.on("spark", session=spark).run({"quakes": month}).history
            same = "equal" if read_output(folder / "out") == backfill else "DIFFERENT"
            print(f"{title:30}{len(backfill):>7,} rows  {metrics['batches']} micro-batches  {same}", flush=True)


if __name__ == "__main__":
    main()
