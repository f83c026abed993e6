"""Which files a path stands for, of which format they are, and their bytes, packed or not.

A path is that of one file, of a folder, or a pattern like ``data/*.csv.gz``. Files of a folder or of a pattern are read
as one, in the order of their names; what begins with a point or an underscore is left out, as everywhere.
"""

from __future__ import annotations

import glob
import gzip
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, TypeAlias, cast, get_args

from streamproof import extensions
from streamproof.documents import check_name, existing
from streamproof.errors import InputError, did_you_mean

Format: TypeAlias = Literal["jsonl", "csv", "parquet", "ipc"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
_ENDINGS: Final[dict[str, Format]] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc", ".arrows": "ipc",
}  # fmt: skip
_TEXT: Final = ("csv", "jsonl")
_PACKERS: Final = {".gz": "gunzip", ".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd", ".zip": "unzip"}
PACKED: Final = ".gz"
_MAGIC: Final = b"\x1f\x8b"
SEPARATORS: Final = {"\\t": "\t", "tab": "\t"}


class FileSet(NamedTuple):
    """The files that a path stands for, in the order in which they are read."""

    named: Path  # what the user called them
    files: tuple[Path, ...]
    several: bool  # a folder or a pattern: also where it holds one file

    def name_of(self, path: Path) -> str:
        """What a file is called in messages: its path within the folder that holds them all."""
        return os.path.relpath(path, os.path.commonpath([file.parent for file in self.files]))


def files_at(path: Path) -> FileSet:
    """The files that a path stands for. One that holds nothing is left out where there are others."""
    check_name(path)
    folder = os.path.isdir(path)
    if not folder and (os.path.lexists(path) or not glob.has_magic(str(path))):
        return FileSet(path, (existing(path),), several=False)
    found = sorted(path.rglob("*") if folder else map(Path, glob.iglob(str(path), recursive=True)))
    files = [file for file in found if os.path.isfile(file) and file.name[:1] not in (".", "_")]
    if not files:
        what = f"the folder {path} holds no files" if folder else f"no file matches {path}"
        raise InputError(what, at=str(path), fix="give a folder, or a pattern, of files of one format")
    filled = [file for file in files if file.stat().st_size] or files[:1]
    places: dict[Path, Path] = {}
    for file in filled:
        other = places.setdefault(existing(file), file)
        if other is not file:
            raise InputError(f"{other} and {file} are the same file", at=str(path), fix="take one of them away")
    return FileSet(path, tuple(places), several=True)


def differing(path: Path, first: Path, why: str) -> InputError:
    """The error for a file that does not fit the first one of its folder."""
    return InputError(
        f"{path.name} differs from {first.name}: {why}",
        at=str(path),
        fix="keep files of one kind in a folder, or say which are meant: 'folder/*.csv'",
    )


def suffix_of(path: Path) -> str:
    """How the name of a file ends, in small letters; of a packed one, what it holds.

    >>> suffix_of(Path("a.CSV")), suffix_of(Path("a.csv.gz")), suffix_of(Path("a.gz"))
    ('.csv', '.csv', '')
    """
    return Path(path.stem).suffix.lower() if path.suffix.lower() == PACKED else path.suffix.lower()


def is_packed(path: Path) -> bool:
    """Whether the bytes of a file are packed by gzip, whatever it is called."""
    with path.open("rb") as file:
        return file.read(2) == _MAGIC


def open_text(path: Path) -> BinaryIO:
    """The bytes of a file of text; one that is called ``.gz`` is unpacked on the way."""
    if path.suffix.lower() != PACKED:
        return path.open("rb")
    if path.stat().st_size and not is_packed(path):
        raise InputError(f"{path.name} is not packed by gzip", at=str(path), fix="call it by what it is: without .gz")
    return cast("BinaryIO", _Unpacking(path))


def unpack(path: Path, target: Path) -> Path:
    """Unpack a whole file, for who must go back and forth in it."""
    with _unpacking(path), gzip.open(path, "rb") as packed, target.open("wb") as file:
        shutil.copyfileobj(packed, file, 1 << 20)
    return target


class _Unpacking(gzip.GzipFile):
    """A packed file; damage is refused in words."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(path, "rb")

    def read(self, size: int | None = -1) -> bytes:
        with _unpacking(self._path):
            return super().read(size)

    def readline(self, size: int | None = -1) -> bytes:
        with _unpacking(self._path):
            return super().readline(-1 if size is None else size)


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path.name} cannot be unpacked: {error}", at=str(path), fix="check the file: gzip -t"
        ) from None


def read_separator(text: str, at: str) -> str:
    r"""The character that separates the fields of a CSV file; a tab may be called so.

    >>> read_separator(";", "--separator"), read_separator("tab", "--separator")
    (';', '\t')
    """
    found = SEPARATORS.get(text, text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        fix = 'one character: ",", ";", "|", "\\t"'
        raise InputError(f"the separator cannot be {text!r}", at=at, fix=fix)
    return found


def format_of(path: Path, given: str | None, point: Literal["sources", "sinks"]) -> str:
    """The format that is given, or that the file's name ends with: one of ours, or of an installed package.

    >>> format_of(Path("quakes.CSV"), None, "sources")
    'csv'
    """
    known = [*FORMATS, *extensions.names(point)]
    if given is not None:
        if given not in known:
            raise InputError(f"unknown format {given!r}", fix=did_you_mean(given, known))
        return given
    ending = path.suffix.lower()
    found = _ENDINGS.get(ending, ending.removeprefix("."))
    if found not in known:
        raise InputError(
            f"cannot tell the format of {path.name!r} by its name",
            at=str(path),
            fix=_way_out(ending, known),
        )
    return found


def _way_out(ending: str, known: Sequence[str]) -> str:
    """What to do about a name that does not end in a format."""
    if ending in _PACKERS:
        return f"unpack the file first: {_PACKERS[ending]}"
    endings = ", ".join(f".{kind}" for kind in known if kind != "ipc")
    return f'give it a name that ends in {endings} or .arrow; in Python format="csv" says it too'


def format_of_all(found: FileSet, given: str | None) -> str:
    """The one format of all files; text may be packed."""
    kinds = {format_of(_unpacked_name(path), given, "sources"): path for path in reversed(found.files)}
    if len(kinds) > 1:
        names = ", ".join(sorted(f"{found.name_of(path)} is {kind}" for kind, path in kinds.items()))
        fix = "say which are meant, by a pattern: 'folder/*.csv'"
        raise InputError(f"the files are of several formats: {names}", at=str(found.named), fix=fix)
    kind = next(iter(kinds))
    for path in found.files:
        if path.suffix.lower() == PACKED and kind not in _TEXT:
            what = f"{path.name} is packed, and files of the format {kind} are read from several places at once"
            raise InputError(what, at=str(path), fix="unpack the file first: gunzip")
    return kind


def _unpacked_name(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() == PACKED and suffix_of(path) else path
