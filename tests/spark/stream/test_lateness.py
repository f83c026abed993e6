"""CTIs hold inside of a micro-batch too: doors and buckets refuse what the validator refuses, however it is cut."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest

from streamproof.engines.spark.stream.bucket import Bucket
from streamproof.engines.spark.stream.doors import CONTROL, Door, cti_of, pack
from streamproof.engines.spark.stream.failures import WorkerError, error_from
from streamproof.engines.spark.stream.ship import Stage
from streamproof.errors import StreamproofError
from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.validate import Validator
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Registry
from tests.spark.stream.splitting import parts_by_bucket

SCHEMA = Schema.of({"v": "int64"})
STAGE = Stage(
    check(nodes.Source("S"), {"S": SCHEMA}),
    (Door("S", 0, SCHEMA, "physical", in_order=True),),
    Registry(),
    Limits(),
)


def drawn(choices: random.Random) -> list[Event]:
    """A few events whose changes lie about the CTIs among them: some are late, some CTIs go back."""
    events: list[Event] = []
    live: list[Insert] = []
    cti = 0
    for n in range(choices.randint(2, 8)):
        le = cti + choices.randint(-2, 5) if choices.random() < 0.4 else cti + choices.randint(0, 5)
        match choices.choice(["insert", "insert", "retract", "cti"]):
            case "insert":
                live.append(Insert(f"e{n}", le, le + choices.randint(1, 6), {"v": n}))
                events.append(live[-1])
            case "retract" if live:
                old = live.pop(choices.randrange(len(live)))
                new = choices.randint(old.le, old.re + 3)
                events.append(Retract(old.id, old.le, old.re, new, old.payload))
            case _:
                events.append(Cti(le))
                cti = max(cti, le)
    return events


def judged(stream: PhysicalStream) -> str:
    try:
        Validator().check(stream)
    except StreamproofError as error:
        return error.name
    return "legal"


def what_counts(stream: PhysicalStream) -> PhysicalStream:
    """Without events that come and go, and without CTIs that a greater one follows: nothing depends on either."""
    events = stream.to_events()
    gone = {event.id for event in events if isinstance(event, Retract) and event.re_new == event.le}
    kept = [event for event in events if isinstance(event, Cti) or event.id not in gone]
    ctis = [event.t if isinstance(event, Cti) else None for event in kept]
    later = [max((t for t in ctis[n:] if t is not None), default=0) for n in range(len(kept))]
    kept = [event for event, t, most in zip(kept, ctis, later, strict=True) if t is None or t >= most]
    return PhysicalStream.from_events(kept, schema=stream.schema)


def in_buckets(stream: PhysicalStream, choices: random.Random, door: Door) -> str:
    """The verdict when the stream comes cut into micro-batches, partitions and Arrow batches."""
    bucket = Bucket(replace(STAGE, doors=(door,)), 0)
    names = [*CONTROL["physical"], "p0"]
    try:
        for micro_batch in cut(stream, choices):
            packed: list[pa.RecordBatch] = []
            for partition, rows in enumerate(cut(micro_batch, choices) if door.in_order else [micro_batch]):
                after = -(1 << 62)
                for number, piece in enumerate(cut(rows, choices)):
                    table = piece.rows.rename_columns(names)
                    packed.append(pack(door, table, (partition << 32) + number, after=after))
                    after = max(after, cti_of(packed[-1]))
            for parts in parts_by_bucket(pa.Table.from_batches(packed)).values() if packed else ():
                bucket.answer(parts)
    except WorkerError as error:
        return error_from(str(error)).name
    except StreamproofError as error:
        return error.name
    return "legal"


def cut(stream: PhysicalStream, choices: random.Random) -> list[PhysicalStream]:
    places = sorted({0, len(stream), *(choices.randint(0, len(stream)) for _ in range(choices.randint(0, 2)))})
    return [stream.slice(a, b - a) for a, b in pairwise(places)]


@pytest.mark.parametrize("in_order", [True, False])
def test_the_rules_of_ctis_hold_however_a_stream_is_cut(in_order: bool) -> None:
    door = replace(STAGE.doors[0], in_order=in_order)
    seen = {"legal": 0, "cti_violation": 0, "cti_backwards": 0}
    for seed in range(800):
        choices = random.Random(seed)
        stream = PhysicalStream.from_events(drawn(choices), schema=SCHEMA)
        wanted = judged(stream)
        if wanted not in seen:
            continue
        found = in_buckets(stream, choices, door)
        if wanted == "legal":
            assert found == "legal", f"seed {seed}: {stream}"
        elif found == "legal":
            assert judged(what_counts(stream)) == "legal", f"seed {seed}: {stream}"
        seen[found] += found == wanted
    assert min(seen.values()) > 30, seen
