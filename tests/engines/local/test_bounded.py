"""State is bounded by what is live: a stream that goes on for ever with CTIs leaves a savepoint that does not grow.

Keys, strings, ids and lifetimes are ever new. Every kind of node, window and aggregate, and every way in and out, must
be in a plan here: a new one is missed by name.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType, ModuleType

import numpy as np
import pyarrow as pa
import pytest

import streamproof as sp
from streamproof.engines.base import Settings, prepare
from streamproof.engines.local.processor import Processor
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.physical import to_batches
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI, INSERT, RETRACT, PhysicalStream
from streamproof.events.validate import Validator
from streamproof.plan import event_nodes, nodes
from streamproof.plan.aggregates import AGGREGATES
from streamproof.plan.check import walk
from streamproof.plan.library import installed
from streamproof.plan.modules import Module, Registry
from streamproof.plan.windows import WINDOWS
from streamproof.thresholds import NAMED, lowered

SCHEMA = Schema.of({"k": "string", "g": "int64", "v": "int64", "s": "string"}, unit="s")
S, R = sp.source("S", SCHEMA), sp.source("R", SCHEMA)
LENGTH, PER_TICK = 12, 4  # an event lasts so many ticks; so many start with each
REACH = 32  # so many events back, ends still change
EMISSIONS = ("speculative", "eager", "final")


@sp.udf("shout", takes=["string"], returns="string")
def shout(text: str) -> str:
    return text + "!"


@sp.uda("tally", returns="int64", takes="int64", incremental=True)
class Tally:
    """A count, kept per window."""

    def start(self) -> int:
        return 0

    def add(self, state: int, values: list[int]) -> int:
        return state + len(values)

    def remove(self, state: int, values: list[int]) -> int:
        return state - len(values)

    def result(self, state: int) -> int:
        return state


@sp.udo("each", returns={"n": "int64", "s": "string"})
def each(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{"n": len(rows), "s": f"{len(rows)} from {rows[0]['s']}"}]


MODULES: list[Module] = [shout, Tally, each]  # type: ignore[list-item]  # decorated, they are modules
SETTINGS = Settings(registry=Registry([*installed(), *MODULES]), horizon=10**9)
FUNCTIONS = {name: sp.percentile("v", 0.5) if name == "percentile" else None for name in AGGREGATES}
AGGS = {
    f"a_{name}": build or (sp.count() if name == "count" else getattr(sp, name)("v"))
    for name, build in FUNCTIONS.items()
}
NAMES = {f"s_{name}": getattr(sp, name)("s") for name in ("min", "max", "first", "last", "count_distinct")}
WIDE = {"tumbling": S.tumbling(10), "hopping": S.hopping(10, 4), "snapshot": S.snapshot()}
WIDE |= {"count_start": S.count_start(3), "count_end": S.count_end(3)}
KEYED = {"tumbling": S.group_by("k").tumbling(10), "hopping": S.group_by("k").hopping(10, 4)}
KEYED |= {"snapshot": S.group_by("k").snapshot(), "count_start": S.group_by("g").count_start(2)}
KEYED |= {"count_end": S.group_by("g").count_end(2)}  # a key that has fewer events is waited for, for ever
SAME = "l.k = r.k"
BOTH = {"k": "l.k", "s": "l.s", "t": "r.s"}

PLANS: dict[str, sp.Stream] = {
    **{f"{kind}, all aggregates": window.aggregate(**AGGS) for kind, window in WIDE.items()},
    **{f"{kind}, strings": window.aggregate(**NAMES) for kind, window in WIDE.items()},
    **{f"{kind} by key": window.aggregate(n=sp.count(), m=sp.max("s")) for kind, window in KEYED.items()},
    **{f"{kind}, ranking": window.top(2, by=sp.desc("v")) for kind, window in WIDE.items()},
    **{f"{kind}, median by key": window.aggregate(m=sp.median("v")) for kind, window in KEYED.items()},
    "uda": S.tumbling(10).uda("tally", "v"),
    "uda by key": S.group_by("k").hopping(10, 5).uda("tally", "v"),
    "udo": S.hopping(10, 5).udo("each"),
    "udo of snapshots": S.group_by("g").snapshot().udo("each", map={"s": "s"}),
    "linear": S.where("v >= 0").select("k", "v", s="shout(s) || 'x'").shift(3).extend(2).alter_duration(5),
    "points": S.to_point().union(S.point_at_end()),
    "chop": S.chop(5),
    "stitch": S.chop(5).stitch(),
    "coalesce": S.coalesce(),
    "coalesce few": S.select("g").coalesce(),
    "distinct": S.distinct(),
    "union": S.union(R),
    "join": S.join(R, SAME, select=BOTH),
    "join by time": S.join(R, "l.v < r.v", select=BOTH),
    "left outer": S.left_outer(R, SAME, select=BOTH),
    "full outer": S.full_outer(R, SAME, select=BOTH),
    "followed by": S.followed_by(R.shift(2), SAME, select=BOTH),
    "without": S.without(R.shift(2), SAME),
    "without any": S.without(R.where("v < 5").alter_duration(1)),
    "without, by strings": S.without(R.where("v < 50").shift(2), "l.k < r.k and l.s <> r.s"),
    "clip": S.alter_duration(100).clip(R, SAME),
    "clip, by strings": S.clip(R, "l.g = r.g and r.k > l.k"),
    "left outer, by strings": S.left_outer(R.shift(5), "l.g = r.g and r.s > l.s", select=BOTH),
    "session": S.session(3, max=20),
    "sessions by key": S.session(3, key="k"),
    "groups": S.group_by("k").apply(lambda group: group.group_by("s").tumbling(5).aggregate(n=sp.count())),
    "groups by numbers": S.group_by("g").apply(lambda group: group.select("v").to_point().coalesce()),
    "let": S.multicast(lambda one: one.join(one.shift(1), SAME, select={"s": "l.s"})),
    "advance_time": S.advance_time(every=50, delay=2).group_by("k").tumbling(10).aggregate(n=sp.count()),
    "advance_time adjusts": S.advance_time(every_duration=5, late="adjust").tumbling(10).aggregate(n=sp.count()),
    "on arrival": sp.eql("SELECT count(*), last(s) FROM S ON ARRIVAL WINDOW 5s GROUP BY g"),
    "every": sp.eql("SELECT count(*), avg(v) FROM S EVERY 10s WINDOW 20s"),
    "at": sp.eql("SELECT last(s), count(*) FROM S AT BECOMES(R: v > 50) WINDOW 5s"),
    "at drift": sp.eql("SELECT count(*) FROM S AT CHANGES(R.v UP BY 30) WINDOW 5s"),
    "at arrivals by key": sp.eql("SELECT count(*) FROM S AT ARRIVE(R) BY k WINDOW 5s"),
    "during": sp.eql("SELECT count(*), max(v) FROM S DURING LASTING(ARRIVE(R: v < 50), +3s)"),
    "during pairs": sp.eql("SELECT count(*) FROM S DURING LASTING(ARRIVE(R: v < 20), ARRIVE(R: v > 80) PAIR FIFO)"),
    "during, hop by hop": sp.eql(
        "SELECT count(*) FROM S DURING LASTING(ARRIVE(R: v < 20), ARRIVE(R: v > 80) BY g MAX 20s) CONTINUOUS HOP 2s"
    ),
}
PUSHED = ("events", "rows", "dead_letter", "drop")  # ways in, in turn


class Doors:
    """One plan on a processor, with what has gone in so far."""

    def __init__(self, plan: sp.Stream, emission: str, way: str) -> None:
        self.way, self.sent = way, 0
        self.processor = Processor(SETTINGS, emission=emission, keep_late=True)  # type: ignore[arg-type]  # a word of it
        policy = way if way in ("dead_letter", "drop") else "fail"
        for name in ("S", "R"):
            self.processor.source(name, SCHEMA, validator=Validator(policy=policy))  # type: ignore[arg-type]  # a word
        self.timed = any(isinstance(node, nodes.AdvanceTime) for node in nodes.walk(plan.plan))
        self.query = self.processor.start(plan.plan, name="query", keep_history=False)

    def push(self, size: int) -> list[Batch]:
        """The next events of both sources; whatever comes out is read."""
        for name in ("S", "R"):
            stream = chunk(name, self.sent, size, illegal=self.way in ("dead_letter", "drop"), timed=self.timed)
            as_rows = self.way == "rows" and not self.timed
            self.processor.push(name, next(to_batches([stream])) if as_rows else stream)
        self.sent += size
        out = self.query.pull()
        self.processor.take_late()
        for inlet in self.processor.inlets.values():
            for entry in inlet.entries.values():
                if entry.validator is not None:
                    entry.validator.take_dead_letters()
        return out


def chunk(source: str, start: int, size: int, *, illegal: bool, timed: bool) -> PhysicalStream:
    """The next events, some ends of earlier ones that change, and a CTI; for advance_time late events and no CTI."""
    number = np.arange(start, start + size)
    le = number // PER_TICK - np.where((number % 20 == 7) & timed, 40, 0)
    again = number[:REACH] - REACH
    again = again[(again % 10 == 0) & (again >= 0)]
    unknown = number[number % 50 == 3] if illegal else number[:0]
    cti = [] if timed else [int(number[-1] // PER_TICK)]
    parts = [
        (RETRACT, again, again // PER_TICK, LENGTH, "e"),
        (INSERT, number, le, LENGTH, "e"),
        (RETRACT, unknown, unknown // PER_TICK, LENGTH, "unknown"),
    ]
    kinds = np.concatenate([np.full(len(numbers), kind) for kind, numbers, *_ in parts])
    every = np.concatenate([numbers for _, numbers, *_ in parts])
    starts = np.concatenate([starts for _, _, starts, *_ in parts])
    ids = [f"{source}{word}{n}" for _, numbers, _, _, word in parts for n in numbers.tolist()]
    more = len(cti)
    changed = [at + LENGTH - 1 if kind == RETRACT else None for at, kind in zip(starts.tolist(), kinds, strict=True)]
    none = [None] * more
    return PhysicalStream(
        SCHEMA,
        pa.table(
            [
                [*kinds.tolist(), *[CTI] * more], ids + none, [*starts.tolist(), *cti],
                [*(starts + LENGTH).tolist(), *none],
                [*changed, *none],
                [*(f"k{n // 2}" for n in every.tolist()), *none], [*(every % 5).tolist(), *none],
                [*(every * 7 % 101).tolist(), *none], [*(f"{source} text {n}" for n in every.tolist()), *none],
            ],
            schema=PhysicalStream.arrow_schema(SCHEMA),
        ),
    )  # fmt: skip


def sizes(plan: sp.Stream, emission: str, way: str, *, events: int, size: int) -> Iterator[tuple[int, int]]:
    """The size of the savepoint, and of all that is held in memory, after a fifth, three fifths and all events."""
    doors = Doors(plan, emission, way)
    for sent in range(size, events + 1, size):
        doors.push(size)
        if sent * 5 in (events, 3 * events, 5 * events):
            yield len(doors.query.savepoint()), held(doors.processor)


def held(root: object) -> int:
    """The bytes of everything that an object leads to."""
    found, waiting, total = set[int](), [root], 0
    while waiting:
        one = waiting.pop()
        if id(one) in found or isinstance(one, type | ModuleType | FunctionType | MethodType | Module | Registry):
            continue
        found.add(id(one))
        total += sys.getsizeof(one) + (one.nbytes if isinstance(one, pa.Table | pa.Array | pa.ChunkedArray) else 0)
        waiting += gc.get_referents(one)
    return total


def assert_bounded(name: str, emission: str, way: str, *, events: int, size: int) -> None:
    (first, _), (_, before), (last, after) = sizes(PLANS[name], emission, way, events=events, size=size)
    assert last <= 1.2 * first + 4096, f"the savepoint grows from {first:,} to {last:,} bytes"
    assert after <= 1.5 * before + 300_000, f"what is in memory grows from {before:,} to {after:,} bytes"


def turns(names: Iterable[str]) -> list[tuple[str, str, str]]:
    """Every plan once, with emissions and ways in in turn."""
    return [(name, EMISSIONS[n % 3], PUSHED[n % len(PUSHED)]) for n, name in enumerate(names)]


@pytest.mark.parametrize(("name", "emission", "way"), turns(PLANS))
def test_state_is_bounded_by_what_is_live(name: str, emission: str, way: str) -> None:
    assert_bounded(name, emission, way, events=3000, size=100)


EARLY = {name: one.least for name, one in NAMED.items() if one.name.split(".")[0] not in {"rewrite", "postgres"}}
"""Whatever is forgotten, tidied up or compacted, is so with every push."""


def result(plan: sp.Stream, emission: str, way: str, ways: dict[str, int]) -> History:
    with lowered(ways):
        doors = Doors(plan, emission, way)
        found = []
        for _ in range(12):
            found += doors.push(25)
            if ways:
                doors.query.savepoint()  # forgets all groups and strings that nobody holds
        doors.processor.finish()
        return History.from_batches(doors.query.schema, [*found, *doors.query.pull()])


@pytest.mark.parametrize(
    ("name", "emission", "way"),
    dict.fromkeys([*turns(PLANS), *((name, "speculative", way) for name, _, way in turns(PLANS))]),
)
def test_what_is_forgotten_is_not_missed(name: str, emission: str, way: str) -> None:
    wanted = result(PLANS[name], emission, way, {})
    assert len(wanted.rows)
    assert result(PLANS[name], emission, way, EARLY) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("emission", ["speculative", "eager", "final"])
@pytest.mark.parametrize("name", PLANS)
def test_state_stays_bounded(name: str, emission: str) -> None:
    for way in PUSHED:
        assert_bounded(name, emission, way, events=100_000, size=1000)


def test_every_node_window_and_aggregate_is_here() -> None:
    plans = [stream.plan for stream in PLANS.values()]
    found = [node for plan in plans for node in walked(plan)]
    assert {type(node) for node in found} >= set(event_nodes.NODES), "a plan for each node"
    windows = {
        (type(node), node.window.kind) for node in found if hasattr(node, "window") and hasattr(node.window, "kind")
    }
    assert {(nodes.Aggregation, kind) for kind in WINDOWS} | {(nodes.TopK, kind) for kind in WINDOWS} <= windows
    aggregates = {a.fn for node in found if isinstance(node, nodes.Aggregation) for _, a in node.aggs}
    assert aggregates == set(AGGREGATES), "a plan for each aggregate"


def walked(plan: nodes.Plan) -> Iterator[nodes.Node]:
    """The nodes of a plan as it is written, and those that it becomes."""
    yield from nodes.walk(plan)
    typed = prepare(plan, dict.fromkeys(nodes.sources(plan), SCHEMA), SETTINGS)
    yield from (part.node for part in walk(typed))
