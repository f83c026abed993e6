"""Files that Spark reads and results that it writes: the same rows, rejects and files as through this process."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.job import Job
from streamproof.engines.results import Run
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.batch import reading, running
from streamproof.events.history import History

POINTS = sp.ColumnMapping(start="t", unit="ms")
COUNTS = sp.source("S").where("v > 2").tumbling(10).aggregate(n=sp.count(), s=sp.sum("v"))
ODD = 't,v,k,x\n1,1,a,0.1\n2,two,b,\nthree,3,c,1e300\n4,4,"d\n,""e",-0.0\n5,5,,nan\n6\n7,7,"",2021-01-01\n'


def run(engine: SparkEngine, stream: sp.Stream, inputs: Any, **validators: sp.Validator) -> Run:
    return Job(stream.plan, engine, Settings()).run(inputs, validators=validators)


def through_here(stream: sp.Stream, inputs: Any, **validators: sp.Validator) -> History:
    return stream.on("duckdb").run(inputs, validators=validators).history


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "S.csv"
    path.write_text(ODD)
    return path


def test_a_file_is_read_by_spark_with_its_rejects(spark_engine: SparkEngine, csv: Path, tmp_path: Path) -> None:
    stream = sp.source("S", {"v": "int64", "k": "string", "x": "string"})
    here, there = (sp.read(csv, mapping=POINTS, schema=stream.plan.schema, rejects=tmp_path / name) for name in "ab")
    wanted = through_here(stream, {"S": here})
    found = run(spark_engine, stream, {"S": there})
    assert (found.history, found.notes) == (wanted, ())
    assert there.rejected == here.rejected == 3
    assert list(map(str, there.first_rejects)) == list(map(str, here.first_rejects))
    assert (tmp_path / "b").read_text() == (tmp_path / "a").read_text()
    assert there.rows_read == here.rows_read


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("seed", [1, 2])
def test_every_format_gives_the_same_history(
    kind: str, seed: int, spark_engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    rows = [
        (t, chance.choice((t + 5, sp.FOREVER)), {"v": n - 99, "k": chance.choice(("a", None, "ü"))})
        for n, t in enumerate(chance.randint(-50, 50) for _ in range(200))
    ]
    schema = sp.Schema.of({"v": "int64", "k": "string"}, unit="ms")
    history = History.from_rows(schema, rows)
    path = sp.write(history, tmp_path / f"S.{kind}")
    monkeypatch.setattr(running, "frame_of", None)  # nothing comes through here
    monkeypatch.setattr(reading, "frame_of", None)
    stream = sp.source("S", schema).where("v > 0").shift(3)
    found = run(spark_engine, stream, {"S": str(path)})
    assert found.history == through_here(stream, {"S": str(path)})
    assert found.schema.unit == "ms"
    head, count = found.head(3)
    assert (head.expand(), count) == (found.history.expand()[:3], len(found.history))


def test_parquet_of_others_is_read_by_spark_itself(
    spark_engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "S.parquet"
    times = pa.array([1000 * n for n in range(40)], pa.timestamp("ms", tz="UTC"))
    pq.write_table(pa.table({"t": times, "v": list(range(40)), "x": [n / 8 for n in range(40)]}), path)
    monkeypatch.setattr(reading, "_in_tasks", None)
    mapping = sp.ColumnMapping(start="t", duration="3s")
    for stream in (COUNTS, sp.source("S").snapshot().aggregate(a=sp.avg("x"))):
        wanted = through_here(stream, {"S": sp.read(path, mapping=mapping)})
        assert run(spark_engine, stream, {"S": sp.read(path, mapping=mapping)}).history == wanted


def test_what_spark_cannot_judge_comes_through_here_with_a_note(spark_engine: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "S.jsonl"
    path.write_text('{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 3}}\n{"kind": "cti", "t": 9}\n')
    found = run(spark_engine, COUNTS, {"S": str(path)})
    assert len(found.history) == 1
    (note,) = found.notes
    assert note.startswith("input S was read by this process, not by Spark: its events have ids or CTIs")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_illegal_events_need_the_policy_of_their_input(ending: str, spark_engine: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / f"S.{ending}"
    if ending == "csv":
        path.write_text("a,b,v\n1,5,3\n7,7,4\n")
    else:
        pq.write_table(pa.table({"a": [1, 7], "b": [5, 7], "v": [3, 4]}), path)
    mapping = sp.ColumnMapping(start="a", end="b")
    with pytest.raises(sp.InputError, match="lifetime") as raised:
        run(spark_engine, COUNTS, {"S": sp.read(path, mapping=mapping)})
    assert str(raised.value.at).startswith("input S, event 1")
    lenient = sp.Validator(policy="drop")
    found = run(spark_engine, COUNTS, {"S": sp.read(path, mapping=mapping)}, S=lenient)
    assert (len(found.history), dict(lenient.counts)) == (1, {"empty_lifetime": 1})


def test_a_file_without_one_good_row_is_refused(spark_engine: SparkEngine, tmp_path: Path) -> None:
    path = tmp_path / "S.csv"
    path.write_text("t,v\nx,1\ny,2\n")
    with pytest.raises(sp.InputError, match="none of the 2 rows could be read"):
        run(spark_engine, COUNTS, {"S": sp.read(path, mapping=POINTS)})


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "out.arrow"])
def test_a_result_is_written_by_spark_to_one_file(
    name: str, spark_engine: SparkEngine, csv: Path, tmp_path: Path
) -> None:
    stream = sp.source("S", {"v": "int64", "k": "string"}).alter_duration(5)
    given = {"S": sp.read(csv, mapping=POINTS, schema=stream.plan.input.schema)}
    found, wanted = run(spark_engine, stream, given), through_here(stream, given)
    assert found.write(tmp_path / name) == len(wanted)
    assert "_whole" not in vars(found.output)  # nothing of it came here
    ours = sp.write(wanted, tmp_path / f"ours-{name}")
    if name.endswith("arrow"):  # whose chunks are those of Spark
        assert sp.read(tmp_path / name).history() == sp.read(ours).history()
    else:
        assert (tmp_path / name).read_bytes() == ours.read_bytes()
    with pytest.raises(sp.InputError, match="exists"):
        found.write(tmp_path / name)
    assert found.write(tmp_path / name, overwrite=True) == len(wanted)


def test_a_result_is_written_by_spark_to_a_folder(spark_engine: SparkEngine, csv: Path, tmp_path: Path) -> None:
    stream = sp.source("S", {"v": "int64", "k": "string"})
    found = run(spark_engine, stream, {"S": sp.read(csv, mapping=POINTS, schema=stream.plan.schema)})
    rows = found.write(tmp_path / "out")
    parts = sorted((tmp_path / "out").iterdir())
    assert sum(len(sp.read(part).history()) for part in parts) == rows == len(found.history)
    assert {sp.read(part).unit for part in parts} == {"ms"}
    assert not list(tmp_path.glob(".out*"))
    with pytest.raises(sp.InputError, match="exists"):
        found.write(tmp_path / "out")


def test_a_result_without_rows_is_written_too(spark_engine: SparkEngine, csv: Path, tmp_path: Path) -> None:
    stream = sp.source("S", {"v": "int64"}).where("v > 99")
    found = run(spark_engine, stream, {"S": sp.read(csv, mapping=POINTS, schema=sp.Schema.of({"v": "int64"}))})
    assert found.head(5)[1] == found.write(tmp_path / "a.csv") == found.write(tmp_path / "b") == 0
    assert (tmp_path / "a.csv").read_text().count("\n") == 1
