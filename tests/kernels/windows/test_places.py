"""Rows of groups and places are those that there are, however they are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.kernels.windows.places import by_group, laid_out
from streamproof.kernels.windows.sums import GROUP, PLACE, Scratch


@pytest.mark.parametrize("reach", [2, 40, 2**40], ids=["dense", "middling", "sparse"])
@settings(deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 300))
def test_each_event_has_the_row_of_its_pair(seed: int, count: int, reach: int) -> None:
    rng, out = np.random.default_rng(seed), Scratch()
    group, place = rng.integers(0, reach, count), rng.integers(-reach, reach, count)
    row, rows = laid_out(group, place, 2, out)
    pairs = list(zip(group.tolist(), place.tolist(), strict=True))
    assert [(int(rows[n, GROUP]), int(rows[n, PLACE])) for n in row] == pairs
    assert by_group(rows, out).tolist() == [[*pair, 0, 0] for pair in sorted(set(pairs))]
