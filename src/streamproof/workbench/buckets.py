"""Cases in the form in which they reach Spark's stateful stage: cut into micro-batches and buckets.

`BucketSubject` runs the stage's buckets in process, so that what hosts the kernels is judged without starting Spark.
The state of a bucket is in memory, behind the few methods of Spark's map that a journal calls.
"""

from __future__ import annotations

import random
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np
import pyarrow as pa

from streamproof.engines.spark.stream.chain import advanced_sources, read_apart
from streamproof.engines.spark.stream.journal import BucketCache, Journal
from streamproof.engines.spark.stream.keys import split_by
from streamproof.engines.spark.stream.ports import BUCKET, SourcePort, pack
from streamproof.engines.spark.stream.stage import StageSpec
from streamproof.engines.spark.stream.wire import (
    INPUT,
    BucketInput,
    BucketOutput,
    Emit,
    from_blobs,
    inputs_in,
    output_schema,
    to_blob,
)
from streamproof.errors import StreamproofError
from streamproof.events.bag import consolidate
from streamproof.events.batch import Batch
from streamproof.events.encode import cti
from streamproof.events.history import History
from streamproof.events.physical import to_batches
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.events.validate import Validator
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.modules import Registry
from streamproof.workbench.arrivals import arrivals
from streamproof.workbench.case import Case
from streamproof.workbench.faults import OF_INPUT, OF_OUTPUT
from streamproof.workbench.file_faults import KeptOutput, through_files
from streamproof.workbench.promises import WELL, Broken, CtiProgress, broken_promise
from streamproof.workbench.schedule import Law
from streamproof.workbench.subjects import SubjectRun, failure_of, sized, typed_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

MOST_BATCHES: Final = 12
JOURNALS: Final = (0, 1, 3, 32)  # micro-batches between savepoints
LOST: Final = 0.25  # of the micro-batches of a run with restarts, those that are done twice

Outputs: TypeAlias = Sequence[tuple[int, bytes | None]]
"""What a bucket puts out, micro-batch by micro-batch: its CTI, and its rows as they travel."""


@dataclass(frozen=True)
class Hosted:
    """A typed plan with its input, ready to be run in buckets."""

    typed: Typed
    case: Case
    registry: Registry
    given: Mapping[str, str]  # which stream each source of the plan is
    query: int = 0

    @staticmethod
    def of(case: Case, registry: Registry, *, query: int = 0) -> Hosted:
        """Where advance_time is not judged it is left out: it drops what is late."""
        plan = case.plan
        if not case.schedule.live:
            plan = nodes.transform(plan, lambda n: n.input if isinstance(n, nodes.AdvanceTime) else n)
        plan, given = read_apart(plan)
        apart = replace(case, plan=plan, streams={name: case.streams[stream] for name, stream in given.items()})
        return Hosted(typed_of(apart, registry), case, registry, given, query)

    @property
    def emit(self) -> Emit:
        return "events" if self.case.schedule.seed % 2 else "rows"

    @property
    def splitting(self) -> dict[str, tuple[str, ...]] | None:
        return split_by(self.typed)

    @property
    def count(self) -> int:
        """How many buckets there are."""
        return 1 if self.splitting is None else self.case.schedule.buckets

    @cached_property
    def streams(self) -> dict[str, PhysicalStream]:
        come, files, seed = arrivals(self.case), self.case.schedule.files, self.case.schedule.seed
        if files in OF_INPUT:
            come = {name: through_files(stream, files, seed) for name, stream in come.items()}
        return {name: come[stream] for name, stream in self.given.items()}

    @property
    def stage(self) -> StageSpec:
        case, advanced = self.case, advanced_sources(self.typed)
        ports = tuple(
            replace(
                SourcePort(name, n, case.schemas[self.given[name]], "physical", self.count, query=self.query),
                keeps_events=name in advanced, advance=advanced.get(name),
            )
            for n, name in enumerate(self.streams)
        )  # fmt: skip
        emission = case.schedule.emission
        journal = JOURNALS[case.schedule.seed // 2 % len(JOURNALS)]
        return StageSpec(
            self.typed, ports, self.registry, case.limits, emission, case.horizon, self.emit, journal=journal,
        )  # fmt: skip

    def micro_batches(self, count: int) -> Iterator[pa.Table]:
        """The input as packed rows, cut at random into so many micro-batches; the last one brings the end of time."""
        choices, streams, ports = random.Random(self.case.schedule.seed), self.streams, self.stage.ports  # noqa: S311
        cuts = {n: [0, *self._cuts(len(s), count, choices)] for n, s in streams.items()}
        for number in range(count):
            last = number == count - 1
            batches = []
            for port in ports:
                stream, start = streams[port.name], cuts[port.name][number]
                end = len(stream) if last else cuts[port.name][number + 1]
                chunk = stream.slice(start, end - start)
                if last:
                    chunk = PhysicalStream.concat([chunk, cti(stream.schema, FOREVER)])
                at = choices.randint(0, len(chunk))  # a micro-batch comes in as several Arrow batches
                pieces = [piece for piece in (chunk.slice(0, at), chunk.slice(at)) if len(piece)]
                batches += [pack(port, self._with_buckets(port, piece), order) for order, piece in enumerate(pieces)]
            yield pa.Table.from_batches(batches, schema=INPUT)

    def _cuts(self, length: int, count: int, choices: random.Random) -> list[int]:
        if self.case.schedule.cuts < 0:  # event by event, as far as there are micro-batches for it
            return [min(n + 1, length) for n in range(count - 1)]
        return sorted(choices.randint(0, length) for _ in range(count - 1))

    @property
    def batches(self) -> int:
        """How many micro-batches the run has."""
        schedule = self.case.schedule
        if schedule.cuts < 0:
            return min(1 + max((len(stream) for stream in self.streams.values()), default=0), MOST_BATCHES)
        return 2 + schedule.seed % 4 if schedule.cuts else 1

    def _with_buckets(self, port: SourcePort, chunk: PhysicalStream) -> pa.Table:
        """The chunk in normal form: the bucket of each row first."""
        columns = (self.splitting or {}).get(port.name, ())
        keys = [chunk.payload[name].to_pylist() for name in columns]
        numbers = [_hash([key[n] for key in keys]) % self.count for n in range(len(chunk))]
        bucket = pa.array(np.array(numbers, np.int32))
        return pa.table([bucket, *chunk.rows.columns], names=[BUCKET, *chunk.rows.column_names])

    def ran(self, found: Mapping[int, Outputs]) -> SubjectRun:
        """What the outputs of the buckets add up to, and whether each bucket keeps its promises on the way."""
        outputs = [self._output(own) for own in found.values()]
        history = History.from_batches(self.typed.schema, [batch for output in outputs for batch in output])
        return SubjectRun(history, self._broken(outputs))

    def _output(self, outputs: Outputs) -> list[Batch]:
        """The signed rows of a bucket, by micro-batch. If it puts out events, they and its CTIs are a legal stream."""
        schema, wire = self.typed.schema, output_schema(self.typed.schema, self.emit)
        tables = [(cti, from_blobs([] if blob is None else [blob], wire)) for cti, blob in outputs]
        if self.emit == "rows":
            return [Batch(schema, table, cti) for cti, table in tables]
        streams = [(cti, PhysicalStream(schema, table)) for cti, table in tables]
        whole = [part for end, events in streams for part in (events, cti(schema, end))]
        Validator().check(PhysicalStream.concat(whole, schema=schema))
        rows = [(end, next(to_batches(events), Batch.empty(schema)).rows) for end, events in streams]
        return [Batch(schema, consolidate(table), end) for end, table in rows]  # events may well be alike

    def _broken(self, outputs: Sequence[Sequence[Batch]]) -> Broken:
        if len(outputs) != self.count:
            return Broken("complete", f"all input is complete, but {self.count - len(outputs)} buckets said nothing")
        final = self.case.schedule.emission == "final"
        return next(filter(None, (broken_promise(output, final=final) for output in outputs)), WELL)


def _hash(values: list[object]) -> int:
    shown = [repr(abs(value) if isinstance(value, float) else value) for value in values]
    return zlib.crc32("|".join(shown).encode())


class BucketSubject:
    """The buckets of Spark's stateful stage, in process: split keys, journals and savepoints."""

    name = "spark-buckets"
    streams = True
    lazy = False
    laws: tuple[Law, ...] = (
        "batching",
        "disorder",
        "restart",
        "emission",
        "partitions",
        "rewrite",
        "languages",
        "files",
        "size",
    )
    advances = True

    def run(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        return [self.one(case, registry) for case in cases]

    @staticmethod
    def one(case: Case, registry: Registry) -> SubjectRun:
        """Run one case."""
        try:
            with sized(case):
                return _in_buckets(Hosted.of(case, registry))
        except Exception as error:
            return SubjectRun(failure_of(error))


def _in_buckets(hosted: Hosted) -> SubjectRun:
    schedule = hosted.case.schedule
    if schedule.files not in OF_OUTPUT:
        return _served(hosted, lambda _: None)
    with closing(KeptOutput(hosted.typed.schema, hosted.count, hosted.emit, schedule.files, schedule.seed)) as kept:
        ran = _served(hosted, kept.take)
        return replace(ran, outcome=kept.history)


def _served(hosted: Hosted, take: Callable[[Mapping[int, BucketOutput]], None]) -> SubjectRun:
    """All micro-batches, one after the other; ``take`` is given what the buckets put out in each."""
    stage, workers = hosted.stage, _Workers(hosted)
    found: dict[int, list[tuple[int, bytes | None]]] = {}
    progress = [CtiProgress(hosted.typed, hosted.case.schedule.emission) for _ in range(hosted.count)]
    for table in hosted.micro_batches(hosted.batches):
        outputs = workers.process(inputs_by_bucket(table))
        for number, (inputs, output) in outputs.items():
            found.setdefault(number, []).append((output.cti, None if output.rows is None else to_blob(output.rows)))
            progress[number].check(_reached(stage, inputs), output.cti)
        take({number: output for number, (_, output) in outputs.items()})
    ran = hosted.ran(found)
    return replace(ran, broken=ran.broken or next(filter(None, (one.broken for one in progress)), WELL))


def _reached(stage: StageSpec, inputs: Sequence[BucketInput]) -> dict[str, int]:
    """The CTI of each source that a bucket hears of."""
    reached: dict[str, int] = {}
    for one in inputs:
        name = stage.ports[one.source].name
        reached[name] = max(one.cti, reached.get(name, BEGINNING))
    return reached


class _Workers:
    """Who serves the buckets: one worker that remembers them; with a restart, any of three, one of them always new.

    Then workers also remember what the store does not know: of micro-batches that were lost and done again, and one of
    them of a run of the same query with another checkpoint.
    """

    def __init__(self, hosted: Hosted) -> None:
        self._hosted, self._stage = hosted, hosted.stage
        self._stores: dict[int, MemoryState] = {}
        self._memories: list[BucketCache] = [OrderedDict(), OrderedDict()]
        self._choices = random.Random(~hosted.case.schedule.seed)  # noqa: S311  # test data, not secrets
        if hosted.case.schedule.restart:
            self._run_elsewhere()

    def _run_elsewhere(self) -> None:
        with suppress(StreamproofError):  # if this run has it too, it is told of this run
            for table in self._hosted.micro_batches(1):
                self._served(inputs_by_bucket(table), self._memories[1])
        self._stores = {}

    def process(self, given: Mapping[int, list[BucketInput]]) -> dict[int, tuple[list[BucketInput], BucketOutput]]:
        """What the buckets put out in a micro-batch, beside what came in."""
        if not self._hosted.case.schedule.restart:
            return self._served(given, self._memories[0])
        if self._choices.random() < LOST:
            before = {number: store.copy() for number, store in self._stores.items()}
            self._served(given, self._choices.choice(self._memories))
            self._stores = before
        return self._served(given, self._choices.choice([OrderedDict(), *self._memories]))

    def _served(
        self, given: Mapping[int, list[BucketInput]], memory: BucketCache
    ) -> dict[int, tuple[list[BucketInput], BucketOutput]]:
        found = {}
        for number, inputs in given.items():
            blobs = cast("MapState", self._stores.setdefault(number, MemoryState()))
            place = ("", self._hosted.query, number)
            found[number] = (inputs, Journal(blobs, memory).process(place, self._stage, inputs, keep=True))
        return found


def inputs_by_bucket(table: pa.Table) -> dict[int, list[BucketInput]]:
    """What each bucket gets of a micro-batch."""
    found: dict[int, list[BucketInput]] = {}
    columns = table.to_pydict()
    for bucket, content in zip(columns["bucket"], inputs_in(columns), strict=True):
        found.setdefault(bucket, []).append(content)
    return found


# --- the state of a bucket --------------------------------------------------------------------------------------------


Row: TypeAlias = tuple[object, ...]


@dataclass
class MemoryState:
    """The state of one bucket. Rows are tuples as Spark has them, so a copy needs no copies of them.

    >>> store = MemoryState()
    >>> store.updateValue((1,), (b"blob",))
    >>> before = store.copy()
    >>> store.removeKey((1,))
    >>> before.getValue((1,)), store.getValue((1,))
    ((b'blob',), None)
    """

    rows: dict[Row, Row] = field(default_factory=dict)

    def getValue(self, key: Row) -> Row | None:  # noqa: N802  # Spark's names
        return self.rows.get(key)

    def updateValue(self, key: Row, row: Row) -> None:  # noqa: N802
        self.rows[key] = row

    def removeKey(self, key: Row) -> None:  # noqa: N802
        self.rows.pop(key, None)

    def copy(self) -> MemoryState:
        """The state as it is now."""
        return MemoryState(dict(self.rows))
