"""Streaming tables for tests: Parquet files that Spark takes in one per micro-batch, in order."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.events.files.writer import table_of
from streamproof.events.stream import PhysicalStream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def write_files(folder: Path, tables: Sequence[pa.Table], *, first: int = 0) -> Path:
    """One file per table; Spark takes files by their time, so each gets one."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables, start=first):
        file = folder / f"{number:06}.parquet"
        pq.write_table(table, folder / f".{file.name}")
        (folder / f".{file.name}").rename(file)
        os.utime(file, (1e9 + number, 1e9 + number))
    return folder


def events_table(stream: PhysicalStream) -> pa.Table:
    """Physical events as they stand in files; a column of nothing but nulls is one of strings."""
    table = table_of(stream)
    for n, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(n, field.name, pa.nulls(table.num_rows, pa.string()))
    return table


def table_stream(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
