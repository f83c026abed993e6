"""Large windows: many rows from one seed, column by column, instead of row by row.

Hypothesis remembers every choice, so it cannot draw thousands of rows. A large window is therefore a few rows that
Hypothesis draws, and a number of further rows with a seed, which are expanded here. Every column has a seed of its own
and takes one random number per row, so fewer rows are always a prefix of more rows.

>>> import hypothesis.strategies as st
>>> sampler = sampler_of(st.fixed_dictionaries({"zone": st.integers(0, 9), "on": st.booleans()}))
>>> sampler.table(3, seed=1).to_pydict() == {n: v[:3] for n, v in sampler.table(5, seed=1).to_pydict().items()}
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from streamproof.properties.hypothesis_internals import unwrapped
from streamproof.properties.rows import as_record

Floats = np.ndarray[Any, np.dtype[np.float64]]
Column = Callable[[Floats], Any]  # uniform random numbers to as many values
EDGE = 1 / 24  # how often either end of a range is drawn


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws rows by column."""

    columns: Mapping[str, Column]
    together: bool = False  # whether one random number decides a whole row

    def table(self, count: int, seed: int, skip: int = 0) -> pa.Table:
        """So many rows from a seed, without the first ones."""
        return self.tables([(count, seed, skip)])

    def tables(self, parts: Sequence[tuple[int, int, int]]) -> pa.Table:
        """The rows of several parts, one after the other: values are made for all of them at once."""
        streams = [2 if self.together else 2 + n for n in range(len(self.columns))]
        numbers = [np.concatenate([uniform(count, seed, n, skip) for count, seed, skip in parts]) for n in streams]
        drawn = [draw(u) for u, draw in zip(numbers, self.columns.values(), strict=True)]
        return pa.table(drawn, names=list(self.columns))


def uniform(count: int, seed: int, stream: int, skip: int = 0) -> Floats:
    """Random numbers in [0, 1), without the first ones: the same prefix for every count.

    >>> bool((uniform(3, 1, 0, skip=2) == uniform(5, 1, 0)[2:]).all())
    True
    """
    numbers = np.random.PCG64([seed, stream])
    return np.random.Generator(numbers.advance(skip) if skip else numbers).random(count)


def pooled(elements: Sequence[object]) -> Sampler:
    """Rows picked from some elements: for strategies whose inside nobody knows."""
    records = [as_record(element) for element in elements]
    names = list(dict.fromkeys(name for record in records for name in record))
    values = {name: pa.array([record.get(name) for record in records]) for name in names}
    # one random number decides the whole row: what ties the columns of an element together stays
    return Sampler({name: _whole_rows(values[name], len(records)) for name in names}, together=True)


def _whole_rows(values: pa.Array, many: int) -> Column:
    return lambda u: values.take(pa.array(np.minimum((u * many).astype(np.int64), many - 1)))


def sampler_of(strategy: Any) -> Sampler | None:
    """How to draw rows of a strategy by column, or None where its inside is unknown."""
    inner = unwrapped(strategy)
    fields = _fields(inner)
    if fields is None:
        column = column_of(inner)
        return None if column is None else Sampler({"value": column})
    columns = {name: column_of(part) for name, part in fields.items()}
    known = {name: column for name, column in columns.items() if column is not None}
    return Sampler(known) if len(known) == len(columns) else None


def _fields(strategy: Any) -> dict[str, Any] | None:
    """The columns of a strategy of rows: fixed_dictionaries, builds of a dataclass or named tuple, tuples."""
    kind = type(strategy).__name__
    if kind == "FixedDictStrategy" and not getattr(strategy, "optional", None):
        return dict(strategy.mapping)
    if kind == "TupleStrategy":
        return {f"_{n}": part for n, part in enumerate(strategy.element_strategies, 1)}
    if kind == "BuildsStrategy":
        return _built(strategy)
    return None


def _built(strategy: Any) -> dict[str, Any] | None:
    target = strategy.target
    if target is dict:
        return dict(strategy.kwargs) if not strategy.args else None
    names = list(target.__dataclass_fields__) if is_dataclass(target) else list(getattr(target, "_fields", ()))
    given = {**dict(zip(names, strategy.args, strict=False)), **strategy.kwargs}
    return {name: given[name] for name in names} if names and set(given) == set(names) else None


def column_of(strategy: Any) -> Column | None:
    """How to draw values of a strategy from random numbers, or None."""
    inner = unwrapped(strategy)
    maker = _COLUMNS.get(type(inner).__name__)
    return None if maker is None else maker(inner)


def _integers(strategy: Any) -> Column | None:
    low, high = strategy.start, strategy.end
    low = (-(2**31) if high is None else min(high, 0) - 2**31) if low is None else low
    high = max(low, 0) + 2**31 if high is None else high
    if low < -(2**63) or high >= 2**63:
        return None
    span = high - low + 1

    def draw(u: Floats) -> Any:
        whole = low + np.minimum((_stretched(u) * span).astype(np.int64), span - 1)
        return pa.array(np.where(u < EDGE, low, np.where(u >= 1 - EDGE, high, whole)).astype(np.int64))

    return draw


def _floats(strategy: Any) -> Column:
    low, high = strategy.min_value, strategy.max_value
    low = -1e9 if low == float("-inf") else low
    high = 1e9 if high == float("inf") else high

    def draw(u: Floats) -> Any:
        inside = np.clip(low + _stretched(u) * (high - low), low, high)
        return pa.array(np.where(u < EDGE, low, np.where(u >= 1 - EDGE, high, inside)))

    return draw


def _stretched(u: Floats) -> Floats:
    """The numbers between the edges, over [0, 1) again."""
    return np.clip((u - EDGE) / (1 - 2 * EDGE), 0.0, np.nextafter(1.0, 0.0))


def _sampled(strategy: Any) -> Column | None:
    if getattr(strategy, "_transformations", ()):
        return None
    try:
        values = pa.array(list(strategy.elements))
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None
    return _whole_rows(values, len(values))


def _booleans(strategy: Any) -> Column:
    return lambda u: pa.array(u >= 0.5)


def _datetimes(strategy: Any) -> Column | None:
    low, high = strategy.min_value, strategy.max_value
    if not strategy.aware:
        return None  # a time without a zone names no instant
    first = low.replace(tzinfo=low.tzinfo or UTC)
    span = (high.replace(tzinfo=high.tzinfo or UTC) - first) / timedelta(microseconds=1)
    base = int((first - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
    return lambda u: pa.array(base + (u * span).astype(np.int64), type=pa.timestamp("us", tz="UTC"))


def _dates(strategy: Any) -> Column:
    base = (strategy.min_value - date(1970, 1, 1)).days
    span = (strategy.max_value - strategy.min_value).days + 1
    return lambda u: pa.array(base + (u * span).astype(np.int32), type=pa.int32()).cast(pa.date32())


def _one_of(strategy: Any) -> Column | None:
    parts = [column_of(part) for part in strategy.original_strategies]
    known = [part for part in parts if part is not None]
    if not parts or len(known) < len(parts):
        return None

    def draw(u: Floats) -> Any:
        which = np.minimum((u * len(known)).astype(np.int64), len(known) - 1)
        inner = u * len(known) - which  # what is left of the number decides inside
        options = [part(inner).to_pylist() for part in known]
        return pa.array([options[n][at] for at, n in enumerate(which)])

    return draw


def _mapped(strategy: Any) -> Column | None:
    inner, pack = column_of(strategy.mapped_strategy), strategy.pack
    if inner is None:
        return None
    return lambda u: pa.array([pack(value) for value in inner(u).to_pylist()])


_COLUMNS: dict[str, Callable[[Any], Column | None]] = {
    "IntegersStrategy": _integers,
    "FloatStrategy": _floats,
    "SampledFromStrategy": _sampled,
    "JustStrategy": _sampled,
    "BooleansStrategy": _booleans,
    "DatetimeStrategy": _datetimes,
    "DateStrategy": _dates,
    "OneOfStrategy": _one_of,
    "MappedStrategy": _mapped,
}


@dataclass(frozen=True)
class Explicit:
    """Elements that were drawn one by one."""

    elements: tuple[Any, ...]
    places: tuple[int, ...] | None = None  # in their window, in ticks, where they were drawn with them

    @property
    def count(self) -> int:
        """How many rows these are."""
        return len(self.elements)

    def records(self) -> list[dict[str, Any]]:
        """The rows."""
        return [as_record(element) for element in self.elements]

    def describe(self) -> str:
        """For the digest: what the rows are."""
        return repr(self.records())


@dataclass(frozen=True)
class Bulk:
    """Rows that a seed stands for; fewer of them are a prefix of more, without those that are skipped."""

    sampler: Sampler
    size: int
    seed: int
    skip: int = 0

    @property
    def count(self) -> int:
        """How many rows these are."""
        return self.size

    @cached_property
    def table(self) -> pa.Table:
        """The rows, expanded."""
        return self.sampler.table(self.size, self.seed, self.skip)

    @property
    def elements(self) -> tuple[Any, ...]:
        """The rows as elements."""
        records = self.table.to_pylist()
        return tuple(record["value"] for record in records) if self.table.column_names == ["value"] else tuple(records)

    def records(self) -> list[dict[str, Any]]:
        """The rows."""
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found

    def describe(self) -> str:
        """For the digest: what the rows are."""
        return f"{self.size} rows of seed {self.seed} after {self.skip}"


Part: TypeAlias = Explicit | Bulk
Contents: TypeAlias = tuple[Part, ...]


def elements(contents: Contents) -> list[Any]:
    """The elements of a window."""
    return [element for part in contents for element in part.elements]


def united(left: Sequence[Contents], right: Sequence[Contents], shift: int = 0) -> list[Contents]:
    """Window-wise union, the right one shifted by some windows; the shorter is padded with empty windows.

    >>> one, two = (Explicit((1,)),), (Explicit((2,)),)
    >>> [elements(window) for window in united([one, one], [two], shift=1)]
    [[1], [1, 2]]
    """
    result = list(left) + [()] * (len(right) + shift - len(left)) if right else list(left)
    for at, contents in enumerate(right, shift):
        result[at] = result[at] + contents
    return result
