"""Rankings: the members that are sorted are those that can be among the first."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.kernels.windows.recompute.recompute_loops import near_top

MEMBERS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(-3, 3)), max_size=40)


@settings(max_examples=200, deadline=None)
@given(MEMBERS, st.integers(1, 5))
def test_whoever_has_fewer_than_k_before_him_is_looked_at(members: list[tuple[int, int, int]], k: int) -> None:
    members = sorted(members, key=lambda member: member[0])
    window = np.array([member[0] for member in members], np.int64)
    keys = np.array([member[1:] for member in members], np.int64).reshape(-1, 2)
    before = [sum(a[0] == b[0] and b[1:] < a[1:] for b in members) for a in members]
    found = np.empty(len(window), np.int64)
    near = found[: near_top(window, keys, np.empty(k, np.int64), found)].tolist()
    assert near == [n for n, count in enumerate(before) if count < k]
