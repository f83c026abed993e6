"""One Spark session for all tests of stream mode, set for speed, and folders in memory for checkpoints."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamproof.engines.spark.session import active, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAST = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Djdk.lang.Process.launchMechanism=VFORK",
}


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return active() or session(**FAST)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where there is one."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="streamproof-test-", dir=memory if memory.is_dir() else None))
    yield place
    shutil.rmtree(place, ignore_errors=True)
