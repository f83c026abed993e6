"""A pane store is a mapping from group and place to sums, whatever came in which order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.kernels.cells import Cells
from streamproof.kernels.windows.hopping_sums.pane_store import PaneStore

NO_LIMBS = np.empty((0, 7), np.int64)
Model = dict[tuple[int, int], int]


def changes(rng: np.random.Generator, held: Model, *, groups: int, now: int) -> Cells:
    """New sums near some place, and a few that take away what is held."""
    count = int(rng.integers(1, 40))
    found = {(int(rng.integers(groups)), now + int(rng.integers(-20, 10))): 1 for _ in range(count)}
    gone = [pair for pair in held if rng.random() < 0.1]
    found.update({pair: -held[pair] for pair in gone})
    return np.array([(*pair, found[pair]) for pair in sorted(found)], np.int64)


def put(model: Model, rows: Cells) -> None:
    for group, place, amount in rows.tolist():
        model[group, place] = model.get((group, place), 0) + amount
        if not model[group, place]:
            del model[group, place]


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 5, 100]), st.booleans())
def test_a_pane_store_is_a_mapping(seed: int, groups: int, fold: bool) -> None:
    rng, model, panes = np.random.default_rng(seed), Model(), PaneStore(width=1)
    for now in range(0, 200, 10):
        rows = changes(rng, model, groups=groups, now=now)
        panes.put(rows, NO_LIMBS)
        put(model, rows)
        if rng.random() < 0.3:
            panes.forget(now - 30, spec=NO_LIMBS, fold=fold)
            _forget(model, now - 30, fold=fold)
        assert panes.export().tolist() == [[*pair, model[pair]] for pair in sorted(model)]
        assert panes.live_groups().tolist() == sorted({group for group, _ in model})


def _forget(model: Model, before: int, *, fold: bool) -> None:
    gone = [pair for pair in model if pair[1] < before]
    rows = [(group, before - 1, model[group, place]) for group, place in gone]
    for pair in gone:
        del model[pair]
    if fold:
        put(model, np.array(rows, np.int64).reshape(-1, 3))


@pytest.mark.parametrize("groups", [1, 300])
def test_memory_is_bounded_by_what_is_held(groups: int) -> None:
    """However many rows come and go."""
    panes, sizes = PaneStore(width=1), []
    for now in range(400):
        rows = np.array([(group, now, 1) for group in range(groups)], np.int64)
        panes.put(rows, NO_LIMBS)
        panes.forget(now - 5, spec=NO_LIMBS, fold=False)
        sizes.append(len(panes.rows))
    assert max(sizes) <= max(64, 60 * groups)
