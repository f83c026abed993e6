"""Keeping a folder of output: writing its files whole, merging small ones, and removing what does not count any more.

Files are merged like the digits of a number that counts up: eight of one level become one of the next, so there are
few, and a row is written again once per level. Large files stay as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal, TypeAlias

from streamproof.engines.sealed import digest_of, sealed_json
from streamproof.engines.spark.output import (
    KIND,
    LISTS,
    STATE,
    VERSION,
    Part,
    Parts,
    State,
    content_of,
    expanded,
    joined,
    name_of,
    place_of,
)
from streamproof.engines.spark.stream.checkpoint import write_atomically

Step: TypeAlias = Literal["written", "renamed", "recorded", "removed"]
FANOUT: Final = 8  # files of one level that are merged
LARGEST: Final = 32 << 20  # bytes that are merged at once
LISTED: Final = 256  # files in a list; twice as many are not kept in the state


class Folder:
    """The files of an output."""

    def __init__(self, place: Path, on_step: Callable[[Step, int], None]) -> None:
        self.place, self._on_step = place, on_step
        self.fresh: set[str] = set()  # what was put here since the last time that something was removed

    def put(self, name: str, number: int, data: bytes, level: int = 0) -> Part:
        """Write a file aside, and rename it: it is there whole or not at all, and does not count yet."""
        place = place_of(self.place, name)
        place.parent.mkdir(exist_ok=True)
        temporary = place.with_name(f".{place.name}.{os.getpid()}.part")
        with temporary.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        self._on_step("written", number)
        temporary.replace(place)
        self.fresh.add(name)
        return Part(name, len(data), digest_of(data), level)

    def record(self, state: State) -> None:
        """Say how far the folder is: the step that makes a micro-batch count."""
        write_atomically(self.place / STATE, sealed_json(state.as_dict(), kind=KIND, version=VERSION))

    def remove(self, names: Iterable[str]) -> None:
        """Remove files of the output. Any other name is refused."""
        for name in names:
            place_of(self.place, name).unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """Remove what a run that was killed was about to write."""
        for left in self.place.rglob(".*.part"):
            left.unlink(missing_ok=True)


def merged(folder: Folder, stem: str, parts: Parts, number: int) -> Parts:
    """The parts with the last ones merged, as long as there are enough of one level.

    Law: what they hold, in their order, does not change.
    """
    while len(parts) >= FANOUT:
        last = parts[-FANOUT:]
        level, ending = last[0].level, last[0].name.rpartition(".")[2]
        if any(part.level != level for part in last) or sum(part.size for part in last) > LARGEST:
            break
        data = joined((content_of(folder.place, part) for part in last), ending)
        name = name_of(stem, last[0].span[0], last[-1].span[1], ending)
        parts = (*parts[:-FANOUT], folder.put(name, number, data, level + 1))
    return parts


def put_aside(folder: Folder, kind: str, parts: Parts, number: int) -> Parts:
    """The parts, with the first ones in a list of their own if there are many."""
    lists = sum(part.name.startswith(f"{LISTS}/") for part in parts)
    if len(parts) - lists < 2 * LISTED:
        return parts
    listed = parts[lists : lists + LISTED]
    name = name_of(f"{LISTS}/{kind}", listed[0].span[0], listed[-1].span[1], "json")
    document = [{"name": p.name, "size": p.size, "digest": p.digest, "level": p.level} for p in listed]
    aside = folder.put(name, number, json.dumps(document).encode())
    return (*parts[:lists], aside, *parts[lists + LISTED :])


def replaced(folder: Folder, before: State, after: State) -> list[str]:
    """The files that do not count any more, in the order of their names."""
    lists = [part for part in (*after.files, *after.letters) if part.name in folder.fresh]
    kept = _names(after) | {part.name for part in expanded(folder.place, lists)}
    return sorted((_names(before) | folder.fresh) - kept)


def _names(state: State) -> set[str]:
    return {part.name for part in (*state.files, *state.open, *state.letters)}
