"""Very many events that live at once: what would take memory with their square is refused by name before it does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.job import on
from streamproof.errors import StreamproofError
from streamproof.events.history import History
from streamproof.plan.limits import Limits
from streamproof.plan.nodes import sources
from streamproof.thresholds import lowered
from tests.engines.local.test_bounded import PLANS, SCHEMA, SETTINGS, S

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
MORE = {
    "hopping far": S.hopping(5000, 1).aggregate(m=sp.median("v")),
    "hopping far by key": S.group_by("s").hopping(5000, 1).aggregate(m=sp.median("v"), n=sp.count_distinct("v")),
    "tumbling by key": S.group_by("s").tumbling(1).aggregate(m=sp.first("v")),
    "count_start far": S.count_start(5000).aggregate(m=sp.median("v")),
    "self-join": S.multicast(lambda one: one.join(one, "l.v = r.v or l.g = r.g", select={"v": "l.v"})),
    "followed by far": S.followed_by(S.shift(1), "l.g = r.g", select={"v": "l.v"}),
    "without anyone": S.without(S.shift(3000), "l.v < r.v"),
    "chop fine": S.chop(1),
    "clip far": S.clip(S.shift(3000), "l.v > r.v + 200"),
    "udo of all": S.snapshot().udo("each"),
    "ranking of all": S.snapshot().top(10_000, by=sp.desc("v")),
}
CROWDED = {**PLANS, **MORE}


def crowd(events: int) -> History:
    """Events that begin one by one, and all live until the first one ends."""
    n = np.arange(events)
    table = pa.table(
        {
            "le": n, "re": n + events, "k": [f"k{i}" for i in (n % 3).tolist()], "g": n % 5, "v": n * 7 % 101,
            "s": [f"s{i}" for i in n.tolist()],
        }
    )  # fmt: skip
    return History.from_table(SCHEMA, table)


def peak() -> int:
    """The most memory that this process has had since the last reset, in bytes."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def bounded(plan: sp.Stream, events: int, listed: int) -> None:
    """Run over a crowd: it is refused, or takes a little for each pair that may be listed."""
    limits = Limits(events_listed=listed)
    job = on(plan.plan, "local", modules=SETTINGS.registry, limits=limits, horizon=SETTINGS.horizon)
    given, refused = crowd(events), None
    RESET.write_text("5")
    before = peak()
    try:
        job.run(dict.fromkeys(sources(plan.plan), given))
    except StreamproofError as error:
        refused = error
    assert peak() - before < 300_000_000 + 150 * listed
    assert refused is None or (refused.name == "limit_exceeded" and refused.at and refused.fix), str(refused)


@pytest.mark.skipif(not RESET.exists(), reason="memory is measured as Linux tells it")
@pytest.mark.parametrize("name", CROWDED)
def test_a_crowd_is_refused_or_takes_little(name: str) -> None:
    bounded(CROWDED[name], 2000, 500_000)


@pytest.mark.slow
@pytest.mark.skipif(not RESET.exists(), reason="memory is measured as Linux tells it")
@pytest.mark.parametrize("name", CROWDED)
def test_a_large_crowd_is_refused_or_takes_little(name: str) -> None:
    bounded(CROWDED[name], 20_000, 5_000_000)


@pytest.mark.skipif(not RESET.exists(), reason="memory is measured as Linux tells it")
def test_members_are_not_all_listed_at_once() -> None:
    """9 million members of windows, which are as many numbers each as an event has."""
    plan = S.snapshot().aggregate(m=sp.median("v"))
    few = on(plan.plan, "local").run({"S": crowd(50)}).history
    with lowered({"windows.members": 7}):
        assert on(plan.plan, "local").run({"S": crowd(50)}).history == few
    given = crowd(3000)
    RESET.write_text("5")
    before = peak()
    assert len(on(plan.plan, "local").run({"S": given}).history) == 5999
    assert peak() - before < 450_000_000


def test_a_crowd_that_fits_is_run() -> None:
    limits = Limits(events_listed=10_000)
    plan = S.snapshot().aggregate(m=sp.median("v"))
    assert len(on(plan.plan, "local", limits=limits).run({"S": crowd(90)}).history) == 179
    with pytest.raises(StreamproofError, match=r"limit events_listed is 10,000\n  at: agg\(snapshot, m=median\(v\)\)"):
        on(plan.plan, "local", limits=limits).run({"S": crowd(200)})
    assert Settings().limits.events_listed == 50_000_000
    assert SCHEMA.names == ("k", "g", "v", "s")
