"""The process that Spark forks its Python workers from, in a session of tiny plans: it has loaded the kernels already.

A worker that fails is replaced by a new one, which would take seconds to load them again. Spark is told of it by
``spark.python.daemon.module``.
"""

from __future__ import annotations

from importlib import import_module
from time import monotonic
from typing import Final

from pyspark.daemon import manager

from streamproof.engines.local.warming import warm_up
from streamproof.engines.spark.stream.workers import settle

PATIENCE: Final = 8.0  # seconds; where kernels were never compiled, workers compile the others when they need them


def load() -> None:
    """Load what workers run, and all that it needs."""
    import_module("streamproof.engines.spark.stream.host")
    import_module("streamproof.engines.spark.stream.serving")
    began = monotonic()
    for _ in warm_up():
        if monotonic() - began > PATIENCE:
            return


if __name__ == "__main__":
    load()
    settle()
    manager()
