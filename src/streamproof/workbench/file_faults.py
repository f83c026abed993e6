"""Input and output as files over time, to which something happens between two runs.

What is refused is put back; where nobody refuses it, the run goes on with it, and is judged as any other.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa

from streamproof.engines.spark.output import Content, Format, read_output
from streamproof.engines.spark.sinks import FileSink, Receiver, SinkContext
from streamproof.engines.spark.stream.ledger import FileLedger, FileRecord, Listing, refuse_unfinished
from streamproof.engines.spark.stream.spool import refuse_damaged, spool
from streamproof.engines.spark.stream.wire import OUTPUT, BucketOutput, Emit, record
from streamproof.errors import StreamproofError
from streamproof.events.files import read, write
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream

# --- input ------------------------------------------------------------------------------------------------------------

ENDINGS: Final = (".arrow", ".jsonl")
_MOST_PIECES: Final = 4
_NOW: Final = 1.6e9  # seconds
_YEARS: Final = 1e8


class Killed(Exception):
    """Here the run is killed."""


def through_files(stream: PhysicalStream, what: str, seed: int) -> PhysicalStream:
    """The stream as it comes out of a folder that grows while ``what`` happens to its files.

    Law: it is the same stream.
    """
    with tempfile.TemporaryDirectory(prefix="streamproof-") as place:
        folder = _Growing(Path(place), stream.schema, what, random.Random(seed))  # noqa: S311  # test data, not secrets
        pieces = _pieces(stream, folder.chance)
        if what == "killed":
            for first in range(0, len(pieces), 2):
                folder.add_after_a_kill(*pieces[first : first + 2])
        for piece in () if what == "killed" else pieces:
            folder.add(piece)
        return PhysicalStream.concat(folder.read, schema=stream.schema)


def _pieces(stream: PhysicalStream, chance: random.Random) -> list[PhysicalStream]:
    cuts = sorted({0, len(stream), *(chance.randint(0, len(stream)) for _ in range(_MOST_PIECES - 1))})
    return [stream.slice(start, end - start) for start, end in pairwise(cuts)]


class _Growing:
    """A folder of files, and what was taken of it."""

    def __init__(self, place: Path, schema: Schema, what: str, chance: random.Random) -> None:
        self.chance, self.read = chance, list[PhysicalStream]()
        self._folder, self._spool = place / "in", place / "cp" / "spool" / "S"
        self._folder.mkdir()
        self._schema, self._what, self._ending = schema, what, chance.choice(ENDINGS)
        self._seen: set[str] = set()
        self._count = 0

    def add(self, piece: PhysicalStream) -> None:
        """The next piece comes; what goes wrong with it is refused, and done well then."""
        old = sorted(self._folder.iterdir())
        self._count += 1
        new = self._folder / f"{self.chance.choice('abc')}-{self._count}{self._ending}"
        victim = self.chance.choice(old) if old and self._what in ("grown", "replaced", "renamed") else None
        if victim is not None or self._what == "half":
            before = {} if victim is None else {victim: (victim.read_bytes(), victim.stat().st_mtime_ns)}
            if self._goes_wrong(victim, new, piece):
                return
            for file in self._folder.iterdir():
                if file not in old:
                    file.unlink()
            for file, (data, time) in before.items():
                file.write_bytes(data)
                os.utime(file, ns=(time, time))
        self._put(new, piece)
        self._look()

    def add_after_a_kill(self, *pieces: PhysicalStream) -> None:
        """The last piece comes and is taken in part; then one that is older, and all is taken."""
        for piece in reversed(pieces):
            self._put(self._folder / f"{id(piece)}{self._ending}", piece)
            self._count -= 1
            with suppress(Killed):
                self._look(killed=True)
        self._count += 2 * len(pieces)
        self._look()

    def _goes_wrong(self, victim: Path | None, new: Path, piece: PhysicalStream) -> bool:
        """Whether nobody noticed."""
        with tempfile.TemporaryDirectory(prefix="streamproof-") as aside:
            whole = Path(aside) / new.name
            write(piece, whole)
            data = whole.read_bytes()
        if victim is None:
            half = data[: self.chance.randint(len(data) // 2, len(data) - 2)]
            new.write_bytes(half.rstrip(b"\n}"))  # within a line: at the end of one, nobody could know
        elif self._what == "renamed":
            shutil.copy2(victim, new)
            victim.unlink()
        else:
            victim.write_bytes(victim.read_bytes() + data if self._what == "grown" else data)
            os.utime(victim, (_NOW + _YEARS, _NOW + _YEARS))
        try:
            self._look()
        except StreamproofError:
            return False
        if self._what in ("half", "renamed"):
            self._put(new, piece)
            with suppress(StreamproofError):
                self._look()
        return True

    def _put(self, file: Path, piece: PhysicalStream) -> None:
        write(piece, file, overwrite=True)
        time = _NOW + (self.chance.choice((-_YEARS, 0.0, _YEARS, 20 * _YEARS)) if self._what == "late" else self._count)
        os.utime(file, (time, time))

    def _look(self, *, killed: bool = False) -> None:
        """What a run does with the files that lie there."""
        ledger = (_Killing if killed else FileLedger)(self._spool, {"input": str(self._folder)})
        refuse_damaged(ledger, 0)
        new = ledger.new(Listing.of(self._folder))
        for file in new:
            refuse_unfinished(file)
        spool(ledger, new, None, self._schema)
        for part in sorted(
            self._spool.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns
        ):  # as Spark takes them
            if part.name not in self._seen:
                self.read.append(read(part, schema=self._schema).stream())
                self._seen.add(part.name)


class _Killing(FileLedger):
    """A ledger of a run that is killed before a file is noted."""

    def add(self, entry: FileRecord) -> None:
        raise Killed


# --- output -----------------------------------------------------------------------------------------------------------


class KeptOutput:
    """A folder of output to which something happens between two micro-batches; each is one run of the sink."""

    def __init__(self, schema: Schema, buckets: int, emit: Emit, what: str, seed: int) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="streamproof-")
        self._place = Path(self._temporary.name)
        self._folder, self._older = self._place / "out", self._place / "older"
        self._chance, self._what = random.Random(seed), what  # noqa: S311  # test data, not secrets
        self._content: Content = "events" if emit == "events" else self._chance.choice(("rows", "cht"))
        self._kind: Format = self._chance.choice(("parquet", "jsonl"))
        self._output = SinkContext(schema, buckets, "run", checkpoint=self._place / "cp")
        self._number = -1

    def take(self, outputs: Mapping[int, BucketOutput]) -> None:
        """What the buckets put out in the next micro-batch."""
        if self._number >= 0 and self._chance.random() < 0.5:
            self._go_wrong()
        if self._number >= 0 and not self._older.exists():
            shutil.copytree(self._folder, self._older)
        self._number += 1
        records = [record(0, bucket, output) for bucket, output in outputs.items()]
        table = pa.Table.from_pylist(records, schema=OUTPUT)
        self._note("offsets")
        self._receiver().take(self._number, table)
        self._note("commits")

    def _receiver(self) -> Receiver:
        return Receiver(FileSink(self._folder, content=self._content, format=self._kind), self._output)

    def _note(self, name: str) -> None:
        place = self._place / "cp" / name
        place.mkdir(parents=True, exist_ok=True)
        (place / str(self._number)).write_text(f"v1\n{name} {self._number}")

    def _go_wrong(self) -> None:
        """Something happens to the folder. If a run refuses it, it is put back."""
        whole = self._place / "whole"
        shutil.copytree(self._folder, whole)
        self._happen(sorted(file for file in self._folder.rglob("*") if file.is_file()))
        try:
            self._receiver()
            read_output(self._folder)
        except StreamproofError:
            shutil.rmtree(self._folder, ignore_errors=True)
            shutil.copytree(whole, self._folder)
        shutil.rmtree(whole)

    def _happen(self, files: Sequence[Path]) -> None:
        victim = self._chance.choice(files)
        data = victim.read_bytes()
        match self._what:
            case "lost":
                victim.unlink()
            case "cut":
                victim.write_bytes(data[: self._chance.randrange(len(data))])
            case "flipped":
                place = self._chance.randrange(len(data))
                victim.write_bytes(
                    data[:place] + bytes([data[place] ^ 1 << self._chance.randrange(8)]) + data[place + 1 :]
                )
            case _:
                shutil.rmtree(self._folder)
                if self._what == "older" and self._older.exists():
                    shutil.copytree(self._older, self._folder)
                elif self._what == "emptied":
                    self._folder.mkdir()

    @property
    def history(self) -> History:
        """What the folder adds up to."""
        return read_output(self._folder)

    def close(self) -> None:
        self._temporary.cleanup()
