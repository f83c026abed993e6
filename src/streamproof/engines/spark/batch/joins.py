"""Joins: pairs of events that match and meet in time, and what is left of an event where no partner covers it.

Which events meet in time is found by equality: an interval join is a hash join on bins of the time axis. The lifetimes
of both sides are counted by their lengths first. Most of them decide the width of the bins; longer ones go a separate
way, with wider bins of their own, up to one bin for all time.

    bins of 4     0 . . . 4 . . . 8 . . . 12
    a               |-------|                   in bins 0 and 1
    b                   |-------|               in bins 1 and 2; met in 1, the later of 0 and 1

Invariant: a pair that meets is found at the wider of its two levels, in the later of its first bins, and so once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

from streamproof.engines.spark.batch.expressions import translate
from streamproof.engines.spark.batch.hoisting import values
from streamproof.engines.spark.batch.linear import unmoved
from streamproof.engines.spark.batch.relation import BatchContext, Env, Relation, long, renamed, side_env
from streamproof.engines.spark.batch.sweep import running
from streamproof.engines.spark.rows import spark_type
from streamproof.events.schema import INT64
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.equalities import EqualKeys, keyed
from streamproof.plan.expr import TRUE, Expr
from streamproof.plan.functions import may_fail
from streamproof.thresholds import BIN_EVENTS, BIN_STEP

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ALL_TIME: Final = 63
_USUAL: Final = 0.9  # the share of lifetimes that decides the first width


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Two inputs and how they match: equal keys, and the rest of the condition."""

    context: BatchContext
    left: Relation
    right: Relation
    on: Expr

    @property
    def env(self) -> Env:
        """What an expression over a pair reads."""
        left = side_env(self.left.schema, prefix="a_", side="l")
        return {**left, **side_env(self.right.schema, prefix="b_", side="r")}

    def sides(self, keys: list[EqualKeys]) -> tuple[DataFrame, DataFrame]:
        """Both sides with their keys k0, k1, … and the prefixes a_ and b_."""
        left, right = side_env(self.left.schema, side="l"), side_env(self.right.schema, side="r")
        columns: tuple[list[Column], list[Column]] = ([], [])
        for n, key in enumerate(keys):
            a, b = translate(key.left, left), translate(key.right, right)
            columns[0].append(a.column.alias(f"a_k{n}"))
            columns[1].append(b.column.alias(f"b_k{n}"))
        return (
            self.left.frame.select(*renamed(self.left.columns, "a_"), *columns[0]),
            self.right.frame.select(*renamed(self.right.columns, "b_"), *columns[1]),
        )

    def matches(self, *, starts: bool = False) -> DataFrame:
        """Matching pairs that meet: a_le, …, b_le, … and the lifetime le, re of the pair."""
        keys, rest = keyed(self.on)
        found = levels(self.left.frame, self.right.frame, starts=starts)
        a, b = self.sides(keys)
        left = binned(a, found, "a_", others=found.right, starts=False)
        right = binned(b, found, "b_", others=found.left, starts=starts)
        same = [f.col("a_bin") == f.col("b_bin"), f.col("a_at") == f.col("b_at"), *self.equal(keys)]
        pairs = left.join(right, [*same, met(starts=starts)])
        le = f.col("b_le") if starts else f.greatest("a_le", "b_le")
        timed = pairs.select(
            *self.columns("a_"), *self.columns("b_"), le.alias("le"), f.least("a_re", "b_re").alias("re")
        )
        return timed if rest == TRUE else self._filtered(timed, rest)

    def equal(self, keys: Sequence[EqualKeys]) -> list[Column]:
        """Equal groups and equal keys."""
        groups = [f.col(f"a_{name}").eqNullSafe(f.col(f"b_{name}")) for name in self.left.groups]
        return groups + [_equal(key, n) for n, key in enumerate(keys)]

    def _filtered(self, pairs: DataFrame, rest: Expr) -> DataFrame:
        """The pairs for which the rest of the condition holds; what may fail sees only pairs that meet."""
        frame, (condition,) = values(pairs, self.env, [rest], self.context.settings.registry)
        kept = unmoved(condition.column) if may_fail(rest) else condition.column
        return frame.filter(kept).select(*pairs.columns)

    def columns(self, prefix: str) -> list[str]:
        relation = self.left if prefix == "a_" else self.right
        return [f"{prefix}{name}" for name in relation.columns]

    def nulls(self, prefix: str) -> list[Column]:
        """A side that is not there."""
        relation = self.left if prefix == "a_" else self.right
        kinds = [INT64, INT64, *(None for _ in relation.groups), *(kind for _, kind in relation.schema)]
        return [
            (f.lit(None) if kind is None else f.lit(None).cast(spark_type(kind))).alias(name)
            for name, kind in zip(self.columns(prefix), kinds, strict=True)
        ]

    def selected(self, frame: DataFrame, typed: Typed, node: nodes.Join, groups: str) -> Relation:
        """The columns of the join over pairs, and over events without a partner, where the other side is null."""
        exprs = [expr for _, expr in node.select or ()]
        ready, found = values(frame, self.env, exprs, self.context.settings.registry)
        columns = [value.column.cast(spark_type(value.type)).alias(f"c{n}") for n, value in enumerate(found)]
        names = [f.col(f"{groups}{name}").alias(name) for name in self.left.groups]
        return Relation(ready.select("le", "re", *names, *columns), typed.schema, self.left.groups)


def _equal(key: EqualKeys, number: int) -> Column:
    a, b = f.col(f"a_k{number}"), f.col(f"b_k{number}")
    return a.eqNullSafe(b) if key.null_safe else a == b


def join(context: BatchContext, typed: Typed, node: nodes.Join, left: Relation, right: Relation) -> Relation:
    pairs = _Pairs(context, left, right, node.on)
    return pairs.selected(pairs.matches(), typed, node, "a_")


def followed_by(
    context: BatchContext, typed: Typed, node: nodes.FollowedBy, left: Relation, right: Relation
) -> Relation:
    pairs = _Pairs(context, left, right, node.on)
    return pairs.selected(pairs.matches(starts=True), typed, node, "a_")


def left_outer(context: BatchContext, typed: Typed, node: nodes.LeftOuter, left: Relation, right: Relation) -> Relation:
    pairs = _Pairs(context, left, right, node.on)
    return pairs.selected(_with_lonely(pairs, pairs.matches()), typed, node, "a_")


def full_outer(context: BatchContext, typed: Typed, node: nodes.FullOuter, left: Relation, right: Relation) -> Relation:
    pairs = _Pairs(context, left, right, node.on)
    matches = pairs.matches()
    both = pairs.selected(_with_lonely(pairs, matches), typed, node, "a_")
    gaps = _gaps(pairs, matches, "b_").select(*pairs.nulls("a_"), *pairs.columns("b_"), "le", "re")
    lonely = pairs.selected(gaps, typed, node, "b_")
    return both.on(both.frame.unionAll(lonely.frame))


def anti_join(context: BatchContext, typed: Typed, node: nodes.AntiJoin, left: Relation, right: Relation) -> Relation:
    pairs = _Pairs(context, left, right, node.on)
    gaps = _gaps(pairs, pairs.matches(), "a_")
    kept = [f.col(f"a_{name}").alias(name) for name in [*left.groups, *left.payload]]
    return Relation(gaps.select("le", "re", *kept), typed.schema, left.groups)


# --- what is not covered ----------------------------------------------------------------------------------------------


def _covered(pairs: _Pairs, matches: DataFrame, side: str) -> DataFrame:
    """The matches of one side's events, and each event itself at its own end; all with the gap before them.

    Equal events are one here: ``copies`` counts them. What lies between ``reached`` and le is covered by no match.
    """
    own = pairs.left if side == "a_" else pairs.right
    itself = own.frame.select(*renamed(own.columns, side)).withColumns(
        {"le": f.col(f"{side}re"), "re": f.col(f"{side}re"), "weight": long(1)}
    )
    rows = matches.withColumn("weight", long(0)).unionByName(itself, allowMissingColumns=True)
    event = Window.partitionBy(*pairs.columns(side))
    before = event.orderBy("le", "re").rowsBetween(Window.unboundedPreceding, -1)
    reached = f.coalesce(f.max("re").over(before), f.col(f"{side}le"))
    return rows.withColumns({"reached": reached, "copies": f.sum("weight").over(event)})


def _gap() -> Column:
    """The gap before a row, as often as there are equal events; no row where it is empty."""
    gap = f.struct(f.col("reached").alias("le"), f.col("le").alias("re"), f.lit(False).alias("pair"))
    return f.array_repeat(gap, f.when(f.col("reached") < f.col("le"), f.col("copies")).otherwise(0).cast("int"))


def _gaps(pairs: _Pairs, matches: DataFrame, side: str) -> DataFrame:
    """Per event of one side the maximal parts of its lifetime that no match covers."""
    columns = pairs.columns(side)
    covered = _covered(pairs, matches.select(*columns, "le", "re"), side)
    spread = covered.select(*columns, f.explode(_gap()).alias("gap"))
    return spread.select(*columns, f.col("gap.le").alias("le"), f.col("gap.re").alias("re"))


def _with_lonely(pairs: _Pairs, matches: DataFrame) -> DataFrame:
    """The pairs, and what is left of left events, with nulls for the right side."""
    covered = _covered(pairs, matches, "a_")
    pair = f.struct(f.col("le").alias("le"), f.col("re").alias("re"), f.lit(True).alias("pair"))
    itself = f.array_repeat(pair, f.when(f.col("weight") == 0, 1).otherwise(0))
    left, right = pairs.columns("a_"), pairs.columns("b_")
    spread = covered.select(*left, *right, f.explode(f.concat(itself, _gap())).alias("part"))
    there = [f.when(f.col("part.pair"), f.col(name)).alias(name) for name in right]
    return spread.select(*left, *there, f.col("part.le").alias("le"), f.col("part.re").alias("re"))


# --- cuts -------------------------------------------------------------------------------------------------------------


def clip(context: BatchContext, typed: Typed, node: nodes.Clip, source: Relation, by: Relation) -> Relation:
    pairs = _Pairs(context, source, by, node.on)
    keys, rest = keyed(node.on)
    cut = _next_starts(pairs, keys) if rest == TRUE else _least_starts(pairs)
    end = f.when(f.col("cut") < f.col("a_re"), f.col("cut")).otherwise(f.col("a_re"))
    kept = [f.col(f"a_{name}").alias(name) for name in [*source.groups, *source.payload]]
    return Relation(cut.select(f.col("a_le").alias("le"), end.alias("re"), *kept), typed.schema, source.groups)


def _least_starts(pairs: _Pairs) -> DataFrame:
    """The left events with the least start among their matches."""
    columns = pairs.columns("a_")
    found = pairs.matches(starts=True).select(*columns, f.col("b_le").alias("cut"), long(0).alias("weight"))
    itself = pairs.left.frame.select(*renamed(pairs.left.columns, "a_")).withColumns(
        {"cut": f.lit(None).cast("long"), "weight": long(1)}
    )
    cuts = found.unionByName(itself).groupBy(*columns).agg(f.min("cut").alias("cut"), f.sum("weight").alias("copies"))
    return cuts.select(*columns, "cut", f.explode(f.sequence(long(1), f.col("copies"))).alias("copy"))


def _next_starts(pairs: _Pairs, keys: list[EqualKeys]) -> DataFrame:
    """The left events with the next strictly later start on the right with equal keys.

    Starts are counted along the time axis; the next one after a time is the one with the next number.
    """
    left, right = pairs.sides(keys)
    names = [*pairs.left.groups, *(f"k{n}" for n in range(len(keys)))]
    comparable = [f.col(f"b_k{n}").isNotNull() for n, key in enumerate(keys) if not key.null_safe]
    starting = right.filter(reduce(lambda x, y: x & y, comparable)) if comparable else right
    times = _times(left, "a_", names, 0).unionAll(_times(starting, "b_", names, 1))
    counted = running(pairs.context, times.groupBy(*names, "t").agg(f.max("starts").alias("starts")), names, ["starts"])
    own = [f.col(f"a_{name}").eqNullSafe(f.col(name)) for name in names]
    placed = left.join(counted, [f.col("a_le") == f.col("t"), *own]).drop("t", "following", *names)
    cuts = counted.groupBy(*(f.col(name).alias(f"n_{name}") for name in names), f.col("starts").alias("number")).agg(
        f.min("t").alias("cut")
    )
    then = [f.col(f"a_{name}").eqNullSafe(f.col(f"n_{name}")) for name in names]
    return placed.join(cuts, [f.col("starts") + 1 == f.col("number"), *then], "left")


def _times(frame: DataFrame, prefix: str, names: list[str], starts: int) -> DataFrame:
    columns = [f.col(f"{prefix}{name}").alias(name) for name in names]
    return frame.select(*columns, f.col(f"{prefix}le").alias("t"), long(starts).alias("starts"))


# --- bins -------------------------------------------------------------------------------------------------------------


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
