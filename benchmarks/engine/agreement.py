"""Do contestants agree? Their result rows as a bag: how many, and a checksum that does not depend on the order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PARTS = 1_000_000  # values are compared to this fraction of one
OFFSET = 0.3183098861  # moves the places where a value is rounded away from those that sums and means really take


@dataclass(frozen=True)
class Bag:
    """What is compared of a result."""

    rows: int
    checksum: str


def bag(path: Path, columns: tuple[str, ...]) -> Bag:
    """The bag of a result file; it must have the columns, in whatever order, and may have a weight ``w``."""
    table = pq.read_table(path)
    weight = np.asarray(table["w"]) if "w" in table.column_names else np.ones(len(table), np.int64)
    mixed = np.zeros(len(table), np.uint64)
    with np.errstate(over="ignore"):
        for column in columns:
            mixed = _stir(mixed ^ _whole(table[column]))
        total = int((mixed * weight.astype(np.uint64)).sum(dtype=np.uint64))
    return Bag(int(weight.sum()), f"{total:016x}")


def _whole(column: pa.ChunkedArray) -> np.ndarray:
    values = np.asarray(pc.cast(column, pa.float64()))
    if np.isnan(values).any():
        raise ValueError("a result has nulls, no query of this benchmark gives any")
    return np.floor(values * PARTS + OFFSET).astype(np.int64).view(np.uint64)


def _stir(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every bit of the input changes about half of the output's."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = x ^ (x >> np.uint64(31))
    return mixed
