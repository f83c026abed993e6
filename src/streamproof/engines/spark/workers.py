"""Spark's Python workers: which Python they are, what they have loaded, and what their garbage collector looks at.

- *Which Python.* That of this process, with the modules of Spark that are installed beside it. Spark puts archives of
  its modules in front of all others. Python keeps no compiled code for archives, so every worker, and the process that
  starts with every stateful query, would compile them anew, which is half a second each.
- *What they have loaded.* In a session of tiny plans this module is the daemon that Spark forks its workers from (the
  setting ``spark.python.daemon.module``): it has loaded the kernels already. A worker that fails is replaced by a new
  one, which would take seconds to load them again.
- *Garbage.* See `settle`.
"""

from __future__ import annotations

import atexit
import gc
import os
import shlex
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Final

PATIENCE: Final = 8.0  # seconds; where kernels were never compiled, workers compile the others when they need them

_SCRIPT: Final = """#!/bin/sh
kept=
IFS=:
set -f
for place in $PYTHONPATH; do
    case $place in
        */python/lib/pyspark.zip | */python/lib/py4j-*-src.zip) ;;
        *) kept="$kept${{kept:+:}}$place" ;;
    esac
done
PYTHONPATH=$kept
export PYTHONPATH
exec {python} "$@"
"""


def worker_python(master: str) -> str:
    """What Spark is to start as Python; on other machines that is this very program."""
    if not (master.startswith("local") and os.name == "posix" and _has_own_home()):
        return sys.executable
    handle, name = tempfile.mkstemp(prefix="streamproof-python-", suffix=".sh")
    with os.fdopen(handle, "w") as file:
        file.write(_SCRIPT.format(python=shlex.quote(sys.executable)))
    Path(name).chmod(0o700)
    atexit.register(Path(name).unlink, missing_ok=True)
    return name if os.access(name, os.X_OK) else sys.executable  # where nothing may be run


def _has_own_home() -> bool:
    """Whether the Spark that runs is the installed one, so that its archives hold what is installed."""
    import pyspark  # noqa: PLC0415  # Spark is loaded by those who use it

    home = os.environ.get("SPARK_HOME")
    return home is None or Path(home).resolve() == Path(pyspark.__file__).parent.resolve()


_settled = 0  # modules that were loaded when this process was last settled


def settle() -> None:
    """Take what is loaded out of the garbage collector's sight, whenever more is loaded than the last time.

    After each task Spark has its worker look for garbage among everything, which with the kernels is a tenth of a
    second; what modules hold is never garbage.
    """
    global _settled  # noqa: PLW0603  # there is one such process
    if len(sys.modules) > _settled:
        gc.collect()
        gc.freeze()
        _settled = len(sys.modules)


def load() -> None:
    """Load what workers run, and all that it needs."""
    from streamproof.engines.local.warming import warm_up  # noqa: PLC0415  # kernels, which other callers do without

    import_module("streamproof.engines.spark.stream.processor")
    import_module("streamproof.engines.spark.stream.serving")
    began = monotonic()
    for _ in warm_up():
        if monotonic() - began > PATIENCE:
            return


def serve_as_daemon() -> None:
    """Load everything, then fork workers for Spark until it ends."""
    from pyspark.daemon import manager  # noqa: PLC0415  # Spark's own daemon, which only this process is

    load()
    settle()
    manager()


if __name__ == "__main__":
    # the module under its own name, which workers import: they share what is settled here
    import_module("streamproof.engines.spark.workers").serve_as_daemon()
