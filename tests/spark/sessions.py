"""The session that tests share: set up for tiny plans, where starting work costs more than doing it."""

from __future__ import annotations

from typing import Final

from streamproof.engines.spark.session import TINY

FAST: Final = {**TINY, "spark.sql.shuffle.partitions": "1", "spark.local.dir": "/dev/shm"}
"""With one partition, and files in memory."""
