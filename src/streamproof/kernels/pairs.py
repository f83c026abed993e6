"""What kernels over two inputs share: the condition taken apart, keys as numbers, and pairs as columns.

>>> from streamproof.events.schema import Schema
>>> from streamproof.plan.parse import parse
>>> scope = Scope.two(Schema.of({"k": "int64", "v": "int64"}), Schema.of({"k": "int64"}))
>>> condition = split(parse("l.k = r.k and l.v > 1 and l.v < r.k"), scope)
>>> len(condition.equalities), len(condition.left), len(condition.right), condition.residual is not None
(1, 1, 0, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from streamproof.events import weights
from streamproof.events.schema import Schema, Type
from streamproof.events.time import show_tick
from streamproof.kernels.base import Context
from streamproof.kernels.cells import PLAIN, Bools, Cells, Ints, Layout, plain_cells
from streamproof.kernels.delta import Delta
from streamproof.kernels.expressions.columns import Columns, keep
from streamproof.kernels.expressions.compile import Evaluation, compile_expression
from streamproof.kernels.state import Numbered
from streamproof.kernels.store import Found, gather, ordered
from streamproof.kernels.store_loops import LE, PAYLOAD, RE, W, meet
from streamproof.plan.expr import LIFE_START, TRUE, Call, Col, Expr, Side, all_of, columns_of, conjuncts
from streamproof.plan.rewrites.normal_form import can_fail
from streamproof.plan.typing import Scope, type_of
from streamproof.thresholds import JOIN_KEYS

SIDES: Final[tuple[Side, Side]] = ("l", "r")


# --- the condition ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Equality:
    """``l.expr = r.expr``, which are of one type; ``nulls_match`` if it is written as is not distinct from."""

    left: Expr
    right: Expr
    type: Type
    nulls_match: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition over two inputs: what keys can decide, what each row decides alone, and what only pairs can tell."""

    equalities: tuple[Equality, ...]
    left: tuple[Expr, ...]
    right: tuple[Expr, ...]
    residual: Expr | None


def split(on: Expr, scope: Scope) -> Condition:
    """Take a condition apart. Law: a pair satisfies it exactly when it satisfies all parts.

    A condition on one side that might be an error stays with the pairs: a row without a partner must not raise it. The
    two sides of an equality are evaluated on every row all the same, as every database with hash joins does.
    """
    equalities: list[Equality] = []
    left: list[Expr] = []
    right: list[Expr] = []
    residual: list[Expr] = []
    for part in conjuncts(on):
        equality = _equality(part, scope)
        if equality is not None:
            equalities.append(equality)
        elif part != TRUE:
            alone = not can_fail(part) and len(_sides(part)) < 2
            (residual if not alone else right if _sides(part) == {"r"} else left).append(part)
    return Condition(tuple(equalities), tuple(left), tuple(right), all_of(residual) if residual else None)


def _sides(expr: Expr) -> set[Side | None]:
    return {column.side for column in columns_of(expr)}


def _equality(expr: Expr, scope: Scope) -> Equality | None:
    if not (isinstance(expr, Call) and expr.fn in ("eq", "same")):
        return None
    first, second = expr.args
    if _sides(first) == {"r"}:
        first, second = second, first
    if _sides(first) != {"l"} or _sides(second) != {"r"}:
        return None
    return Equality(first, second, type_of(first, scope), expr.fn == "same")


# --- keys -------------------------------------------------------------------------------------------------------------


class Keys(Numbered):
    """Groups and key values as dense numbers. Numbers that no row holds any more are handed out again."""

    def __init__(self, types: Sequence[Type], context: Context) -> None:
        super().__init__(Layout.of(types))
        self.context = context

    def most(self) -> int:
        return JOIN_KEYS.now

    def number(self, group: Ints, cells: Cells) -> Ints:
        """The number of each pair of group and key."""
        return self.known.intern(np.column_stack([group, cells]))

    def number_plain(self, group: Ints, values: Sequence[pa.Array]) -> Ints | None:
        """The same from the key's columns, where it is one number and nowhere null; else nothing."""
        if [kind.kind in PLAIN for kind, _ in self.layout.columns] != [True] or values[0].null_count:
            return None
        return self.known.intern_plain(group, plain_cells(values[0]))

    def group(self, numbers: Ints) -> Ints:
        """The group that a number was given for."""
        return self.known.column(numbers, 0)

    def columns(self, numbers: Ints) -> tuple[pa.Array, ...]:
        """The key's columns."""
        return tuple(
            self.layout.read(lambda cell: self.known.column(numbers, 1 + cell), n, self.context.strings)
            for n in range(len(self.layout.columns))
        )


# --- one side ---------------------------------------------------------------------------------------------------------


class SideReader:
    """How rows of one side become rows of its store: only columns that pairs need, and only rows that can match."""

    def __init__(
        self, side: Side, schema: Schema, needed: Iterable[str], condition: Condition, scope: Scope, keys: Keys
    ) -> None:
        self.side, self.keys = side, keys
        self.names = schema.names
        self.stored = tuple(name for name in schema.names if name in set(needed))
        self.layout = Layout.of(schema[name] for name in self.stored)
        alone = condition.left if side == "l" else condition.right
        self._alone = [compile_expression(part, scope) for part in alone]
        self._keys = [
            (compile_expression(pair.left if side == "l" else pair.right, scope), pair.nulls_match)
            for pair in condition.equalities
        ]

        exprs = [evaluate.expr for evaluate, _ in self._keys]
        stored = all(isinstance(expr, Col) and expr.name in self.stored for expr in exprs)
        self._stored_keys = (
            [self.stored.index(expr.name) for expr in exprs if isinstance(expr, Col)] if stored else None
        )
        self._plain: tuple[list[int], list[int]] | None = None  # where keys and stored columns are, if all are columns
        if not self._alone and all(isinstance(expr, Col) and expr.name in self.names for expr in exprs):
            named = [expr.name for expr in exprs if isinstance(expr, Col)]
            self._plain = [self.names.index(n) for n in named], [self.names.index(n) for n in self.stored]

    def read(self, delta: Delta, *, spare: int = 0) -> tuple[Cells, Bools]:
        """The rows that can match, as the rows of a run with ``spare`` more cells; and which rows those are."""
        if self._plain is not None:
            values, payload = ([delta.columns[n] for n in part] for part in self._plain)
            if not any(column.null_count for column in values):
                return self._ordered(delta, values, payload, spare), np.ones(len(delta), np.bool_)
        columns = self._columns(delta)
        found = [(evaluate(columns), nulls_match) for evaluate, nulls_match in self._keys]
        able = self._able(columns, found)
        values = [value for value, _ in found]
        payload = [columns[Col(name, self.side)] for name in self.stored]
        if not able.all():
            chosen = pa.array(able)
            values, payload = ([column.filter(chosen) for column in part] for part in (values, payload))
            delta = delta.take(able)
        return self._ordered(delta, values, payload, spare), able

    def _ordered(self, delta: Delta, values: list[pa.Array], payload: list[pa.Array], spare: int) -> Cells:
        """Rows with their keys and what is stored of them, as the rows of a run."""
        cells = cells_of(self.layout, payload, len(delta), self.keys.context)
        key = self.keys.number_plain(delta.group, values)
        if key is None:
            key = self.keys.number(delta.group, self._key_cells(cells, values))
        return ordered(key, delta.le, delta.re, delta.w, cells, spare=spare)

    def _key_cells(self, cells: Cells, values: list[pa.Array]) -> Cells:
        """The cells of keys: copied where all of them are stored columns, which have cells already."""
        layout = self.keys.layout
        if self._stored_keys is None:
            return cells_of(layout, values, len(cells), self.keys.context)
        copied = np.zeros((len(cells), layout.width), np.int64)
        for n, at in enumerate(self._stored_keys):
            (kind, to), (_, cell) = layout.columns[n], self.layout.columns[at]
            width = 2 if kind.kind == "decimal" else 1
            copied[:, to : to + width] = cells[:, cell : cell + width]
            copied[:, -1] |= (cells[:, -1] >> at & 1) << n
        return copied

    def _columns(self, delta: Delta) -> Columns:
        named = {Col(name, self.side): column for name, column in zip(self.names, delta.columns, strict=True)}
        lost = self.keys.context.lost_rows(len(delta))
        return Columns({**named, Col(LIFE_START, self.side): pa.array(delta.le)}, len(delta), lost=lost)

    def _able(self, columns: Columns, found: list[tuple[pa.Array, bool]]) -> Bools:
        """Rows that their own conditions keep and whose key is not null."""
        able = np.ones(columns.rows, np.bool_)
        for condition in self._alone:
            able &= keep(condition(columns))
        for value, nulls_match in found:
            if value.null_count and not nulls_match:
                able &= value.is_valid().to_numpy(zero_copy_only=False)
        return able if columns.lost is None else able & columns.lost.kept  # a condition that fails is not met

    def column(self, name: str, read: Callable[[int], Ints]) -> pa.Array:
        """A stored column (or le), from a function that gives the columns of rows."""
        if name == LIFE_START:
            return pa.array(read(LE))
        where = self.stored.index(name)
        return self.layout.read(lambda cell: read(PAYLOAD + cell), where, self.keys.context.strings)

    def columns(self, rows: Cells, at: Ints) -> tuple[pa.Array, ...]:
        """All stored columns of some rows."""
        return tuple(self.column(name, lambda cell: gather(rows, at, cell)) for name in self.stored)


def cells_of(layout: Layout, columns: Sequence[pa.Array], rows: int, context: Context) -> Cells:
    """The cells of columns, of which there may be none."""
    return layout.encode(columns, context.strings) if columns else np.zeros((rows, layout.width), np.int64)


# --- pairs ------------------------------------------------------------------------------------------------------------


class Pairs:
    """Rows of one side against stored events of the other. A column is read when an expression asks for it."""

    def __init__(self, readers: tuple[SideReader, SideReader], port: int, rows: Cells, found: Found) -> None:
        self._readers = readers
        self._port = port  # the side that the rows belong to
        self._rows = rows
        self.found = found
        self._known: dict[tuple[int, int], Ints] = {}  # columns that were read before, by side

    def __len__(self) -> int:
        return len(self.found)

    def cell(self, side: int, column: int) -> Ints:
        """One column of the rows of one side."""
        if (side, column) not in self._known:
            own = side == self._port
            found = gather(self._rows, self.found.query, column) if own else self.found.column(column)
            self._known[side, column] = found
        return self._known[side, column]

    def meetings(self, node: str) -> tuple[Ints, Ints, Ints, Ints]:
        """The key of each pair, when both hold, and how often; ``node`` is told of in errors."""
        key, le, re, w = (np.empty(len(self), np.int64) for _ in range(4))
        done = 0
        for others, at in self.found.parts:
            one, other = meet(self._rows, self.found.query, others, at, done, key, le, re, w)
            if (int(one) + 1) * (int(other) + 1) > weights.MOST:
                self._refuse_overflow(others, at, done, node)
            done += len(at)
        return key, le, re, w

    def _refuse_overflow(self, others: Cells, at: Ints, done: int, node: str) -> None:
        """The weights of some pairs may be too large for their product: an error where one is."""
        queries = self.found.query[done : done + len(at)]
        one, other = gather(self._rows, queries, W), gather(others, at, W)
        lost = weights.products(one, other)
        if lost.any():
            n = int(lost.argmax())
            mine, theirs = self._rows[queries[n]], others[at[n]]
            le, re = max(int(mine[LE]), int(theirs[LE])), min(int(mine[RE]), int(theirs[RE]))
            pair = f"[{show_tick(le)}, {show_tick(re)}) of two events that are there {one[n]:,} and {other[n]:,} times"
            raise weights.too_many(abs(int(one[n]) * int(other[n])), at=f"{pair}, in {node}")

    def columns(self, wanted: Iterable[Col]) -> Columns:
        """What expressions read of the pairs."""
        arrays = {column: self._column(column) for column in wanted}
        return Columns(arrays, len(self), lost=self._readers[0].keys.context.lost_rows(len(self)))

    def _column(self, column: Col) -> pa.Array:
        assert column.side is not None
        side = SIDES.index(column.side)
        return self._readers[side].column(column.name, lambda cell: self.cell(side, cell))

    def where(self, residual: Evaluation | None) -> Pairs:
        """The pairs that satisfy a condition."""
        if residual is None or not len(self):
            return self
        columns = self.columns(columns_of(residual.expr))
        mask = keep(residual(columns))
        mask = mask if columns.lost is None else mask & columns.lost.kept
        return self if mask.all() else Pairs(self._readers, self._port, self._rows, self.found.where(mask))


def residual_of(condition: Condition, scope: Scope) -> Evaluation | None:
    return None if condition.residual is None else compile_expression(condition.residual, scope)


def names_read(exprs: Iterable[Expr | None], side: Side) -> set[str]:
    """The columns of one side that expressions read."""
    read = (column for expr in exprs if expr is not None for column in columns_of(expr))
    return {column.name for column in read if column.side == side and column.name != LIFE_START}


def null_columns(schema: Schema, side: Side, rows: int) -> Mapping[Col, pa.Array]:
    """The columns of a side that is missing."""
    named = {Col(name, side): pa.nulls(rows, kind.arrow) for name, kind in schema}
    return {**named, Col(LIFE_START, side): pa.nulls(rows, pa.int64())}
