"""Whether a checkpoint and a folder of output belong to the same moment.

Spark notes a micro-batch in ``offsets`` before it runs, and in ``commits`` when it is done. The output is recorded
in between: so a folder is where the checkpoint is, or one micro-batch ahead, one that Spark has noted and will bring
again. What Spark noted of the last micro-batch is remembered with the output, as a digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from streamproof.engines.sealed import digest_of
from streamproof.engines.spark.output import REBUILD, STATE, OutputState, changed, missing
from streamproof.errors import InputError

_WHOLE: Final = f"use a whole copy of the checkpoint; or {REBUILD}"
_BOTH: Final = f"give the folder and the checkpoint of one moment; or {REBUILD}"


@dataclass(frozen=True, slots=True)
class Position:
    """How far Spark is: the last micro-batch that it has noted, and the last that it has done; -1 is none."""

    noted: int = -1
    done: int = -1

    @staticmethod
    def of(checkpoint: Path) -> Position:
        return Position(*(_last(checkpoint / name) for name in ("offsets", "commits")))


def _last(folder: Path) -> int:
    names = [place.name for place in folder.iterdir()] if folder.is_dir() else []
    return max((int(name) for name in names if name.isascii() and name.isdigit()), default=-1)


def note_of(checkpoint: Path | None, number: int) -> str:
    """A digest of what Spark noted of a micro-batch; of none, nothing."""
    file = None if checkpoint is None else checkpoint / "offsets" / str(number)
    return digest_of(file.read_bytes()) if file is not None and file.is_file() else ""


def refuse_other_place(folder: Path, state: OutputState | None, checkpoint: Path | None) -> None:
    """Refuse an output that is not where the checkpoint is."""
    if checkpoint is None:
        return
    spark = Position.of(checkpoint)
    if state is None:
        if spark.done >= 0:
            what = f"has no {STATE}" if folder.is_dir() and any(folder.iterdir()) else "is gone or empty"
            text = f"the output folder {what}, and the checkpoint has done micro-batches up to {spark.done}"
            raise InputError(text, at=str(folder), fix=_BOTH)
        return
    if state.batch < spark.done:
        text = f"the output folder is behind: it ends with {_batch(state.batch)}, the checkpoint with {spark.done}"
        raise InputError(text, at=str(folder), fix=_BOTH)
    if spark.noted < spark.done:
        text = f"the checkpoint has lost Spark's note of micro-batch {spark.done}"
        raise InputError(text, at=str(checkpoint), fix=_BOTH)
    if state.batch > min(spark.noted, spark.done + 1):
        text = f"the checkpoint is behind: it ends with {_batch(spark.done)}, the output folder with {state.batch}"
        raise InputError(text, at=str(checkpoint), fix=_BOTH)
    if state.batch >= 0 and state.note != note_of(checkpoint, state.batch):
        text = f"the checkpoint and the output folder went different ways: micro-batch {state.batch} is not the same"
        raise InputError(text, at=str(folder), fix=_BOTH)


def refuse_gone(checkpoint: Path) -> None:
    """Refuse a micro-batch that Spark has noted and not done if files of it are gone: Spark would leave them out."""
    spark = Position.of(checkpoint)
    if spark.noted == spark.done:
        return
    done = _offsets(checkpoint / "offsets" / str(spark.done))
    for source, place, found in _read(checkpoint):
        if int(found["batch"]) > done.get(source, -1) and not place.exists():
            text = f"{place.name} is gone, and a micro-batch that is not done yet needs it"
            raise InputError(text, at=str(place.parent), fix=f"put it back; or {REBUILD}")


def refuse_changed(checkpoint: Path) -> None:
    """Refuse files that were written to since Spark read them: it would not read them again.

    Those of a micro-batch that is not done yet are read as they are now.
    """
    done = _offsets(checkpoint / "offsets" / str(Position.of(checkpoint).done))
    for source, place, found in _read(checkpoint):
        if int(found["batch"]) > done.get(source, -1):
            continue
        if place.exists() and place.stat().st_mtime_ns // 1_000_000 != int(found["time"]):
            text = f"{place.name} was written to since it was read, and Spark does not read it again"
            back = f"touch -d @{int(found['time']) / 1000:.3f} {place.name}"
            fix = f"give what is new as a new file, and put this one back, with its time ({back}); or {REBUILD}"
            raise InputError(text, at=str(place), fix=fix)


def refuse_strange(checkpoint: Path, known: Set[str]) -> None:
    """Refuse notes of Spark about files that were never taken, or two about one: with such it reads files again."""
    seen = set()
    for source, place, _ in _read(checkpoint):
        if place.name not in known or (source, place) in seen:
            text = f"Spark's notes in the checkpoint are damaged: {place.name} is noted as read"
            raise InputError(text, at=str(checkpoint / "sources"), fix=_WHOLE)
        seen.add((source, place))


def _read(checkpoint: Path) -> Iterator[tuple[int, Path, re.Match[str]]]:
    """What Spark notes of the files that it has read, by the number of the source."""
    for folder in sorted((checkpoint / "sources").glob("*")):
        logs = {found: log for log in folder.glob("*") if (found := _LOG.fullmatch(log.name))}
        whole = max((int(found[1]) for found in logs if found[2]), default=-1)  # those before are in it
        for found, log in logs.items():
            if int(found[1]) > whole or (found[2] and int(found[1]) == whole):
                for line in log.read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
                    if (noted := _FILE.search(line)) is not None:
                        yield int(folder.name), Path(unquote(noted["path"])), noted


_LOG: Final = re.compile(r"(\d+)(\.compact)?")
_FILE: Final = re.compile(r'"path":"file:(?://)?(?P<path>/[^"]+)","timestamp":(?P<time>\d+),"batchId":(?P<batch>\d+)')


def _offsets(note: Path) -> dict[int, int]:
    """How far each source that counts its files was, after the version and the head of a note."""
    lines = note.read_text(encoding="utf-8", errors="replace").splitlines()[2:] if note.is_file() else []
    found = {number: re.fullmatch(r'\{"logOffset":(\d+)\}', line) for number, line in enumerate(lines)}
    return {number: int(offset[1]) for number, offset in found.items() if offset is not None}


def refuse_lost(folder: Path, state: OutputState) -> None:
    """Refuse an output whose files are not all there, or were written to since the folder was.

    A file is there before it is recorded; so one that is younger than the record was copied or changed, and only such
    files are read here. Whoever reads the output looks into all of them.
    """
    lost = missing(folder, state) or changed(folder, state)
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        text = f"the output folder has lost files, or they were changed: {lost[0]}{more}"
        raise InputError(text, at=str(folder), fix=_BOTH)


def _batch(number: int) -> str:
    return "nothing" if number < 0 else f"micro-batch {number}"
