"""Where physical events go as they come out of a running query: a file of any format, or standard output.

A file appears whole at the end, and not at all where the run fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamproof.cli.screen import print_blocks
from streamproof.errors import InputError
from streamproof.events.files.rejects import opened_anew
from streamproof.events.files.writer import Append, appending
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream


@contextmanager
def event_sink(path: Path | None, schema: Schema, *, overwrite: bool) -> Iterator[Append]:
    """What writes events piece by piece; to standard output where there is no path."""
    if path is None:
        yield lambda stream: print_blocks(stream.json_lines())
        return
    with appending(schema, path, overwrite=overwrite) as append:
        yield append


class LettersFile:
    """Events or failures that were left out, as JSON lines; the file comes into being with the first of them."""

    def __init__(self, path: Path | None, *, after: int | None = None) -> None:
        """``after``: the run goes on, and so many bytes of the file were written before it stopped."""
        self.path, self.count = path, 0
        self.size = 0  # bytes of it that are ours
        if path is not None and after:
            self._go_on(path, after)

    def _go_on(self, path: Path, after: int) -> None:
        """What was written later, by a run that came to nothing, is written again."""
        if not path.is_file() or path.stat().st_size < after:
            text = f"{path} is gone, or shorter than when the run was interrupted"
            raise InputError(text, at=str(path), fix="bring it back, or name another file for what is left out now")
        os.truncate(path, after)
        self.size = after

    def events(self, source: str, stream: PhysicalStream) -> None:
        self._write({"source": source, **document} for document in stream.to_dicts())

    def documents(self, documents: list[dict[str, Any]]) -> None:
        self._write(iter(documents))

    def _write(self, documents: Iterator[dict[str, Any]]) -> None:
        lines = [json.dumps(document, ensure_ascii=False, default=str) for document in documents]
        self.count += len(lines)
        if self.path is None or not lines:
            return
        data = "".join(f"{line}\n" for line in lines)
        with self.path.open("a", encoding="utf-8") if self.size else opened_anew(self.path) as file:
            file.write(data)
        self.size += len(data.encode())
