"""Calls of user-defined functions: once per different row of arguments, then scattered back.

>>> from streamproof.events.schema import INT64
>>> from streamproof.plan.modules import udf
>>> seen = []
>>> twice = udf("twice", returns="int64")(lambda x: seen.append(x) or 2 * x)
>>> call_module(twice, [pa.array([1, 2, 1, None])], 4, INT64).to_pylist(), seen
([2, 4, 2, None], [1, 2])
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import RunError
from streamproof.events.order import Ints
from streamproof.events.schema import Type
from streamproof.kernels.expressions.columns import LostRows
from streamproof.plan.failures import DeadLetter, shown_call
from streamproof.plan.modules import Module


def call_module(
    module: Module, args: Sequence[pa.Array], rows: int, to: Type, *, lost: LostRows | None = None
) -> pa.Array:
    """A function's values on ``rows`` rows. One that is not deterministic is called for every row.

    Where rows may get lost, those that it fails on are null and noted.
    """
    if module.properties.deterministic:
        different, codes = distinct(args, rows)
    else:
        different, codes = list(args), np.arange(rows)
    calls = zip(*(column.to_pylist() for column in different), strict=True) if args else [()] * (int(codes.max()) + 1)
    answers, letters = [], {}
    for number, each in enumerate(calls):
        try:
            answers.append(_declared(module, each, module.apply(each), to))
        except RunError as error:
            if lost is None:
                raise
            answers.append(None)
            letters[number] = partial(DeadLetter, str(module), error, args=tuple(each))
    if lost is not None and letters:
        times = np.bincount(codes)
        made = (letter(count=int(times[number])) for number, letter in letters.items())
        lost.note(np.isin(codes, list(letters)), made)
    return pc.take(pa.array(answers, to.arrow), pa.array(codes))


def distinct(args: Sequence[pa.Array], rows: int) -> tuple[list[pa.Array], Ints]:
    """The different rows in order of appearance, and for every row which of them it is.

    0.0 and −0.0 are different here, as they are to Arrow: a function can tell them apart.
    """
    codes = np.zeros(rows, np.int64)
    for column in args:
        encoded = pc.dictionary_encode(column, null_encoding="encode")
        pairs = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        codes = pc.dictionary_encode(pa.array(pairs)).indices.to_numpy().astype(np.int64)
    count = int(codes.max(initial=-1)) + 1
    first = np.zeros(count, np.int64)
    first[codes[::-1]] = np.arange(rows)[::-1]  # the earliest row is written last
    return [pc.take(column, pa.array(first)) for column in args], codes


def _declared(module: Module, args: Sequence[Any], value: Any, to: Type) -> Any:
    """An answer, if it is a value of the type that the module declares."""
    try:
        return None if value is None else pa.scalar(of_type(value, to), to.arrow).as_py()
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        raise RunError(
            f"{module} gave {value!r}, which is not of type {to}",
            at=shown_call(module, args),
            fix=f"return a value of type {to} or None",
            name="module_failed",
        ) from None


def of_type(value: Any, to: Type) -> Any:
    """The value as its type wants it, or TypeError; whole numbers are floats and decimals too, but truth is neither."""
    match to.kind:
        case "bool" if isinstance(value, bool | np.bool_):
            return bool(value)
        case _ if isinstance(value, bool | np.bool_):
            raise TypeError
        case "int64" if isinstance(value, numbers.Integral):
            return int(value)
        case "float64" if isinstance(value, numbers.Real):
            return float(value)
        case "decimal" if isinstance(value, Decimal | int):
            return Decimal(value)
        case "string" if isinstance(value, str):
            return str(value)
        case "date" if isinstance(value, date) and not isinstance(value, datetime):
            return value
        case "timestamp" if isinstance(value, datetime) and value.tzinfo is not None:
            return value
    raise TypeError
