"""What a push costs: a part for the push itself and a part per row, declared, or measured before a query is admitted.

>>> cost = fit_cost([1, 1, 100, 100], [2.0, 2.1, 3.0, 3.1], quantile=0.99)
>>> round(cost.push_ms, 2), round(cost.row_ms, 3), cost.rows_within(2.5)
(2.09, 0.01, 40)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import thread_time
from typing import Final

import numpy as np

from streamproof.engines.base import LiveQuery
from streamproof.errors import PlanError
from streamproof.events.stream import PhysicalStream

QUANTILE: Final = 0.99
LEAST_MS: Final = 0.001


@dataclass(frozen=True)
class PushCost:
    """Milliseconds of one push: ``push_ms + row_ms · rows``. ``quantile`` says how it was measured; None: declared."""

    push_ms: float
    row_ms: float = 0.0
    quantile: float | None = None
    pushes: int = 0  # how many were measured

    def __post_init__(self) -> None:
        if not (self.push_ms >= 0 and self.row_ms >= 0 and self.push_ms + self.row_ms > 0):
            raise PlanError(
                f"a cost must be positive, got {self.push_ms} ms per push and {self.row_ms} ms per row", at="cost"
            )

    def of(self, rows: int) -> float:
        """The cost of a push of so many rows."""
        return self.push_ms + self.row_ms * rows

    def rows_within(self, millis: float) -> int:
        """How many rows can be pushed in so long; 1 where not even that is enough."""
        if self.row_ms == 0:
            return 1 << 30
        return max(1, int((millis - self.push_ms) / self.row_ms))

    @property
    def text(self) -> str:
        how = "declared" if self.quantile is None else f"{self.quantile:.0%} quantile of {self.pushes} pushes"
        return f"{self.push_ms:.2f} ms + {1000 * self.row_ms:.2f} µs per row ({how})"


@dataclass(frozen=True)
class Measured:
    """Asks for calibration on a sample: pushes of several sizes, of which a quantile is taken."""

    sample: Mapping[str, PhysicalStream]
    quantile: float = QUANTILE

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise PlanError(f"a quantile lies between 0 and 1, got {self.quantile}", at="cost.quantile", fix="try 0.99")


def declared(push_ms: float, row_ms: float = 0.0) -> PushCost:
    """A cost that is known."""
    return PushCost(push_ms, row_ms)


def measured(sample: Mapping[str, PhysicalStream], *, quantile: float = QUANTILE) -> Measured:
    """A cost that calibration finds."""
    return Measured(sample, quantile)


def fit_cost(sizes: Sequence[int], times: Sequence[float], *, quantile: float = QUANTILE) -> PushCost:
    """The line above the measured times: its slope through the quickest of each size, its height by the quantile."""
    if len(sizes) != len(times) or not sizes:
        raise PlanError("a cost is fitted to as many times as sizes", at="cost")
    rows, spent = np.asarray(sizes, dtype=np.float64), np.asarray(times, dtype=np.float64)
    kinds = sorted(set(sizes))
    quickest = [float(spent[rows == size].min()) for size in kinds]  # what no noise has lengthened
    slope = 0.0
    if len(kinds) > 1:
        slope = max(0.0, float(np.polyfit(kinds, quickest, 1)[0]))
    height = float(np.quantile(spent - slope * rows, quantile))
    return PushCost(max(height, LEAST_MS), slope, quantile, len(times))


WARM: Final = 4  # pushes of each size that do not count: the first ones compile
TIMED: Final = 24
MOST_ROWS: Final = 50_000


def calibrate(
    query: LiveQuery, sample: Mapping[str, PhysicalStream], sizes: Sequence[int], *, quantile: float
) -> dict[str, PushCost]:
    """The cost of pushes into every source of a query, which is used up by that."""
    return {name: _one_source(query, name, stream, sizes, quantile) for name, stream in sample.items()}


def _one_source(
    query: LiveQuery, source: str, stream: PhysicalStream, sizes: Sequence[int], quantile: float
) -> PushCost:
    known = sorted({max(1, min(size, len(stream) // 8)) for size in sizes})
    if len(stream) < 8:
        raise PlanError(
            f"the sample of {source} has only {len(stream)} rows", fix="give at least 8 rows, or declare the cost"
        )
    rows: list[int] = []
    times: list[float] = []
    position = 0
    for round_number in range(WARM + TIMED):
        for size in known:
            if position + size > min(len(stream), MOST_ROWS):
                break
            part = PhysicalStream(stream.schema, stream.rows.slice(position, size))
            spent = timed_push(query, source, part)
            position += size
            if round_number >= WARM or position > len(stream) // 2:
                rows.append(size)
                times.append(spent)
    return fit_cost(rows, times, quantile=quantile)


def timed_push(query: LiveQuery, source: str, part: PhysicalStream) -> float:
    """Milliseconds of this thread for one push and for taking what came out."""
    start = thread_time()
    query.push(source, part)
    query.pull()
    return 1000 * (thread_time() - start)
