"""Exact sums of floats: in any order, and rounded once.

Where the floats of an input are multiples of one power of two, and so few that all they can add up to are floats too,
Spark's own sum is exact. Else a float below 2^40 in size is three limbs of 36 bits, at fixed places from 2^40 down to
2^-68, and a *rest*, which is 0 for all that are larger than 2^-16 too. Limbs add up as bigints; of each total, the
leading 60 bits, and one more for whether anything follows, become the nearest float: all in Spark's own arithmetic. A
value with a rest (tiny, huge, NaN or infinite) is rare: the rests of a window are collected, and added to its limbs in
Python. Where there are none, Spark sees at run time that nothing is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as f

from streamproof.engines.spark.batch.relation import in_arrow
from streamproof.engines.spark.batch.statistics import LARGEST, Look, double, on_grid, rest_of
from streamproof.plan.exact import mean, total

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LIMBS: Final = ("a", "b", "c")
_PLACES: Final = (4, -32, -68)  # the least bit of each limb
_BITS: Final = 36
_LOW: Final = f"{2**_BITS - 1}L"
_FEW: Final = f"{2**26}L"  # a limb below this leaves room for the next one beside it
_CHANGED: Final = "the floats in the input have changed since the plan was built; build it again"
_KEPT: Final = 60  # bits of the total that are looked at before it is rounded


def float_sums(name: str, look: Look) -> dict[str, Column]:
    """What to aggregate of a column: its total, or the limbs of it; and how many values there are."""
    count = {f"{name}_n": f.count(name)}
    if look.grid is not None:
        good = f"abs({name}) <= {double(look.largest)} AND {on_grid(name, look.grid)}"
        return {f"{name}_total": f.expr(f"sum({_guarded(name, good, name)})"), **count}
    x = f"(CASE WHEN abs({name}) < {double(LARGEST)} THEN {name} ELSE 0D END)" if look.rests else name
    a, b, c = (f"rint({x} * {double(2.0**-place)})" for place in _PLACES)  # as counted from the last bit of a limb
    step = double(2.0**_BITS)
    c = c if look.rests else _guarded(name, f"{rest_of(name)} = 0D", c)
    limbs = {"a": a, "b": f"{b} - {a} * {step}", "c": f"{c} - {b} * {step}"}  # what is left has no more bits
    return {f"{name}_{limb}": f.expr(f"sum(cast({text} AS bigint))") for limb, text in limbs.items()} | count


def _guarded(name: str, good: str, value: str) -> str:
    """A value, where what was known of the column still holds."""
    return f"(CASE WHEN {good} THEN {value} WHEN {name} IS NOT NULL THEN raise_error('{_CHANGED}') END)"


def with_totals(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The frame with each ``total``: the nearest float to what its summed limbs stand for; null if there were none.

    First the limbs are carried into each other, then the two that hold the leading bits are put together.
    """
    steps: list[dict[str, str]] = [{}, {}]
    for x in names:
        b = f"({x}_b + shiftright({x}_c, {_BITS}))"
        a = f"({x}_a + shiftright({b}, {_BITS}))"
        large = f"({a} < -{_FEW} OR {a} >= {_FEW})"
        steps[0] |= {
            f"{x}_high": f"CASE WHEN {large} THEN {a} ELSE shiftleft({a}, {_BITS}) + ({b} & {_LOW}) END",
            f"{x}_low": f"CASE WHEN {large} THEN {b} & {_LOW} ELSE {x}_c & {_LOW} END",
            f"{x}_more": f"{large} AND ({x}_c & {_LOW}) <> 0L",
            f"{x}_place": f"CASE WHEN {large} THEN {_PLACES[1]} ELSE {_PLACES[2]} END",
        }
        size = f"cast(ceil(log2(abs(cast({x}_high AS double)) + 1D)) AS int)"
        room = f"greatest(0, least({_BITS}, {_KEPT} - {size}))"
        unread = f"({_BITS} - {room})"
        follows = f"{x}_more OR ({x}_low & (shiftleft(1L, {unread}) - 1L)) <> 0L"
        leading = f"shiftleft({x}_high, {room}) + shiftright({x}_low, {unread})"
        kept = f"(({leading}) | CASE WHEN {follows} THEN 1L ELSE 0L END)"
        nearest = f"cast({kept} AS double) * power(2D, cast({x}_place + {unread} AS double))"
        steps[1][f"{x}_total"] = f"CASE WHEN {x}_n > 0L THEN {nearest} END"
    for step in steps:
        frame = frame.selectExpr("*", *(f"{text} AS {name}" for name, text in step.items()))
    return frame


# --- rests ------------------------------------------------------------------------------------------------------------


def summed(
    found: DataFrame, rows: DataFrame, keys: Sequence[str], asked: Mapping[str, tuple[str, str]], results: list[Column]
) -> DataFrame:
    """The results per window, of limbs alone or of limbs and rests.

    ``found`` has the sums of limbs, ``rows`` the members of windows; ``asked`` has for each column of the result that
    is a sum or mean of floats the aggregate and the column of ``rows`` that it reads. ``results`` are all columns of
    the result; they read ``total``.
    """
    sources = list(dict.fromkeys(source for _, source in asked.values()))
    rests = _rests(rows, keys, sources)
    same = [f.col(key).eqNullSafe(f.col(f"rest_{key}")) for key in keys]
    both = rests.join(found, same, "right")  # rests first: they are known first, and then there is nothing to join
    plain = with_totals(both.filter("rests IS NULL"), sources).select(*results)
    counted = both.filter("rests IS NOT NULL").withColumns({f"{source}_total": f.lit(0.0) for source in sources})
    exact = {
        f"{column}_exact": in_arrow(_with_rests(fn, source), "double", *_read(source))
        for column, (fn, source) in asked.items()
    }
    better = counted.withColumns(exact).select(*results, *exact)
    odd = better.withColumns({column: f.col(f"{column}_exact") for column in asked}).select(*plain.columns)
    return plain.unionAll(odd)


def _read(source: str) -> list[Column]:
    return [*(f.col(f"{source}_{part}") for part in (*LIMBS, "n")), f.col("rests")]


def _rests(rows: DataFrame, keys: Sequence[str], sources: Sequence[str]) -> DataFrame:
    """Per window that has any, the rests of its values: one list, so that all who read it read the same."""
    shown = rows.selectExpr(*(f"{key} AS rest_{key}" for key in keys), *(f"{rest_of(x)} AS {x}" for x in sources))
    there = shown.filter(" OR ".join(f"{x} <> 0D" for x in sources))
    return there.groupBy(*(f"rest_{key}" for key in keys)).agg(f.collect_list(f.struct(*sources)).alias("rests"))


def _with_rests(fn: str, source: str) -> Callable[..., pa.Array]:
    """The sum or mean of windows, from limbs, the number of values, and rests."""

    def work(a: pa.Array, b: pa.Array, c: pa.Array, n: pa.Array, rests: pa.Array) -> pa.Array:
        windows = zip(*(array.to_pylist() for array in (a, b, c, n, rests)), strict=True)
        found = [exactly(fn, limbs, n, [row[source] or 0.0 for row in rest]) for *limbs, n, rest in windows]
        return pa.array(found, pa.float64())

    return work


def exactly(fn: str, limbs: Sequence[Any], count: int, rests: Sequence[float]) -> float | None:
    """The sum or mean of ``count`` values that have these sums of limbs, and these rests.

    >>> exactly("sum", [0, 2**32, 0], 2, [2.0**-80]), exactly("avg", [0, 0, 0], 2, [1e308, 1e308])
    (1.0, 1e+308)
    """
    if not count:
        return None
    halves = [half for limb in limbs for half in (limb >> 32 << 32, limb & 0xFFFFFFFF)]  # that floats can hold
    parts = [half * 2.0**place for half, place in zip(halves, (p for p in _PLACES for _ in "hl"), strict=True)]
    values = [*parts, *rests]
    return total(values) if fn == "sum" else mean(values, count)
