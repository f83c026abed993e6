"""Files that Spark reads, so that nothing of them comes through the driver.

    Parquet that Spark reads as we do     Spark's own reader, and one look at the lifetimes
    other files, whose rows have no ids   our reader in tasks of Spark: by construction the same rows and rejects
    ids, retractions and CTIs             the driver: whether events are legal depends on all of them together
    no file; what tasks cannot see        the driver

A file that our reader looks at in a task is read once and kept on Spark's disks, with the rows that could not be read:
these come here, are counted, and go to the file of rejects. An illegal event needs the policy of its input, so a file
that has one goes through the driver.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from streamproof.engines.inputs import Loaded
from streamproof.engines.spark.rows import frame_of, inner_struct
from streamproof.engines.spark.sources import SparkSource
from streamproof.engines.spark.stream.files import literal
from streamproof.engines.spark.stream.spool import spark_reads
from streamproof.errors import InputError, StreamproofError
from streamproof.events.files import FORMATS, ColumnMapping, Reader, read
from streamproof.events.files.mapping import layout_of
from streamproof.events.schema import Schema
from streamproof.events.stream import CONTROL, INSERT
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.events.validate import Validator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TROUBLE: Final = "trouble"  # a column beside the events: a row that could not be read, or why the file cannot
STOP: Final = "stop"
AT_ONCE: Final = 10_000  # rejected rows that go to Spark together


@dataclass(frozen=True, slots=True)
class Given:
    """An input as the rules see it."""

    frame: DataFrame
    by_spark: bool
    note: str | None = None  # why it came through the driver
    kept: DataFrame | None = None  # what is to be let go when the result is


def given(
    spark: SparkSession, name: str, loaded: Loaded, *, schema: Schema, validator: Validator | None, most: int
) -> Given:
    """An input, read by Spark where that gives what our reader gives here. ``schema`` is what the plan reads of it."""
    reader = loaded.reader
    why = _refusal(loaded, validator)
    if reader is not None and why is None:
        try:
            how = _How(tuple(map(str, reader.files)), loaded.schema, reader.claim)
            return _native(spark, how, schema) or _in_tasks(spark, reader, how, schema)
        except _Driver as error:
            why = str(error)
    history = loaded.checked(validator).history()
    note = None if reader is None else f"input {name} was read by this process, not by Spark: {why}"
    return Given(frame_of(spark, history.schema, history.expand(most=most)), by_spark=False, note=note)


class _Driver(Exception):
    """Why an input has to come through the driver after all."""


def _refusal(loaded: Loaded, validator: Validator | None) -> str | None:
    """Why an input cannot be read by Spark, if it cannot."""
    reader = loaded.reader
    if reader is None:
        return "it is no file"
    if not reader.makes_ids:
        return "its events have ids or CTIs, and whether they are legal depends on all of them together"
    if reader.claim["format"] not in FORMATS:
        return f"its format, {reader.claim['format']}, is not one that workers know"
    if validator is not None and (validator.shape, validator.order) != (None, None):
        return "its shape or order is declared"
    return None


@dataclass(frozen=True, slots=True)
class _How:
    """How files are read, for a task."""

    files: tuple[str, ...]
    schema: Schema
    claim: Mapping[str, Any]

    @property
    def mapping(self) -> ColumnMapping | None:
        found = self.claim["mapping"]
        return None if found is None else ColumnMapping(**found)

    def reader(self, number: int, rejects: Path) -> Reader:
        """One of the files."""
        text = {name: self.claim[name] for name in ("separator", "header") if name in self.claim}
        return read(
            self.files[number], mapping=self.mapping, schema=self.schema, format=self.claim["format"],
            rejects=rejects, **text,
        )  # fmt: skip


def _native(spark: SparkSession, how: _How, schema: Schema) -> Given | None:
    """Parquet files that Spark reads as we do, if all their lifetimes are good."""
    from pyspark.errors import PySparkException  # noqa: PLC0415  # Spark is loaded by those who use it

    if how.claim["format"] != "parquet":
        return None
    if not all(spark_reads(Path(file), how.mapping, None) for file in how.files):
        return None
    good = f"le >= {BEGINNING}L AND re <= {FOREVER}L AND re > le"
    try:
        frame = spark.read.parquet(*map(literal, how.files))
        layout = replace(how.mapping or layout_of(frame.columns), unit=how.schema.unit)
        source = SparkSource("", frame, layout)
        normal = source.normal(schema, split=(), buckets=1)
        if source.form != "inserts" or not normal.filter(f"coalesce(NOT ({good}), true)").isEmpty():
            return None
    except (PySparkException, InputError):  # e.g. a time that Spark cannot tell: our reader says which
        return None
    return Given(normal.toDF("le", "re", *(f"c{n}" for n in range(len(schema.columns)))), by_spark=True)


def _in_tasks(spark: SparkSession, reader: Reader, how: _How, schema: Schema) -> Given:
    """Our reader in tasks of Spark, one for each file."""
    from pyspark import StorageLevel  # noqa: PLC0415  # Spark is loaded by those who use it
    from pyspark.sql import types  # noqa: PLC0415

    count = len(how.files)
    struct = inner_struct(schema).add(TROUBLE, types.StringType())
    numbers = spark.range(0, count, 1, count)
    frame = numbers.mapInArrow(partial(_read, how, schema.names), struct).persist(StorageLevel.DISK_ONLY)
    rows, rejected = frame.count(), []
    for row in frame.filter(f"{TROUBLE} IS NOT NULL").select(TROUBLE).toLocalIterator():
        number, said = json.loads(row[0])
        if STOP in said:
            frame.unpersist()
            raise _Driver(said[STOP])
        rejected.append((number, said))
    reader.read_elsewhere(rows, rejected)
    columns = ["le", "re", *(f"c{n}" for n in range(len(schema.columns)))]
    return Given(frame.filter(f"{TROUBLE} IS NULL").select(*columns), by_spark=True, kept=frame)


def _read(how: _How, names: Sequence[str], given: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: the events of files, and then what there is to say of the rows that could not be read."""
    places = [*map(CONTROL.names.index, ("le", "re")), *(len(CONTROL) + how.schema.names.index(name) for name in names)]
    kinds = [pa.int64(), pa.int64(), *(how.schema[name].arrow for name in names)]
    for number in (number for batch in given for number in batch.column(0).to_pylist()):
        check = Validator()
        check.forgetful = True  # the ids are of the reader's own making
        with tempfile.TemporaryDirectory() as folder:
            rejects = Path(folder) / "rejects.jsonl"
            try:
                for chunk in how.reader(number, rejects):
                    legal = check.check(chunk)
                    rows = legal.rows.filter(pa.array(legal.kinds == INSERT))
                    yield from _beside([rows.column(place) for place in places], pa.nulls(rows.num_rows, pa.string()))
            except (StreamproofError, OSError) as error:
                said = json.dumps([number, {STOP: str(error).partition("\n")[0]}])
                yield from _beside([pa.nulls(1, kind) for kind in kinds], pa.array([said]))
                continue
            for some in _lines(rejects):
                told = pa.array([f"[{number}, {line}]" for line in some])
                yield from _beside([pa.nulls(len(some), kind) for kind in kinds], told)


def _lines(file: Path) -> Iterator[list[str]]:
    if file.exists():
        with file.open(encoding="utf-8") as lines:
            while some := list(islice(lines, AT_ONCE)):
                yield some


def _beside(columns: Sequence[Any], trouble: pa.Array) -> Iterator[pa.RecordBatch]:
    """Columns of events, which are nothing where there is trouble."""
    arrays = [pa.nulls(len(trouble), pa.int64()) if pa.types.is_null(each.type) else each for each in columns]
    names = ["le", "re", *(f"c{n}" for n in range(len(columns) - 2)), TROUBLE]
    yield from pa.Table.from_arrays([*arrays, trouble], names=names).combine_chunks().to_batches()
