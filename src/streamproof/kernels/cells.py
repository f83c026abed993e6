"""Payloads as int64 cells: the one shape in which kernels hold, compare, hash and sort them.

Every column takes one cell (a decimal two), and a last cell holds the null bits. Floats are stored canonically (one
NaN, no −0.0), strings as numbers that `Strings` hands out, so two payloads are equal exactly when their cells are.

>>> from streamproof.events.schema import Schema
>>> layout, strings = Layout.of(Schema.of({"k": "string", "v": "float64"})), Strings()
>>> cells = layout.encode([pa.array(["a", None]), pa.array([-0.0, 2.5])], strings)
>>> cells.shape, cells[1, -1]
((2, 3), np.int64(1))
>>> [column.to_pylist() for column in layout.decode(cells, strings)]
[['a', None], [0.0, 2.5]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamproof.errors import PlanError
from streamproof.events.order import bits_of, nulls_of, plain_array
from streamproof.events.schema import Schema, Type
from streamproof.kernels.columns_loops import bits_loop
from streamproof.thresholds import STRINGS_SHORT, STRINGS_SHOWN

N = TypeVar("N", bound=np.generic)
Ints: TypeAlias = npt.NDArray[np.int64]
Cells: TypeAlias = npt.NDArray[np.int64]  # rows × width
Bools: TypeAlias = npt.NDArray[np.bool_]
MAX_COLUMNS: Final = 62
PLAIN: Final = ("int64", "float64")


class Strings:
    """Numbers for strings. Numbers of strings that nobody holds any more are handed out again."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: list[str | None] = []  # by number; None where free
        self._free: list[int] = []
        self._shown: pa.Array | None = None  # the texts in Arrow, until they change

    def __len__(self) -> int:
        return len(self._codes)

    def encode(self, column: pa.Array) -> Ints:
        """The numbers of a column of strings, any for null; in a long one, one look-up per different string."""
        if len(column) <= STRINGS_SHORT.now:
            return np.array([0 if text is None else self._code(text) for text in column.to_pylist()], np.int64)
        encoded = column.dictionary_encode()
        codes = np.fromiter((self._code(text) for text in encoded.dictionary.to_pylist()), np.int64)
        indices = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return codes[indices] if len(codes) else np.zeros(len(column), np.int64)

    def _code(self, text: str) -> int:
        code = self._codes.get(text)
        if code is None:
            if self._free:
                code = self._free.pop()
                self._texts[code] = text
            else:
                code = len(self._texts)
                self._texts.append(text)
            self._codes[text] = code
            self._shown = None
        return code

    def decode(self, codes: Ints, mask: npt.NDArray[np.bool_]) -> pa.Array:
        """The strings of numbers; masked ones are null."""
        if len(codes) <= STRINGS_SHORT.now:
            pairs = zip(codes.tolist(), mask.tolist(), strict=True)
            return pa.array([None if absent else self._texts[code] for code, absent in pairs], pa.string())
        if len(self._texts) <= STRINGS_SHOWN.now + 2 * len(codes):
            if self._shown is None:
                self._shown = pa.array(self._texts, pa.string())
            return self._shown.take(pa.array(codes, mask=mask if mask.any() else None))
        used, inverse = np.unique(np.where(mask, -1, codes), return_inverse=True)
        texts = pa.array([None if code < 0 else self._texts[code] for code in used.tolist()], pa.string())
        return texts.take(pa.array(inverse))

    def keep_only(self, live: Ints) -> None:
        """Forget every string whose number is not in ``live``."""
        kept = set(np.unique(live).tolist())
        for text, code in list(self._codes.items()):
            if code not in kept:
                del self._codes[text]
                self._texts[code] = None
                self._free.append(code)
        self._shorten()
        self._shown = None

    def _shorten(self) -> None:
        """Without the free numbers at the end."""
        size = max(self._codes.values(), default=-1) + 1
        if size < len(self._texts):
            del self._texts[size:]
            self._free = [code for code in self._free if code < size]

    def export(self) -> tuple[list[int], list[str]]:
        """The strings that are known and the number of each, to be saved."""
        return list(self._codes.values()), list(self._codes)

    def restore(self, codes: Sequence[int], texts: Sequence[str]) -> None:
        """Know these strings by these numbers: the inverse of `export`."""
        self._codes = dict(zip(texts, codes, strict=True))
        self._texts = [None] * (max(codes, default=-1) + 1)
        for text, code in self._codes.items():
            self._texts[code] = text
        self._free = [code for code, text in enumerate(self._texts) if text is None]
        self._shown = None

    def order(self, codes: Ints) -> Ints:
        """For each number the rank of its string by code point, so that ranks sort as the strings do."""
        used, inverse = np.unique(codes, return_inverse=True)
        texts = [self._texts[code] or "" if 0 <= code < len(self._texts) else "" for code in used.tolist()]
        ranks = np.empty(len(used), np.int64)
        ranks[sorted(range(len(used)), key=texts.__getitem__)] = np.arange(len(used))
        return ranks[inverse]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which cells hold which column."""

    columns: tuple[tuple[Type, int], ...]  # type and first cell
    width: int  # cells in all, the null bits included

    @staticmethod
    def of(columns: Schema | Iterable[Type]) -> Layout:
        types = [kind for _, kind in columns] if isinstance(columns, Schema) else list(columns)
        if len(types) > MAX_COLUMNS:
            raise PlanError(
                f"{len(types)} payload columns; at most {MAX_COLUMNS} are supported here",
                fix="select the columns that the query needs",
                name="limit_exceeded",
            )
        placed, cell = [], 0
        for kind in types:
            placed.append((kind, cell))
            cell += 2 if kind.kind == "decimal" else 1
        return Layout(tuple(placed), cell + 1)

    def encode(self, columns: Sequence[pa.Array], strings: Strings) -> Cells:
        """The cells of equally long columns."""
        rows = len(columns[0]) if columns else 0
        cells = np.zeros((rows, self.width), np.int64)
        if not rows:
            return cells
        for bit, ((kind, cell), column) in enumerate(zip(self.columns, columns, strict=True)):
            _encode(kind, column, strings, cells, cell)
            if column.null_count:
                absent = nulls_of(column)
                cells[absent, cell : cell + (2 if kind.kind == "decimal" else 1)] = 0
                cells[absent, -1] |= 1 << bit
        return cells

    def columns_of(self, columns: Sequence[pa.Array], strings: Strings) -> list[Ints]:
        """The same cells column by column, without a matrix; the null bits only where there are nulls."""
        if all(kind.kind in PLAIN for kind, _ in self.columns) and not any(column.null_count for column in columns):
            return [plain_cells(column) for column in columns]
        cells = self.encode(columns, strings)
        return [np.ascontiguousarray(cells[:, n]) for n in range(self.width)]

    def decode(self, cells: Cells, strings: Strings) -> list[pa.Array]:
        """The columns of cells: the inverse of `encode`."""
        if len(cells) and cells[:, -1].any():
            return [self.column(cells, n, strings) for n in range(len(self.columns))]
        found = []
        for kind, cell in self.columns:
            halves = np.ascontiguousarray(cells[:, cell + 1]) if kind.kind == "decimal" else None
            found.append(_decode(kind, np.ascontiguousarray(cells[:, cell]), halves, None, strings))
        return found

    def column(self, cells: Cells, number: int, strings: Strings) -> pa.Array:
        """One column of cells."""
        return self.read(lambda cell: np.ascontiguousarray(cells[:, cell]), number, strings)

    def read(self, cell_of: Callable[[int], Ints], number: int, strings: Strings) -> pa.Array:
        """One column, from a function that gives the values of a cell: only what the column needs is asked for."""
        kind, cell = self.columns[number]
        bits = cell_of(self.width - 1)
        mask = (bits >> number & 1).astype(np.bool_) if bits.any() else None
        halves = cell_of(cell + 1) if kind.kind == "decimal" else None
        return _decode(kind, cell_of(cell), halves, mask, strings)

    def nulls(self, cells: Cells, number: int) -> npt.NDArray[np.bool_]:
        """Which rows hold null in a column."""
        return (cells[:, -1] >> number & 1).astype(np.bool_)

    def string_codes(self, cells: Cells) -> Ints:
        """Every string number that these cells hold, null ones excepted."""
        parts = [
            cells[~self.nulls(cells, n), cell] for n, (kind, cell) in enumerate(self.columns) if kind.kind == "string"
        ]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def order_keys(self, cells: Cells, strings: Strings) -> list[npt.NDArray[np.generic]]:
        """Arrays that sort as the payload does, by column: nulls last, NaN above numbers, strings by code point."""
        keys: list[npt.NDArray[np.generic]] = []
        for n, (kind, cell) in enumerate(self.columns):
            keys.append(self.nulls(cells, n))
            keys.extend(_order(kind, cells, cell, strings))
        return keys


def _encode(kind: Type, column: pa.Array, strings: Strings, cells: Cells, cell: int) -> None:
    """The cells of a column with rows; where it is null, anything."""
    match kind.kind:
        case "null":
            return
        case "string":
            cells[:, cell] = strings.encode(column)
        case "decimal":
            halves = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), 16 * column.offset)
            cells[:, cell : cell + 2] = halves.reshape(-1, 2)
        case "float64":
            cells[:, cell] = float_bits(_values(column, kind, np.float64))
        case "bool":
            cells[:, cell] = bits_of(column.buffers()[1], column)
        case "date":
            cells[:, cell] = _values(column, kind, np.int32)
        case _:
            cells[:, cell] = _values(column, kind, np.int64)


def _values(column: pa.Array, kind: Type, stored: type[N]) -> npt.NDArray[N]:
    """The values of a column as they are stored, without a copy; null ones may be anything."""
    given = column if column.type == kind.arrow else column.cast(kind.arrow)
    return np.frombuffer(given.buffers()[1], stored, len(given), given.offset * np.dtype(stored).itemsize)


def plain_cells(column: pa.Array) -> Ints:
    """The cells of a column of int64 or float64 without nulls; of integers without a copy.

    >>> plain_cells(pa.array([7, 9])).tolist(), plain_cells(pa.array([-0.0])).tolist()
    ([7, 9], [0])
    """
    values = column.to_numpy(zero_copy_only=False)
    return float_bits(values) if values.dtype == np.float64 else values


def float_bits(values: npt.NDArray[np.float64]) -> Ints:
    """Floats as their bits, with one NaN and one zero.

    >>> float_bits(np.array([0.0, -0.0])).tolist()
    [0, 0]
    """
    bits: Ints = bits_loop(np.ascontiguousarray(values).view(np.int64))
    return bits


def _decode(
    kind: Type, values: Ints, high: Ints | None, nulls: npt.NDArray[np.bool_] | None, strings: Strings
) -> pa.Array:
    """The values of a column; ``high`` is the other half of decimals."""
    match kind.kind:
        case "float64":
            floats = values.view(np.float64)
            return plain_array(floats) if nulls is None else pa.array(floats, mask=nulls)
        case "int64":
            return plain_array(values) if nulls is None else pa.array(values, mask=nulls)
        case "null":
            return pa.nulls(len(values))
        case "string":
            return strings.decode(values, np.zeros(len(values), np.bool_) if nulls is None else nulls)
        case "decimal":
            assert high is not None
            return _stored(kind, np.column_stack([values, high]), nulls)
        case "bool":
            return pa.array(values.astype(np.bool_), mask=nulls)
        case "date":
            return _stored(kind, values.astype(np.int32), nulls)
        case "timestamp":
            return _stored(kind, values, nulls)
    return pa.array(values, mask=nulls)


def _stored(kind: Type, values: npt.NDArray[np.generic], nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
    """A column over values as it stores them: a cast would cost many times as much."""
    bitmap = None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(kind.arrow, len(values), [bitmap, pa.py_buffer(values)])


def _order(kind: Type, cells: Cells, cell: int, strings: Strings) -> list[npt.NDArray[np.generic]]:
    match kind.kind:
        case "string":
            return [strings.order(cells[:, cell])]
        case "decimal":  # the high half decides, the low half counts without sign
            return [cells[:, cell + 1], cells[:, cell].view(np.uint64)]
        case "float64":
            return [np.ascontiguousarray(cells[:, cell]).view(np.float64)]  # numpy sorts NaN last
    return [cells[:, cell]]
