"""Consolidation keeps the sum of the rows and leaves no two that are equal."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.events.schema import Schema
from streamproof.kernels.cells import Layout, Strings
from streamproof.kernels.delta import Delta, consolidate

SCHEMAS = (Schema.of({"v": "float64"}), Schema.of({"v": "int64", "s": "string"}), Schema.of({}))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "float64": st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
    "int64": st.none() | st.integers(0, 2),
    "string": st.none() | st.sampled_from(["", "a"]),
}


@st.composite
def deltas(draw: st.DrawFn, schema: Schema) -> Delta:
    rows = draw(st.integers(0, 12))
    group, le, re, w = (
        np.array(draw(st.lists(st.integers(*span), min_size=rows, max_size=rows)), np.int64)
        for span in ((0, 1), (0, 1), (5, 6), (-2, 2))
    )
    columns = [
        pa.array(draw(st.lists(VALUES[kind.kind], min_size=rows, max_size=rows)), kind.arrow) for _, kind in schema
    ]
    return Delta(group, le, re, w, tuple(columns))


def bag(delta: Delta) -> Counter[tuple[str, ...]]:
    total: Counter[tuple[str, ...]] = Counter()
    values = [[str(v + 0.0) if isinstance(v, float) else repr(v) for v in c.to_pylist()] for c in delta.columns]
    for n in range(len(delta)):
        name = str(delta.group[n]), str(delta.le[n]), str(delta.re[n]), *(column[n] for column in values)
        total[name] += int(delta.w[n])
    return total


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: ",".join(schema.names) or "none")
@settings(deadline=None)
@given(data=st.data())
def test_consolidated(schema: Schema, data: st.DataObject) -> None:
    delta = data.draw(deltas(schema))
    found = consolidate(delta, Layout.of(schema), Strings())
    wanted = {row: w for row, w in bag(delta).items() if w}
    assert bag(found) == wanted
    assert len(found) == len(wanted)


def test_what_is_known_to_be_net_is_forgotten_when_rows_change() -> None:
    delta = Delta(*(np.array(column) for column in ([0, 0], [1, 2], [5, 5], [1, 1])), ()).net()
    assert delta.at(7).is_net
    assert not replace(delta, le=np.array([1, 1])).is_net
    assert not delta.take(np.array([0, 0])).is_net
    assert consolidate(delta, Layout.of([]), Strings()) is delta
