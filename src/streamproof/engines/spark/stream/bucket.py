"""One bucket of a query: the kernels for its share of the rows, and all that must outlive a micro-batch."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import accumulate, groupby, pairwise, repeat
from operator import itemgetter
from time import perf_counter
from typing import Any, Final

import pyarrow as pa

from streamproof.engines.local import graph_state
from streamproof.engines.local.graph import Graph
from streamproof.engines.spark.stream.arrivals import Arrivals, LateRows, LiveRows
from streamproof.engines.spark.stream.ports import WITH_KINDS, SourcePort, late_error
from streamproof.engines.spark.stream.stage import StageSpec
from streamproof.engines.spark.stream.wire import BucketInput, BucketOutput, from_blobs
from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.encode import Encoder
from streamproof.events.order import ints
from streamproof.events.physical import to_batches
from streamproof.events.schema import LE
from streamproof.events.stream import CTI
from streamproof.events.time import BEGINNING
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta

VERSION: Final = 4


class Bucket:
    """The kernels of a query, and how far its inputs and its output have come.

    Law: how rows are spread over micro-batches does not change what the outputs add up to.
    """

    def __init__(self, stage: StageSpec, number: int) -> None:
        self.stage = stage
        context = Context(stage.registry, limits=stage.limits, emission=stage.emission, horizon=stage.horizon)
        self.graph = Graph(stage.typed, context, seal=stage.seals)
        self.frontiers = {port.name: BEGINNING for port in stage.ports}
        self.upstream = {port.name: [BEGINNING] * port.upstream for port in stage.ports if port.upstream}
        self.cti = BEGINNING
        self.latest = BEGINNING
        self.arrivals = {port.name: Arrivals(port, number) for port in stage.ports if port.keeps_events}
        signed = [port for port in stage.ports if port.form == "signed" and not port.upstream]
        self.live_rows = {port.name: LiveRows(port) for port in signed if LiveRows.can_hold(port)}
        self.encoder = Encoder(stage.typed.schema, prefix=f"{number}.") if stage.emit == "events" else None

    def process(self, inputs: list[BucketInput]) -> BucketOutput:
        """Take in what a micro-batch has for this bucket; all of a source before anything of the next one."""
        started = perf_counter()
        dropped, dead = sum(one.dropped for one in inputs), [one.dead for one in inputs if one.dead]
        changes: dict[str, Delta] = {}
        by_source: defaultdict[int, list[BucketInput]] = defaultdict(list)
        for one in sorted(inputs, key=lambda one: (one.source, one.order)):
            by_source[one.source].append(one)
        for source, own in by_source.items():
            port = self.stage.ports[source]
            batch, late = self._incoming(port, own)
            if port.counts:
                dropped += late.count
                dead += [late.dead] if late.dead else []
            if port.name in self.graph.sources:  # else nothing of it is read in the end
                changes[port.name] = Delta.from_batch(batch)
        output = self.graph.push_together(changes) if changes else Delta.empty(self.stage.typed.schema)
        before, self.cti = self.cti, max(self.cti, output.frontier)
        corrections = int((output.w < 0).sum()) if len(output) else 0
        rows = self._rows(output)
        return BucketOutput(
            cti=self.cti,
            input_cti=min(self.frontiers.values(), default=BEGINNING),
            latest=self.latest,
            events=sum(one.events for one in inputs),
            outputs=len(output),
            corrections=corrections,
            dropped=dropped,
            live=self.graph.live_rows(),
            micros=int((perf_counter() - started) * 1e6),
            dead=b"".join(dead) or None,
            rows=rows,
            advanced=self.cti > before,
        )

    def _incoming(self, port: SourcePort, inputs: list[BucketInput]) -> tuple[Batch, LateRows]:
        """The rows of one source with the CTI that they lead to, and what came too late."""
        if port.upstream:
            return self._from_upstream(port, inputs), LateRows(port.schema.arrow_rows.empty_table())
        cti = self._cti_of(port, inputs)
        if port.keeps_events:
            events, late = self.arrivals[port.name].take(inputs)
            batches = list(to_batches(events))
            table = pa.concat_tables([batch.rows for batch in batches] or [port.schema.arrow_rows.empty_table()])
            cti = max([cti, *(batch.frontier for batch in batches)])
        else:
            late = self._judged(port, inputs)
            table = late.in_time
            if port.name in self.live_rows:
                self.live_rows[port.name].post(table, cti)
        starts = ints(table[LE])
        self.latest = max(self.latest, int(starts.max(initial=BEGINNING)))
        self.frontiers[port.name] = max(self.frontiers[port.name], cti)
        return Batch(port.schema, table, self.frontiers[port.name]), late

    def _cti_of(self, port: SourcePort, inputs: list[BucketInput]) -> int:
        """The CTI that a source has after a micro-batch; where nothing is dropped, one that goes back is an error."""
        before = self.frontiers[port.name]
        if port.policy == "fail" and port.form in WITH_KINDS and not port.tells_all:
            for one in inputs:
                if BEGINNING < one.cti < before:
                    raise late_error(port, one.cti, before, "a CTI", cti_itself=True)
                before = max(before, one.cti) if port.in_order else before
        return max(one.cti for one in inputs)

    def _judged(self, port: SourcePort, inputs: list[BucketInput]) -> LateRows:
        """Signed rows against the CTI before them: of earlier micro-batches and, where it is known, earlier inputs."""
        first = self.frontiers[port.name]
        ctis = accumulate((one.cti for one in inputs), max, initial=first) if port.in_order else repeat(first)
        found: list[LateRows] = []
        for cti, together in groupby(zip(ctis, inputs, strict=False), key=itemgetter(0)):
            blobs = [one.rows for _, one in together if one.rows is not None]
            found.append(LateRows.of(port, from_blobs(blobs, port.arrow), cti))
        return found[0] if len(found) == 1 else LateRows.concat(found)

    def _from_upstream(self, port: SourcePort, inputs: list[BucketInput]) -> Batch:
        """What the buckets of an earlier stage put out: each keeps its own CTI, and the least of all counts here."""
        ctis = self.upstream[port.name]
        for one in inputs:
            ctis[one.order] = max(ctis[one.order], one.cti)
        self.frontiers[port.name] = min(ctis)
        table = from_blobs([one.rows for one in inputs if one.rows is not None], port.arrow)
        return Batch(port.schema, table, self.frontiers[port.name])

    def _rows(self, output: Delta) -> pa.Table | None:
        """What goes out: signed rows, or events."""
        schema = self.stage.typed.schema
        if self.encoder is None:
            return output.to_batch(schema).rows if len(output) else None
        events = self.encoder.encode(output.at(self.cti).to_batch(schema))
        events = events.filter(events.kinds != CTI)  # the bucket's CTI is not yet the stream's
        return events.rows if len(events) else None

    def save(self) -> bytes:
        """The whole state: a head in JSON, the kernels in Arrow, and what encoder and sources remember."""
        encoded, live = ({}, None) if self.encoder is None else self.encoder.save()
        arrivals = {name: part.save() for name, part in self.arrivals.items()}
        known = [part.save() for part in self.live_rows.values()]
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
        for held in self.live_rows.values():
            held.restore(next(kept), self.frontiers[held.port.name])


def bucket_from(stage: StageSpec, number: int, state: bytes | None) -> Bucket:
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
