"""Calibration: what pushes into a query cost on this machine, measured before it is admitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import thread_time
from typing import Final

from streamproof.engines.base import LiveQuery
from streamproof.errors import PlanError
from streamproof.events.stream import PhysicalStream
from streamproof.qos.costs import PushCost, fit_cost

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
