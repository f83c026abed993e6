"""One bucket of a query: the kernels for its share of the rows, and all that must outlive a micro-batch."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise, repeat
from operator import itemgetter
from time import perf_counter
from typing import Any, Final

import pyarrow as pa

from streamproof.engines.local import graph_state
from streamproof.engines.local.graph import Graph
from streamproof.engines.spark.stream.arrivals import Arrivals, Known, advanced_sources
from streamproof.engines.spark.stream.blobs import from_blobs, to_blob
from streamproof.engines.spark.stream.doors import WITH_KINDS, Door, late_error
from streamproof.engines.spark.stream.lateness import LateRows
from streamproof.engines.spark.stream.ship import Stage
from streamproof.engines.spark.stream.wire import Part
from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.encode import Encoder
from streamproof.events.order import ints
from streamproof.events.physical import to_batches
from streamproof.events.schema import LE
from streamproof.events.time import BEGINNING
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta

VERSION: Final = 4


@dataclass(slots=True)
class Answer:
    """What a bucket says to a micro-batch."""

    cti: int
    input_cti: int
    latest: int
    events: int
    outputs: int
    corrections: int
    dropped: int
    live: int
    micros: int
    dead: bytes | None
    rows: bytes | None
    advanced: bool = False  # whether the CTI is a new one


class Bucket:
    """The kernels of a query, and how far its inputs and its output have come.

    Law: how rows are spread over micro-batches does not change what the answers add up to.
    """

    def __init__(self, stage: Stage, number: int) -> None:
        self.stage = stage
        context = Context(stage.registry, limits=stage.limits, emission=stage.emission, horizon=stage.horizon)
        self.graph = Graph(stage.typed, context, seal=stage.seals)
        self.frontiers = {door.name: BEGINNING for door in stage.doors}
        self.upstream = {door.name: [BEGINNING] * door.upstream for door in stage.doors if door.upstream}
        self.cti = BEGINNING
        self.latest = BEGINNING
        advances = advanced_sources(stage.typed)
        kept = [door for door in stage.doors if door.keeps_events]
        self.arrivals = {door.name: Arrivals(door, door.advance or advances.get(door.name), number) for door in kept}
        signed = [door for door in stage.doors if door.form == "signed" and not door.upstream]
        self.known = {door.name: Known(door) for door in signed if Known.can_hold(door)}
        self.encoder = Encoder(stage.typed.schema, prefix=f"{number}.") if stage.emit == "events" else None

    def answer(self, parts: list[Part]) -> Answer:
        """Take in what a micro-batch has for this bucket."""
        started = perf_counter()
        dropped, dead = sum(part.dropped for part in parts), [part.dead for part in parts if part.dead]
        changes: dict[str, Delta] = {}
        by_source: defaultdict[int, list[Part]] = defaultdict(list)
        for part in sorted(parts, key=lambda part: (part.source, part.order)):
            by_source[part.source].append(part)
        for source, own in by_source.items():
            door = self.stage.doors[source]
            batch, late = self._incoming(door, own)
            if door.counts:
                dropped += late.count
                dead += [late.letters] if late.letters else []
            if door.name in self.graph.sources:  # else nothing of it is read in the end
                changes[door.name] = Delta.from_batch(batch)
        output = self.graph.push_together(changes) if changes else Delta.empty(self.stage.typed.schema)
        before, self.cti = self.cti, max(self.cti, output.frontier)
        corrections = int((output.w < 0).sum()) if len(output) else 0
        rows = self._rows(output)
        return Answer(
            cti=self.cti,
            input_cti=min(self.frontiers.values(), default=BEGINNING),
            latest=self.latest,
            events=sum(part.events for part in parts),
            outputs=len(output),
            corrections=corrections,
            dropped=dropped,
            live=self.graph.live_rows(),
            micros=int((perf_counter() - started) * 1e6),
            dead=b"".join(dead) or None,
            rows=rows,
            advanced=self.cti > before,
        )

    def _incoming(self, door: Door, parts: list[Part]) -> tuple[Batch, LateRows]:
        """The rows of one source with the CTI that they lead to, and what came too late."""
        if door.upstream:
            return self._from_upstream(door, parts), LateRows(door.schema.arrow_rows.empty_table())
        cti = self._cti_of(door, parts)
        if door.keeps_events:
            events, late = self.arrivals[door.name].take(parts)
            batches = list(to_batches(events))
            table = pa.concat_tables([batch.rows for batch in batches] or [door.schema.arrow_rows.empty_table()])
            cti = max([cti, *(batch.frontier for batch in batches)])
        else:
            late = self._judged(door, parts)
            table = late.kept
            if door.name in self.known:
                self.known[door.name].post(table, cti)
        starts = ints(table[LE])
        self.latest = max(self.latest, int(starts.max(initial=BEGINNING)))
        self.frontiers[door.name] = max(self.frontiers[door.name], cti)
        return Batch(door.schema, table, self.frontiers[door.name]), late

    def _cti_of(self, door: Door, parts: list[Part]) -> int:
        """The CTI that a source has after a micro-batch; where nothing is let go, one that goes back is an error."""
        before = self.frontiers[door.name]
        if door.policy == "fail" and door.form in WITH_KINDS and not door.tells_all:
            for part in parts:
                if BEGINNING < part.cti < before:
                    raise late_error(door, part.cti, before, "a CTI", cti_itself=True)
                before = max(before, part.cti) if door.in_order else before
        return max(part.cti for part in parts)

    def _judged(self, door: Door, parts: list[Part]) -> LateRows:
        """Signed rows against the CTI before them: of earlier micro-batches and, where it is known, earlier parts."""
        first = self.frontiers[door.name]
        ctis = accumulate((part.cti for part in parts), max, initial=first) if door.in_order else repeat(first)
        found: list[LateRows] = []
        for cti, together in groupby(zip(ctis, parts, strict=False), key=itemgetter(0)):
            blobs = [part.rows for _, part in together if part.rows is not None]
            found.append(LateRows.of(door, from_blobs(blobs, door.arrow), cti))
        return found[0] if len(found) == 1 else LateRows.concat(found)

    def _from_upstream(self, door: Door, parts: list[Part]) -> Batch:
        """What the buckets of an earlier stage put out: each keeps its own CTI, and the least of all counts here."""
        ctis = self.upstream[door.name]
        for part in parts:
            ctis[part.order] = max(ctis[part.order], part.cti)
        self.frontiers[door.name] = min(ctis)
        table = from_blobs([part.rows for part in parts if part.rows is not None], door.arrow)
        return Batch(door.schema, table, self.frontiers[door.name])

    def _rows(self, output: Delta) -> bytes | None:
        schema = self.stage.typed.schema
        if self.encoder is None:
            return to_blob(output.to_batch(schema).rows) if len(output) else None
        events = self.encoder.encode(output.at(self.cti).to_batch(schema))
        events = events.filter(events.kinds != 2)  # the bucket's CTI is not yet the stream's
        return to_blob(events.rows) if len(events) else None

    def save(self) -> bytes:
        """The whole state: a head in JSON, the kernels in Arrow, and what encoder and sources remember."""
        encoded, live = ({}, None) if self.encoder is None else self.encoder.snapshot()
        arrivals = {name: part.snapshot() for name, part in self.arrivals.items()}
        known = [part.snapshot() for part in self.known.values()]
        head = {
            "version": VERSION,
            "frontiers": self.frontiers,
            "upstream": self.upstream,
            "cti": self.cti,
            "latest": self.latest,
            "encoder": encoded,
            "arrivals": {name: state for name, (state, _) in arrivals.items()},
        }
        remembered = b"" if live is None else graph_state.table_bytes(live)
        kernels = graph_state.save(self.graph)
        return joined(
            [json.dumps(head).encode(), kernels, remembered, *(rows for _, rows in arrivals.values()), *known]
        )

    def restore(self, state: bytes) -> None:
        """Go on from a state: the inverse of `save`."""
        parts = cut(state)
        head: dict[str, Any] = json.loads(parts[0])
        if head.get("version") != VERSION:
            raise InputError(
                f"the state in the checkpoint has version {head.get('version')}, this program reads {VERSION}",
                fix="start with a new checkpoint, or with the version of streamproof that wrote this one",
            )
        self.frontiers, self.cti, self.latest = head["frontiers"], head["cti"], head["latest"]
        self.upstream = head.get("upstream", {})
        graph_state.restore(self.graph, parts[1])
        if self.encoder is not None:
            self.encoder.restore(head["encoder"], graph_state.read_table(parts[2]))
        kept = iter(parts[3:])
        for name, part in self.arrivals.items():
            part.restore(head["arrivals"][name], next(kept))
        for held in self.known.values():
            held.restore(next(kept), self.frontiers[held.door.name])


def bucket_from(stage: Stage, number: int, state: bytes | None) -> Bucket:
    """A bucket as it was when its state was saved, or one that has seen nothing."""
    bucket = Bucket(stage, number)
    if state is not None:
        bucket.restore(state)
    return bucket


def joined(parts: list[bytes]) -> bytes:
    """Parts as one, after a line that says how long each is."""
    return json.dumps([len(part) for part in parts]).encode() + b"\n" + b"".join(parts)


def cut(state: bytes) -> list[bytes]:
    """The parts that were joined.

    >>> cut(joined([b"a", b"", b"bcd"]))
    [b'a', b'', b'bcd']
    """
    line, _, body = state.partition(b"\n")
    ends = list(accumulate(json.loads(line), initial=0))
    return [body[start:end] for start, end in pairwise(ends)]
