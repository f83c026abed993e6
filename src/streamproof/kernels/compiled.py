"""How loops over arrays are compiled."""

from __future__ import annotations

from typing import Any, Final

from numba import njit
from numba.core.options import DefaultOptions

# an option without documentation: where a version of Numba does not have it, loops are slower and right
_BORROWING: Final[dict[str, Any]] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
loop: Final[Any] = njit(cache=True, **_BORROWING)
"""For functions that make no arrays and hand none out.

Other compiled functions count who holds an array, with an atomic operation whenever one is handed to a part of a loop;
that cost several times what the loops do. Here arrays are only borrowed from the caller, and nobody counts.
"""
