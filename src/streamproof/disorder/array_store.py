"""Where the arrays of a job lie between its steps: in memory, or in a folder that every worker sees.

Arrays in a folder are mapped, not loaded: a step reads the parts it needs, so that no step needs memory for more than a
piece of the stream.

>>> store = MemoryStore()
>>> store.put("times/0", np.array([3, 5]))
>>> store.get("times/0").tolist(), store.has("times/1")
([3, 5], False)
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Protocol

import numpy as np


class ArrayStore(Protocol):
    """Arrays by name."""

    def put(self, name: str, array: Any) -> None: ...
    def get(self, name: str) -> Any: ...
    def has(self, name: str) -> bool: ...
    def drop(self, prefix: str) -> None: ...


class MemoryStore:
    """Arrays in this process."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}

    def put(self, name: str, array: Any) -> None:
        self._arrays[name] = array

    def get(self, name: str) -> Any:
        return self._arrays[name]

    def has(self, name: str) -> bool:
        return name in self._arrays

    def drop(self, prefix: str) -> None:
        for name in [name for name in self._arrays if name.startswith(prefix)]:
            del self._arrays[name]


class FolderStore:
    """Arrays as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"

    def put(self, name: str, array: Any) -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")  # a task that is tried again replaces what it left
        with unfinished.open("wb") as file:
            np.save(file, array, allow_pickle=False)
        unfinished.replace(path)

    def get(self, name: str) -> Any:
        path = self.path(name)
        try:
            return np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError:  # an empty array cannot be mapped
            return np.load(path, allow_pickle=False)

    def has(self, name: str) -> bool:
        return self.path(name).exists()

    def drop(self, prefix: str) -> None:
        shutil.rmtree(self.folder / prefix, ignore_errors=True)


class SubStore:
    """The part of a store whose names begin with a prefix."""

    def __init__(self, store: ArrayStore, prefix: str) -> None:
        self._store, self._prefix = store, prefix

    def put(self, name: str, array: Any) -> None:
        self._store.put(f"{self._prefix}/{name}", array)

    def get(self, name: str) -> Any:
        return self._store.get(f"{self._prefix}/{name}")

    def has(self, name: str) -> bool:
        return self._store.has(f"{self._prefix}/{name}")

    def drop(self, prefix: str) -> None:
        self._store.drop(f"{self._prefix}/{prefix}")
