"""Whether a checkpoint and a folder of output belong to the same moment.

Spark notes a micro-batch in ``offsets`` before it runs, and in ``commits`` when it is done. The output is recorded
in between: so a folder is where the checkpoint is, or one micro-batch ahead, one that Spark has noted and will bring
again. What Spark noted of the last micro-batch is remembered with the output, as a digest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamproof.engines.sealed import digest_of
from streamproof.engines.spark.output import REBUILD, STATE, State, missing
from streamproof.errors import InputError

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


def refuse_other_place(folder: Path, state: State | None, checkpoint: Path | None) -> None:
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
    if state.batch > min(spark.noted, spark.done + 1):
        text = f"the checkpoint is behind: it ends with {_batch(spark.done)}, the output folder with {state.batch}"
        raise InputError(text, at=str(checkpoint), fix=_BOTH)
    if state.batch >= 0 and state.note != note_of(checkpoint, state.batch):
        text = f"the checkpoint and the output folder went different ways: micro-batch {state.batch} is not the same"
        raise InputError(text, at=str(folder), fix=_BOTH)


def refuse_lost(folder: Path, state: State) -> None:
    """Refuse an output whose files are not all there."""
    lost = missing(folder, state)
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        text = f"the output folder has lost files, or they were changed: {lost[0]}{more}"
        raise InputError(text, at=str(folder), fix=_BOTH)


def _batch(number: int) -> str:
    return "nothing" if number < 0 else f"micro-batch {number}"
