"""What needs the order of arrival, without Spark: advance_time over inserts, and policies over events with ids."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from streamproof.engines.spark.failures import WorkerError
from streamproof.engines.spark.stream.arrivals import Arrivals
from streamproof.engines.spark.stream.ports import SourcePort, pack
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.workbench.buckets import inputs_by_bucket

SCHEMA = Schema.of({"v": "int64"})


def inserts(starts: list[int | None], buckets: int) -> pa.Table:
    count = len(starts)
    le = pa.array(starts, pa.int64())
    ends = pa.array([None if t is None else t + 2 for t in starts], pa.int64())
    return pa.table([pa.array(np.arange(count, dtype=np.int32) % buckets), le, ends, pa.array(range(count))],
                    names=["bucket", "le", "re", "p0"])  # fmt: skip


def through(starts: list[int], buckets: int, cut: int) -> tuple[list[tuple[int, int]], int, set[int], set[int]]:
    """The events that get through, how many do not, which CTIs the buckets end with, and the letters."""
    node = nodes.AdvanceTime(nodes.Source("S"), every=3, delay=2)
    port = SourcePort("S", 0, SCHEMA, "inserts", buckets, keeps_events=True, policy="dead_letter", advance=node)
    arrivals = [Arrivals(port, bucket) for bucket in range(buckets)]
    kept: list[tuple[int, int]] = []
    dropped, letters, ctis = 0, set[int](), dict[int, int]()
    table = inserts(starts, buckets)
    for order, part in enumerate((table.slice(0, cut), table.slice(cut))):
        for bucket, parts in inputs_by_bucket(pa.Table.from_batches([pack(port, part, order)])).items():
            events, late = arrivals[bucket].take(parts)
            rows = events.rows.to_pylist()
            kept += [(row["le"], row["v"]) for row in rows if row["kind"] != CTI]
            ctis[bucket] = max([ctis.get(bucket, 0), *(row["le"] for row in rows if row["kind"] == CTI)])
            dropped += late.count
            lines = (late.dead or b"").decode().splitlines()
            letters |= {json.loads(line)["event"]["payload"]["v"] for line in lines}
    return sorted(kept), dropped, set(ctis.values()), letters


def test_lateness_does_not_depend_on_buckets_or_batches() -> None:
    lost = 0
    for seed in range(60):
        choices = random.Random(seed)
        starts = [choices.randint(n - 6, n) for n in range(30)]
        alone = through(starts, 1, 30)
        assert through(starts, choices.randint(2, 5), choices.randint(0, 30)) == alone
        assert len(alone[0]) + alone[1] == 30
        assert len(alone[3]) == alone[1]
        lost += alone[1]
    assert lost > 50


@pytest.mark.parametrize(
    ("starts", "text"),
    [([1, None], "its time is missing"), ([1, FOREVER - 1], "its time lies outside ±2^62 ticks")],
)
def test_rows_that_cannot_be_events(starts: list[int | None], text: str) -> None:
    with pytest.raises(WorkerError, match=text.replace("±", r".*").replace("^", r"\^")):
        pack(SourcePort("S", 0, SCHEMA, "inserts"), inserts(starts, 1), 0)
    port = SourcePort("S", 0, SCHEMA, "inserts", policy="dead_letter")
    row = pack(port, inserts(starts, 1), 0).to_pylist()[0]
    assert (row["events"], row["dropped"]) == (2, 1)
    letter = json.loads(row["dead"])
    assert (letter["source"], letter["why"], letter["event"]["payload"]) == ("S", text, {"v": 1})
