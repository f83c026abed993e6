"""The way of a source's rows from Spark into the buckets: checked, signed, and packed into blobs before the shuffle.

    rows in normal form ──► checked, one by one and against CTIs ──► signed rows, or events ──► a blob per bucket
                                        └─► dropped: counted, or dead letters

It runs once per Arrow batch on the workers, columnar, and knows no kernel, so that its workers start fast.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamproof.engines.spark.failures import WorkerError
from streamproof.engines.spark.stream.hashing import bucket_numbers
from streamproof.engines.spark.stream.wire import ARRIVALS, INPUT, BucketInput, record, to_blob
from streamproof.engines.spark.workers import settle
from streamproof.errors import InputError
from streamproof.events.notation import write_value
from streamproof.events.order import Flags, Ints, ints
from streamproof.events.schema import STRING, Schema
from streamproof.events.stream import CTI, INSERT, RETRACT, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.events.validate import Kinds, Policy, cti_before, sync_times
from streamproof.plan.nodes import AdvanceTime
from streamproof.thresholds import PORT_ROWS

Form: TypeAlias = Literal["inserts", "signed", "marked", "physical"]
CONTROL: Final[dict[Form, tuple[str, ...]]] = {
    "inserts": ("le", "re"),
    "signed": ("le", "re", "w"),
    "marked": ("kind", "le", "re"),
    "physical": ("kind", "id", "le", "re", "re_new"),
}
"""The columns before the payload, as they come from Spark; where Spark decides it, the bucket stands before them."""
WITH_KINDS: Final = ("marked", "physical")
"""What has inserts and CTIs, and with ids and new ends also retractions."""
BUCKET: Final = "bucket"


@dataclass(frozen=True, slots=True)
class SourcePort:
    """How the rows of one source come in."""

    name: str
    number: int
    schema: Schema
    form: Form
    buckets: int = 1
    keeps_events: bool = False  # they stay events, in order of arrival: they have ids, or something needs the order
    policy: Policy = "fail"
    query: int = 0
    keys: tuple[str, ...] | None = None  # columns that decide the bucket; None: Spark has decided it
    counts: bool = True  # what is counted of a source, and its dead letters, go through one of its ports
    advance: AdvanceTime | None = None  # it stands above the source: CTIs are made from the order of arrival
    upstream: int = 0  # what comes in is the output of so many buckets of an earlier stage; 0: it is a source
    in_order: bool = False  # partitions follow each other as rows arrived: files, one per micro-batch

    @property
    def tells_all(self) -> bool:
        """Whether every bucket learns when all events start, because CTIs are made of that."""
        return self.advance is not None

    @property
    def arrow(self) -> pa.Schema:
        """The columns of the blobs."""
        return PhysicalStream.arrow_schema(self.schema) if self.keeps_events else self.schema.arrow_rows

    @property
    def is_even(self) -> bool:
        """Whether all rows of the source are of one size: no strings among them."""
        return self.form != "physical" and all(kind != STRING for _, kind in self.schema)


def packing(*ports: SourcePort) -> Any:
    """The function for ``mapInArrow`` that brings the rows of a source to all its ports."""
    return partial(_pack, ports)


def _pack(ports: tuple[SourcePort, ...], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext  # noqa: PLC0415  # on workers only

    context = TaskContext.get()
    order = (context.partitionId() if context else 0) << 32
    ctis = dict.fromkeys(ports, BEGINNING)  # up to here, in this partition
    for number, table in enumerate(_gathered(batches)):
        for port in ports:
            packed = pack(port, table, order + number, after=ctis[port])
            ctis[port] = max(ctis[port], cti_of(packed))
            yield packed
    settle()


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together, so that blobs are few."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= PORT_ROWS.now:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def cti_of(packed: pa.RecordBatch) -> int:
    """The CTI that packed rows bring; it is the same for every bucket."""
    return int(packed["cti"][0].as_py()) if packed.num_rows else BEGINNING


def pack(port: SourcePort, table: pa.Table, order: int, *, after: int = BEGINNING) -> pa.RecordBatch:
    """The blobs of some rows, one per bucket that gets any; a CTI goes to every bucket.

    ``after`` is the CTI that stands before these rows in their partition.
    """
    incoming = _Incoming(port, table, after)
    rows, buckets = incoming.for_buckets()
    parts = list(by_bucket(rows, buckets, port.buckets))
    cti = incoming.cti
    everything = _everything(rows, buckets) if port.tells_all else None
    if cti > BEGINNING or incoming.dropped or everything is not None:
        reached = {bucket for bucket, _ in parts}
        parts += [(bucket, None) for bucket in range(port.buckets) if bucket not in reached]
    packed = []
    for number, (bucket, part) in enumerate(parts):
        content = BucketInput(
            port.number, order, cti, 0, arrivals=everything, rows=None if part is None else to_blob(part)
        )
        if port.counts and number == 0:  # what concerns the whole batch is said once
            content = replace(content, events=incoming.events, dropped=incoming.dropped, dead=incoming.dead)
        packed.append(record(port.query, bucket, content))
    return pa.RecordBatch.from_pylist(packed, schema=INPUT)


def _everything(rows: pa.Table, buckets: Ints | None) -> bytes:
    """Bucket, kind and start of all rows, in order of arrival."""
    places = np.zeros(rows.num_rows, np.int16) if buckets is None else buckets.astype(np.int16)
    return to_blob(pa.Table.from_arrays([pa.array(places), rows["kind"], rows["le"]], schema=ARRIVALS))


def by_bucket(rows: pa.Table, buckets: Ints | None, count: int) -> Iterator[tuple[int, pa.Table | None]]:
    """The rows of each bucket that has any."""
    if not rows.num_rows:
        return
    if buckets is None or count == 1:
        yield 0, rows
        return
    small = buckets.astype(np.int16)
    order = np.argsort(small, kind="stable")
    rows = rows.combine_chunks().take(pa.array(order))
    edges = np.searchsorted(small[order], np.arange(count + 1))
    for bucket in np.flatnonzero(np.diff(edges)).tolist():
        yield bucket, rows.slice(edges[bucket], edges[bucket + 1] - edges[bucket])


class _Incoming:
    """The rows of one Arrow batch, taken apart."""

    def __init__(self, port: SourcePort, table: pa.Table, after: int) -> None:
        self.port, self.table = port, table
        named = (*(n for n in table.column_names[:1] if n == BUCKET), *CONTROL[port.form])
        self.column = {name: table.column(n) for n, name in enumerate(named)}
        self.payload = [
            _typed(table.column(len(named) + n), kind.arrow, table.num_rows) for n, (_, kind) in enumerate(port.schema)
        ]
        rows = table.num_rows
        given = self.column.get("kind")
        self.kind: Kinds = np.zeros(rows, np.int8) if given is None else ints(given).astype(np.int8)
        self.le, self.re = ints(self.column["le"]), ints(self.column["re"])
        self.dropped = 0
        self.dead: bytes | None = None
        is_cti = self.kind == CTI
        self.cti = int(self.le[is_cti].max(initial=BEGINNING))
        self.events = int(rows - is_cti.sum())
        self.good: Flags = np.ones(rows, np.bool_)
        self._check()
        if self.cti > BEGINNING or after > BEGINNING:
            self._check_order(after)

    def _check(self) -> None:
        """The rules that look at one row."""
        event, retract = self.kind != CTI, self.kind == RETRACT
        faults: list[tuple[Flags, str, Any]] = [
            ((self.kind < INSERT) | (self.kind > CTI), "its kind is none of insert, retract and cti", "bad_input"),
            (_absent(self.column["le"]), "its time is missing", "bad_input"),
            (_absent(self.column["re"]) & event, "its end is missing", "bad_input"),
            (_outside(self.le) | (_outside(self.re) & event), "its time lies outside ±2^62 ticks", "overflow"),
        ]
        if "kind" in self.column:
            endless = _absent(self.column["re_new"]) if "re_new" in self.column else retract
            faults.append((endless & retract, "its new end is missing", "bad_input"))
        if "w" in self.column:
            why = "it has no weight, or a change that the feed does not name"
            faults.append((_absent(self.column["w"]), why, "bad_input"))
        inserts = (self.kind == INSERT) & event
        faults.append((inserts & (self.re <= self.le), "its lifetime is empty", "empty_lifetime"))
        for bad, why, name in faults:
            if (bad & self.good).any():
                self._refuse(bad & self.good, why, name)

    def _check_order(self, after: int) -> None:
        """The rules of CTIs, by the order of the rows; not where CTIs are still to be made.

        Where illegal rows are dropped and partitions follow each other, the buckets do it, who see all of them in turn.
        """
        lenient = self.port.policy != "fail"
        if self.port.tells_all or (lenient and self.port.in_order):
            return
        new = ints(self.column["re_new"]) if "re_new" in self.column else self.re
        before = cti_before(self.kind, self.le, after)
        sync = sync_times(self.kind, self.le, self.re, new)
        early = (sync < before) & self.good
        if not early.any():
            return
        if lenient:
            self._refuse(early, "it comes after a CTI that promised no change so early", "cti_violation")
            return
        first = int(np.argmax(early))
        raise WorkerError(
            late_error(
                self.port,
                int(sync[first]),
                int(before[first]),
                self._shown(first),
                cti_itself=bool(self.kind[first] == CTI),
            )
        )

    def _refuse(self, bad: Flags, why: str, name: Any) -> None:
        if self.port.policy == "fail":
            at = f"source {self.port.name}, {self._shown(int(np.argmax(bad)))}"
            fix = 'mend the data, or drop such events: on_error="drop" or "dead_letter"'
            raise WorkerError(InputError(f"an event is refused: {why}", at=at, fix=fix, name=name))
        self.good &= ~bad
        self.dropped += int(bad.sum())
        if self.port.policy == "dead_letter":
            lines = [
                json.dumps({"source": self.port.name, "why": why, "event": self._row(n)})
                for n in np.flatnonzero(bad).tolist()
            ]
            self.dead = (self.dead or b"") + "".join(line + "\n" for line in lines).encode()

    def _row(self, index: int) -> dict[str, object]:
        control = {name: self.column[name][index].as_py() for name in CONTROL[self.port.form]}
        values = zip(self.port.schema.names, self.payload, strict=True)
        return {**control, "payload": {name: plain_value(column[index].as_py()) for name, column in values}}

    def _shown(self, index: int) -> str:
        return f"row {json.dumps(self._row(index))}"

    def for_buckets(self) -> tuple[pa.Table, Ints | None]:
        """The rows for the buckets, and the bucket of each."""
        if self.port.keeps_events:
            rows, source = self._events()
        elif (self.kind == RETRACT).any():
            rows, source = self._signed()
        else:
            rows, source = self._plain()
        if self.port.buckets == 1:
            return rows, None
        buckets = self._buckets()
        buckets = buckets if source is None else buckets[source]
        spread = self.port.keeps_events and not self.port.tells_all
        return _ctis_everywhere(rows, buckets, self.port.buckets) if spread else (rows, buckets)

    def _buckets(self) -> Ints:
        if self.port.keys is None:
            return ints(self.column[BUCKET])
        columns = dict(zip(self.port.schema.names, self.payload, strict=True))
        return bucket_numbers([columns[name] for name in self.port.keys], self.table.num_rows, self.port.buckets)

    def _plain(self) -> tuple[pa.Table, Ints | None]:
        count = self.table.num_rows
        w = self.column.get("w")
        weights = pa.array(np.ones(count, np.int64)) if w is None else w.cast(pa.int64())
        rows = pa.Table.from_arrays(
            [pa.array(self.le), pa.array(self.re), weights, *self.payload], schema=self.port.schema.arrow_rows
        )
        return _those(rows, self.good & (self.kind == INSERT))

    def _signed(self) -> tuple[pa.Table, Ints]:
        """An insert is one row, a retraction the row that was and, unless it is gone, the one that is."""
        new = ints(self.column["re_new"]) if "re_new" in self.column else self.re
        retract = (self.kind == RETRACT) & self.good
        minus = np.flatnonzero(retract)
        after = np.where(retract, new, self.re)
        plus = np.flatnonzero(((self.kind == INSERT) & self.good) | (retract & (after > self.le)))
        source = np.concatenate([minus, plus])
        ends = np.concatenate([self.re[minus], after[plus]])
        weights = np.concatenate([np.full(len(minus), -1), np.ones(len(plus), np.int64)])
        taken = pa.array(source)
        columns = [pa.array(self.le[source]), pa.array(ends), pa.array(weights), *(c.take(taken) for c in self.payload)]
        return pa.Table.from_arrays(columns, schema=self.port.schema.arrow_rows), source

    def _events(self) -> tuple[pa.Table, Ints | None]:
        count = self.table.num_rows
        is_cti = self.kind == CTI
        ids = self.column["id"].cast(pa.string()) if "id" in self.column else pa.nulls(count, pa.string())
        new = self.column["re_new"].cast(pa.int64()) if "re_new" in self.column else pa.nulls(count, pa.int64())
        control = [pa.array(self.kind), ids, pa.array(self.le), pa.array(self.re, mask=is_cti), new]
        schema = PhysicalStream.arrow_schema(self.port.schema)
        return _those(pa.Table.from_arrays([*control, *self.payload], schema=schema), self.good)


def _those(rows: pa.Table, wanted: Flags) -> tuple[pa.Table, Ints | None]:
    """Some rows, and which ones they are, unless they are all. Rows in one piece, as before a CTI, are not copied."""
    if wanted.all():
        return rows, None
    places = np.flatnonzero(wanted)
    if len(places) and places[-1] - places[0] < len(places):
        return rows.slice(places[0], len(places)), places
    return rows.filter(pa.array(wanted)), places


def _ctis_everywhere(rows: pa.Table, buckets: Ints, count: int) -> tuple[pa.Table, Ints]:
    """Events with each CTI once for every bucket, in its place in the order of arrival."""
    is_cti = ints(rows["kind"]) == CTI
    events, ctis = np.flatnonzero(~is_cti), np.flatnonzero(is_cti)
    source = np.concatenate([events, np.repeat(ctis, count)])
    spread = np.concatenate([buckets[events], np.tile(np.arange(count), len(ctis))])
    order = np.argsort(source, kind="stable")
    return rows.take(pa.array(source[order])), spread[order]


def _typed(column: pa.ChunkedArray, kind: pa.DataType, rows: int) -> pa.ChunkedArray:
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(rows)])
    return column if column.type == kind else column.cast(kind)


def _absent(column: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    absent: npt.NDArray[np.bool_] = column.is_null().to_numpy()
    return absent


def _outside(times: Ints) -> Flags:
    outside: Flags = (times < BEGINNING) | (times > FOREVER)
    return outside


def late_error(port: SourcePort, time: int, cti: int, shown: str, *, cti_itself: bool = False) -> InputError:
    """A change, or a CTI, of a time that an earlier CTI has closed."""
    if cti_itself:
        return InputError(
            f"the CTI goes back from {show_tick(cti)} to {show_tick(time)}",
            at=f"source {port.name}, {shown}",
            fix="CTIs never decrease; merge sources with union, which takes the least CTI",
            name="cti_backwards",
        )
    return InputError(
        f"a change from {show_tick(time)} on, but the CTI before it promised no change before {show_tick(cti)}",
        at=f"source {port.name}, {shown}",
        fix='send the event before its CTI, delay CTIs (advance_time), or drop it: on_error="drop" or "dead_letter"',
        name="cti_violation",
    )


def plain_value(value: object) -> object:
    """A payload value as JSON can write it."""
    value = write_value(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)
