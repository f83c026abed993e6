"""Exact sums of floats in whole numbers: native, in any order, rounded once.

A float between 2^-28 and 2^48 in size is a sum of four limbs of 32 bits, at fixed places from 2^48 down to 2^-80; the
limbs add up as bigints. The total's leading 60 bits, and one more for whether anything follows, become the nearest
float. A window with a value that has other bits (NaN and the infinities among them) is added up by Python instead;
such values are counted, and where there are none Spark drops the rest of that way.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.arrow import in_arrow
from streamproof.engines.spark.batch.exact import EXACT, of_lists
from streamproof.engines.spark.batch.relation import long

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
    """The frame with ``total``: the nearest float to what its summed limbs stand for; null if there were none."""
    limbs = [f"{name}_{limb}" for limb in LIMBS]
    frame = _carried(frame, limbs)
    negative = f.col(limbs[0]) < 0
    frame = frame.withColumn(f"{name}_sign", f.when(negative, long(-1)).otherwise(long(1)))
    frame = frame.withColumns({limb: f.col(limb) * f.col(f"{name}_sign") for limb in limbs})
    return _rounded(_carried(frame, limbs), name, limbs)


def _carried(frame: DataFrame, limbs: Sequence[str]) -> DataFrame:
    """The same total with every limb but the first between 0 and 2^32."""
    for higher, lower in reversed(list(pairwise(limbs))):
        carried = f.col(higher) + f.shiftright(f.col(lower), _BITS)
        frame = frame.withColumns({higher: carried, lower: f.col(lower).bitwiseAND(long(_LOW))})
    return frame


def _rounded(frame: DataFrame, name: str, limbs: Sequence[str]) -> DataFrame:
    """Limbs that are not negative, as a float: the first that is not 0, its followers, and whether there is more."""
    (a, b, c, d), none = (f.col(limb) for limb in limbs), long(0)
    first, after, last, place = (f"{name}_{word}" for word in ("first", "after", "last", "place"))
    frame = frame.withColumns({
        first: f.when(a > 0, a).when(b > 0, b).when(c > 0, c).otherwise(d),
        after: f.when(a > 0, _joined(b, c)).when(b > 0, _joined(c, d)).when(c > 0, _joined(d, none)).otherwise(none),
        last: f.when(a > 0, d).otherwise(none),
        place: f.when(a > 0, _PLACES[0]).when(b > 0, _PLACES[1]).when(c > 0, _PLACES[2]).otherwise(_PLACES[3]),
    })  # fmt: skip
    size = f.floor(f.log2(f.greatest(f.col(first), long(1)).cast("double"))).cast("int") + 1  # or one off
    frame = frame.withColumn(f"{name}_shift", f.greatest(f.lit(_KEPT) - size, f.lit(1)))
    shift = f.col(f"{name}_shift")
    leading = f.call_function("shiftleft", f.col(first), shift).bitwiseOR(
        f.call_function("shiftrightunsigned", f.col(after), f.lit(2 * _BITS) - shift)
    )
    more = (f.call_function("shiftleft", f.col(after), shift) != 0) | (f.col(last) != 0)
    sticky = leading.bitwiseOR(f.when(more, long(1)).otherwise(long(0))).cast("double")
    scale = f.power(f.lit(2.0), (f.col(place) - shift).cast("double"))
    signed = sticky * scale * f.col(f"{name}_sign").cast("double")
    return frame.withColumn(f"{name}_total", f.when(f.col(f"{name}_n") > 0, signed))


def _joined(high: Column, low: Column) -> Column:
    return f.shiftleft(high, _BITS).bitwiseOR(low)


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
