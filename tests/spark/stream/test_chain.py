"""Chained stages: plans whose key changes, cut where it does, against the local engine and DuckDB."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import streamproof as sp
from streamproof.engines.base import Settings, prepare
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.sinks import FileSink
from streamproof.engines.spark.stream.bucket import bucket_from
from streamproof.engines.spark.stream.chain import StageChain
from streamproof.engines.spark.stream.files import FileRun, run_files
from streamproof.engines.spark.stream.ports import SourcePort
from streamproof.engines.spark.stream.stage import StageSpec
from streamproof.engines.spark.stream.wire import BucketInput, from_blobs, output_schema
from streamproof.errors import InputError, RunError
from streamproof.events.encode import cti
from streamproof.events.history import History
from streamproof.events.time import BEGINNING
from streamproof.kernels.base import Emission
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.workbench.stages import StageWorkers
from tests.spark.stream.chained_plans import BY_J, BY_K, CHAINED, stream
from tests.spark.stream.chaining import chain_of, micro_batches
from tests.spark.stream.multiplex import run_chains
from tests.spark.stream.splitting import Subject
from tests.spark.stream.tables import events_table, table_stream, write_files
from tests.spark.stream.test_bucket import expected, history_of, random_subject
from tests.spark.stream.test_tables import NOW, dead_letters, job, local, picky_sum

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def subject_of(plan: str, seed: int, buckets: int) -> Subject:
    query = CHAINED[plan][0]
    streams = {name: stream(name, seed) for name in nodes.sources(query.plan)}
    typed = prepare(query.plan, {name: part.schema for name, part in streams.items()}, Settings())
    return Subject(typed, streams, Settings(), buckets=buckets, emit="events" if seed % 2 else "rows")


def in_stages(
    subject: Subject, *, batches: int, seed: int, forget: bool, emission: Emission = "speculative"
) -> History:
    """What comes out of the stages, one micro-batch after the other."""
    chain = chain_of(subject)
    workers = StageWorkers(chain.stages(subject.settings, emission, subject.emit), forget)
    blobs = [blob for table in micro_batches(subject, chain, batches, seed) for blob in workers.run(table)]
    assert workers.is_complete, "the end of time reaches every bucket of every stage"
    return history_of(subject, from_blobs(blobs, output_schema(subject.typed.schema, subject.emit)))


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 20), marks=pytest.mark.slow)], ids=["few", "many"])
@pytest.mark.parametrize("plan", CHAINED)
def test_stages_buckets_and_micro_batches_do_not_change_the_result(plan: str, seeds: range) -> None:
    for seed in seeds:
        subject = subject_of(plan, seed, buckets=1 + (3 + 3 * seed) % 8)
        wanted = CHAINED[plan][0].on("duckdb").run(dict(subject.streams)).history if seed == 0 else expected(subject)
        assert len(wanted) > 0
        assert chain_of(subject).layers == CHAINED[plan][1]
        found = in_stages(subject, batches=2 + seed % 5, seed=seed, forget=bool(seed % 2))
        assert found == wanted, f"seed {seed}"


@pytest.mark.parametrize("emission", ["final", "eager"])
def test_emission_is_a_matter_of_the_last_stage(emission: Emission) -> None:
    corrections = 0
    for seed, plan in enumerate(CHAINED):
        subject = replace(subject_of(plan, seed, buckets=3), emit="rows")
        assert in_stages(subject, batches=4, seed=seed, forget=False, emission=emission) == expected(subject), plan
        chain = chain_of(subject)
        workers = StageWorkers(chain.stages(subject.settings, emission, "rows"))
        batches = [workers.batch(chain, table) for table in micro_batches(subject, chain, 4, seed)]
        corrections += sum(1 for batch in batches for w in batch.rows["w"].to_pylist() if w < 0)
    assert (corrections == 0) == (emission == "final")


def test_a_bucket_works_with_the_least_cti_of_those_before_it() -> None:
    schema = sp.Schema.of({"v": "int64"})
    port = SourcePort("#1", 0, schema, "signed", upstream=2)
    stage = StageSpec(check(nodes.Source("#1"), {"#1": schema}), (port,), Settings().registry, Settings().limits)
    bucket = bucket_from(stage, 0, None)
    told = [(0, 10), (1, 5), (0, 20), (1, 12), (1, 11), (1, sp.FOREVER)]  # who says it, and what
    outputs = []
    for number, time in told:
        outputs.append(bucket.process([BucketInput(0, number, time, 0)]))
        bucket = bucket_from(stage, 0, bucket.save())
    assert [output.cti for output in outputs] == [BEGINNING, 5, 5, 12, 12, 20]
    assert [output.advanced for output in outputs] == [False, True, False, True, False, True]


def test_no_stage_sees_one_of_its_inputs_ahead_of_another() -> None:
    """What was counted and the events themselves come to the second stage together: no row is without a partner."""
    counted = sp.source("S").group_by("k").tumbling(10).aggregate(n=sp.count())
    alone = counted.without(sp.source("S"), "l.n = r.v").select(x="cast('' as bigint)")
    events = [sp.Insert(f"e{n}", 0, 10, {"k": f"k{n}", "v": 1}) for n in range(12)]
    streams = {"S": sp.PhysicalStream.from_events([*events[:6], sp.Cti(0), *events[6:]])}
    typed = prepare(alone.plan, {"S": streams["S"].schema}, Settings())
    for seed in range(4):
        subject = Subject(typed, streams, Settings(), buckets=1 + seed)
        assert chain_of(subject).layers == 2
        assert len(in_stages(subject, batches=1 + seed, seed=seed, forget=False)) == 0


def test_what_a_source_has_is_counted_at_one_of_its_doors() -> None:
    """Two fragments read the source, by different keys, and each makes its CTIs; one need not say so itself."""
    events = [sp.Insert(f"e{n}", n * 7 % 40, n * 7 % 40 + 3, {"k": f"k{n % 3}", "j": f"j{n % 2}"}) for n in range(40)]
    streams = {"S": sp.PhysicalStream.from_events(events)}
    source = sp.source("S").advance_time(every=2, delay=3)
    by_j = sp.source("S").group_by("j").tumbling(10).aggregate(n=sp.count()).select("n", a="j")
    plan = source.group_by("k").tumbling(10).aggregate(n=sp.count()).select("n", a="k").union(by_j)
    typed = prepare(plan.plan, {"S": streams["S"].schema}, Settings())
    subject = Subject(typed, streams, Settings(), buckets=3)
    found = []
    for chained in (False, True):
        ports = {port.name: replace(port, policy="dead_letter") for port in subject.stage.ports}
        chain = StageChain.of(typed, ports, 3, chained=chained)
        assert len(chain.fragments) == (3 if chained else 1)
        workers = StageWorkers(chain.stages(Settings(), "speculative", "rows"))
        batches = [workers.batch(chain, table) for table in micro_batches(subject, chain, 1, 0)]
        letters = sum(dead.count(b"\n") for dead in workers.dead)
        found.append((History.from_batches(typed.schema, batches), workers.dropped, letters, workers.events))
    assert found[0] == found[1]
    assert found[0][1] > 5
    assert found[0][1:] == (found[0][1], found[0][1], 40)


@pytest.mark.parametrize("count", [25, pytest.param(600, marks=pytest.mark.slow)])
def test_random_plans_are_cut_at_random_places(count: int) -> None:
    chained = compared = 0
    for seed in range(2000, 2000 + count):
        subject = random_subject(seed)
        wanted = expected(subject)
        if isinstance(wanted, str):
            continue
        found = in_stages(subject, batches=1 + seed % 5, seed=seed, forget=bool(seed % 2))
        assert found == wanted, f"case {seed}"
        compared, chained = compared + 1, chained + (chain_of(subject).layers > 1)
    assert compared > 0.8 * count
    assert chained > 0.05 * count


@pytest.mark.slow
def test_every_shape_in_one_streaming_query(spark: SparkSession, folder: Path) -> None:
    """Many plans share the stages of one query; those with fewer stages pass by the later ones."""
    subjects = [subject_of(plan, n, buckets=1 + n % 4) for n, plan in enumerate(CHAINED)]
    results = run_chains(spark, subjects, folder, batches=4, restart=2)
    assert [plan for plan, s, found in zip(CHAINED, subjects, results, strict=True) if found != expected(s)] == []


@pytest.mark.slow
@pytest.mark.parametrize("keep", [True, False])
def test_random_plans_in_one_streaming_query(spark: SparkSession, folder: Path, keep: bool) -> None:
    """With ``keep`` off, every bucket of every stage is rebuilt from its savepoint and journal in every micro-batch."""
    subjects, wanted = [], []
    for seed in range(3000 + 200 * keep, 3200 + 200 * keep):
        subject = random_subject(seed)
        result = expected(subject)
        if not isinstance(result, str) and chain_of(subject).layers > 1:
            subjects.append(subject)
            wanted.append(result)
    results = run_chains(spark, subjects, folder, batches=4, restart=2, keep=keep)
    assert [n for n, found in enumerate(results) if found != wanted[n]] == []
    assert len(results) > 15


# --- whole queries, from tables to files ------------------------------------------------------------------------------

BUSY = BY_K.tumbling(20).top(2, by=sp.desc("n"), keep=["k", "n"])


def files(folder: Path, name: str, seed: int, count: int) -> Path:
    events = stream(name, seed)
    whole = sp.PhysicalStream.concat([events, cti(events.schema, sp.FOREVER)])
    size = -(-len(whole) // count)
    return write_files(folder / name, [events_table(whole.slice(n, size)) for n in range(0, len(whole), size)])


def test_a_query_in_two_stages_goes_on_after_a_stop(spark: SparkSession, folder: Path) -> None:
    files(folder, "S", 1, 2)
    later = [(folder / "S/000001.parquet").rename(folder / "later")]
    for _ in range(2):
        frame = table_stream(spark, folder / "S")
        query = job(spark, BUSY).stream({"S": frame}, checkpoint=folder / "cp", buckets=3, stages="chained")
        running = query.start(FileSink(folder / "out", content="events"), trigger=NOW)
        running.wait()
        for place in later:
            place.rename(folder / "S/000001.parquet")
        later = []
    assert read_output(folder / "out") == local(BUSY, {"S": stream("S", 1)})
    found = running.metrics.as_dict()
    assert found["cti"] == "inf"
    assert list(found["stages"]) == [1, 2]
    assert found["stages"][1]["events"] == found["events"] > 0 == found["stages"][2]["events"]
    assert found["stages"][2]["outputs"] == found["outputs"] > 0
    assert 'streamproof_by_stage_outputs_total{query="streamproof",stage="1"}' in running.metrics.prometheus()
    _refused(spark, folder, frame)


def _refused(spark: SparkSession, folder: Path, frame: DataFrame) -> None:
    """The stages of a checkpoint stay what they are; who does not say gets them as they are."""
    asked = job(spark, BUSY)
    assert asked.stream({"S": frame}, checkpoint=folder / "cp").explain().splitlines() == [
        "stage 1: S by k, in 3 buckets: group_apply(k)",
        "stage 2: stage 1, in one bucket: topk(tumbling(size=20), k=2, by=n desc)",
    ]
    with pytest.raises(InputError, match="of a run whose stages are chained") as raised:
        asked.stream({"S": frame}, checkpoint=folder / "cp", stages="fused").start(FileSink(folder / "out"))
    assert raised.value.fix == 'say stages="chained", or start with a new checkpoint and a new folder for the output'
    with pytest.raises(InputError, match="is cut into 3 buckets, and 4 are asked for"):
        asked.stream({"S": frame}, checkpoint=folder / "cp", buckets=4).start(FileSink(folder / "out"))


@pytest.mark.slow
def test_what_is_let_go_is_counted_once(spark: SparkSession, folder: Path) -> None:
    """Two fragments read the source by different keys, and a third comes later: one of them judges its events."""
    both = BY_K.select(a="k", n="n").union(BY_J.select(a="j", n="c"))
    early = [sp.Insert("a", 1, 20, {"k": "x", "j": "y", "v": 1}), sp.Cti(10)]
    late = [
        sp.Insert("late", 5, 12, {"k": "x", "j": "y", "v": 2}),
        sp.Retract("late", 5, 12, 11, {"k": "x", "j": "y", "v": 2}),
        sp.Retract("a", 1, 20, 15, {"k": "x", "j": "y", "v": 1}),
        sp.Cti(sp.FOREVER),
    ]
    chunks = [sp.PhysicalStream.from_events(events) for events in (early, late)]
    frame = table_stream(spark, write_files(folder / "in", [events_table(chunk) for chunk in chunks]))
    query = job(spark, both).stream(
        {"S": frame}, checkpoint=folder / "cp", buckets=3, on_error="dead_letter", stages="chained"
    )
    assert query.chain.layers == 3
    running = query.start(FileSink(folder / "out"), trigger=NOW)
    running.wait()
    assert running.metrics.as_dict()["dropped"] == 2
    assert running.metrics.as_dict()["events"] == 4
    assert [letter["event"]["id"] for letter in dead_letters(folder / "out")] == ["late", "late"]
    kept = sp.PhysicalStream.from_events([*early, late[2]])
    assert read_output(folder / "out") == local(both, {"S": kept})


@pytest.mark.slow
def test_a_module_that_fails_in_a_later_stage_is_named(spark: SparkSession, folder: Path) -> None:
    payloads = [{"k": "a", "v": 1}, {"k": "b", "v": 2}, {"k": "c", "v": 13}]
    events = [sp.Insert(f"e{n}", 5 * n + 1, 5 * n + 2, payload) for n, payload in enumerate(payloads)]
    table = events_table(sp.PhysicalStream.from_events([*events, sp.Cti(sp.FOREVER)]))
    frame = table_stream(spark, write_files(folder / "in", [table]))
    plan = (
        sp.source("S").group_by("k").tumbling(10).aggregate(m=sp.max("v")).tumbling(10).uda("picky_sum", "m", as_="s")
    )
    query = job(spark, plan, picky_sum).stream({"S": frame}, checkpoint=folder / "cp", buckets=2, stages="chained")
    with pytest.raises(RunError) as raised:
        query.start(FileSink(folder / "out"), trigger=NOW).wait()
    assert raised.value.what == "uda picky_sum@1 failed: ValueError: unlucky"
    assert str(raised.value.at).startswith("window [10, 20) with [10, 20) 13")


@pytest.mark.slow
def test_the_output_of_the_last_stage_is_a_table(spark: SparkSession, folder: Path) -> None:
    plan = CHAINED["a source that comes in late"][0]
    frames = {name: table_stream(spark, files(folder, name, 3, 2)) for name in "SR"}
    query = job(spark, plan).stream(frames, buckets=3, stages="chained")
    writer = query.frame("rows").writeStream.format("memory").queryName("chained").outputMode("append")
    writer.trigger(**NOW).option("checkpointLocation", str(folder / "cp")).start().awaitTermination()
    wanted = local(plan, {name: stream(name, 3) for name in "SR"})
    rows = spark.table("chained").drop("bucket").toArrow().cast(wanted.schema.arrow_rows)
    assert History.from_batches(wanted.schema, [sp.Batch(wanted.schema, rows)]) == wanted


@pytest.mark.slow
def test_files_to_the_end_in_stages(spark: SparkSession, folder: Path) -> None:
    """The end of time is told to every fragment that reads a source, wherever it comes in."""
    plan = CHAINED["a stream beside what it was aggregated to"][0]
    files(folder, "S", 5, 4)
    run = FileRun(
        plan.plan, {"S": folder / "S"}, folder / "cp", Settings(), options={"buckets": 2, "stages": "chained"}
    )
    metrics = run_files(spark, run, FileSink(folder / "out", content="cht"))
    assert metrics.as_dict()["cti"] == "inf"
    assert read_output(folder / "out") == local(plan, {"S": stream("S", 5)})


def test_stages_that_nobody_knows_are_refused(spark: SparkSession, folder: Path) -> None:
    frame = table_stream(spark, files(folder, "S", 1, 1))
    with pytest.raises(InputError, match='unknown stages "many"') as raised:
        job(spark, BUSY).stream({"S": frame}, stages="many")
    assert raised.value.fix == "use auto, fused or chained"
    assert job(spark, BUSY).stream({"S": frame}, buckets=16).chain.layers == 1, "on few cores it does not pay"
