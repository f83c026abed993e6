"""The same on Spark: the same bytes for every number of partitions, DataFrames, streams, and the two sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamproof as sp
from streamproof.disorder.analysis import analyze_file
from streamproof.disorder.generate import generate_disorder

from .streams import late_events

ROOT = Path(__file__).parents[2]
COMMITS = ROOT / "tests/data/gitgit_commits.csv"


def head_of(path: Path, place: Path, rows: int = 6000) -> Path:
    place.write_text("".join(path.read_text().splitlines(keepends=True)[: rows + 1]))
    return place


def as_json_lines(path: Path, place: Path) -> Path:
    names, *rows = (line.split(",") for line in path.read_text().splitlines())
    lines = (json.dumps({**dict(zip(names, row, strict=True)), "author_ts": int(row[1])}) + "\n" for row in rows)
    place.write_text("".join(lines))
    return place


@pytest.mark.parametrize("kind", ["csv", pytest.param("jsonl", marks=pytest.mark.slow)])
def test_identical_bytes_for_1_3_and_8_partitions(kind: str, configured, spark, tmp_path: Path) -> None:
    path = head_of(COMMITS, tmp_path / "commits.csv")
    if kind == "jsonl":
        path = as_json_lines(path, tmp_path / "commits.jsonl")
    same_bytes(configured(path, "author_ts", worse(80), unit="s"), spark, tmp_path)


def test_a_distribution_of_ones_own_is_found_by_the_workers(configured, spark, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "own_delays.py").write_text("def longest(chances, lowest, highest):\n    return lowest * 0 + highest\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "s.csv").write_text("t\n" + "".join(f"{n}\n" for n in range(300)))
    config = configured(
        tmp_path / "s.csv", "t", {"maxDelay": 7, "distribution": "own_delays:longest"}, modules=("own_delays",)
    )
    (outcome,) = generate_disorder(config, out=tmp_path, work=tmp_path, spark=spark, partitions=2)
    assert outcome.manifest["delays"]["drawn"]["min"] == 7


@pytest.mark.slow
def test_identical_bytes_of_all_commits(configured, spark, tmp_path: Path) -> None:
    same_bytes(configured(COMMITS, "author_ts", *map(worse, (5, 20, 50, 80)), unit="s"), spark, tmp_path)


def worse(factor: int) -> dict[str, Any]:
    return {"targetOutOfOrderFactor": factor, "maxDelay": 40 * 86_400_000, "delaySeed": 9}


def same_bytes(config: Any, spark: Any, tmp_path: Path) -> None:
    made = {}
    for name, options in {
        "here": {"on": "here"},
        **{f"{n}": {"spark": spark, "partitions": n} for n in (1, 3, 8)},
    }.items():
        (tmp_path / name).mkdir()
        outcomes = generate_disorder(config, out=tmp_path / name, work=tmp_path / name, **options)
        assert all(outcome.exact for outcome in outcomes)
        made[name] = [outcome.path.read_bytes() for outcome in outcomes]
    assert made["1"] == made["3"] == made["8"] == made["here"]


def test_the_same_analysis_for_3_and_8_partitions(spark, tmp_path: Path) -> None:
    path = head_of(COMMITS, tmp_path / "commits.csv")
    plain = analyze_file(path, "author_ts", arrival="commit_ts", unit="s", key="commit", more=True, batch_rows=500)
    for partitions in (3, 8):
        found = analyze_file(
            path, "author_ts", arrival="commit_ts", unit="s", key="commit", more=True, batch_rows=500,
            spark=spark, partitions=partitions, work=tmp_path,
        )  # fmt: skip
        assert found.as_dict() == plain.as_dict()


def test_a_dataframe(spark, tmp_path: Path) -> None:
    wanted = analyze_file(COMMITS, "author_ts", arrival="commit_ts", unit="s")
    frame = spark.read.csv(str(COMMITS), header=True, inferSchema=True)
    found = sp.analyze(frame, "author_ts", arrival="commit_ts", unit="s", work=tmp_path)
    for name in ("events", "out_of_order", "lateness", "drop_curve", "delay_for_loss", "runs", "duplicates"):
        assert found[name] == wanted[name], name
    with pytest.raises(sp.InputError, match="nothing says how long a tick is"):
        sp.analyze(frame, "author_ts")
    with pytest.raises(sp.InputError, match='no column "authr_ts"'):
        sp.analyze(frame, "authr_ts")


def test_a_dataframe_of_timestamps_and_nulls(spark, tmp_path: Path) -> None:
    frame = spark.sql(
        "SELECT timestamp_seconds(CASE WHEN id = 3 THEN NULL ELSE 10 - id END) AS at FROM range(0, 6, 1, 2)"
    )
    found = sp.analyze(frame, "at", work=tmp_path)
    assert (found["events"], found["out_of_order"], found["nulls"], found["unit"]) == (5, 4, 1, "us")


def test_a_running_monitor_and_the_replay_source(spark, configured, tmp_path: Path) -> None:
    path = head_of(COMMITS, tmp_path / "commits.csv")
    config = configured(path, "author_ts", {"targetOutOfOrderFactor": 70, "maxDelay": 40 * 86_400_000}, unit="s")
    (outcome,) = generate_disorder(config, out=tmp_path)
    sp.register_sources(spark)
    stream = (
        spark.readStream.format("streamproof-replay").option("path", str(outcome.path)).option("rowsPerBatch", 2500)
    )
    seen: list[int] = []
    monitor = sp.analyze(
        stream.load(),
        "event_time",
        unit="s",
        available_now=True,
        on_update=lambda figures: seen.append(figures["events"]),
    )
    assert monitor.wait(60)
    figures = monitor.stop()
    assert seen == [2500, 5000, 6000]
    assert figures["out_of_order"] == outcome.manifest["achieved"]["events"]
    exact = analyze_file(outcome.path, "event_time", unit="s")
    assert figures["lateness"]["max"] == exact["lateness"]["max"]
    for name in ("p50", "p99"):
        assert exact["lateness"][name] <= figures["lateness"][name] <= exact["lateness"][name] * (1 + 1 / 32)
    assert "to lose at most 0.1 %" in str(monitor)


def test_a_configuration_as_a_source(spark, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("t,x\n" + "".join(f"{n},x\n" for n in range(300)))
    document = {
        "dataSource": {"file": "s.csv", "time": {"timeIndex": "t", "sourceTimeUnit": "ms"}},
        "experimentDataConfigurations": [{"targetOutOfOrderFactor": 30, "maxDelay": 40}],
    }
    (tmp_path / "c.json").write_text(json.dumps(document))
    sp.register_sources(spark)
    source = spark.readStream.format("streamproof-disorder").option("config", str(tmp_path / "c.json"))
    batches: list[list[int]] = []
    query = (
        source.option("rowsPerBatch", 100)
        .load()
        .writeStream.foreachBatch(lambda batch, n: batches.append([row.event_time for row in batch.collect()]))
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.awaitTermination(60)
    assert [len(batch) for batch in batches] == [100, 100, 100]
    assert late_events(np.concatenate(batches)) == 90
    whole = spark.read.format("streamproof-disorder").option("config", str(tmp_path / "c.json")).load()
    assert whole.columns == ["ingestion_time", "event_time", "t", "x"]
    assert whole.count() == 300


@pytest.mark.slow
@pytest.mark.parametrize("batch_rows", [50, 200])
def test_what_spark_drops_is_what_the_simulation_says(spark, configured, tmp_path: Path, batch_rows: int) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    (tmp_path / "s.csv").write_text("t\n" + "".join(f"{n * 100}\n" for n in range(1, 1001)))
    (outcome,) = generate_disorder(configured(tmp_path / "s.csv", "t", {"maxDelay": 20_000}), out=tmp_path)
    found = analyze_file(outcome.path, "event_time", unit="ms", batch_rows=batch_rows, delay=2000, window=1000)["spark"]
    sp.register_sources(spark)
    stream = (
        spark.readStream.format("streamproof-replay")
        .option("path", str(outcome.path))
        .option("rowsPerBatch", batch_rows)
    )
    counted = (
        stream.load()
        .withColumn("at", F.timestamp_millis("event_time"))
        .withWatermark("at", "2 seconds")
        .groupBy(F.window("at", "1 second"))
        .count()
    )
    kept: dict[float, int] = {}

    def take(batch: Any, number: int) -> None:
        kept.update((row[0], row[1]) for row in batch.collect())

    query = (
        counted.select(F.col("window.start").cast("double"), "count")
        .writeStream.foreachBatch(take)
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(120)
    assert 1000 - sum(kept.values()) == found["dropped"]
    assert bool(found["dropped"]) == (batch_rows == 50)
