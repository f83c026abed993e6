"""The sums of a batch are those of its groups and places, however they are found."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.events.schema import Schema
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.hopping_sums.dense_batch import collected
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.kernels.windows.shared.sums import Accumulators, Entries, Scratch
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.expr import Col
from streamproof.plan.library import installed

SCHEMA, RESULT = Schema.of({"n": "int64"}), Schema.of({"c": "int64", "s": "int64"})
AGGS = (("c", Aggregate("count")), ("s", Aggregate("sum", Col("n"))))


@pytest.mark.parametrize("reach", [2, 40, 2**40], ids=["dense", "middling", "sparse"])
@settings(deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(0, 300))
def test_each_pair_has_its_sums(seed: int, count: int, reach: int) -> None:
    rng = np.random.default_rng(seed)
    group, place = rng.integers(0, reach, count), rng.integers(-reach, reach, count)
    values, w = rng.integers(0, 9, count), rng.choice([1, 1, 2, -1], count)
    sums = Accumulators(AGGS, StoredColumns(SCHEMA, Context(installed()), payload=False), Layout.of(RESULT))
    delta = Delta(group, place, place + 1, w, (pa.array(values),))
    rows = collected(Entries(group, place, np.arange(count), w), sums.read(delta), sums, Scratch())

    counts, totals = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for a, b, value, weight in zip(*(column.tolist() for column in (group, place, values, w)), strict=True):
        counts[a, b] += weight
        totals[a, b] += weight * value
    wanted = [[*pair, counts[pair], totals[pair], 0] for pair in sorted(counts)]
    something = [row for row in wanted if any(row[2:])]
    assert [row for row in rows.tolist() if any(row[2:])] == something
