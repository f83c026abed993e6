"""The one Spark session of a process: started quietly with what the engine needs, or the user's own.

Starting Spark takes seconds, so there is one session per process, and whoever asks again gets the same.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from streamproof.engines.spark.java import java_home, launch_quietly
from streamproof.engines.spark.workers import worker_python
from streamproof.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

DEFAULTS: Final[dict[str, str]] = {
    "spark.app.name": "streamproof",
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # three calls instead of one for every expression
}
LOOPBACK: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
MEANING: Final = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
}
"""Settings that decide what expressions mean: overflow is an error, days are UTC days, decimals keep their digits, and
a name is one column of the input, never one that the same projection makes."""
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_FIRST_COMPILER: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java's first compiler alone. By itself that leaves room for 48 MB of code, and when it is full, nothing is compiled
any more: a session that makes many plans is full after minutes."""
_UNCHECKED: Final = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Arrow in Java checks the bounds of its memory with every number that is written, before Spark's writers ask for room
where they need it: a quarter of what Java does to hand rows to Python."""
FILE_MANAGER: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    )
}
"""For a checkpoint on this machine's disk: the usual one asks the shell about every file. Both rename."""
_CHECKSUMS: Final = "spark.streamproof.checksums"
_SUMS_OF_ROWS: Final = {
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
}
"""Spark adds up all bytes that it shuffles, to notice that a task which is done again gives other rows. On one machine
nothing is done again, because nothing of a shuffle gets lost."""
STREAMING: Final = {
    JAVA_OPTIONS: f"{_FIRST_COMPILER} -XX:+UseParallelGC {_UNCHECKED}",
    **FILE_MANAGER,
    **_SUMS_OF_ROWS,
    _CHECKSUMS: "false",
}
"""For a session that runs streams alone, on this machine: the kernels work in Python, so Java's second compiler, and a
collector that runs beside everything, cost more than they save. Files come without files of checksums beside them:
for each of both, Java starts a process to set its permissions."""
TINY: Final[dict[str, str]] = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "1",
    JAVA_OPTIONS: f"{_FIRST_COMPILER} -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.python.daemon.module": "streamproof.engines.spark.workers",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.shuffle.compress": "false",
    "spark.rdd.compress": "false",
    "spark.memory.offHeap.enabled": "false",
}
"""For tiny plans, where starting work costs more than doing it: interpreted plans, the first compiler of Java alone,
and Python workers that have the kernels from the start."""
_PARTS: Final = "spark.sql.shuffle.partitions"
_FIRST_PARTS: Final = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
PARTS_PER_CORE: Final = 8
"""Batch jobs shuffle into so many parts on this machine, of which Spark puts small ones together: a part that does not
fit into memory is sorted on disk."""
_ADVICE: Final = "stop the running session first (session.stop()), or leave the setting out"
_NOISY: Final = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.streaming",
    "org.apache.spark.sql.execution.python.streaming",
    "org.apache.spark.api.python.PythonRunner",
    "org.apache.spark.util.Utils",
    "org.apache.spark.storage.ShuffleBlockFetcherIterator",
)
"""Loggers that repeat, with a Java stack trace, the errors that callers get as exceptions."""
_QUIET: Final = ("off", "error", "warn")
_starting = Lock()


def session(*, log_level: str = "error", **conf: object) -> SparkSession:
    """The session of this process: the active one if there is one, else a new one with these settings.

    ``conf`` are Spark's own settings, e.g. ``session(**{"spark.master": "local[2]"})``. On a session that runs already,
    settings that can change are changed; one that cannot is an error, never ignored.
    """
    asked = {name: _text(value) for name, value in conf.items()}
    with _starting:
        found = active()
        if found is None:
            return _start(asked, log_level)
    _adapt(found, asked)
    return found


def active() -> SparkSession | None:
    """The session that runs in this process, or None."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  # half a second that only Spark's users pay

    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    default: SparkSession | None = getattr(SparkSession, "_instantiatedSession", None)
    return default if default is not None and default.sparkContext._jsc is not None else None


@contextmanager
def meaning(spark: SparkSession) -> Iterator[None]:
    """While plans are built, the settings that decide what an expression means; Spark fixes them then and there."""
    with settings(spark, MEANING):
        yield


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """For a while, other settings of a session."""
    before = {name: spark.conf.get(name, None) for name in wanted}
    changed = [name for name, value in wanted.items() if before[name] != value]
    for name in changed:
        spark.conf.set(name, wanted[name])
    try:
        yield
    finally:
        for name in changed:
            was = before[name]
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)


def _start(asked: Mapping[str, str], log_level: str) -> SparkSession:
    from pyspark import SparkConf  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    wanted = _settings(asked, log_level)
    os.environ["PYSPARK_PYTHON"] = worker_python(wanted["spark.master"])  # else it is whatever python is on PATH
    java = str(java_home())
    conf = SparkConf().setAll(list(wanted.items()))
    try:
        with _environment(JAVA_HOME=java, SPARK_HOME=_home()), _own_signals():
            if log_level in _QUIET:
                launch_quietly(conf)
            spark = SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:
        what = str(error).strip().splitlines()
        raise InfrastructureError(
            f"Spark did not start: {what[0] if what else type(error).__name__}",
            at=f"JAVA_HOME={java}, Python {sys.executable}",
            fix='look at its log with session(log_level="info")',
        ) from error
    if log_level in _QUIET:
        logging.getLogger("DataFrameQueryContextLogger").disabled = True  # says again what is raised
    if asked.get(_CHECKSUMS) == "false":
        jvm: Any = spark._jvm
        jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration()).setWriteChecksum(False)
    atexit.register(_stop, spark)
    return spark


def _home() -> str:
    """Where Spark is installed; left to itself, it would look into the folder above the current one first."""
    import pyspark  # noqa: PLC0415

    return os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep a program's own answer to Ctrl-C: Spark puts one into its place that calls Java from within the handler."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not signal.default_int_handler and before is not None:
            signal.signal(signal.SIGINT, before)


@contextmanager
def _environment(**changes: str) -> Iterator[None]:
    """For a while, other environment variables."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _settings(asked: Mapping[str, str], log_level: str) -> dict[str, str]:
    found = {**DEFAULTS, **MEANING, **asked}
    if found["spark.master"].startswith("local"):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
        parts = {_PARTS: str(cores), _FIRST_PARTS: str(PARTS_PER_CORE * cores)}
        found = {**LOOPBACK, **parts, **found}
    options = [
        f"-Dlog4j2.configurationFile={_log_file(log_level).as_uri()}",
        found.get(JAVA_OPTIONS, ""),
    ]
    return {**found, JAVA_OPTIONS: " ".join(filter(None, options))}


def _log_file(level: str) -> Path:
    """Spark's log settings: to standard error, from this level on."""
    silent = level in _QUIET
    quiet = "".join(
        f"logger.n{n}.name = {name}\nlogger.n{n}.level = off\n" for n, name in enumerate(_NOISY if silent else ())
    )
    handle, name = tempfile.mkstemp(prefix="streamproof-log4j2-", suffix=".properties")
    with os.fdopen(handle, "w") as file:
        file.write(
            f"rootLogger.level = {level}\n"
            f"logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer\nlogger.gateway.level = {level}\n"
            "rootLogger.appenderRef.console.ref = console\n"
            "appender.console.type = Console\n"
            "appender.console.name = console\n"
            "appender.console.target = SYSTEM_ERR\n"
            "appender.console.layout.type = PatternLayout\n"
            "appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n\n" + quiet
        )
    atexit.register(Path(name).unlink, missing_ok=True)
    return Path(name)


def _adapt(spark: SparkSession, asked: Mapping[str, str]) -> None:
    for name, value in asked.items():
        if spark.conf.get(name, None) == value:
            continue
        if not spark.conf.isModifiable(name):
            raise InfrastructureError(f"Spark runs already, and {name} cannot change to {value}", fix=_ADVICE)
        spark.conf.set(name, value)


def _stop(spark: SparkSession) -> None:
    if spark.sparkContext._jsc is not None:  # else the user stopped it
        with suppress(ConnectionError):  # a signal to the whole group has ended Java first
            spark.stop()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
