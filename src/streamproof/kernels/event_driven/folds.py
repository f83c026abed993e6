"""Aggregates of many overlapping ranges of rows, by sharing algorithms that all give the same.

A row is some int64 columns, each of which adds up or has a greatest value. A range is ``[first, last)``; one opens at
its first row (a lasting event begins) and is asked for at its last (it ends).

- `delayed` (DWM): every range is scanned when it ends
- `running` (SLES): every row is added to all ranges that are open
- `slices` (SLES*): a row is added to the last slice alone; slices begin where ranges begin, and a range that ends
  combines its slices
- `two_stacks` (FIFO): ranges end in the order in which they began; the older part is combined once, from its end
- `prefixes`: where all columns add up, what is before a range is taken off

>>> rows = np.array([[1], [2], [4], [8]])
>>> first, last = np.array([0, 1, 1]), np.array([2, 4, 2])
>>> [fold(rows, ADDS, first, last).ravel().tolist() for fold in (delayed, running, slices, prefixes)]
[[3, 14, 2], [3, 14, 2], [3, 14, 2], [3, 14, 2]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.event_driven.event_loops import (
    delayed_loop,
    prefixes_loop,
    running_loop,
    slices_loop,
    two_stacks_loop,
)

Ops: TypeAlias = "npt.NDArray[np.int64]"
GREATEST: Final = 1
ADDS: Final = np.zeros(1, np.int64)
Fold: TypeAlias = "Callable[[Cells, Ops, Ints, Ints], Cells]"


def chosen(ops: Ops, first: Ints, last: Ints) -> Fold:
    """The algorithm for these columns and ranges."""
    if not ops.any():
        return prefixes
    return two_stacks if in_turn(first, last) else slices


def folded(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """The combined columns of each range, by whatever is fastest. Law: equal to `delayed`."""
    return chosen(ops, first, last)(rows, ops, first, last)


def in_turn(first: Ints, last: Ints) -> bool:
    """Whether ranges end in the order in which they begin."""
    return bool((first[1:] >= first[:-1]).all() and (last[1:] >= last[:-1]).all())


def delayed(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """Scan every range."""
    found: Cells = delayed_loop(rows, ops, first, last)
    return found


def running(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """Add every row to all open ranges."""
    found: Cells = running_loop(rows, ops, first, last, np.argsort(first, kind="stable"))
    return found


def slices(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """Combine slices between begins."""
    order = np.argsort(last, kind="stable")
    found: Cells = slices_loop(rows, ops, first, last, np.unique(first), order)
    return found


def two_stacks(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """For ranges that end in turn."""
    found: Cells = two_stacks_loop(rows, ops, first, last)
    return found


def prefixes(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """For columns that add up."""
    found: Cells = prefixes_loop(rows, first, last)
    return found
