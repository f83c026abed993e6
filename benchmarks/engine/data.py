"""The rows that every contestant reads, in the forms they read: Parquet, CSV, and a folder of Parquet parts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

KEYS = 1_000
LONGEST = 1_000  # no lifetime is longer, in ms
LATEST = 4_000  # how late an event that is out of order comes at most, in ms
REGRET = 900  # how many events later an event is taken back at most
BEGINNING = 1_767_225_600_000  # the first tick: 2026-01-01, in ms
# Spark's parts end with an event far in the future; its key and its value are negative, as no others are.
FLUSH_KEY, FLUSH_VALUE = -1, -1.0
FLUSH_AFTER = 86_400_000
DELAY = 5_000  # how far a CTI trails behind the greatest start, in ms
FOREVER = 2**62
SPREAD = 100  # values are below about 1.6 times this
KINDS = {"plain": 1, "other": 2, "retracted": 1}  # kind of file → seed


@dataclass(frozen=True)
class Shape:
    """What the rows are like: one event per millisecond, whatever their number."""

    events: int
    disorder: bool = False
    keys: int = KEYS


def rows(shape: Shape, *, seed: int) -> pa.Table:
    """Lifetimes of at most a second; with disorder, one event in ten comes up to 4 s late.

    No two values are equal, so that the greatest three are three; all are multiples of a power of two, so that sums
    are the same in whatever order they are added.
    """
    random = np.random.default_rng(seed)
    count = shape.events
    le = np.arange(count, dtype=np.int64)
    if shape.disorder:
        late = random.random(count) < 0.1
        le = np.where(late, np.maximum(le - random.integers(1, LATEST, count), 0), le)
    re = le + random.integers(1, LONGEST + 1, count)
    k = random.integers(0, shape.keys, count)
    v = random.permutation(count) / 2.0 ** np.floor(np.log2(max(count / SPREAD, 1)))
    return pa.table({"le": le + BEGINNING, "re": re + BEGINNING, "k": k, "v": v})


def retracted(table: pa.Table, *, seed: int) -> pa.Table:
    """The same rows with a weight, one in ten of them taken back soon after: before a watermark of 5 s passes it."""
    random = np.random.default_rng(seed)
    count = table.num_rows
    gone = np.flatnonzero(random.random(count) < 0.1)
    places = np.concatenate([np.arange(count, dtype=float), gone + random.random(len(gone)) * REGRET + 0.5])
    order = np.argsort(places, kind="stable")
    weight = np.concatenate([np.ones(count, np.int64), -np.ones(len(gone), np.int64)])[order]
    source = np.concatenate([np.arange(count), gone])[order]
    return table.take(pa.array(source)).append_column("w", pa.array(weight))


def write(folder: Path, shape: Shape, *, kinds: Iterable[str], forms: Iterable[str], batch: int) -> None:
    """Write the named kinds of rows in the named forms."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        table = rows(shape, seed=KINDS[kind])
        if kind == "retracted":
            table = retracted(table, seed=3)
        pq.write_table(table, folder / f"{kind}.parquet")
        for form in {"csv", "headed.csv"}.intersection(forms):
            options = pyarrow.csv.WriteOptions(include_header=form == "headed.csv")
            pyarrow.csv.write_csv(table, folder / f"{kind}.{form}", write_options=options)
        if "parts" in forms:
            _write_parts(folder / f"{kind}.parts", table, batch)
        if "marked" in forms:
            _write_marked(folder / f"{kind}.marked", table, batch)


def _write_parts(folder: Path, table: pa.Table, batch: int) -> None:
    """One file per batch, and two more with an event far in the future: the first makes a watermark pass all others,
    the second is the micro-batch that sees it pass."""
    folder.mkdir()
    parts = [table.slice(first, batch) for first in range(0, table.num_rows, batch)]
    if "w" not in table.column_names:
        far = BEGINNING + table.num_rows + FLUSH_AFTER
        flush = pa.table({"le": [far], "re": [far + 1], "k": [FLUSH_KEY], "v": [FLUSH_VALUE]})
        parts += [flush, flush]
    _write_in_order(folder, parts)


def _write_marked(folder: Path, table: pa.Table, batch: int) -> None:
    """One file per batch, whose last row is a CTI: as far behind as a watermark of 5 s, and at the end all of time."""
    folder.mkdir()
    parts, latest = [], BEGINNING
    for first in range(0, table.num_rows, batch):
        part = table.slice(first, batch)
        latest = max(latest, int(part["le"].to_numpy().max()))
        cti = FOREVER if first + batch >= table.num_rows else latest - DELAY
        kinds = np.append(np.zeros(part.num_rows, np.int8), np.int8(2))
        mark = pa.table({"le": [cti], "re": [cti], "k": [FLUSH_KEY], "v": [FLUSH_VALUE]})
        parts.append(pa.concat_tables([part, mark]).add_column(0, "kind", pa.array(kinds)))
    _write_in_order(folder, parts)


def _write_in_order(folder: Path, parts: list[pa.Table]) -> None:
    for place, part in enumerate(parts):
        path = folder / f"part-{place:05}.parquet"
        pq.write_table(part, path)
        os.utime(path, (BEGINNING // 1000 + place,) * 2)  # a folder is read by age: seconds apart, so in this order
