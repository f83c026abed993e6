"""Where arrays are kept: in memory and in a folder alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from streamproof.disorder.array_store import FolderStore, MemoryStore


@pytest.mark.parametrize("made", [lambda folder: MemoryStore(), FolderStore], ids=["memory", "folder"])
def test_what_is_dropped_is_gone_and_the_rest_stays(
    made: Callable[[Path], MemoryStore | FolderStore], tmp_path: Path
) -> None:
    store = made(tmp_path)
    for name in ("a/one", "a/two", "b/one"):
        store.put(name, np.arange(3))
    store.drop("a/")
    assert [store.has(name) for name in ("a/one", "a/two", "b/one")] == [False, False, True]
    assert store.get("b/one").tolist() == [0, 1, 2]
