"""Three-valued logic, and the functions that see null: in, coalesce, nullif, least, greatest.

>>> from streamproof.events.schema import BOOL
>>> in_([pa.array([1, 2, None]), pa.scalar(1), pa.scalar(None, pa.int64())], BOOL).to_pylist()
[True, None, None]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streamproof.events.schema import Type, type_of_arrow
from streamproof.kernels.expressions import comparison
from streamproof.kernels.expressions.casts import widen
from streamproof.kernels.expressions.columns import Columns, Datum, blank, rows_of, spread
from streamproof.plan.functions import common_type

Args = Sequence[Datum]
Evaluate = Callable[[Columns], Datum]
_HASHED: Final = (pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp)


def and_(args: Args, to: Type) -> Datum:
    return pc.and_kleene(*args)


def or_(args: Args, to: Type) -> Datum:
    return pc.or_kleene(*args)


def not_(args: Args, to: Type) -> Datum:
    return pc.invert(args[0])


def is_null(args: Args, to: Type) -> Datum:
    return pc.is_null(args[0])


def same(args: Args, to: Type) -> Datum:
    return comparison.same(*args)


def least(args: Args, to: Type) -> Datum:
    return reduce(comparison.least, args)


def greatest(args: Args, to: Type) -> Datum:
    return reduce(comparison.greatest, args)


def nullif(args: Args, to: Type) -> Datum:
    """Null where a = b, compared in their common type; else a, in its own."""
    a, b = (spread(arg, rows_of(args)) for arg in args)
    common = common_type(type_of_arrow(arg.type) for arg in args)
    assert common is not None
    # a value beside a null is compared with nothing, so it need not fit into the common type
    left, right = blank(a, pc.is_null(b)), blank(b, pc.is_null(a))
    return blank(a, comparison.equal(widen(left, common), widen(right, common)))


def in_(args: Args, to: Type) -> Datum:
    """Whether the first equals one of the others: null if it is null, or if only a null among them could equal it."""
    value, *others = args
    constants = isinstance(value, pa.Array) and all(isinstance(other, pa.Scalar) for other in others)
    if constants and len(others) > 2 and any(hashed(value.type) for hashed in _HASHED):
        return _in_constants(value, others)
    return reduce(pc.or_kleene, (comparison.equal(value, other) for other in others))


def _in_constants(value: pa.Array, others: Sequence[pa.Scalar]) -> pa.Array:
    known = pa.array([other.as_py() for other in others if other.is_valid], value.type)
    found = pc.is_in(value, value_set=known, skip_nulls=True)
    missed = pa.scalar(False if len(known) == len(others) else None, pa.bool_())
    return blank(pc.if_else(found, True, missed), pc.is_null(value))


def coalesce(parts: Sequence[Evaluate], to: Type) -> Evaluate:
    """The first that is not null. A later argument is evaluated only on the rows where all before it are null."""

    def evaluate(columns: Columns) -> Datum:
        result = spread(parts[0](columns), columns.rows)
        for part in parts[1:]:
            if not result.null_count:
                break
            missing = pc.is_null(result)
            found = part(columns.where(missing))
            constant = isinstance(found, pa.Scalar)
            result = pc.coalesce(result, found) if constant else pc.replace_with_mask(result, missing, found)
        return result

    return evaluate


def case(branches: Sequence[tuple[Evaluate, Evaluate]], default: Evaluate, to: Type) -> Evaluate:
    """The value of the first branch that holds. Nothing is evaluated on rows that do not come to it."""

    def evaluate(columns: Columns) -> Datum:
        result, undecided = pa.nulls(columns.rows, to.arrow), pa.repeat(True, columns.rows)
        for when, then in branches:
            rest = columns.where(undecided)
            if not rest.rows:
                return result
            holds = spread(when(rest), rest.rows)
            chosen = pc.replace_with_mask(undecided, undecided, pc.fill_null(holds, False))
            result = _put(result, chosen, then, columns)
            undecided = pc.and_not(undecided, chosen)
        return _put(result, undecided, default, columns)

    return evaluate


def _put(result: pa.Array, chosen: pa.Array, value: Evaluate, columns: Columns) -> pa.Array:
    part = columns.where(chosen)
    if not part.rows:
        return result
    found = value(part)
    return spread(found, columns.rows) if part.rows == columns.rows else pc.replace_with_mask(result, chosen, found)
