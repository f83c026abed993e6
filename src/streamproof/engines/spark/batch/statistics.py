"""A look at the data while a plan is built: what its floats are like, and how many events share a pane.

All that a plan wants to know of its input is asked in one job of one pass, because for little data a job costs more
than its rows do. What was seen only decides how to compute: values that have changed meanwhile are an error, never a
wrong sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streamproof.engines.spark.session import settings
from streamproof.thresholds import SMALL_FRAME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LARGEST: Final = 2.0**40  # floats from here on have rests
GRIDS: Final = (0, 10, 20)
NO_GRID, RESTS = len(GRIDS), len(GRIDS) + 1  # levels after those of the grids
_PLAIN: Final = {"spark.sql.adaptive.enabled": "false"}  # one row has nothing to adapt to
SMALL: Final = 2**26  # bytes
_SKETCHES: Final = 8  # bitmaps of 32 bits, two in a bigint
_FLAJOLET_MARTIN: Final = 0.77351


def double(value: float) -> str:
    """A float as SQL."""
    return f"{value!r}D"


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of the floats of a column before they are added up. Nothing is: they may have rests."""

    rests: bool = True
    grid: int | None = None  # all are multiples of 2^-grid, and their sums are exact
    largest: float = math.inf


@dataclass(frozen=True, slots=True)
class Looks:
    """What was seen: of the floats of each column, and how many events there are to a pane."""

    floats: Mapping[str, Look] = field(default_factory=dict)
    density: float = math.inf


def look_at(frame: DataFrame, floats: Sequence[str], pane: Sequence[str] = ()) -> Looks:
    """What the values of these columns are like, and how many rows agree on what makes a pane: they are read now."""
    asked = ["count(*) AS rows"]
    for x in floats:
        asked += [f"max({_level(x)}) AS {x}_level", f"max(abs({x})) AS {x}_largest"]
    if pane:
        asked += [f"bit_or({_sketch(n)}) AS sketch{n}" for n in range(_SKETCHES // 2)]
    rows = frame.coalesce(1) if _is_small(frame) else frame
    hashed = rows.selectExpr(*floats, f"xxhash64({', '.join(pane)}) AS pane") if pane else rows
    with settings(frame.sparkSession, _PLAIN):
        (found,) = hashed.selectExpr(*asked).collect()
    looks = {x: look_of(found["rows"], found[f"{x}_level"] or 0, found[f"{x}_largest"] or 0.0) for x in floats}
    if not pane:
        return Looks(looks)
    panes = _distinct([found[f"sketch{n}"] or 0 for n in range(_SKETCHES // 2)])
    return Looks(looks, found["rows"] / panes)


def _is_small(frame: DataFrame) -> bool:
    """Whether one task reads it sooner than several would and exchange what they saw, as far as Spark can tell."""
    plan = getattr(frame, "_jdf", None)  # only what runs in this process has one
    return plan is not None and int(str(plan.queryExecution().analyzed().stats().sizeInBytes())) < SMALL_FRAME.now


def _level(x: str) -> str:
    """The first grid that a value is on; it has no rest then."""
    levels = "".join(f" WHEN {on_grid(x, grid)} THEN {level}" for level, grid in enumerate(GRIDS))
    small = f"CASE{levels} WHEN {rest_of(x)} = 0D THEN {NO_GRID} ELSE {RESTS} END"
    return f"CASE WHEN abs({x}) < {double(LARGEST)} THEN {small} WHEN {x} IS NOT NULL THEN {RESTS} END"


def look_of(rows: int, level: int, largest: float) -> Look:
    """What follows from the first grid that all values are on, and the greatest size."""
    exact = level < NO_GRID and rows * largest * 2.0 ** GRIDS[level] < 2.0**52
    return Look(rests=level == RESTS, grid=GRIDS[level] if exact else None, largest=largest)


def on_grid(x: str, grid: int) -> str:
    """Whether a value is a multiple of 2^-grid."""
    scaled = f"{x} * {double(2.0**grid)}" if grid else x
    return f"{scaled} = rint({scaled})"


def rest_of(name: str) -> str:
    """What the limbs of a value leave over: 0 for most; null for null."""
    scaled = f"{name} * {double(2.0**68)}"
    return (
        f"CASE WHEN abs({name}) < {double(LARGEST)} THEN ({scaled} - rint({scaled})) * {double(2.0**-68)} "
        f"ELSE {name} END"
    )


# --- how many different panes -----------------------------------------------------------------------------------------


def _sketch(number: int) -> str:
    """Sketches after Flajolet and Martin: three bits of the hash choose one, the zeros that end the others its bit."""
    following = "shiftrightunsigned(pane, 3)"
    zeros = f"least(31, bit_count(({following} & -{following}) - 1L))"
    place = f"{zeros} + CASE WHEN (pane & 1L) = 0L THEN 0 ELSE 32 END"
    return f"CASE WHEN (shiftright(pane, 1) & 3L) = {number}L THEN shiftleft(1L, {place}) ELSE 0L END"


def _distinct(sketches: Sequence[int]) -> float:
    """About how many hashes were different, within a third or so.

    >>> round(_distinct([0] * 4)), round(_distinct([0x0F_0000_000F] * 4))
    (10, 165)
    """
    halves = [half for sketch in sketches for half in (sketch & 0xFFFFFFFF, sketch >> 32 & 0xFFFFFFFF)]
    full = [(~half & (half + 1)).bit_length() - 1 for half in halves]
    return _SKETCHES / _FLAJOLET_MARTIN * math.exp2(sum(full) / _SKETCHES)
