"""Many cases in one run, along the time axis: case k lies k periods later, the output is split by time again.

Valid where what a subject matches depends on time: windows, sessions, interval joins. Not where state merely expires.
Never assumed: a case from the middle and the last one also run alone and must agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamproof.properties.runs import SubjectOutput, SubjectRun, instants, moved
from streamproof.properties.spark_run import (
    InputFeed,
    Setting,
    SparkOutcome,
    Subject,
    batched,
    frames_of,
    gap_of,
    later,
    output_time,
    quick,
    scratch,
    source_of,
    streamed,
)
from streamproof.properties.streams import WEEK, Ints, WindowedStream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Case = tuple[WindowedStream, ...]


class CannotMultiplex(Exception):  # a reason, not a failure
    """Why these cases cannot share a run."""


def feed_of(stream: WindowedStream, batches: int | str) -> InputFeed:
    """A stream as one input of a run."""
    return InputFeed(stream.batches(batches), stream.time, stream.end, stream.full_schema)


@dataclass(frozen=True, eq=False)
class SubjectRunner:
    """A subject and how to run it."""

    spark: SparkSession
    subject: Subject
    setting: Setting
    batches: int | str

    def _ran(self, feeds: Sequence[InputFeed], mode: str) -> SparkOutcome:
        __tracebackhide__ = True
        run = streamed if mode == "stream" else batched
        return run(self.spark, feeds, self.subject, self.setting)

    def alone(self, case: Case, mode: str) -> SubjectRun:
        """One case in a run of its own."""
        __tracebackhide__ = True
        feeds = _even([feed_of(stream, self.batches) for stream in case])
        ran = self._ran(feeds, mode)
        return self._run(case, ran, feeds, "alone" if mode == "stream" else "batch")

    def _run(self, case: Case, ran: SparkOutcome, feeds: Sequence[InputFeed], how: str) -> SubjectRun:
        sizes = tuple(tuple(batch.num_rows for batch in feed.batches) for feed in feeds) if how != "batch" else ()
        return SubjectRun(case, ran.outputs, how, ran.triggers, sizes, ran.notes, name_of_subject(self.subject))

    def together(self, cases: Sequence[Case], mode: str) -> list[SubjectRun]:
        """Many cases in one run, split again. Whether that is valid is for `checked` to find out."""
        gap, on = _probe(self, cases[0])
        first = min(stream.start for case in cases for stream in case)
        length = max(stream.end for case in cases for stream in case) - first + _lateness(cases)
        period = _period(length + gap, cases[0])
        shifted = [_even([feed_of(stream, self.batches) for stream in case]) for case in cases]
        merge = self.batches == 1
        feeds = [_joined([case[n] for case in shifted], period, merge=merge) for n in range(len(cases[0]))]
        ran = self._ran(feeds, mode)
        split = [_split(output, on[n], first - gap // 2, period, len(cases)) for n, output in enumerate(ran.outputs)]
        return [self._part(case, number, split, ran, shifted) for number, case in enumerate(cases)]

    def _part(
        self,
        case: Case,
        number: int,
        split: list[list[SubjectOutput]],
        ran: SparkOutcome,
        shifted: list[list[InputFeed]],
    ) -> SubjectRun:
        """What belongs to one case."""
        merged = self.batches == 1
        before = 0 if merged else sum(len(feeds[0].batches) for feeds in shifted[:number])
        outputs = tuple(SubjectOutput(parts[number].table, parts[number].batch - before) for parts in split)
        triggers = () if merged else ran.triggers[before : before + len(shifted[number][0].batches)]
        how = f"in one query with {len(shifted) - 1} other cases" if ran.triggers else "batch"
        return self._run(case, replace(ran, outputs=outputs, triggers=triggers), shifted[number], how)

    def checked(self, cases: Sequence[Case]) -> tuple[list[SubjectRun], list[int]]:
        """Many cases in one streaming query, after a middle one and the last were found to give the same alone."""
        probes = sorted({len(cases) // 2, len(cases) - 1})
        with ThreadPoolExecutor(2) as pool:  # short queries leave a core idle
            shared = pool.submit(self.together, cases, "stream")
            alone = [pool.submit(self.alone, cases[number], "stream") for number in probes]
            runs = shared.result()
        for number, single in zip(probes, alone, strict=True):
            if not same_outputs(runs[number], single.result()):
                raise CannotMultiplex(f"case {number} gives another output alone than among {len(cases)} cases")
        note = f"{len(cases)} cases in one query; cases {', '.join(map(str, probes))} also ran alone and agree"
        return [replace(run, notes=(*run.notes, note)) for run in runs], probes


def _even(feeds: list[InputFeed]) -> list[InputFeed]:
    """Inputs with equally many micro-batches: what is missing is empty."""
    many = max(len(feed.batches) for feed in feeds)
    return [replace(f, batches=f.batches + [f.schema.empty_table()] * (many - len(f.batches))) for f in feeds]


def name_of_subject(subject: Subject) -> str:
    """What reports call the subject."""
    inner = getattr(subject, "func", subject)
    return str(getattr(inner, "__name__", type(inner).__name__))


def _period(least: int, case: Case) -> int:
    """How far apart cases lie: whole weeks, and whole slides of the generator's windows."""
    step = lcm(WEEK, *(stream.layout.every for stream in case))
    step = step if step <= 100 * WEEK else WEEK
    return -(-least // step) * step


def _lateness(cases: Sequence[Case]) -> int:
    """How long after the horizon rows may still arrive."""
    spread = [stream.spread[0] for case in cases for stream in case if stream.spread]
    return max([late for case in cases for s in case for _, late in (*s.delays, *s.repeats)] + spread + [0])


def _probe(bench: SubjectRunner, case: Case) -> tuple[int, list[str]]:
    """How far apart cases must lie, and the time column of every output."""
    spark = bench.spark
    with scratch() as folder, quick(spark):
        feeds = [InputFeed([], stream.time, stream.end, stream.full_schema) for stream in case]
        sources = [source_of(spark, feed, folder / f"{n}", bench.setting) for n, feed in enumerate(feeds)]
        frames = frames_of(bench.subject, sources)
        names = [output_time(frame, feeds) for frame in frames]
        if None in names:
            raise CannotMultiplex("the output has no time column to split it by")
        return gap_of(frames, bench.setting.reach), [name for name in names if name is not None]


def _joined(feeds: list[InputFeed], period: int, *, merge: bool) -> InputFeed:
    """The same input of all cases, one after another in time."""
    moved_on = [[later(batch, f.time, k * period) for batch in f.batches] for k, f in enumerate(feeds)]
    tables = [batch for batches in moved_on for batch in batches]
    joined = [pa.concat_tables(tables)] if merge else tables
    return InputFeed(joined, feeds[0].time, feeds[-1].end + (len(feeds) - 1) * period, feeds[0].schema)


def _split(output: SubjectOutput, on: str, first: int, period: int, many: int) -> list[SubjectOutput]:
    """The output of each case, moved back to the case's own time."""
    table = output.table
    case = (instants(table, on) - first) // period if table.num_rows else np.zeros(0, dtype=np.int64)
    inside = np.flatnonzero((case >= 0) & (case < many))
    order = inside[np.argsort(case[inside], kind="stable")]
    numbers: Ints = case[order]
    back = moved(table.take(pa.array(order)).combine_chunks(), -numbers * period)
    edges = np.searchsorted(numbers, np.arange(many + 1)).tolist()
    batch = output.batch[order]
    return [SubjectOutput(back.slice(a, b - a), batch[a:b]) for a, b in pairwise(edges)]


def same_outputs(left: SubjectRun, right: SubjectRun) -> bool:
    """Whether two runs emitted the same rows, in any order; the last digits of floating-point sums do not count."""
    if len(left.outputs) != len(right.outputs):
        return False
    return all(_bag(a.table) == _bag(b.table) for a, b in zip(left.outputs, right.outputs, strict=True))


def _bag(table: pa.Table) -> Counter[str]:
    return Counter(repr([_rounded(value) for value in row.values()]) for row in table.to_pylist())


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, dict):
        return {name: _rounded(inner) for name, inner in value.items()}
    return [_rounded(inner) for inner in value] if isinstance(value, list) else value
