"""group_apply: rows get the number of their group on the way in, and the group's key back on the way out.

Between the two, every kernel works on all groups at once and keeps rows of different groups apart by their number. A
group inside a group gets a number of its own for each pair of outer group and key. Numbers of groups that no kernel
holds any more are handed out again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from streamproof.events.order import plain_array
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import PLAIN, Ints, Layout, plain_cells
from streamproof.kernels.delta import Delta
from streamproof.kernels.state import Declared, Numbered
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.thresholds import GROUPS


class Groups(Numbered):
    """The groups of one group_apply: outer group and key, by number."""

    def __init__(self, typed: Typed, context: Context) -> None:
        assert isinstance(typed.node, nodes.GroupApply)
        schema = typed.inputs[0].schema
        self.positions = [schema.names.index(name) for name in typed.node.key]  # of the key in the input's columns
        super().__init__(Layout.of(schema[name] for name in typed.node.key))
        self.context = context
        for leaf in leaves(typed.inputs[1]):
            context.keys[id(leaf)] = self.key_of
        self._typed = typed
        self._is_plain = [kind.kind in PLAIN for kind, _ in self.layout.columns] == [True]

    def most(self) -> int:
        return GROUPS.now

    def number(self, delta: Delta) -> Ints:
        """The group of every row."""
        if not len(delta):
            return delta.group
        if self._is_plain and not delta.columns[self.positions[0]].null_count:
            return self.known.intern_plain(delta.group, plain_cells(delta.columns[self.positions[0]]))
        cells = self.layout.encode([delta.columns[n] for n in self.positions], self.context.strings)
        return self.known.intern(np.column_stack([delta.group, cells]))

    def keyed(self, delta: Delta) -> Delta:
        """The rows in their outer groups, with the key's columns first."""
        outer, key = self._outer_and_key(delta.group)
        both = Delta(outer, delta.le, delta.re, delta.w, (*key, *delta.columns), delta.frontier)
        return both.net(delta.is_net)  # keys tell groups apart

    def _outer_and_key(self, group: Ints) -> tuple[Ints, list[pa.Array]]:
        if self._is_plain:
            outer, cells, are_plain = self.known.plain_columns(group)
            if are_plain:
                is_float = self.layout.columns[0][0].kind == "float64"
                return outer, [plain_array(cells.view(np.float64) if is_float else cells)]
        return self.known.column(group, 0), [self._key(group, number) for number in range(len(self.positions))]

    def _key(self, group: Ints, number: int) -> pa.Array:
        """One column of the key of groups."""
        return self.layout.read(lambda cell: self.known.column(group, 1 + cell), number, self.context.strings)

    def key_of(self, group: int) -> dict[str, Any]:
        """The key of a group, after that of the group it lies in."""
        row = self.known.rows(np.array([group]))
        assert isinstance(self._typed.node, nodes.GroupApply)
        outer = self.context.key_of(self._typed.inputs[0], int(row[0, 0]))
        values = [column[0].as_py() for column in self.layout.decode(row[:, 1:], self.context.strings)]
        return {**(outer or {}), **dict(zip(self._typed.node.key, values, strict=True))}


def leaves(branch: Typed) -> list[Typed]:
    """The group_input leaves of an apply branch; inner group_applys have their own."""
    if isinstance(branch.node, nodes.GroupInput):
        return [branch]
    inputs = branch.inputs[:1] if isinstance(branch.node, nodes.GroupApply) else branch.inputs
    return [leaf for part in inputs for leaf in leaves(part)]


class EnterGroups(Declared):
    """Rows get the number of their group. The groups themselves are state, and live here."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def on_batch(self, port: int, delta: Delta) -> Delta:
        return delta.grouped(self.groups.number(delta))

    def parts(self) -> dict[str, Part]:
        return {"groups": self.groups}


class LeaveGroups(Declared):
    """Rows get the key of their group back."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups

    def on_batch(self, port: int, delta: Delta) -> Delta:
        return self.groups.keyed(delta)
