"""One Spark session for all tests of stream mode, set for speed, and folders in memory for checkpoints."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamproof.engines.spark.session import active, session
from tests.spark.sessions import FAST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture(scope="session")
def shared_spark() -> SparkSession:
    return active() or session(**FAST)


@pytest.fixture
def spark(shared_spark: SparkSession) -> Iterator[SparkSession]:
    """The session that all tests share, with two partitions, so that buckets are apart."""
    before = shared_spark.conf.get(PARTITIONS)
    shared_spark.conf.set(PARTITIONS, "2")
    yield shared_spark
    shared_spark.conf.set(PARTITIONS, before or "1")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where there is one."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="streamproof-test-", dir=memory if memory.is_dir() else None))
    yield place
    shutil.rmtree(place, ignore_errors=True)
