"""Exact sums of floats in whole numbers: in any order, and rounded once.

A float between 2^-28 and 2^48 in size is a sum of four limbs of 32 bits, at fixed places from 2^48 down to 2^-80; the
limbs add up as bigints, in Spark. Of each total, the leading 60 bits, and one more for whether anything follows,
become the nearest float. A window with a value that has other bits (NaN and the infinities among them) is added up
value by value in Python; such values are counted, and where there are none Spark drops the rest of that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f

from streamproof.engines.spark.batch.arrow import in_arrow
from streamproof.engines.spark.batch.exact import EXACT, of_lists
from streamproof.engines.spark.batch.relation import long
from streamproof.events.order import Ints

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LIMBS: Final = ("a", "b", "c", "d")
_PLACES: Final = (16, -16, -48, -80)  # the least bit of each limb
_BITS: Final = 32
_LOW: Final = 2**32 - 1
_LARGEST: Final = 2.0**48
_KEPT: Final = 61  # bits of the total that are looked at before it is rounded


def with_limbs(frame: DataFrame, name: str) -> DataFrame:
    """The frame with the limbs of a column of floats, and ``odd``: whether a value has bits in other places."""
    x, rest = f.col(name), f"{name}_rest"
    frame = frame.withColumn(rest, f.when(f.abs(x) < _LARGEST, x))
    for limb, place in zip(LIMBS, _PLACES, strict=True):
        whole = (f.col(rest) * 2.0**-place).cast("long")  # towards zero, so that what is left has no more bits
        frame = frame.withColumn(f"{name}_{limb}", whole)
        frame = frame.withColumn(rest, f.col(rest) - f.col(f"{name}_{limb}").cast("double") * 2.0**place)
    return frame.withColumn(f"{name}_odd", f.when(_odd(x), long(1)).otherwise(long(0))).drop(rest)


def _odd(x: Column) -> Column:
    """Whether a value is too large, or has bits below the last limb; null is not odd."""
    scaled = x * 2.0 ** -_PLACES[-1]
    return ~((f.abs(x) < _LARGEST) & (f.rint(scaled) == scaled))


def limb_sums(name: str) -> dict[str, Column]:
    """What to aggregate: the limbs, how many values there are, and how many odd ones."""
    sums = {f"{name}_{limb}": f.sum(f"{name}_{limb}") for limb in LIMBS}
    return {**sums, f"{name}_n": f.count(name), f"{name}_odd": f.sum(f"{name}_odd")}


def with_totals(frame: DataFrame, name: str) -> DataFrame:
    """The frame with ``total``: the nearest float to what its summed limbs stand for; null if there were none.

    One call per some thousand windows: as Spark's own expressions, the same steps outgrow what Java compiles.
    """
    sums = (f.col(f"{name}_{limb}") for limb in LIMBS)
    nearest = in_arrow(rounded, "double", *sums)
    return frame.withColumn(f"{name}_total", f.when(f.col(f"{name}_n") > 0, nearest))


def rounded(a: pa.Array, b: pa.Array, c: pa.Array, d: pa.Array) -> pa.Array:
    """The floats nearest to sums of limbs.

    >>> tie, above = [0, 2**16, 0, 2**27], [0, 2**16, 0, 2**27 + 1]  # 1 + 2^-53, and 2^-80 more
    >>> [x.hex() for x in rounded(*(pa.array(pair) for pair in zip(tie, above))).to_pylist()]
    ['0x1.0000000000000p+0', '0x1.0000000000001p+0']
    """
    limbs = [limb.fill_null(0).to_numpy(zero_copy_only=False).copy() for limb in (a, b, c, d)]
    _carry(limbs)
    sign = np.where(limbs[0] < 0, -1, 1)
    limbs = [limb * sign for limb in limbs]
    _carry(limbs)
    lead = np.argmax(np.array(limbs) > 0, axis=0)  # the first limb that is not 0
    ahead = np.array([*limbs, np.zeros_like(sign), np.zeros_like(sign), np.zeros_like(sign)])
    first, second, third, fourth = (ahead[lead + n, np.arange(len(sign))] for n in range(4))
    shift = np.maximum(_KEPT - np.frexp(first.astype(np.float64))[1], 1).astype(np.uint64)
    after = (second.astype(np.uint64) << np.uint64(_BITS)) | third.astype(np.uint64)
    kept = (first.astype(np.uint64) << shift) | (after >> (np.uint64(2 * _BITS) - shift))
    more = ((after << shift) != 0) | (fourth != 0)  # one bit tells whether anything follows
    size = (kept | more).astype(np.float64)
    return pa.array(sign * np.ldexp(size, np.array(_PLACES)[lead] - shift.astype(np.int64)))


def _carry(limbs: list[Ints]) -> None:
    """The same totals with every limb but the first between 0 and 2^32."""
    for n in (3, 2, 1):
        limbs[n - 1] += limbs[n] >> _BITS
        limbs[n] &= _LOW


def corrected(found: DataFrame, rows: DataFrame, keys: Sequence[str], asked: dict[str, tuple[str, str]]) -> DataFrame:
    """The results with those of windows that have odd values computed by Python.

    ``asked`` has for each column of the result the aggregate and the column of ``rows`` that it reads. ``found`` has
    the numbers of odd values too; where they are all 0, Spark sees at run time that nothing is left to do.
    """
    sources = list(dict.fromkeys(source for _, source in asked.values()))
    odd = f.greatest(*(f.col(f"{source}_odd") for source in [*sources, sources[0]])) > 0
    # it reads every column, so that both readers of the results share one shuffle instead of pruning it apart
    whole = f.pmod(f.xxhash64(*found.columns), long(2)) < 2
    named = [f.col(key).alias(f"odd_{key}") for key in keys]
    windows = f.broadcast(found.filter(odd & whole).select(*named))
    same = [f.col(key).eqNullSafe(f.col(f"odd_{key}")) for key in keys]
    listed = (
        rows.join(windows, same, "left_semi")
        .groupBy(*named)
        .agg(*(f.collect_list(source).alias(f"odd_{source}") for source in sources))
    )
    exact = listed.select(
        *(f"odd_{key}" for key in keys),
        *(in_arrow(of_lists(EXACT[fn]), "double", f.col(f"odd_{source}")).alias(f"odd_{column}")
          for column, (fn, source) in asked.items()),
    )  # fmt: skip
    both = found.join(f.broadcast(exact), same, "left")
    better = {column: f.coalesce(f.col(f"odd_{column}"), f.col(column)) for column in asked}
    return both.withColumns(better)
