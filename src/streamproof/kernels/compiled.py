"""How loops over arrays are compiled."""

from __future__ import annotations

from typing import Any, Final

from numba import njit

loop: Final[Any] = njit(cache=True, _nrt=False)
"""For functions that make no arrays and hand none out.

Other compiled functions count who holds an array, with an atomic operation whenever one is handed to a part of a loop;
that cost several times what the loops do. Here arrays are only borrowed from the caller, and nobody counts.
"""
