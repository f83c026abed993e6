"""Disorder from Python: measure a stream, watch one, make one, and read one as a source of Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from streamproof.arguments import check_call, door
from streamproof.disorder.analysis import Analysis, analyze_file
from streamproof.disorder.config import Configuration, configuration_of, read_configuration
from streamproof.disorder.generate import DataSet, generate_disorder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streamproof.disorder.frames import DisorderMonitor


@overload
def analyze(data: str | Path, event_time: int | str, **options: Any) -> Analysis: ...
@overload
def analyze(data: DataFrame, event_time: int | str, **options: Any) -> Analysis | DisorderMonitor: ...


@door
def analyze(data: str | Path | DataFrame, event_time: int | str, **options: Any) -> Analysis | DisorderMonitor:
    """How disordered a file, a folder or a DataFrame is; a streaming DataFrame is watched by a running monitor.

    Options: ``arrival``, ``unit``, ``key``, ``more``, ``batch_rows`` with ``delay`` and ``window``, and for
    files ``separator``, ``header``, ``format``, ``zone``, ``on``, ``partitions``, ``work``.
    """
    if isinstance(data, str | Path):
        check_call(analyze_file, (Path(data), event_time), options)
        return analyze_file(Path(data), event_time, **options)
    if data.isStreaming:
        from streamproof.disorder.frames import watch  # noqa: PLC0415  # Spark, only for those who have a DataFrame

        return watch(data, str(event_time), **options)
    from streamproof.disorder.frames import analyze_frame  # noqa: PLC0415

    return analyze_frame(data, str(event_time), **options)


@door
def make_disorder(
    config: str | Path | Mapping[str, Any] | Configuration, *, out: str | Path = ".", overwrite: bool = False,
    on: str = "auto", spark: SparkSession | None = None, partitions: int | None = None, work: str | Path | None = None,
    modules: Collection[str] = (),
) -> list[DataSet]:  # fmt: skip
    """Make every data set of a configuration: a JSON file, the same as plain data, or one that was read.

    Where the configuration names functions, as ``module:function``, ``modules`` are those it may name.
    """
    if isinstance(config, str | Path):
        read = read_configuration(Path(config), modules)
    else:
        read = config if isinstance(config, Configuration) else configuration_of(config, modules=modules)
    place = None if work is None else Path(work)
    return generate_disorder(
        read, out=Path(out), overwrite=overwrite, on=on, spark=spark, partitions=partitions, work=place
    )


@door
def register_sources(spark: SparkSession) -> None:
    """Make ``streamproof-replay`` and ``streamproof-disorder`` known to a session."""
    from streamproof.disorder.spark_sources import register  # noqa: PLC0415

    register(spark)
