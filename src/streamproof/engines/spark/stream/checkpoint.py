"""What we write into a checkpoint beside Spark's own files: whose it is, and into how many buckets it is cut.

State is cut by bucket, so the number of buckets cannot change while a query goes on.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Final

from streamproof.errors import InputError
from streamproof.plan.check import Typed
from streamproof.plan.rewrites.normal_form import to_plan

VERSION: Final = 3
FILE: Final = "streamproof.json"


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose checkpoint it is."""

    plan: str  # a digest
    buckets: int
    emit: str
    sources: tuple[str, ...]
    run: str = ""  # a name for everything that goes on from this checkpoint; sinks know it by that
    version: int = VERSION
    stages: tuple[tuple[int, str, int], ...] = ()  # of each fragment: its stage, a digest, and its buckets


def digest_of(typed: Typed) -> str:
    """A short text that tells plans apart."""
    return blake2b(repr(to_plan(typed)).encode(), digest_size=12).hexdigest()


def claim(folder: Path, wanted: Claim) -> Claim:
    """The claim in the checkpoint: the one that is there, if it fits, or the wanted one, which is then written."""
    file = folder / FILE
    if not file.exists():
        made = replace(wanted, run=secrets.token_hex(8))
        _write(file, made)
        return made
    found = _read(file)
    _refuse_other(found, wanted, folder)
    return found


def recorded(folder: Path) -> Claim | None:
    """The claim in a checkpoint, if there is one."""
    file = folder / FILE
    return _read(file) if file.exists() else None


def _read(file: Path) -> Claim:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        version = document.get("version")
    except (ValueError, AttributeError):
        raise InputError(
            "the checkpoint's description cannot be read", at=str(file), fix="use a new checkpoint"
        ) from None
    if version != VERSION:
        raise InputError(
            f"the checkpoint has version {version}, this program reads {VERSION}",
            at=str(file),
            fix="use the version of streamproof that wrote it, or a new checkpoint",
        )
    stages = tuple(tuple(part) for part in document.get("stages", ()))
    return Claim(**{**document, "sources": tuple(document["sources"]), "stages": stages})


def _refuse_other(found: Claim, wanted: Claim, folder: Path) -> None:
    if found.plan != wanted.plan or found.sources != wanted.sources:
        raise InputError(
            "the checkpoint belongs to another plan",
            at=str(folder),
            fix="run the plan it was made for, or a new checkpoint",
        )
    _refuse_other_stages(found, wanted, folder)
    if found.buckets != wanted.buckets:
        raise InputError(
            f"the checkpoint is cut into {found.buckets} buckets, and {wanted.buckets} are asked for",
            at=str(folder),
            fix=f"say buckets={found.buckets}, or start with a new checkpoint",
        )
    if found.emit != wanted.emit:
        raise InputError(
            f'the checkpoint is of a run that emits "{found.emit}", not "{wanted.emit}"',
            at=str(folder),
            fix=f'say emit="{found.emit}", or start with a new checkpoint',
        )


def _refuse_other_stages(found: Claim, wanted: Claim, folder: Path) -> None:
    """State belongs to a fragment of the plan, so the cuts cannot move. Before there were any, nothing was written."""
    before, now = ([part[:2] for part in claim.stages] for claim in (found, wanted))
    if before == now or (not before and len(now) == 1):
        return
    how = "chained" if len(before) > 1 else "fused"
    fix = "start with a new checkpoint"
    if len(before) > 1 and len(now) > 1:
        raise InputError("the checkpoint is of a plan that was cut elsewhere", at=str(folder), fix=fix)
    raise InputError(
        f"the checkpoint is of a run whose stages are {how}", at=str(folder), fix=f'say stages="{how}", or {fix}'
    )


def _write(file: Path, content: Claim) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps(asdict(content), indent=1).encode())


def write_atomically(file: Path, data: bytes) -> None:
    """Write a small file so that a crash leaves the old or the new one, on the disk."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
    with temporary.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)
