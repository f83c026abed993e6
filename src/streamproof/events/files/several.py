"""Several files as one: they must agree in their columns and types, so that no file means something else by a name.

Rows are called by the number of their file and their line, ``#2.17``; rejected rows by the name of their file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from streamproof.events.files.columns import JsonColumns
from streamproof.events.files.jsonl import JsonLines
from streamproof.events.files.listing import FileSet, differing
from streamproof.events.files.records import RecordsFile
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import FilePart, RowsFile
from streamproof.events.notation import merge_types
from streamproof.events.schema import Type
from streamproof.events.stream import PhysicalStream

Json = TypeVar("Json", JsonLines, RecordsFile)


class SeveralTables:
    """Files of rows and columns."""

    def __init__(self, found: FileSet, files: Sequence[RowsFile]) -> None:
        self._found, self._files = found, files
        self.word, self.fields, self.metadata = files[0].word, files[0].fields, files[0].metadata
        self.hint = getattr(files[0], "hint", None)
        for path, file in zip(found.files, files, strict=True):
            why = _difference(self.fields, file.fields, self.metadata, file.metadata)
            if why is not None:
                error = differing(path, found.files[0], why)
                error.fix = self.hint or error.fix
                raise error

    def parts(self, rejects: Rejects) -> Iterator[FilePart]:
        for number, (path, file) in enumerate(zip(self._found.files, self._files, strict=True), start=1):
            rejects.file = self._found.name_of(path)
            for part in file.parts(rejects):
                yield FilePart(part.rows.select(self.fields.names), part.lines, f"{number}.")


def _difference(
    ours: pa.Schema, fields: pa.Schema, metadata: Mapping[str, str], other: Mapping[str, str]
) -> str | None:
    """What another file has that is not as in the first; nothing if it fits."""
    found = _other_names(ours.names, fields.names)
    for field in fields if found is None else ():
        if field.type != ours.field(field.name).type:
            return f'its column "{field.name}" is {field.type}, not {ours.field(field.name).type}'
    if found is None and metadata != other:
        return f"its ticks are of the unit {other.get('unit') or '(none)'}, not {metadata.get('unit') or '(none)'}"
    return found


def _other_names(ours: Collection[str], names: Collection[str]) -> str | None:
    for name in ours:
        if name not in names:
            return f'it has no column "{name}"'
    more = next((name for name in names if name not in ours), None)
    return None if more is None else f'it also has a column "{more}"'


class SeveralStreams:
    """Files of JSON lines in our own notation, one after the other."""

    word = "line"

    def __init__(self, found: FileSet, files: Sequence[JsonLines]) -> None:
        self._found, self._files = found, files
        self.schema = files[0].schema
        self.complete = all(file.complete for file in files)
        self.makes_ids = all(file.makes_ids for file in files)

    def chunks(self, rejects: Rejects) -> Iterator[tuple[PhysicalStream, int]]:
        for path, file in zip(self._found.files, self._files, strict=True):
            rejects.file = self._found.name_of(path)
            yield from file.chunks(rejects)


def agreed(found: FileSet, files: Sequence[Json]) -> Sequence[Json]:
    """Files of JSON that all have the columns of the first, with the narrowest types that keep the values of all."""
    whole = JsonColumns()
    first: Path | None = None
    for path, file in zip(found.files, files, strict=True):
        types = file.columns.kinds
        if not types:
            continue  # it has CTIs alone
        if first is not None:
            why = _other_names(whole.kinds, types) or _other_types(whole.kinds, types)
            if why is not None:
                raise differing(path, first, why)
        first = first or path
        whole.absorb(file.columns)
    for file in files:
        file.settle(whole)
    return files


def _other_types(ours: Mapping[str, Type], types: Mapping[str, Type]) -> str | None:
    for name, kind in types.items():
        if merge_types(ours[name], kind) is None:
            return f'its column "{name}" is {kind}, not {ours[name]}'
    return None
