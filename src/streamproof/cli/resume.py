"""Interrupted runs: the state and the places in the inputs, in a file from which ``--resume`` goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pyarrow as pa

from streamproof.engines.local.query import RunningQuery
from streamproof.engines.local.snapshot import read_table, refuse_version, table_bytes
from streamproof.errors import InputError
from streamproof.events.files.writer import replacing

VERSION = "1"
_HEAD = 1 << 16  # bytes of an input by which it is known again


@dataclass(frozen=True, slots=True)
class Interrupted:
    """How far a run had come."""

    processor: bytes
    positions: dict[str, int]  # how many events of each input were pushed
    heads: dict[str, tuple[int, str]]  # the beginning of each input: its length and its hash


def save(path: Path, query: RunningQuery, positions: Mapping[str, int], files: Mapping[str, Path]) -> None:
    """Write down how far a run has come; an older file of this name is replaced."""
    heads = {name: head(file) for name, file in files.items()}
    about = json.dumps({"version": VERSION, "positions": dict(positions), "heads": heads})
    table = pa.table({"about": pa.array([about]), "processor": pa.array([query.snapshot()], pa.large_binary())})
    with replacing(path.resolve(), overwrite=True) as temporary:
        temporary.write_bytes(table_bytes(table))


def load(path: Path, files: Mapping[str, Path]) -> Interrupted:
    """What `save` wrote, for the same inputs; they may have grown since."""
    if not path.is_file():
        raise InputError(f"there is no snapshot {path}", fix="give the file that --snapshot named")
    table = read_table(path.read_bytes())
    if table.column_names != ["about", "processor"]:
        raise InputError(f"{path} is not the snapshot of a run", fix="give the file that --snapshot named")
    about = json.loads(table["about"][0].as_py())
    if about["version"] != VERSION:
        refuse_version(about["version"])
    heads = {name: (length, text) for name, (length, text) in about["heads"].items()}
    for name, known in heads.items():
        if name not in files or head(files[name], known[0]) != known:
            raise InputError(
                f'the input "{name}" is not the one that the snapshot was taken over',
                at=str(files.get(name, "no file is given")),
                fix="give the same inputs; they may have grown at their end only",
            )
    return Interrupted(table["processor"][0].as_py(), about["positions"], heads)


def head(file: Path, length: int = _HEAD) -> tuple[int, str]:
    """The beginning of a file: how long it is, and its hash."""
    with file.open("rb") as opened:
        content = opened.read(length)
    return len(content), sha256(content).hexdigest()
