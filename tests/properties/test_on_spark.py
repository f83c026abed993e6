"""Subjects on Spark: steps, flush, sharing a run, falling back, shrinking; one shared session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError, RunError
from streamproof.properties import (
    PropertyFailed,
    always,
    assert_holds,
    every,
    micro_batches,
    monitor,
    now,
    of,
    prove,
    recorded,
    run_stream,
    same,
    tumbling,
    windows,
)
from streamproof.properties.multiplex import CannotMultiplex, SubjectRunner
from streamproof.properties.spark_run import Setting
from streamproof.properties.streams import START, WindowedStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE = 60_000_000
readings = st.fixed_dictionaries({"sensor": st.integers(1, 3), "v": st.integers(0, 100)})


def stream(*rows: tuple[float, int, int], windows: int = 3) -> WindowedStream:
    given = [{"at": START + int(minute * MINUTE), "sensor": sensor, "v": v} for minute, sensor, v in rows]
    return recorded(given, time="at", size="1 minute", start=START, windows=windows)


def highest(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    return (
        rows.withWatermark("at", "0 seconds").groupBy(F.window("at", "1 minute"), "sensor").agg(F.max("v").alias("v"))
    )


def seen_once(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "0 seconds").dropDuplicates(["sensor"])


def halves(rows: DataFrame) -> tuple[DataFrame, DataFrame]:
    return rows.where("v < 50"), rows.where("v >= 50")


ROWS = stream((0.1, 1, 5), (0.5, 1, 7), (1.2, 2, 3), (2.9, 1, 1))


def test_the_last_windows_arrive_and_the_flush_does_not(spark: SparkSession) -> None:
    run = run_stream(spark, ROWS, highest)
    assert sorted((row.sensor, row.v) for row in run.output) == [(1, 1), (1, 7), (2, 3)]
    assert run.late_rows == 0
    assert run.watermark is not None
    batch = run_stream(spark, ROWS, highest, mode="batch")
    assert same(run.output, batch.output)
    passed = run_stream(spark, ROWS, seen_once)
    assert sorted(row.sensor for row in passed.output) == [1, 2]


def test_the_flush_waits_for_a_patient_watermark(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    def patient(rows: DataFrame) -> DataFrame:
        return rows.withWatermark("at", "20 days").groupBy(F.window("at", "1 minute")).count()

    assert len(run_stream(spark, ROWS, patient).output) == 3


def test_steps_as_emitted_and_as_meant(spark: SparkSession) -> None:
    run = run_stream(spark, ROWS, highest, batches="window")
    meant = tumbling("1 minute").word(run)
    assert [len(step.output) for step in meant] == [1, 1, 1]
    emitted = micro_batches().word(run)
    assert [len(step.input) for step in emitted] == [2, 1, 1]
    assert [len(step.output) for step in emitted] == [0, 0, 1]  # the watermark moves after a micro-batch


def test_rows_that_come_too_late_are_dropped_and_counted(spark: SparkSession) -> None:
    late = stream((0.1, 1, 5), (1.5, 1, 7), (2.5, 1, 9), (3.5, 1, 2), (0.2, 1, 90), (4.5, 1, 3), windows=5)
    run = run_stream(spark, late, highest)
    assert [list(sizes) for sizes in run.batches] == [[1, 1, 1, 2, 1]]  # the late row arrives with the fourth window
    assert run.late_rows == 1
    assert sorted(row.v for row in run.output) == [2, 3, 5, 7, 9]
    assert sorted(row.v for row in run_stream(spark, late, highest, batches=1).output) == [2, 3, 7, 9, 90]


def test_two_outputs_and_a_restart(spark: SparkSession) -> None:
    run = run_stream(spark, ROWS, halves, batches="window", restart_after=1)
    split = always(now(lambda i, o: len(i) == len(o[0]) + len(o[1]))).during(3)
    assert assert_holds(split, run)


def test_cases_share_a_run_where_time_decides(spark: SparkSession) -> None:
    cases = [(stream((0.1 * n, 1, n), (1.5, 2, 2 * n)),) for n in range(1, 6)]
    runs, probes = SubjectRunner(spark, highest, Setting(), 1).checked(cases)
    assert probes == [2, 4]
    assert [sorted(row.v for row in run.output) for run in runs] == [[n, 2 * n] for n in range(1, 6)]
    assert {row.window.start for row in runs[3].output} == {row.window.start for row in runs[0].output}


def test_cases_do_not_share_a_run_where_state_stays(spark: SparkSession) -> None:
    cases = [(stream((0.1, 1, n)),) for n in range(4)]
    with pytest.raises(CannotMultiplex, match="gives another output alone than among 4 cases"):
        SubjectRunner(spark, seen_once, Setting(), 1).checked(cases)


@pytest.mark.slow
def test_a_wrong_property_fails_and_shrinks_to_one_row(spark: SparkSession) -> None:
    @settings(max_examples=30, database=None)
    @given(rows=windows(always(of(readings, 0, 4), 3), size="1 minute", time="at"))
    def never_above_90(rows: WindowedStream) -> None:
        run = run_stream(spark, rows, highest)
        assert_holds(always(now(lambda i, o: every(o, lambda row: row.v <= 90))).during(3), run)

    summaries: list[Any] = []
    with pytest.raises(PropertyFailed, match="v=91") as failed:
        prove(never_above_90, seed=3, summary=summaries.append)
    run = failed.value.judgement.run
    assert run.inputs[0].count == 1
    assert run.how == "alone"  # confirmed in streaming
    assert summaries[0].cases > 20
    assert summaries[0].queries <= 6


@pytest.mark.slow
def test_a_body_may_run_several_subjects(spark: SparkSession) -> None:
    def doubled(rows: DataFrame) -> DataFrame:
        return highest(rows.selectExpr("sensor", "2 * v AS v", "at"))

    @settings(max_examples=8, database=None)
    @given(rows=windows(always(of(readings, 1, 3), 2), size="1 minute", time="at"))
    def twice_as_high(rows: WindowedStream) -> None:
        once, twice = run_stream(spark, rows, highest), run_stream(spark, rows, doubled)
        assert same([2 * row.v for row in once.output], [row.v for row in twice.output])

    summary = prove(twice_as_high, seed=5)
    assert summary.queries == 6  # one for all cases and two to check it, for each subject


def test_a_monitor_is_a_streaming_query(spark: SparkSession, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    for number, batch in enumerate(ROWS.batches("window")):
        pq.write_table(batch, tmp_path / f"{number}.parquet")
    source = spark.readStream.schema("sensor long, v long, at timestamp").parquet(str(tmp_path))
    watched = monitor(always(now(lambda i, o: all(r.v < 6 for r in i))), source, steps=tumbling("1 minute", on="at"))
    watched.finish(60)
    assert [(change.step, change.verdict.value) for change in watched.changes] == [(0, "F")]


def test_errors_say_what_to_do(spark: SparkSession) -> None:
    with pytest.raises(RunError, match="withWatermark in the subject"):
        run_stream(spark, ROWS, lambda rows: rows.groupBy("at").count())
    with pytest.raises(InputError, match="a subject gives a DataFrame, or two, not int"):
        run_stream(spark, ROWS, lambda rows: 3)
    with pytest.raises(InputError, match="one stream, or two"):
        run_stream(spark, [1, 2, 3], highest)  # type: ignore[list-item]
