"""What we write into a checkpoint beside Spark's own files: whose it is, what its output depends on, and how it is cut.

State is cut by bucket, so the number of buckets is fixed with the checkpoint. One query at a time continues from it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from streamproof.engines.claims import plain, refuse_other
from streamproof.engines.sealed import fitting, opened_json, sealed_json, write_atomically
from streamproof.errors import InputError
from streamproof.plan.check import Typed
from streamproof.plan.rewrites.normal_form import to_plan

VERSION: Final = 5
KIND: Final = "checkpoint"
FILE: Final = "streamproof.json"
LOCK: Final = "_streamproof.lock"
ANEW: Final = "start with a new checkpoint and a new folder for the output"


@dataclass(frozen=True, slots=True)
class CheckpointId:
    """Whose checkpoint it is: what must be the same in a run that continues from it."""

    plan: str  # a digest
    buckets: int
    facts: Mapping[str, Any]  # all else that the output depends on, as plain data
    stages: tuple[tuple[int, str, int], ...]  # of each fragment: its stage, a digest, and its buckets
    on_error: str
    run: str = ""  # a name for every run that continues from this checkpoint; sinks know it by that


def digest_of(typed: Typed) -> str:
    """A short text that tells plans apart."""
    return blake2b(repr(to_plan(typed)).encode(), digest_size=12).hexdigest()


def claim(folder: Path, wanted: CheckpointId) -> CheckpointId:
    """Returns whose the checkpoint is: what is written there, if it fits, or ``wanted``, which is then written."""
    found = recorded(folder)
    if found is None:
        made = replace(wanted, run=secrets.token_hex(8))
        _write(folder / FILE, made)
        return made
    _refuse_other(found, wanted, folder)
    if found.on_error != wanted.on_error:
        _write(folder / FILE, replace(found, on_error=wanted.on_error))
    return found


def recorded(folder: Path) -> CheckpointId | None:
    """Returns what a checkpoint is claimed for, if anything. State without a claim belongs to nobody."""
    file = folder / FILE
    if file.exists():
        return _read(file)
    if (folder / "offsets").is_dir() and any((folder / "offsets").iterdir()):
        text = f"the checkpoint has no {FILE}, so nobody knows which query it belongs to"
        raise InputError(text, at=str(folder), fix=ANEW)
    return None


def _read(file: Path) -> CheckpointId:
    document = opened_json(file.read_bytes(), kind=KIND, version=VERSION, at=str(file), fix=ANEW)
    with fitting(KIND, at=str(file)):
        stages = tuple((int(layer), str(plan), int(buckets)) for layer, plan, buckets in document["stages"])
        names = [name for name in CheckpointId.__dataclass_fields__ if name != "stages"]
        return CheckpointId(stages=stages, **{name: document[name] for name in names})


def _refuse_other(found: CheckpointId, wanted: CheckpointId, folder: Path) -> None:
    at, now, emit = str(folder), plain(wanted.facts), found.facts.get("emit")
    only_the_sink = {**found.facts, "emit": now.get("emit")} == now
    fix = f"give the sink {_CONTENT.get(emit, emit)}; or {ANEW}" if only_the_sink else SAME
    refuse_other(found.facts, now, saved="the checkpoint", running="this run", at=at, fix=fix)
    if found.plan != wanted.plan:
        text = "the checkpoint belongs to another plan, or to one that was rewritten in another way"
        raise InputError(text, at=at, fix=SAME)
    _refuse_other_stages(found, wanted, folder)
    if found.buckets != wanted.buckets:
        raise InputError(
            f"the checkpoint is cut into {found.buckets} buckets, and {wanted.buckets} are asked for",
            at=at,
            fix=f"say buckets={found.buckets}, or {ANEW}",
        )
    if found.on_error != "fail" and wanted.on_error == "fail":
        raise InputError(
            f'the checkpoint was taken with on_error="{found.on_error}": what was dropped is in its journal, '
            'so it cannot go on with on_error="fail"',
            at=at,
            fix=f'say on_error="{found.on_error}", or {ANEW}',
        )


SAME: Final = f"run what it was made for; or {ANEW}"
_CONTENT: Final[Mapping[Any, str]] = {
    "events": 'content="events" (a CallSink emit="events")',
    "rows": 'content="rows" or "cht", as it had (a CallSink emit="rows")',
}


def _refuse_other_stages(found: CheckpointId, wanted: CheckpointId, folder: Path) -> None:
    """State belongs to a fragment of the plan, so the cuts cannot move."""
    before, now = ([part[:2] for part in claim.stages] for claim in (found, wanted))
    if before == now:
        return
    if len(before) > 1 and len(now) > 1:
        raise InputError("the checkpoint is of a plan that was cut elsewhere", at=str(folder), fix=ANEW)
    how = "chained" if len(before) > 1 else "fused"
    raise InputError(
        f"the checkpoint is of a run whose stages are {how}", at=str(folder), fix=f'say stages="{how}", or {ANEW}'
    )


def _write(file: Path, content: CheckpointId) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, sealed_json(asdict(content), kind=KIND, version=VERSION))


class Lock:
    """The right to continue from a checkpoint, which one query has at a time; the end of the process gives it back."""

    def __init__(self, folder: Path, name: str = LOCK) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            who = os.read(self._file, 20).decode(errors="replace").strip()
            self.close()
            raise InputError(
                f"another query goes on from this checkpoint{f', in process {who}' if who else ''}",
                at=str(folder),
                fix="stop it first, or start with a checkpoint and a folder of your own",
            ) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, str(os.getpid()).encode())

    def close(self) -> None:
        """Give the right back."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
