"""Streams as sources of Spark: a recording that is replayed, and a configuration whose data need not be written first.

    register(spark)
    spark.readStream.format("streamproof-replay").option("path", "quakes-1.csv").option("rowsPerBatch", 500).load()
    spark.readStream.format("streamproof-disorder").option("config", "config.json").load()

Every micro-batch holds the next rows of the file, always the same ones: a query that is stopped and started again sees
what it would have seen.
"""

from __future__ import annotations

import atexit
import csv
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pv
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import LongType, StringType, StructField, StructType

from streamproof import _own_folder
from streamproof import documents as written
from streamproof.disorder.layout import by_number
from streamproof.disorder.replaying import DueRows, Recording
from streamproof.documents import existing
from streamproof.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIMES = ("ingestion_time", "event_time")
_DEFAULT_ROWS = 1000


def register(spark: SparkSession) -> None:
    """Make the two sources known to a session."""
    spark.dataSource.register(ReplaySource)
    spark.dataSource.register(DisorderSource)


class ReplaySource(DataSource):
    """``streamproof-replay``: the rows of a file in their order, so many per micro-batch."""

    @classmethod
    def name(cls) -> str:
        return "streamproof-replay"

    def schema(self) -> StructType:
        return schema_of(self._path())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        return _ReplayReader(self._path(), schema, self._rows())

    def reader(self, schema: StructType) -> DataSourceReader:
        return _WholeReader(self._path(), schema)

    def _path(self) -> Path:
        if "path" not in self.options:
            raise InputError("a replay needs a file", at="streamproof-replay", fix='say .option("path", "stream.csv")')
        return existing(Path(self.options["path"]))

    def _rows(self) -> int:
        text = self.options.get("rowsPerBatch", self.options.get("rowsperbatch", str(_DEFAULT_ROWS)))
        return self._whole("rowsPerBatch", text, least=1)

    def _whole(self, name: str, text: str, *, least: int) -> int:
        number = by_number(text)
        if not isinstance(number, int) or number < least:
            fix = f"give a whole number of at least {least}"
            raise InputError(f"{name} cannot be {text!r}", at=self.name(), fix=fix)
        return number


class DisorderSource(ReplaySource):
    """``streamproof-disorder``: a data set of a configuration, made when the query starts."""

    @classmethod
    def name(cls) -> str:
        return "streamproof-disorder"

    def _path(self) -> Path:
        return made_from(
            self.options.get("config"), self._whole("experiment", self.options.get("experiment", "0"), least=0)
        )


def made_from(config: str | None, number: int) -> Path:
    """The data set of a configuration, made in this process; the same configuration always gives the same file."""
    from streamproof.disorder.config import configuration_of, read_configuration  # noqa: PLC0415
    from streamproof.disorder.generate import generate_disorder, sha256_of  # noqa: PLC0415

    if not config:
        raise InputError(
            "the source needs a configuration", at="streamproof-disorder", fix='say .option("config", "config.json")'
        )
    inline = config.lstrip().startswith("{")
    read = configuration_of(written.parse(config)) if inline else read_configuration(Path(config))
    if not 0 <= number < len(read.experiments):
        raise InputError(
            f"there is no experiment {number}",
            at="streamproof-disorder",
            fix=f"there are {len(read.experiments)}, from 0",
        )
    text = json.dumps(
        [read.document, number, sha256_of(read.source.file) if read.source.file.is_file() else ""], sort_keys=True
    )
    import hashlib  # noqa: PLC0415

    folder = Path(_own_folder("disorder")) / hashlib.sha256(text.encode()).hexdigest()[:24]
    done = folder / "stream.csv", folder / "stream.jsonl"
    for path in done:
        if path.exists():
            return path
    return _made(read, number, folder, generate_disorder)


def _made(read: Any, number: int, folder: Path, generate: Any) -> Path:
    """Make the data set in a folder of its own that then becomes the folder, so that two who make it do no harm."""
    from dataclasses import replace  # noqa: PLC0415

    from streamproof.disorder.generate import output_format  # noqa: PLC0415

    kind = "jsonl" if output_format(read, read.experiments[number]) == "jsonl" else "csv"
    making = Path(tempfile.mkdtemp(prefix="streamproof-making-", dir=folder.parent))
    atexit.register(shutil.rmtree, making, ignore_errors=True)
    one = replace(read.experiments[number], path=making / f"stream.{kind}", format=kind)
    generate(replace(read, experiments=(one,)), out=making, on="here")
    try:
        making.rename(folder)
    except OSError:  # somebody else was faster, with the same bytes
        shutil.rmtree(making, ignore_errors=True)
    return folder / f"stream.{kind}"


def schema_of(path: Path) -> StructType:
    """The columns of a recording: the two times are numbers, everything else is text."""
    recording = Recording(path)
    if recording.layout.format == "jsonl":
        with _reading(path), path.open(encoding="utf-8-sig") as file:
            first = json.loads(next((line for line in file if line.strip()), ""))
            if not isinstance(first, dict):
                raise ValueError("it is no JSON object")
            names: Sequence[str] = list(first)
    else:
        names = recording.layout.names
    return StructType([StructField(name, LongType() if name in _TIMES else StringType()) for name in names])


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What JSON, Arrow or UTF-8 cannot read is refused."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        fix = "mend the file; `streamproof analyze` finds rows that cannot be read"
        raise InputError(f"a row of {path.name} cannot be read: {error}", at=str(path), fix=fix) from None


def _readable(recording: Recording, path: Path, start: int) -> Iterator[DueRows]:
    """The rows from a byte on, if all of them can be read: a source of Spark has no place for rejected ones."""
    for rows in recording.rows(start):
        if rows.unreadable:
            what = f"{rows.unreadable} rows of {path.name} cannot be read"
            raise InputError(what, at=str(path), fix="take them out; `streamproof analyze` lists them")
        yield rows


class _Stretch(InputPartition):
    """Rows of a file: bytes from one place to another."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class _ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are a byte and a row; each micro-batch takes the next rows."""

    def __init__(self, path: Path, schema: StructType, rows: int) -> None:
        self._path, self._schema, self._rows = path, schema, rows

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"byte": 0, "row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The file does not grow."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        wanted = None if isinstance(limit, ReadAllAvailable) else getattr(limit, "max_rows", self._rows)
        byte, row, left = start["byte"], start["row"], wanted
        for rows in _readable(Recording(self._path), self._path, byte):
            count = len(rows.due) if left is None else min(left, len(rows.due))
            if count:
                byte, row = rows.offset + int(rows.ends[count - 1]), row + count
            if left is not None:
                left -= count
                if not left:
                    break
        return {"byte": byte, "row": row}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [_Stretch(start["byte"], end["byte"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, _Stretch)
        return batches(self._path, self._schema, partition.start, partition.end)


class _WholeReader(DataSourceReader):
    """The whole file at once, for batch queries."""

    def __init__(self, path: Path, schema: StructType) -> None:
        self._path, self._schema = path, schema

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return batches(self._path, self._schema, 0, self._path.stat().st_size)


def batches(path: Path, schema: StructType, start: int, end: int) -> Iterator[Any]:
    """The rows between two bytes as Arrow batches."""
    recording = Recording(path)
    for rows in _readable(recording, path, start):
        count = int((rows.ends + rows.offset <= end).sum())
        if count:
            with _reading(path):
                table = _table(recording, rows.lines(0, count), [field.name for field in schema])
                found = table.cast(_arrow(schema)).to_batches()
            yield from found
        if rows.offset + len(rows.data) >= end:
            return


def _table(recording: Recording, lines: list[bytes], names: list[str]) -> pa.Table:
    if recording.layout.format == "jsonl":
        documents = [json.loads(line) for line in lines]
        return pa.table({name: [_plain(document.get(name), name) for document in documents] for name in names})
    layout = recording.layout
    columns = list(layout.names)
    if len(set(columns)) < len(columns):  # two columns of one name: by place
        cells = list(csv.reader((line.decode() for line in lines), delimiter=chr(layout.separator)))
        return pa.table({name: [row[columns.index(name)] for row in cells] for name in names})
    return pv.read_csv(
        pa.BufferReader(b"\n".join(lines) + b"\n"),
        read_options=pv.ReadOptions(column_names=columns),
        parse_options=pv.ParseOptions(delimiter=chr(layout.separator)),
        convert_options=pv.ConvertOptions(
            column_types={name: pa.int64() if name in _TIMES else pa.string() for name in columns},
            include_columns=names,
        ),
    )


def _plain(value: Any, name: str) -> Any:
    if name in _TIMES or value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _arrow(schema: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    return to_arrow_schema(schema)
