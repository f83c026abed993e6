"""A round: the chosen queries over one set of rows, by all contestants; first a small run that is compared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from engine import data
from engine.agreement import Bag, bag
from engine.arena import Contestant, Failed, Stopped, best
from engine.field import Entry, environment
from engine.protocol import Task
from engine.queries import Query

SMALL = data.Shape(20_000)
SMALL_BATCH = 5_000
PATIENCE = 120.0  # CPU seconds after which a contestant is stopped
TIMES, ENOUGH = 3, 10.0  # a run is repeated twice, unless it takes long


@dataclass(frozen=True)
class Score:
    """What one contestant did on one query."""

    ready: float = 0.0  # CPU seconds until it was ready: imports, and the start of a JVM
    first: float = 0.0  # CPU seconds of the small first run: compilers and planners warm up
    cpu: float | None = None  # CPU seconds of the cheapest run
    rows: int | None = None
    sent: int | None = None  # rows with corrections
    small: Bag | None = None  # the result of the small run, for comparison
    note: str | None = None  # why there is no figure


@dataclass
class Round:
    """Contestants that are kept running from query to query; one that fails or is stopped starts anew."""

    folder: Path
    shape: data.Shape
    batch: int
    entries: list[Entry]
    enough: float = ENOUGH
    patience: float = PATIENCE
    _running: dict[str, tuple[ExitStack, Contestant, list[str], float]] = field(default_factory=dict)

    def play(self, queries: list[Query]) -> Iterator[tuple[Query, dict[str, Score]]]:
        """Every query with the scores of all."""
        kinds = {kind for query in queries for kind in query.kinds}
        forms = {form for entry in self.entries for form in entry.forms}
        small = data.Shape(SMALL.events, disorder=self.shape.disorder, keys=self.shape.keys)
        data.write(self.folder / "small", small, kinds=kinds, forms=forms, batch=SMALL_BATCH)
        data.write(self.folder / "full", self.shape, kinds=kinds, forms=forms, batch=self.batch)
        try:
            for query in queries:
                yield query, {entry.name: self._score(entry, query) for entry in self.entries}
        finally:
            for name in list(self._running):
                self._end(name)

    def _score(self, entry: Entry, query: Query) -> Score:
        if entry.missing:
            return Score(note=entry.missing)
        try:
            return self._measure(entry, query)
        except (Stopped, Failed) as problem:
            self._end(entry.name, problem)
            return Score(note=str(problem))

    def _measure(self, entry: Entry, query: Query) -> Score:
        contestant, able, ready = self._start(entry)
        if query.id not in able:
            return Score(note="cannot express it")
        keep = self.folder / f"{entry.name}-{query.id}.parquet"
        task = Task(query.id, str(self.folder / "small"), SMALL_BATCH, keep=str(keep))
        first = contestant.run(task, self.patience)
        small = bag(keep, query.columns)
        task = Task(query.id, str(self.folder / "full"), self.batch)
        try:
            run = best(lambda: contestant.run(task, self.patience), times=TIMES, enough=self.enough)
        except Stopped as stopped:
            self._end(entry.name, stopped)
            return Score(ready, first.cpu, small=small, note=str(stopped))
        return Score(ready, first.cpu, run.cpu, run.answer.rows, run.answer.sent, small)

    def _start(self, entry: Entry) -> tuple[Contestant, list[str], float]:
        if entry.name not in self._running:
            stack = ExitStack()
            log = self.folder / f"{entry.name}.log"
            contestant = stack.enter_context(Contestant(entry.name, entry.python, log, environment()))
            self._running[entry.name] = stack, contestant, [], 0.0
            able = contestant.ready(PATIENCE)
            self._running[entry.name] = stack, contestant, able, contestant.cpu()
        return self._running[entry.name][1:]

    def _end(self, name: str, problem: Exception | None = None) -> None:
        if name in self._running:
            stack = self._running.pop(name)[0]
            stack.__exit__(type(problem) if problem else None, problem, None)


def disagreements(scores: dict[str, Score]) -> list[str]:
    """Who differs from the first in what the small run gave, or in the number of rows of the full run."""
    known = {name: score for name, score in scores.items() if score.small}
    if not known:
        return []
    name, judge = next(iter(known.items()))
    found = []
    for other, score in known.items():
        if score.small != judge.small:
            found.append(f"{other} gave {score.small}, {name} {judge.small}")
        elif None not in (score.rows, judge.rows) and score.rows != judge.rows:
            found.append(f"{other} gave {score.rows} rows of the full run, {name} {judge.rows}")
    return found
