"""Which ids may be known: a small index for those who look up few ids among many.

It keeps one hash per id, in a few sorted arrays of which each is at least twice as long as the next, so that a small
chunk rewrites little. Ids that nobody knows any more stay until it is made anew; equal hashes are not always equal ids.

>>> index = IdIndex(pa.array(["a", "b"]))
>>> index.add(pa.array(["c"]))
>>> index.among(pa.array(["c", "d", None])).to_pylist()
['c']
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.int64]


class IdIndex:
    """The ids that were added."""

    def __init__(self, ids: pa.Array) -> None:
        self._sorted: list[Hashes] = [np.sort(_hashes(ids))]

    def add(self, ids: pa.Array) -> None:
        """Know these as well."""
        self._sorted.append(np.sort(_hashes(ids)))
        while len(self._sorted) > 1 and 2 * len(self._sorted[-1]) > len(self._sorted[-2]):
            last = self._sorted.pop()
            self._sorted[-1] = np.sort(np.concatenate([self._sorted[-1], last]), kind="stable")

    def among(self, ids: pa.Array) -> pa.Array:
        """Those of some ids that may have been added: all that were, and seldom another."""
        hashes = _hashes(ids)
        order = np.argsort(hashes)
        wanted = hashes[order]  # in order, so that one look-up finds in the cache what the last one read
        found = np.zeros(len(wanted), np.bool_)
        for known in self._sorted:
            if len(known):
                place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
                found[order] |= known[place] == wanted
        return ids.filter(pa.array(found)).drop_null()


def _hashes(ids: pa.Array) -> Hashes:
    texts = ids.to_pylist()
    return np.fromiter(map(hash, texts), np.int64, len(texts))
