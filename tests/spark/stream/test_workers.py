"""Workers that serve one task after the other."""

from __future__ import annotations

import subprocess
import sys

WORK = """
import gc
from streamproof.engines.spark.stream.workers import settle
settle()
first = gc.get_freeze_count()
settle()
assert gc.get_freeze_count() == first, "nothing was loaded since"
import fractions
settle()
print(0 < first < gc.get_freeze_count())
"""


def test_what_is_loaded_is_not_looked_through_for_garbage() -> None:
    """In a process of its own: it is for good."""
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "True"


def test_a_host_is_asked_for_its_state_without_arrow_and_kernels() -> None:
    asked = "import sys, streamproof.engines.spark.stream.host; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60)
    assert not {"pyarrow", "numba", "pandas", "streamproof.plan.nodes"} & set(done.stdout.split())
