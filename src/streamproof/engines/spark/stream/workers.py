"""Python workers of Spark, which serve one task after the other."""

from __future__ import annotations

import gc
import sys

_known = 0  # modules that were loaded when this process was last settled


def settle() -> None:
    """Take what is loaded out of the garbage collector's sight, whenever more is loaded than the last time.

    After each task Spark has its worker look for garbage among everything, which with the kernels is a tenth of a
    second; what modules hold is never garbage.
    """
    global _known  # noqa: PLW0603  # there is one such process
    if len(sys.modules) > _known:
        gc.collect()
        gc.freeze()
        _known = len(sys.modules)
