"""The types of the columns of a file of JSON, as its lines are looked at: the narrowest that keep all values.

>>> columns = JsonColumns()
>>> for value in (7, 0.5, None): columns.see("v", value)
>>> for value in (7, 12345678901234567890): columns.see("id", value)
>>> columns.types, columns.written
({'v': Type('float64'), 'id': Type('string')}, frozenset({'id'}))

Numbers that no numeric type keeps all of are text, as they are written.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from streamproof.errors import InputError
from streamproof.events.files.values import whole_kept
from streamproof.events.notation import merge_types, show_value, type_of_value
from streamproof.events.order import ints, one_array
from streamproof.events.schema import FLOAT64, INT64, NULL, STRING, Type, type_of_arrow


class JsonColumns:
    """What the values of each column have in common; where two do not agree, the first one wins."""

    def __init__(self) -> None:
        self._types: dict[str, Type] = {}
        self._unkept: set[str] = set()  # numbers that neither int64 nor float64 keeps
        self._whole: set[str] = set()  # whole numbers that float64 does not keep

    def see(self, name: str, value: object) -> None:
        """One more value."""
        if isinstance(value, int) and not isinstance(value, bool):
            inside = -(2**63) <= value < 2**63
            if not (inside and whole_kept(np.array([value]))):
                (self._whole if inside else self._unkept).add(name)
            self._merge(name, INT64)
        elif isinstance(value, Decimal):
            self._unkept.add(name)
            self._merge(name, FLOAT64)
        else:
            self._merge(name, type_of_value(value))

    def see_all(self, name: str, values: pa.ChunkedArray) -> None:
        """Many more values, which Arrow has read."""
        kind = json_type(values.type)
        self._merge(name, kind)
        if kind == INT64 and name not in self._whole and not whole_kept(ints(one_array(values).drop_null())):
            self._whole.add(name)

    def _merge(self, name: str, kind: Type) -> None:
        self._types[name] = merge_types(self._types.get(name, NULL), kind) or self._types[name]

    def absorb(self, other: JsonColumns) -> None:
        """See all values that others have seen."""
        for name, kind in other._types.items():
            self._merge(name, kind)
        self._unkept |= other._unkept
        self._whole |= other._whole

    @property
    def kinds(self) -> dict[str, Type]:
        """The types of all columns, those of numbers that are kept as they are written included."""
        return dict(self._types)

    @property
    def written(self) -> frozenset[str]:
        """The columns of numbers that are kept as they are written."""
        unkept = {name for name in self._unkept if self._types[name].is_numeric}
        return frozenset(unkept | {name for name in self._whole if self._types[name] == FLOAT64})

    @property
    def types(self) -> dict[str, Type]:
        written = self.written
        return {name: STRING if name in written else kind for name, kind in self._types.items()}


def json_type(arrow: pa.DataType) -> Type:
    """Our type for what Arrow inferred from JSON; it takes text that looks like a time for one."""
    return STRING if pa.types.is_timestamp(arrow) or pa.types.is_date(arrow) else type_of_arrow(arrow)


class _Literal(str):
    """A number as it is written."""


def with_written(record: dict[str, Any], raw: Mapping[str, Any], columns: Collection[str]) -> dict[str, Any]:
    """The record with the numbers of some columns as they are written; ``raw`` is from `literally`."""
    for name in columns:
        value = raw.get(name)
        if isinstance(value, _Literal):
            record[name] = str(value)
        elif value is not None:
            raise InputError(f'{show_value(record[name])} in column "{name}" is not a number', name="type_mismatch")
    return record


def literally(line: bytes) -> Any:
    """What a line of JSON says, with numbers as they are written."""
    return json.loads(line, parse_int=_Literal, parse_float=_Literal, parse_constant=_Literal)
