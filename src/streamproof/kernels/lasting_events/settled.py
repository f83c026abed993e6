"""Settled data as slices: what came before the frontier, combined between the begins of events that still last.

Nothing before the frontier changes any more, and every event that looks back so far begins where a slice begins. So a
slice stands for all its tuples: there are never more slices than open events (and subgroups), however many tuples came.
When events end, their slices join those before them, or go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from streamproof.kernels.base import State, array
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.lasting_events.contributions import Contribution, Part, together
from streamproof.kernels.windows import exact


@dataclass(slots=True)
class Slices:
    """Slices in the order of subgroup and start."""

    sub: Ints
    le: Ints  # the start of its first tuple
    parts: list[Contribution]  # one for each aggregate

    @staticmethod
    def none(parts: list[Part]) -> Slices:
        empty = np.empty(0, np.int64)
        return Slices(empty, empty, [part.nothing() for part in parts])

    def __len__(self) -> int:
        return len(self.le)

    def combined(self, sub: Ints, le: Ints, more: list[Contribution], cut: Ints, parts: list[Part]) -> Slices:
        """These slices and more rows, one for each subgroup and place between cuts; ``cut`` says which of each."""
        both = [together(a, b) for a, b in zip(self.parts, more, strict=True)]
        all_subs, all_starts = np.concatenate([self.sub, sub]), np.concatenate([self.le, le])
        order = np.lexsort((all_starts, all_subs))
        order = order[cut[order] >= 0]  # what no event can see any more goes
        subs, starts, cuts = all_subs[order], all_starts[order], cut[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (subs[1:] != subs[:-1]) | (cuts[1:] != cuts[:-1])
        first = np.flatnonzero(fresh)
        made = [
            Contribution(_reduced(given.matrix[order], first, part), given.scale)
            for part, given in zip(parts, both, strict=True)
        ]
        return Slices(subs[first], starts[first], made)

    def snapshot(self) -> State:
        matrix = np.column_stack([self.sub, self.le, *(part.matrix for part in self.parts)])
        scales = [(0, 0) if part.scale is None else (part.scale.base, part.scale.count) for part in self.parts]
        widths = [part.matrix.shape[1] for part in self.parts]
        return {"slices": matrix, "slice_scales": np.array(scales), "slice_widths": np.array(widths)}

    @staticmethod
    def restore(state: State) -> Slices:
        matrix = array(state, "slices")
        parts, at = [], 2
        for width, (base, count) in zip(array(state, "slice_widths"), array(state, "slice_scales"), strict=True):
            scale = exact.Scale(int(base), int(count)) if count else None
            parts.append(Contribution(np.ascontiguousarray(matrix[:, at : at + width]), scale))
            at += int(width)
        return Slices(np.ascontiguousarray(matrix[:, 0]), np.ascontiguousarray(matrix[:, 1]), parts)


def _reduced(matrix: Cells, first: Ints, part: Part) -> Cells:
    """The combined columns of stretches of rows that begin at these places."""
    if not len(first):
        return matrix[:0]
    if part.greatest:
        return np.maximum.reduceat(matrix, first, axis=0)
    found = np.add.reduceat(matrix, first, axis=0)
    limbs = part.limbs(found.shape[1])
    if limbs is not None:
        _carry(found, limbs, found.shape[1] - limbs)  # so that no limb ever runs over, however long a slice grows
    return found


@njit(cache=True)
def _carry(rows, at, count):  # type: ignore[no-untyped-def]
    for row in range(len(rows)):
        exact.carry(rows, row, at, count)
