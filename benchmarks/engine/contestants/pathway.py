"""Pathway: its incremental engine over CSV, in static mode.

Static mode gives it all rows at one time, so it never has to correct itself: its best case. Windows have no behaviour
(cut-off or delay), because at one time nothing is late.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pathway as pw
import pyarrow.csv
import pyarrow.parquet as pq
from pathway.internals.parse_graph import G

from engine.protocol import Answer, Run, Task, serve


class Row(pw.Schema):
    le: int
    re: int
    k: int
    v: float


class Weighted(pw.BaseCustomAccumulator):
    """A time-weighted average over a second that keeps a sum."""

    def __init__(self, total: float) -> None:
        self.total = total

    @classmethod
    def from_row(cls, row: list[float]) -> Weighted:
        return cls(row[0])

    def update(self, other: Weighted) -> None:
        self.total += other.total

    def retract(self, other: Weighted) -> None:
        self.total -= other.total

    def compute_result(self) -> float:
        return self.total / 1000


weighted = pw.reducers.udf_reducer(Weighted)
SECOND = pw.temporal.tumbling(duration=1000)
START = pw.this._pw_window_start


def rows(task: Task, kind: str = "plain") -> pw.Table:
    return pw.io.csv.read(task.path(kind, "headed.csv"), schema=Row, mode="static")


def q1(task: Task) -> pw.Table:
    table = rows(task)
    return table.filter(pw.this.v > 60).select(pw.this.le, pw.this.re, pw.this.k, x=pw.this.v * 2 + 1)


def q2(task: Task) -> pw.Table:
    table = rows(task)
    grouped = table.windowby(table.le, window=SECOND, instance=table.k)
    return grouped.reduce(t=START, k=pw.this._pw_instance, n=pw.reducers.count(), s=pw.reducers.sum(pw.this.v))


def q3(task: Task) -> pw.Table:
    table = rows(task)
    grouped = table.windowby(table.le, window=pw.temporal.sliding(hop=1000, duration=10_000), instance=table.k)
    return grouped.reduce(t=START, k=pw.this._pw_instance, a=pw.reducers.avg(pw.this.v))


def q4(task: Task) -> pw.Table:
    left, right = rows(task), rows(task, "other")
    near = pw.temporal.interval(-1000, 1000)
    pairs = left.interval_join(right, left.le, right.le, near, left.k == right.k)
    pairs = pairs.select(left.k, left.le, left.re, x=left.v, y=right.v, le_r=right.le, re_r=right.re)
    held = pairs.filter((pw.this.le < pw.this.re_r) & (pw.this.le_r < pw.this.re))
    later = pw.if_else(pw.this.le > pw.this.le_r, pw.this.le, pw.this.le_r)
    sooner = pw.if_else(pw.this.re < pw.this.re_r, pw.this.re, pw.this.re_r)
    return held.select(pw.this.k, pw.this.x, pw.this.y, le=later, re=sooner)


def q6(task: Task) -> pw.Table:
    table = rows(task)
    grouped = table.windowby(table.le, window=SECOND)
    ranked = grouped.reduce(t=START, all=pw.reducers.sorted_tuple(pw.make_tuple(-pw.this.v, pw.this.k)))
    best = ranked.select(
        pw.this.t, best=pw.apply_with_type(lambda each: each[:3], list[tuple[float, int]], pw.this.all)
    )
    flat = best.flatten(pw.this.best)
    return flat.select(pw.this.t, v=-pw.this.best[0], k=pw.this.best[1])


def q7(task: Task) -> pw.Table:
    table = rows(task)
    grouped = table.windowby(table.le, window=SECOND, instance=table.k)
    return grouped.reduce(t=START, k=pw.this._pw_instance, a=weighted(pw.this.v))


def run(make: Callable[[Task], pw.Table]) -> Run:
    """A run of the table that ``make`` builds; what it writes to nowhere is not counted."""

    def once(task: Task) -> Answer:
        G.clear()
        table = make(task)
        if task.keep:
            pw.io.csv.write(table, f"{task.keep}.csv")
        else:
            pw.io.null.write(table)
        pw.run(monitoring_level=pw.MonitoringLevel.NONE)
        return Answer(_kept(task.keep) if task.keep else None)

    return once


def _kept(keep: str) -> int:
    """What was written, as Parquet; the column ``diff`` is the weight."""
    table = pyarrow.csv.read_csv(f"{keep}.csv")
    pq.write_table(table.rename_columns(["w" if name == "diff" else name for name in table.column_names]), keep)
    Path(f"{keep}.csv").unlink()
    return len(table)


QUERIES = {"Q1": q1, "Q2": q2, "Q3": q3, "Q4": q4, "Q6": q6, "Q7": q7}
RUNS: dict[str, Run] = {name: run(make) for name, make in QUERIES.items()}

if __name__ == "__main__":
    serve(RUNS)
