"""What a subject may be: sessions, joins, deduplication, state of every kind, two outputs, nothing at all, restarts."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.properties import (
    PropertyFailed,
    Verdict,
    always,
    assert_holds,
    eventually,
    judge,
    now,
    of,
    prove,
    recorded,
    run_stream,
    same,
    tumbling,
    windows,
)
from streamproof.properties.streams import START, WindowedStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow
MINUTE = 60_000_000
keys = st.fixed_dictionaries({"key": st.integers(1, 3)})


def stream(*rows: tuple[float, int], time: str = "at", windows: int = 4) -> WindowedStream:
    given = [{time: START + int(minute * MINUTE), "key": key} for minute, key in rows]
    return recorded(given, time=time, size="1 minute", start=START, windows=windows)


ROWS = stream((0.1, 1), (0.2, 2), (0.9, 1), (1.5, 1), (3.2, 2))


@pytest.fixture(autouse=True, scope="module")
def travelling() -> None:
    """Spark's workers cannot import tests."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])


def minutes(run: Any, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in names) for row in run.output)


def test_sessions(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    def visits(rows: DataFrame) -> DataFrame:
        session = F.session_window("at", "30 seconds").alias("window")
        return rows.withWatermark("at", "0 seconds").groupBy(session, "key").count()

    assert minutes(run_stream(spark, ROWS, visits), "key", "count") == [(1, 1), (1, 1), (1, 1), (2, 1), (2, 1)]

    @settings(max_examples=25, database=None)
    @given(stream=windows(always(of(keys, 1, 4), 3), size="1 minute", gap="30 seconds", time="at"))
    def every_row_is_in_a_session(stream: Any) -> None:
        run = run_stream(spark, stream, visits)
        counted = Counter({key: sum(r["count"] for r in run.output if r.key == key) for key in (1, 2, 3)})
        assert counted == Counter(row.key for row in stream.rows)

    assert prove(every_row_is_in_a_session, seed=1).queries == 3  # sessions share a run


def counting() -> Any:
    """Numbers the rows of a key in order of time, in Spark's newest kind of state."""
    import pandas as pd
    from pyspark.sql.streaming import StatefulProcessor
    from pyspark.sql.types import LongType, StructField, StructType

    class Counting(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self.n = handle.getValueState("n", StructType([StructField("n", LongType())]))

        def handleInputRows(self, key: Any, rows: Iterator[Any], timer: Any) -> Iterator[Any]:  # noqa: N802
            n = self.n.get()[0] if self.n.exists() else 0
            for frame in rows:
                ordered = frame.sort_values("at")
                yield pd.DataFrame({"at": ordered["at"], "key": key[0], "n": range(n + 1, n + 1 + len(ordered))})
                n += len(ordered)
            self.n.update((n,))

        def close(self) -> None:
            pass

    return Counting()


def numbered(rows: DataFrame) -> DataFrame:
    kind = "at timestamp, key long, n long"
    return rows.groupBy("key").transformWithStateInPandas(counting(), kind, "append", "none")


def test_transform_with_state(spark: SparkSession) -> None:
    found = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    run = run_stream(spark, ROWS, numbered, batches="window")
    assert minutes(run, "key", "n") == found
    assert len(run.batches[0]) == 4
    killed = run_stream(spark, ROWS, numbered, batches="window", restart_after=2)
    assert minutes(killed, "key", "n") == found  # the state came back with the checkpoint


def paid(orders: DataFrame, payments: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Orders with their payments of the next minute, and how many payments there were."""
    from pyspark.sql import functions as F  # noqa: N812

    left = orders.withWatermark("ordered", "0 seconds").alias("o")
    right = payments.withWatermark("paid", "0 seconds").alias("p")
    condition = F.expr("o.key = p.key AND paid BETWEEN ordered AND ordered + INTERVAL 1 MINUTE")
    joined = left.join(right, condition, "leftOuter").select("o.key", "ordered", "paid")
    return joined, right.groupBy(F.window("paid", "1 minute")).count()


def test_two_inputs_and_two_outputs(spark: SparkSession) -> None:
    orders = stream((0.1, 1), (0.5, 2), (2.5, 1), time="ordered")
    payments = stream((0.6, 1), (2.6, 1), (2.7, 1), time="paid")
    run = run_stream(spark, (orders, payments), paid)
    first, second = (output.rows for output in run.outputs)
    assert sorted((row.key, row.paid is not None) for row in first) == [(1, True), (1, True), (1, True), (2, False)]
    assert sorted(row["count"] for row in second) == [1, 2]
    counted = always(now(lambda i, o: sum(row["count"] for row in o[1]) == len(i[1]))).during(4)
    assert assert_holds(counted, run, steps=tumbling("1 minute", on=("ordered", "window")))


def test_deduplication_within_a_watermark_runs_case_by_case(spark: SparkSession) -> None:
    def once(rows: DataFrame) -> DataFrame:
        return rows.withWatermark("at", "1 minute").dropDuplicatesWithinWatermark(["key"])

    assert minutes(run_stream(spark, ROWS, once), "key") == [(1,), (2,)]

    @settings(max_examples=6, database=None)
    @given(stream=windows(always(of(keys, 1, 2), 2), size="1 minute", time="at"))
    def no_key_twice(stream: Any) -> None:
        run = run_stream(spark, stream, once)
        assert same([row.key for row in run.output], {row.key for row in stream.rows})

    summary = prove(no_key_twice, seed=2, workers=2)
    assert "cases ran one by one: case 3 gives another output alone than among 6 cases" in summary.notes[0]


def nothing(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812

    return rows.where("key > 9").withWatermark("at", "0 seconds").groupBy(F.window("at", "1 minute"), "key").count()


def test_a_subject_that_emits_nothing(spark: SparkSession) -> None:
    run = run_stream(spark, ROWS, nothing)
    safe = judge(always(now(lambda i, o: all(row["count"] < 9 for row in o))).during(4), run)
    assert (safe.verdict, safe.vacuous) == (Verdict.HOLDS, "the subject emitted no row")
    wrong = always(now(lambda i, o: len(o) > 0 or len(i) == 0)).during(4)
    assert judge(wrong, run).reason == "fails at window 0 of 4"
    never = eventually(now(lambda i, o: len(o) > 0)).within(4)
    assert judge(never, run).reason == "fails at window 3 of 4"

    @settings(max_examples=20, database=None)
    @given(stream=windows(always(of(keys, 0, 2), 3), size="1 minute", time="at"))
    def rows_come_out(stream: Any) -> None:
        run = run_stream(spark, stream, nothing)
        assert_holds(always(now(lambda i, o: len(o) > 0 or len(i) == 0)).during(3), run)

    with pytest.raises(PropertyFailed, match="fails at window") as failed:
        prove(rows_come_out, seed=1)
    assert failed.value.judgement.run.inputs[0].count == 1


def test_late_rows_and_a_restart_at_every_micro_batch(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    def counted(rows: DataFrame) -> DataFrame:
        return rows.withWatermark("at", "30 seconds").groupBy(F.window("at", "1 minute"), "key").count()

    late = stream((0.1, 1), (1.9, 1), (0.95, 2), (2.9, 1), (3.5, 2), (0.3, 1), (2.2, 1))
    through = run_stream(spark, late, counted)
    assert through.late_rows >= 1  # what came after its window was closed
    for at in range(4):
        again = run_stream(spark, late, counted, restart_after=at)
        assert same(through.output, again.output)
        assert again.late_rows == through.late_rows
