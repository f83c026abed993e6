"""The Python of Spark's workers: that of this process, with the modules of Spark that are installed beside it.

Spark puts archives of its modules in front of all others. Python keeps no compiled code for archives, so every worker,
and the process that starts with every stateful query, would compile them anew, which is half a second each.
"""

from __future__ import annotations

import atexit
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Final

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
