"""Spark as a subject: many cases in one streaming query, whole queries as a user writes them, and batch mode."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamproof.engines.job import Job
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.batch.failing import told
from streamproof.engines.spark.batch.relation import BatchContext, Relation
from streamproof.engines.spark.batch.rules import build
from streamproof.engines.spark.failures import error_from
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.rows import frame_of, table_of
from streamproof.engines.spark.session import TINY, active, meaning, session, settings
from streamproof.engines.spark.sinks import FileSink
from streamproof.engines.spark.stream.query import stateful_stage
from streamproof.engines.spark.stream.running import state_store
from streamproof.engines.spark.stream.stage import QueryBytes
from streamproof.engines.spark.stream.wire import INPUT, ddl
from streamproof.errors import StreamproofError
from streamproof.events.event import Cti, Event
from streamproof.events.files.writer import table_of as events_table
from streamproof.events.history import History
from streamproof.events.schema import INT64, Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import walk
from streamproof.plan.modules import Registry
from streamproof.properties.spark_run import scratch
from streamproof.workbench.buckets import BucketSubject, Hosted
from streamproof.workbench.case import Case
from streamproof.workbench.faults import CHANGES
from streamproof.workbench.schedule import Law
from streamproof.workbench.subjects import (
    EngineSubject,
    Subject,
    SubjectRun,
    failure_of,
    plan_of,
    settings_of,
    sized,
    typed_of,
)
from streamproof.workbench.verdict import Failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MICRO_BATCHES: Final = 4
WHOLE_EVERY: Final = 48  # one case in so many runs as a query of its own
FAILING: Final = 2  # so many cases that end a query are looked for; each takes the workers of Python with it
ALONE_EVERY: Final = 3  # of so many plans one has a case that is a batch job of its own


@contextmanager
def spark_subject(name: str) -> Iterator[Subject]:
    """Spark in one of its modes; the session of the process, or a new one."""
    running = active() or session(**TINY)
    if name == "spark-batch":
        yield SparkBatchSubject(running)
    else:
        with scratch() as folder:
            yield SparkStreamSubject(running, folder)


class SparkStreamSubject:
    """Structured Streaming: the cases share one query with one stage, restarted in the middle from its checkpoint.

    Some run as queries of their own, from files to files, as a user would write them.
    """

    name = "spark-stream"
    streams = True
    lazy = False
    laws: tuple[Law, ...] = (
        "batching", "disorder", "restart", "emission", "partitions", "rewrite", "languages", "settings",
    )  # fmt: skip
    advances = True

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self._runs = 0

    def run(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        found: dict[int, SubjectRun] = {}
        shared: list[tuple[int, Hosted]] = []
        for number, case in enumerate(cases):
            if number % WHOLE_EVERY == 0 and _is_plain(case):
                found[number] = self.whole(case, registry)
                continue
            alone = BucketSubject.one(case, registry)  # an error would end the query of all
            if isinstance(alone.outcome, Failure):
                found[number] = alone
            else:
                shared.append((number, Hosted.of(case, registry, query=len(shared))))
        results = self._together([hosted for _, hosted in shared], []) if shared else []
        found.update({number: ran for (number, _), ran in zip(shared, results, strict=True)})
        return [found[number] for number in range(len(cases))]

    def _new_folder(self) -> Path:
        self._runs += 1
        place = self.folder / f"run-{self._runs}"
        place.mkdir()
        return place

    def _together(self, subjects: Sequence[Hosted], failing: list[Hosted]) -> list[SubjectRun]:
        """The cases in one query, in halves where it fails; once enough fail alone, what fails does so as a whole."""
        place = self._new_folder()
        try:
            answers = self._answers(subjects, place)
        except Exception as error:
            if len(subjects) == 1 or len(failing) >= FAILING:
                failing += subjects
                return [SubjectRun(failure_of(error_from(str(error))))] * len(subjects)
            half = len(subjects) // 2
            parts = [[_numbered(s, n) for n, s in enumerate(part)] for part in (subjects[:half], subjects[half:])]
            return [ran for part in parts for ran in self._together(part, failing)]
        finally:
            shutil.rmtree(place, ignore_errors=True)
        return [_result(subject, answers) for subject in subjects]

    def _answers(self, subjects: Sequence[Hosted], place: Path) -> pa.Table:
        """All micro-batches in two runs: the second goes on from the checkpoint of the first.

        Workers outlive a run, and would go on with what they remember; in the second one nobody remembers anything.
        """
        cut = [list(subject.micro_batches(MICRO_BATCHES)) for subject in subjects]
        answers: list[pa.Table] = []
        queries = QueryBytes.of([subject.stage for subject in subjects])
        for first, last in ((0, MICRO_BATCHES // 2), (MICRO_BATCHES // 2, MICRO_BATCHES)):
            for number in range(first, last):
                _write(pa.concat_tables([tables[number] for tables in cut]).cast(INPUT), place / "in", number)
            self._run(place, queries, answers, keep=first == 0)
        return pa.concat_tables(answers)

    def _run(self, place: Path, queries: QueryBytes, answers: list[pa.Table], *, keep: bool) -> None:
        def take(batch: DataFrame, number: int) -> None:
            answers.append(batch.select("query", "bucket", "cti", "rows").toArrow())

        frame = self.spark.readStream.schema(ddl(INPUT)).option("maxFilesPerTrigger", 1).parquet(str(place / "in"))
        packed = stateful_stage(frame, queries, keep=keep)
        writer = packed.writeStream.outputMode("append").foreachBatch(take).trigger(availableNow=True)
        checkpoint = str(place / "checkpoint")
        with state_store(self.spark, checkpoint=checkpoint):
            query = writer.option("checkpointLocation", checkpoint).start()
        query.awaitTermination()

    def whole(self, case: Case, registry: Registry) -> SubjectRun:
        """One case as a user would write it: files of events in, a table of rows out, with a restart on the way."""
        place = self._new_folder()
        try:
            job = self._job(case, registry)
            parts = _parts_of(case)
            for number in range(len(parts)):
                if number and case.schedule.changed:
                    other = CHANGES[case.schedule.changed](case)
                    with suppress(StreamproofError):
                        self._one_run(self._job(other, registry), other, parts[: number + 1], place)
                self._one_run(job, case, parts[: number + 1], place)
            return SubjectRun(read_output(place / "out"))
        except Exception as error:
            return SubjectRun(failure_of(error))
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _job(self, case: Case, registry: Registry) -> Job:
        return Job(plan_of(case), SparkEngine(session=self.spark), settings_of(case, registry))

    def _one_run(self, job: Job, case: Case, parts: Sequence[dict[str, pa.Table]], place: Path) -> None:
        frames: dict[str, Any] = {}
        for name in nodes.sources(case.plan):
            for number, part in enumerate(parts):
                _write(part[name], place / name, number)
            files = self.spark.readStream.schema(self.spark.read.parquet(str(place / name)).schema)
            frames[name] = files.option("maxFilesPerTrigger", 1).parquet(str(place / name))
        stages = "chained" if case.schedule.seed % 2 else "fused"
        query = job.stream(
            frames, checkpoint=place / "checkpoint", buckets=case.schedule.buckets, stages=stages,
            emission=case.schedule.emission,
        )  # fmt: skip
        query.start(FileSink(place / "out", content="cht"), trigger={"availableNow": True}).wait()


def _is_plain(case: Case) -> bool:
    """Whether files can hold the streams: a column of nulls has no type there, and advance_time drops events."""
    nulls = any(kind.kind == "null" for schema in case.schemas.values() for _, kind in schema)
    empty = any(not stream.events for stream in case.streams.values())
    advanced = any(isinstance(node, nodes.AdvanceTime) for node in nodes.walk(case.plan))
    units = any(schema.unit is not None for schema in case.schemas.values())
    return not (nulls or empty or advanced or units or case.schedule.emission != "speculative")


def _parts_of(case: Case) -> list[dict[str, pa.Table]]:
    """The events of each source in two halves, the second with the end of time."""
    halves: list[dict[str, pa.Table]] = [{}, {}]
    for name, stream in case.streams.items():
        middle = len(stream.events) // 2
        end: tuple[Event, ...] = (*stream.events[middle:], *_end(stream.events))
        for half, events in zip(halves, (stream.events[:middle], end), strict=True):
            half[name] = events_table(PhysicalStream.from_events(events, schema=stream.schema))
    return halves


def _end(events: Sequence[Event]) -> tuple[Event, ...]:
    return () if any(isinstance(event, Cti) and event.t == FOREVER for event in events) else (Cti(FOREVER),)


def _numbered(subject: Hosted, query: int) -> Hosted:
    return replace(subject, query=query)


def _write(table: pa.Table, folder: Path, number: int) -> None:
    """A file that Spark takes as one micro-batch; it takes files by their time, so each gets one."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{number:03}.parquet"
    if not file.exists():
        pq.write_table(table, folder / f".{file.name}")
        os.utime(folder / f".{file.name}", (1e9 + number, 1e9 + number))
        (folder / f".{file.name}").rename(file)


def _result(subject: Hosted, answers: pa.Table) -> SubjectRun:
    mine = answers.filter(pc.equal(answers["query"], subject.query))
    told: dict[int, list[tuple[int, bytes | None]]] = {}
    for answer in mine.to_pylist():
        told.setdefault(answer["bucket"], []).append((answer["cti"], answer["rows"]))
    try:
        return subject.ran(told)
    except Exception as error:
        return SubjectRun(failure_of(error))


class SparkBatchSubject:
    """Batch mode: cases of one plan in one job, each a group of its own from the start.

    Without groups some rules have other ways, so now and then a case is a job of its own, in as many parts as it likes.
    """

    name = "spark-batch"
    streams = False
    lazy = True
    laws: tuple[Law, ...] = ("partitions", "rewrite", "languages", "size")
    advances = False

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._single = EngineSubject(SparkEngine(session=spark), name=self.name)
        self._plans = 0

    def run(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        groups = groupby(cases, key=lambda case: (id(case.plan), case.horizon))
        return [ran for _, group in groups for ran in self._group(list(group), registry)]

    def _group(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        self._plans += 1
        if len(cases) == 1:
            return self._alone(cases, registry)
        alone = 1 if self._plans % ALONE_EVERY == 0 else 0
        try:
            return self._alone(cases[:alone], registry) + self._together(cases[alone:], registry)
        except Exception:  # one of them is an error: which one shows alone
            return self._alone(cases, registry)

    def _alone(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        """Each as a job of its own; time is swept in one range or in several, so that some lie between others."""
        found: list[SubjectRun] = []
        for case in cases:
            with settings(self.spark, {"spark.sql.shuffle.partitions": str(2 * case.schedule.buckets - 1)}):
                found += self._single.run([case], registry)
        return found

    def _together(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        with sized(cases[0]):  # one job, so one size for all
            return self._as_one_job(cases, registry)

    def _as_one_job(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        typed = typed_of(cases[0], registry)
        with told(typed), meaning(self.spark):
            context = BatchContext(self.spark, settings_of(cases[0], registry), {})
            for part in walk(typed):
                if isinstance(part.node, nodes.Source):  # its events carry the number of their case as a group
                    context.done[id(part)] = self._relation(part.node.name, cases)
            found = build(context, typed)
            table = table_of(found.frame.select(*found.columns), _with_case(typed.schema))
        numbers, plain = table[CASE].to_numpy(), table.drop_columns(CASE)
        return [
            SubjectRun(History.from_table(typed.schema, plain.filter(pa.array(numbers == n))))
            for n in range(len(cases))
        ]

    def _relation(self, name: str, cases: Sequence[Case]) -> Relation:
        schema = cases[0].schemas[name]
        tables = [case.streams[name].history.expand() for case in cases]
        counts = [pa.array([n] * table.num_rows, pa.int64()) for n, table in enumerate(tables)]
        whole = pa.concat_tables([t.add_column(2, CASE, c) for t, c in zip(tables, counts, strict=True)])
        columns = ["le", "re", "g0", *(f"c{n}" for n in range(len(schema.columns)))]
        frame = frame_of(self.spark, _with_case(schema), whole).toDF(*columns)
        return Relation(frame, schema, ("g0",))


CASE: Final = "the case"


def _with_case(schema: Schema) -> Schema:
    return Schema(((CASE, INT64), *schema.columns), schema.unit)
