"""Where a command writes: refused before anything is read, if it cannot be written, or would write over something.

>>> refuse_outputs({"--out": Path("a.csv")}, [Path("a.csv")])
Traceback (most recent call last):
    ...
streamproof.errors.InputError: a.csv is read and cannot be written too
  at: --out a.csv
  fix: choose another path
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from streamproof.errors import InputError
from streamproof.events.files.rejects import exists
from streamproof.events.files.writer import check_target


def refuse_outputs(
    outputs: Mapping[str, Path | None],
    inputs: Iterable[Path] = (),
    *,
    replaced: Iterable[str] = (),
    ours: Iterable[str] = (),
) -> None:
    """Refuse files, by their options, that cannot be written.

    ``replaced`` may be there already; ``ours`` was made by the run that this one goes on with.
    """
    taken = {os.path.realpath(path): f"{path} is read and cannot be written too" for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        place = os.path.realpath(path)  # which follows no circles
        if place in taken:
            raise InputError(taken[place], at=f"{option} {path}", fix="choose another path")
        taken[place] = f"{path} is written by {option} already"
        check_target(Path(place), overwrite=option in replaced or option not in _REPLACEABLE)
        if option not in (*replaced, *ours, *_REPLACEABLE) and os.path.lexists(path):
            raise exists(path)


_REPLACEABLE: Final = ("--out", "--savepoint")  # results; what is left out is never written over anything
