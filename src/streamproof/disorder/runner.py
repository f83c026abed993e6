"""Where the steps of a job run: in this process, or as tasks on Spark.

A step is a function of plain arguments that reads and writes arrays on a store and gives back a few numbers. Both ways
call the same functions with the same arguments, so that they give the same bytes.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from streamproof.disorder.array_store import ArrayStore, FolderStore, MemoryStore
from streamproof.errors import InfrastructureError, InputError, StreamproofError
from streamproof.events.files.listing import files_at

R = TypeVar("R")
SMALL = 64 << 20
"""Sources of at most so many bytes are worked on in this process, unless somebody asks for Spark."""


class Runner(Protocol):
    """Calls a function once for each tuple of arguments; the results are in the order of the calls."""

    @property
    def width(self) -> int:
        """How many pieces there should be at least."""
        ...

    def each(self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> list[R]: ...


class Here:
    """One call after the other, in this process."""

    def __init__(self, width: int = 1) -> None:
        self.width = width

    def each(self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> list[R]:
        return [function(*call) for call in calls]


class OnSpark:
    """Calls as tasks of a Spark job; ``partitions`` tasks at most run side by side."""

    def __init__(self, spark: Any = None, partitions: int | None = None) -> None:
        self._spark = spark
        self._partitions = partitions

    @property
    def spark(self) -> Any:
        if self._spark is None:
            from streamproof.engines.spark.session import session  # noqa: PLC0415

            self._spark = session()
        return self._spark

    @property
    def width(self) -> int:
        return self._partitions or int(self.spark.sparkContext.defaultParallelism)

    def each(self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> list[R]:
        if not calls:
            return []
        tasks = min(len(calls), self._partitions) if self._partitions else len(calls)
        packed = pickle.dumps((function, list(calls)))
        task = _Task(packed, tuple(sys.path))
        frame = self.spark.range(0, len(calls), 1, tasks).mapInArrow(task, "id long, result binary")
        try:
            rows = frame.collect()
        except Exception as error:
            what = str(error).strip().splitlines()
            raise InfrastructureError(
                f"a task on Spark failed: {what[-1] if what else type(error).__name__}", fix="look at Spark's log"
            ) from error
        outcomes = [pickle.loads(row["result"]) for row in sorted(rows, key=lambda row: row["id"])]  # noqa: S301  # our own
        for outcome in outcomes:
            if isinstance(outcome, StreamproofError):
                raise outcome
        return outcomes


class _Task:
    """What a Spark task does: its calls, one after the other."""

    def __init__(self, packed: bytes, path: Sequence[str]) -> None:
        self._packed = packed
        self._path = path  # so that functions of the user's own are found

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        sys.path += [place for place in self._path if place not in sys.path]
        function, calls = pickle.loads(self._packed)  # noqa: S301  # from our own driver, never from disk
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    result = function(*calls[number])
                except StreamproofError as error:
                    result = error
                made = [pa.array([number], pa.int64()), pa.array([pickle.dumps(result)], pa.binary())]
                yield pa.RecordBatch.from_arrays(made, ["id", "result"])


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    return sum(file.stat().st_size for file in files_at(path).files)


RUNNERS: Final = ("auto", "here", "spark")


def chosen_runner(path: Path, *, spark: Any = None, on: str = "auto", partitions: int | None = None) -> Runner:
    """In this process for small sources, else on Spark; ``partitions`` means Spark."""
    if on not in RUNNERS:
        raise InputError(f"nothing runs on {on!r}", at="on", fix=f"allowed: {', '.join(RUNNERS)}")
    if partitions is not None and partitions < 1:
        raise InputError(f"partitions cannot be {partitions}", at="partitions", fix="give at least 1")
    if on == "here":
        return Here(partitions or 1)
    if on == "spark" or partitions or spark is not None or size_of(path) > SMALL:
        return OnSpark(spark, partitions)
    return Here()


@contextmanager
def workplace(folder: Path | None, runner: Runner) -> Iterator[tuple[Path, ArrayStore]]:
    """A folder for what lies between the steps, empty at first and gone at the end, and the store in it."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=".streamproof-", dir=folder))
    os.chmod(place, 0o700)
    try:
        small = isinstance(runner, Here)
        yield place, MemoryStore() if small else FolderStore(place / "store")
    finally:
        shutil.rmtree(place, ignore_errors=True)
