"""Rejects go to new files only; a file that changes while it is read is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, Reader, read
from streamproof.events.files.rejects import free_name

MAPPING = ColumnMapping(start="t")
SUFFIXES = ["csv", "jsonl", "parquet", "arrow"]


def dirty(folder: Path) -> Path:
    path = folder / "f.csv"
    path.write_text("t,v\n1,1\nx,2\n3,3\n")
    return path


def test_a_rejects_file_is_a_new_one(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("dear")
    reader = read(dirty(tmp_path), mapping=MAPPING, rejects=precious)
    with pytest.raises(InputError, match="precious exists, and what is left out is never written over anything"):
        reader.stream()
    assert precious.read_text() == "dear"


@pytest.mark.parametrize("target", ["precious", "nothing", "f.csv", "/dev/null"])
def test_a_rejects_file_follows_no_link(tmp_path: Path, target: str) -> None:
    precious, link = tmp_path / "precious", tmp_path / "link"
    precious.write_text("dear")
    link.symlink_to(target)
    with pytest.raises(InputError, match=r"exists, and what is left out|is the file that is read"):
        read(dirty(tmp_path), mapping=MAPPING, rejects=link).stream()
    assert precious.read_text() == "dear"
    assert not (tmp_path / "nothing").exists()
    assert dirty(tmp_path).read_text().startswith("t,v")


def test_a_reader_writes_its_own_rejects_anew_in_each_pass(tmp_path: Path) -> None:
    reader = read(dirty(tmp_path), mapping=MAPPING, rejects=tmp_path / "r.jsonl")
    for _ in range(2):
        reader.stream()
        assert (tmp_path / "r.jsonl").read_text().count("\n") == 1


def test_a_name_is_free_if_not_even_a_link_has_it(tmp_path: Path) -> None:
    (tmp_path / "S.rejects.jsonl").touch()
    (tmp_path / "S.rejects-2.jsonl").symlink_to("nothing")
    assert free_name(tmp_path / "S.rejects.jsonl").name == "S.rejects-3.jsonl"


def rewritten(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@pytest.mark.parametrize("change", [rewritten, cut, replaced, Path.unlink], ids=lambda change: change.__name__)
@pytest.mark.parametrize("ending", SUFFIXES)
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, ending: str, change: object) -> None:
    from streamproof.events.files import write
    from streamproof.events.history import History
    from streamproof.events.schema import Schema

    history = History.from_rows(Schema.of({"v": "int64"}), [(n, n + 1, {"v": n}) for n in range(50)])
    path = write(history, tmp_path / f"f.{ending}")
    reader = read(path, chunk_rows=10)
    assert changed_between(reader, path, change) is None
    reader = read(write(history, path, overwrite=True), chunk_rows=10)
    error = changed_within(reader, path, change)
    assert error is not None
    assert error.fix is not None


def changed_between(reader: Reader, path: Path, change: object) -> None:
    """Between two passes, or before the first, it is refused as well."""
    reader.stream()
    change(path)  # type: ignore[operator]
    with pytest.raises((InputError, FileNotFoundError)):
        reader.stream()


def changed_within(reader: Reader, path: Path, change: object) -> InputError | None:
    chunks = iter(reader)
    next(chunks)
    change(path)  # type: ignore[operator]
    try:
        list(chunks)
    except InputError as error:
        return error
    return None
