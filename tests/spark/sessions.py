"""The session that tests share: set up for tiny plans, where starting work costs more than doing it."""

from __future__ import annotations

from typing import Final

FAST: Final = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.shuffle.compress": "false",
    "spark.rdd.compress": "false",
    "spark.memory.offHeap.enabled": "false",
    "spark.local.dir": "/dev/shm",
}
"""Settings for speed: one partition, interpreted plans, the first compiler of Java alone."""
