"""What we write into files beside the rows: the format version and the unit of ticks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from streamproof.errors import InputError
from streamproof.events.schema import Schema

VERSION: Final = "1"
_PREFIX: Final = "streamproof."


def with_metadata(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with the version of its format and the unit of its ticks."""
    return table.replace_schema_metadata({f"{_PREFIX}version": VERSION, f"{_PREFIX}unit": schema.unit or ""})


def read_metadata(fields: pa.Schema, path: Path) -> Mapping[str, str]:
    """What we wrote into the file, nothing for a foreign one; an unknown version is refused."""
    raw = {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in (fields.metadata or {}).items()
        if key.startswith(_PREFIX.encode())
    }
    known = {key.removeprefix(_PREFIX): value for key, value in raw.items()}
    if known and known.get("version") != VERSION:
        raise InputError(
            f"the file has format version {known.get('version')!r}, this program reads version {VERSION}",
            at=str(path),
            fix="read it with the version of streamproof that wrote it, or a newer one",
        )
    return known
