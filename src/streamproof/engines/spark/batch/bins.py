"""Which events meet in time, by equality: an interval join as a hash join on bins of the time axis.

The lifetimes of both sides are counted by their lengths first. Most of them decide the width of the bins; longer ones
go a separate way, with wider bins of their own, up to one bin for all time. A pair is found at the wider of its two
levels, in the later of its first bins: once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.relation import long
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.thresholds import BIN_EVENTS, BIN_STEP

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ALL_TIME: Final = 63
_USUAL: Final = 0.9  # the share of lifetimes that decides the first width


@dataclass(frozen=True, slots=True)
class Levels:
    """The widths of bins, as powers of two, and which of them the lifetimes of each side have."""

    bits: tuple[int, ...]
    left: frozenset[int]
    right: frozenset[int]

    def of(self, le: Column, re: Column) -> Column:
        """The number of the level of a lifetime."""
        length = _bits(le, re)
        level = f.lit(len(self.bits) - 1)
        for number, bits in reversed(list(enumerate(self.bits[:-1]))):
            level = f.when(length <= bits, f.lit(number)).otherwise(level)
        return level


def _bits(le: Column, re: Column) -> Column:
    """About the binary logarithm of a length; points have 0."""
    endless = (le <= BEGINNING) | (re >= FOREVER)
    return f.when(endless, f.lit(_ALL_TIME)).otherwise(f.ceil(f.log2((re - le).cast("double"))).cast("int"))


def levels(left: DataFrame, right: DataFrame, *, starts: bool) -> Levels:
    """The levels for these events: their lifetimes are counted now. ``starts``: the right ones count as points."""
    a = left.select(_bits(f.col("le"), f.col("re")).alias("bits"), f.lit(0).alias("side"))
    if starts:
        return chosen(_counts(a) | {(1, 0): 1})
    b = right.select(_bits(f.col("le"), f.col("re")).alias("bits"), f.lit(1).alias("side"))
    return chosen(_counts(a.unionAll(b)))


def _counts(lengths: DataFrame) -> dict[tuple[int, int], int]:
    found = lengths.groupBy("side", "bits").count().collect()
    return {(row["side"], row["bits"]): row["count"] for row in found}


def chosen(counts: dict[tuple[int, int], int]) -> Levels:
    """The levels for so many lifetimes of each side and length.

    >>> chosen({(0, 4): 950, (1, 3): 950, (0, 20): 30, (1, 63): 10}).bits
    (4, 20, 63)
    >>> chosen({(0, 4): 1, (1, 3): 1, (0, 20): 1}).bits
    (4, 20)
    """
    totals: dict[int, int] = {}
    for (_, bits), count in counts.items():
        totals[bits] = totals.get(bits, 0) + count
    present, total = sorted(totals) or [0], sum(totals.values())
    deciding = total * (_USUAL if total > BIN_EVENTS.now else 0.5)
    seen, first = 0, present[-1]
    for bits in present:
        seen += totals.get(bits, 0)
        if seen >= deciding:
            first = bits
            break
    tops = {first if bits <= first else min(_top(bits, first), present[-1]) for bits in present}
    ordered = tuple(sorted(_ALL_TIME if top > _ALL_TIME - BIN_STEP.now else top for top in tops))
    ordered = tuple(dict.fromkeys(ordered))
    sides = [frozenset(_level(bits, ordered) for side, bits in counts if side == which) for which in (0, 1)]
    return Levels(ordered, sides[0], sides[1])


def _top(bits: int, first: int) -> int:
    """The level of a longer lifetime: the first plus a multiple of the step."""
    return first + -(-(bits - first) // BIN_STEP.now) * BIN_STEP.now


def _level(bits: int, tops: tuple[int, ...]) -> int:
    return next(number for number, top in enumerate(tops) if bits <= top)


def binned(frame: DataFrame, found: Levels, prefix: str, *, others: frozenset[int], starts: bool) -> DataFrame:
    """Each row once per bin: ``bin``, ``at`` (the level) and ``first`` under the prefix.

    A row is in the bins of its own level, and in those of wider levels that the other side has.
    """
    le, re = f.col(f"{prefix}le"), f.col(f"{prefix}re")
    low, high = le, (le if starts else re - 1)
    level = f.lit(0) if starts else found.of(le, re)
    if len(found.bits) == 1:
        first, last = _bin(low, found.bits[0]), _bin(high, found.bits[0])
        single = frame.withColumn(f"{prefix}first", first).withColumn(
            f"{prefix}bin", f.explode(f.sequence(first, last))
        )
        return single.withColumns({f"{prefix}level": f.lit(0), f"{prefix}at": f.lit(0)})
    leveled = frame.withColumn(f"{prefix}level", level)
    own = f.col(f"{prefix}level")
    spread = [_at(n, own, low, high, found, others=others) for n in range(len(found.bits))]
    exploded = leveled.withColumn("place", f.explode(f.flatten(f.array(*spread))))
    fields = {f"{prefix}{name}": f.col("place")[name] for name in ("at", "first", "bin")}
    return exploded.withColumns(fields).drop("place")


def _at(number: int, own: Column, low: Column, high: Column, found: Levels, *, others: frozenset[int]) -> Column:
    """The bins of a row at one level."""
    first, last = _bin(low, found.bits[number]), _bin(high, found.bits[number])
    places = f.transform(
        f.sequence(first, last),
        lambda b: f.struct(f.lit(number).alias("at"), first.alias("first"), b.alias("bin")),
    )
    there = own <= number if number in others else own == number
    nowhere = f.array().cast("array<struct<at: int, first: bigint, bin: bigint>>")
    return f.when(there, places).otherwise(nowhere)


def _bin(time: Column, bits: int) -> Column:
    return long(0) if bits >= _ALL_TIME else f.shiftright(time, bits)


def met(*, starts: bool) -> Column:
    """Whether a pair from equal bins meets in time, and here."""
    a_le, a_re, b_le, b_re = (f.col(name) for name in ("a_le", "a_re", "b_le", "b_re"))
    inside = (a_le < b_le) & (b_le < a_re) if starts else (a_le < b_re) & (b_le < a_re)
    once = f.col("a_bin") == f.greatest("a_first", "b_first")
    here = f.col("a_at") == f.greatest("a_level", "b_level")
    return inside & once & here
