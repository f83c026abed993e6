"""Where arrays are kept: in memory and in a folder alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from streamproof.disorder.shelf import FolderShelf, MemoryShelf


@pytest.mark.parametrize("made", [lambda folder: MemoryShelf(), FolderShelf], ids=["memory", "folder"])
def test_what_is_dropped_is_gone_and_the_rest_stays(
    made: Callable[[Path], MemoryShelf | FolderShelf], tmp_path: Path
) -> None:
    shelf = made(tmp_path)
    for name in ("a/one", "a/two", "b/one"):
        shelf.put(name, np.arange(3))
    shelf.drop("a/")
    assert [shelf.has(name) for name in ("a/one", "a/two", "b/one")] == [False, False, True]
    assert shelf.get("b/one").tolist() == [0, 1, 2]
