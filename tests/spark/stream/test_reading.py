"""Files as streams on Spark: the same file gives the same events and the same refusals as our own readers do."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.session import meaning
from streamproof.engines.spark.sinks import FileSink
from streamproof.engines.spark.stream.files import FileRun, run_files
from streamproof.engines.spark.stream.spool import spark_reads
from streamproof.engines.spark.zones import instants
from streamproof.errors import InputError, StreamproofError
from streamproof.events.files.times import instant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWICE, NEVER = datetime(2024, 10, 27, 2, 30), datetime(2024, 3, 31, 2, 30)
MS: dict[str, Any] = {"unit": "ms"}
BERLIN = {**MS, "assume_zone": "Europe/Berlin"}
ZONED, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


def floats(kind: type) -> pa.Array:
    return pa.array(np.array([0.1, 1.5, np.nan, -0.0, np.inf], kind))


TIMES: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "numbers": (pa.array([1, 2, -3]), MS),
    "small numbers": (pa.array([1, 200], pa.uint8()), MS),
    "unsigned": (pa.array([1, 2**63], pa.uint64()), MS),
    "floats": (pa.array([1.0, 2.5, float("nan")]), MS),
    "text": (pa.array(["2024-05-01T00:00:00Z", "2024-05-01 02:00:00.9999+02:00", "x"]), MS),
    "words": (pa.array(["1", "2", "inf"]), MS),
    "instants before 1970": (pa.array([1, 1_500_001, -1, -1_500_001], ZONED), MS),
    "instants in another zone": (pa.array([1, 1_500_001], pa.timestamp("ms", "Asia/Tokyo")), {"unit": "s"}),
    "nanoseconds": (pa.array([1, 1_500_000_001, -1], pa.timestamp("ns", "UTC")), {"unit": "ns"}),
    "days": (pa.array([0, 1], pa.date32()), MS),
    "days in a zone": (pa.array([0, 1], pa.date32()), BERLIN),
    "local times": (pa.array([TWICE], LOCAL), MS),
    "local times in UTC": (pa.array([TWICE, NEVER], LOCAL), {**MS, "assume_zone": "UTC"}),
    "local times, twice": (pa.array([TWICE], LOCAL), BERLIN),
    "local times, never": (pa.array([NEVER], LOCAL), BERLIN),
    "local times, earlier": (pa.array([TWICE, NEVER], LOCAL), {**BERLIN, "ambiguous": "earlier"}),
    "local times, later": (pa.array([TWICE, NEVER], LOCAL), {**BERLIN, "ambiguous": "later"}),
    "milliseconds as seconds": (pa.array([1_714_557_600_000]), {"unit": "s"}),
    "no unit": (pa.array([1_714_557_600_000]), {}),
}  # fmt: skip
VALUES: dict[str, tuple[pa.Array, str | None]] = {
    "unsigned": (pa.array([1, 2**63], pa.uint64()), None),
    "unsigned, small": (pa.array([1, 2], pa.uint64()), None),
    "half floats": (floats(np.float16), None),
    "floats": (floats(np.float32), None),
    "long decimals": (pa.array([Decimal(1)], pa.decimal256(50, 2)), None),
    "decimals": (pa.array([Decimal("1.5"), None], pa.decimal128(38, 30)), None),
    "lists": (pa.array([[1]]), None),
    "structs": (pa.array([{"a": 1}]), None),
    "times of day": (pa.array([1], pa.time32("ms")), None),
    "durations": (pa.array([1], pa.duration("s")), None),
    "nanoseconds": (pa.array([1000], pa.timestamp("ns", "UTC")), None),
    "nanoseconds that matter": (pa.array([1500], pa.timestamp("ns", "UTC")), None),
    "local times": (pa.array([TWICE], LOCAL), None),
    "the year 10000": (pa.array([253_402_300_800 * 10**6], ZONED), None),
    "days of the year 10000": (pa.array([2_932_897], pa.date32()), None),
    "codes": (pa.array(["a", "b", None]).dictionary_encode(), None),
    "long text": (pa.array(["a\0b", "", "é"], pa.large_string()), None),
    "bytes": (pa.array([b"12", b"007"]), None),
    "text as whole numbers": (pa.array(["7", "007", "x", "1e3"]), "int64"),
    "numbers as text": (pa.array([7, 8]), "string"),
    "floats as whole numbers": (pa.array([1.0, 2.5]), "int64"),
    "whole numbers as floats": (pa.array([1, 2]), "float64"),
    "decimals, cut": (pa.array([Decimal("1.005"), Decimal("1.000")], pa.decimal128(20, 3)), "decimal(10,2)"),
    "instants as days": (pa.array([datetime(2024, 5, 1, tzinfo=UTC)], ZONED), "date"),
    "numbers as truth": (pa.array([1, 0]), "bool"),
}  # fmt: skip


def here(path: Path, mapping: sp.ColumnMapping, schema: sp.Schema | None) -> tuple[sp.History | None, int]:
    """What our reader gives: the history, or none where all is refused, and how many rows were rejected."""
    try:
        reader = sp.read(path, mapping=mapping, schema=schema)
        return reader.history(), reader.rejected
    except StreamproofError:
        return None, 0


def there(
    spark: SparkSession, path: Path, folder: Path, mapping: sp.ColumnMapping, schema: sp.Schema | None
) -> tuple[sp.History | None, int]:
    """What a stream on Spark gives."""
    plan = (sp.source("S") if schema is None else sp.source("S", dict(schema.columns))).plan
    run = FileRun(plan, {"S": path}, folder / "cp", Settings(), time=mapping, options={"buckets": 1})
    try:
        run_files(spark, run, FileSink(folder / "out", content="cht"))
        return read_output(folder / "out"), sum(run.rejected().values())
    except StreamproofError as error:
        if error.name == "infrastructure":
            raise
        return None, 0


@pytest.mark.parametrize("case", TIMES)
def test_times_of_parquet_are_the_same_on_spark(case: str, spark: SparkSession, folder: Path) -> None:
    column, told = TIMES[case]
    path = folder / "S.parquet"
    pq.write_table(pa.table({"t": column, "v": list(range(len(column)))}), path)
    mapping = sp.ColumnMapping(start="t", **told)
    assert there(spark, path, folder, mapping, None) == here(path, mapping, None)


@pytest.mark.parametrize("case", VALUES)
def test_values_of_parquet_are_the_same_on_spark(case: str, spark: SparkSession, folder: Path) -> None:
    column, declared = VALUES[case]
    path = folder / "S.parquet"
    pq.write_table(pa.table({"t": list(range(len(column))), "v": column}), path)
    schema = None if declared is None else sp.Schema.of({"v": declared})
    mapping = sp.ColumnMapping(start="t")
    expected, found = here(path, mapping, schema), there(spark, path, folder, mapping, schema)
    assert found == expected
    if expected[0] is not None and found[0] is not None:
        assert found[0].schema == expected[0].schema


def test_what_spark_reads_as_we_do_it_reads_itself(tmp_path: Path) -> None:
    plain = {
        "t": pa.array([1], ZONED), "i": [1], "f": [0.5], "s": ["a"], "b": [True], "d": pa.array([0], pa.date32()),
        "m": pa.array([Decimal(1)], pa.decimal128(9, 2)), "k": pa.array(["a"]).dictionary_encode(),
    }  # fmt: skip
    pq.write_table(pa.table(plain), tmp_path / "f.parquet")
    assert spark_reads(tmp_path / "f.parquet", sp.ColumnMapping(start="t"), None)
    pq.write_table(pa.table({"t": pa.array([1], LOCAL)}), tmp_path / "f.parquet", use_deprecated_int96_timestamps=True)
    assert spark_reads(tmp_path / "f.parquet", sp.ColumnMapping(start="t"), None)
    assert not spark_reads(tmp_path / "f.parquet", sp.ColumnMapping(start="t", assume_zone="UTC"), None)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ("7", "007", "is string in b.csv and int64 in a.csv"),
        ("7", "2.5", "is float64 in b.csv and int64 in a.csv"),
        ("true", "7", "is int64 in b.csv and bool in a.csv"),
        ("0.5", "7", None),
        ("7", "", None),
    ],
)
def test_a_column_has_one_type_in_all_files_of_a_folder(
    first: str, second: str, text: str | None, spark: SparkSession, folder: Path
) -> None:
    place = folder / "in"
    place.mkdir()
    for name, value in (("a.csv", first), ("b.csv", second)):
        (place / name).write_text(f"t,v,w\n1,{value},0\n")
    run = FileRun(sp.source("S").plan, {"S": place}, folder / "cp", Settings(), time="t", options={"buckets": 1})
    if text is None:
        run.query(spark)
        return
    with pytest.raises(InputError, match=text) as info:
        run.query(spark)
    assert info.value.fix == 'declare its type with the source: source("S", {"v": "string", …})'


@pytest.mark.parametrize("role", ["duration", "w"])
@pytest.mark.parametrize("kind", ["double", "string"])
def test_lengths_and_weights_are_whole_numbers(role: str, kind: str, spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [], f"le bigint, re bigint, w {kind}" if role == "w" else f"t bigint, duration {kind}"
    )
    from streamproof.engines.spark.sources import SparkSource

    source = SparkSource("S", frame, None if role == "w" else sp.ColumnMapping(start="t", duration="duration"))
    with pytest.raises(InputError, match=f"a {'weight' if role == 'w' else role} of type {kind} cannot be read"):
        source.normal(source.schema, split=(), buckets=1)


def changes(zone: ZoneInfo) -> list[datetime]:
    """When the clocks of a zone change, to the week."""
    weeks = [datetime(1972, 1, 1, tzinfo=UTC) + timedelta(weeks=n) for n in range(3000)]
    offsets = [week.astimezone(zone).utcoffset() for week in weeks]
    return [week for week, one, other in zip(weeks, offsets, offsets[1:], strict=False) if one != other]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"])
def test_local_times_are_decided_on_spark_as_in_files(zone: str, spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    draw = random.Random(1)
    weeks = [draw.choice(changes(ZoneInfo(zone))) for _ in range(12)]
    moments = [week + timedelta(minutes=30 * n) for week in weeks for n in range(2 * 24 * 7)]
    local = sorted({moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for moment in moments})
    local += [moment + timedelta(minutes=30) for moment in local]  # also those that never come
    with meaning(spark):
        frame = spark.createDataFrame([(moment,) for moment in local], "t timestamp_ntz")
        columns = [F.unix_micros(instants(F.col("t"), zone, side, "t")) for side in ("earlier", "later")]
        found = frame.select("t", *columns).collect()
    start, tick = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
    assert any(early != late for _, early, late in found)
    for moment, early, late in found:
        assert (early, late) == tuple((instant(moment, zone, side) - start) // tick for side in ("earlier", "later"))
