"""Interrupted runs: the state and the places in the inputs, in a file from which ``--from-savepoint`` goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from streamproof.documents import existing
from streamproof.engines.base import LiveQuery
from streamproof.engines.claims import Claim, plain, refuse_other
from streamproof.engines.sealed import fitting, opened, sealed
from streamproof.errors import InputError, StreamproofError
from streamproof.events.files.listing import files_at
from streamproof.events.files.writer import replacing

KIND: Final = "interrupted run"
VERSION: Final = 2
SAME_COMMAND: Final = "give the same command, with --from-savepoint; docs/running.md lists what may change"
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Interrupted:
    """How far a run had come."""

    savepoint: bytes
    positions: dict[str, int]  # how many events of each input were pushed
    written: dict[str, int]  # bytes of the files of letters, by path


def save(
    path: Path, query: LiveQuery, *, claim: Claim, positions: Mapping[str, int], written: Mapping[str, int],
    files: Mapping[str, Path],
) -> None:  # fmt: skip
    """Write down how far a run has come; an older file of this name is replaced."""
    contents = {name: content_of(file) for name, file in files.items()}
    about = {"claim": claim, "positions": dict(positions), "written": dict(written), "contents": contents}
    content = json.dumps(about).encode() + b"\n" + query.savepoint()
    with replacing(Path(os.path.realpath(path)), overwrite=True) as temporary:
        temporary.write_bytes(sealed(content, kind=KIND, version=VERSION))


def load(path: Path, *, claim: Claim, files: Mapping[str, Path]) -> Interrupted:
    """What `save` wrote, for the same command over the same inputs; these may have grown since."""
    content = opened(existing(path, what="savepoint").read_bytes(), kind=KIND, version=VERSION, at=str(path))
    with fitting(KIND, at=str(path)):
        head, _, savepoint = content.partition(b"\n")
        about: dict[str, Any] = json.loads(head)
        refuse_other(about["claim"], plain(claim), saved=str(path), running="this run", fix=SAME_COMMAND)
        for name, known in about["contents"].items():
            _refuse_other_content(name, files[name], *known)
        return Interrupted(savepoint, about["positions"], about["written"])


def restore(query: LiveQuery, interrupted: Interrupted, path: Path) -> None:
    """Let the query go on where it was interrupted."""
    try:
        query.restore(interrupted.savepoint)
    except StreamproofError as error:
        raise error.located(str(path)) from None


def _refuse_other_content(name: str, file: Path, length: int, digest: str) -> None:
    found = content_of(file, length)
    if found != (length, digest):
        shorter = f", which has {found[0]:,} bytes and had {length:,}" if found[0] < length else ""
        raise InputError(
            f'the input "{name}" is not the one that the savepoint was taken over',
            at=f"{file}{shorter}",
            fix="give the same inputs; they may have grown at their end only",
        )


def content_of(file: Path, length: int | None = None) -> tuple[int, str]:
    """Returns how many bytes an input has, up to ``length``, and their digest; several files are taken in order."""
    state, count = blake2b(digest_size=16), 0
    for part in files_at(file).files:
        with part.open("rb") as opened_file:
            while block := opened_file.read(_BLOCK if length is None else min(_BLOCK, length - count)):
                state.update(block)
                count += len(block)
    return count, state.hexdigest()
