"""Does the local engine stay as fast? Ratios inside one run: disorder, small batches, long streams, empty modules.

python benchmarks/bench_steadiness.py [--study disorder|batches|length|modules] [--events 1000000] [--query Q2]

disorder   10 % of the events up to 4 s late, against the same in order, per row in and out
batches    batches of 1,000 and 10,000 against 100,000, per row in and out, each answered at once, and again where small
           batches may wait 20 ms for others; also with 100,000 windows that stay open
pushes     the same where the batches are pushed into a running query, which checks every event at its door
length     ten times as many events over ten times the time: cost per event, and peak memory of the process
modules    an incremental aggregate in Python that does nothing: microseconds of the engine per window call
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import bench_modules
from engine import data
from engine.arena import Contestant, Measured, best
from engine.field import FIELD
from engine.protocol import Task
from engine.queries import Query, chosen
from engine.report import save
from rich.console import Console
from rich.table import Table

PATIENCE = 600.0
DELAY = 5_000
LIVE = 160_000  # a CTI that trails by 160 s leaves 160 windows open for each of 1,000 keys; 63 % of them have events
SIZES = (100_000, 10_000, 1_000)
LATENCY = 0.02  # seconds
Line = dict[str, object]


@dataclass(frozen=True)
class Bench:
    """Where the files are, how many events, and which queries."""

    folder: Path
    events: int
    queries: list[Query]

    def rows(self, name: str, shape: data.Shape) -> str:
        """A folder with the rows of this shape, written once."""
        made = self.folder / name
        if not made.exists():
            kinds = {kind for query in self.queries for kind in query.kinds}
            data.write(made, shape, kinds=kinds, forms=(), batch=0)
        return str(made)

    def run(self, task: Task, *, times: int = 3) -> Measured:
        """A task in a new process, after a small run that compiles."""
        small = self.rows("small", data.Shape(20_000))
        log = self.folder / "local.log"
        with Contestant("local", FIELD["local"].python, log) as contestant:
            contestant.ready(PATIENCE)
            contestant.run(Task(task.query, small, 1_000, task.delay), PATIENCE)
            return best(lambda: contestant.run(task, PATIENCE), times=times, enough=30.0)

    def in_turn(self, tasks: list[Task], *, times: int = 3, enough: float = 12.0) -> list[Measured]:
        """Tasks in one new process, one after the other, again and again: the cheapest run of each.

        What else goes on on the machine meets all of them alike. No further round begins after ``enough`` CPU seconds.
        """
        small = self.rows("small", data.Shape(20_000))
        with Contestant("local", FIELD["local"].python, self.folder / "local.log") as contestant:
            contestant.ready(PATIENCE)
            contestant.run(replace(tasks[0], folder=small, batch=1_000), PATIENCE)
            rounds: list[list[Measured]] = []
            while len(rounds) < times and sum(run.cpu for found in rounds for run in found) < enough:
                rounds.append([contestant.run(task, PATIENCE) for task in tasks])
        return [min(runs, key=lambda run: run.cpu) for runs in zip(*rounds, strict=True)]

    def inputs(self, query: Query) -> int:
        """How many rows a query reads."""
        return self.events * len(query.kinds)


def per_row(run: Measured, events: int) -> float:
    """Microseconds of CPU per row in and out, corrections included."""
    return run.cpu * 1e6 / (events + (run.answer.sent or 0))


def disorder(bench: Bench) -> Iterable[Line]:
    for query in bench.queries:
        costs = []
        for late in (False, True):
            rows = bench.rows(f"late-{late}", data.Shape(bench.events, disorder=late))
            costs.append(per_row(bench.run(Task(query.id, rows)), bench.events))
        yield {"query": query.title, "us/row in order": costs[0], "us/row out of order": costs[1],
               "ratio": costs[1] / costs[0], "wanted": "≤ 1.5", "met": costs[1] <= 1.5 * costs[0]}  # fmt: skip


def batches(bench: Bench, *, pushed: bool = False) -> Iterable[Line]:
    rows = bench.rows("late-False", data.Shape(bench.events))
    for query in bench.queries:
        for delay in (DELAY, LIVE):
            tasks = [Task(query.id, rows, size, delay, pushed=pushed) for size in SIZES]
            waiting = Task(query.id, rows, SIZES[-1], delay, LATENCY, pushed=pushed)
            large, middle, small, late = (per_row(run, bench.inputs(query)) for run in bench.in_turn([*tasks, waiting]))
            yield {"query": query.title, "CTI trails by s": delay / 1000, "us/row at 100,000": large,
                   "us/row at 10,000": middle, "us/row at 1,000": small, "at 1,000 within 20 ms": late,
                   "ratio at once": small / large, "met at once": small <= 3 * large,
                   "ratio within 20 ms": late / large, "wanted": "≤ 3", "met": late <= 3 * large}  # fmt: skip


def pushes(bench: Bench) -> Iterable[Line]:
    return batches(bench, pushed=True)


def length(bench: Bench) -> Iterable[Line]:
    for query in bench.queries:
        found = []
        for times in (1, 10):
            rows = bench.rows(f"times-{times}", data.Shape(times * bench.events))
            run = bench.run(Task(query.id, rows), times=1)
            found.append((run.cpu * 1e6 / (times * bench.events), run.answer.peak_mb or 0.0))
        (cost, peak), (cost_long, peak_long) = found
        yield {"query": query.title, "us/event": cost, "us/event, 10 times as long": cost_long, "MB": peak,
               "MB, 10 times as long": peak_long, "ratio": cost_long / cost, "ratio of MB": peak_long / peak,
               "wanted": "≤ 1.2", "met": cost_long <= 1.2 * cost and peak_long <= 1.2 * peak}  # fmt: skip


def modules(bench: Bench) -> Iterable[Line]:
    for name in ("nothing", "nothing_timed"):
        found = bench_modules.measure(name, bench.events, 100_000, disorder=False)
        cost = float(str(found["us per window"]))
        yield {"module": name, "us per window call": cost, "wanted": "≤ 2.5", "met": cost <= 2.5}


STUDIES: dict[str, Callable[[Bench], Iterable[Line]]] = {
    "disorder": disorder, "batches": batches, "pushes": pushes, "length": length, "modules": modules,
}  # fmt: skip


def show(name: str, lines: list[Line], console: Console) -> None:
    table = Table(title=name)
    for head in lines[0]:
        table.add_column(head, justify="left" if head in {"query", "module"} else "right")
    for line in lines:
        table.add_row(*(_cell(value) for value in line.values()))
    console.print(table)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "met" if value else "NOT MET"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", action="append", choices=list(STUDIES))
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--query", action="append", default=[])
    options = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 160)
    for name in options.study or STUDIES:
        with tempfile.TemporaryDirectory() as folder:
            lines = list(STUDIES[name](Bench(Path(folder), options.events, chosen(options.query))))
        show(name, lines, console)
        if not options.query:
            save(f"steadiness-{name}", {"events": options.events, "lines": lines})


if __name__ == "__main__":
    main()
