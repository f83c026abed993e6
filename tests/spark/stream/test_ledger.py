"""Files over time: late, touched, replaced, growing, half-written, renamed; and crashes while spooling."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import streamproof as sp
from streamproof.engines.spark.stream import spool as spooling
from streamproof.engines.spark.stream.checkpoint import Lock
from streamproof.engines.spark.stream.ledger import FileLedger, Listing, refuse_unfinished
from streamproof.engines.spark.stream.spool import refuse_damaged, spool
from streamproof.errors import InputError, StreamproofError
from streamproof.events.files import Reader

MAPPING = sp.ColumnMapping(start="at")


def lay(place: Path, name: str, rows: Any, time: float = 1e9) -> Path:
    """A file, by its ending; ``rows`` are the values of v, or the content."""
    place.mkdir(exist_ok=True)
    file = place / name
    if isinstance(rows, str | bytes):
        file.write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    elif name.endswith(".csv"):
        file.write_text("at,v\n" + "".join(f"{v},{v}\n" for v in rows))
    elif name.endswith(".jsonl"):
        file.write_text("".join(f'{{"le": {v}, "re": {v + 1}, "payload": {{"v": {v}}}}}\n' for v in rows))
    elif name.endswith(".arrow"):
        table = pa.table({"at": rows, "v": rows})
        with pa.OSFile(str(file), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(pa.table({"at": rows, "v": rows}), file)
    os.utime(file, (time, time))
    return file


def take(place: Path, checkpoint: Path, **read_as: Any) -> FileLedger:
    """What a run does with the files of a source before Spark reads anything."""
    ledger = FileLedger(checkpoint / "spool/S", read_as)
    listing = Listing.of(place)
    new = ledger.new(listing)
    if listing.is_parquet:
        for file in new:
            ledger.add(ledger.entry_of(file))
    else:
        refuse_damaged(ledger, 0)
        spool(ledger, new, None if listing.files[0].suffix == ".jsonl" else MAPPING)
    return ledger


def rows(ledger: FileLedger) -> list[tuple[int, str]]:
    """What Spark finds in the spool, in its order: starts and ids."""
    files = sorted(ledger.folder.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    tables = [pq.read_table(file) for file in files]
    return [(row["streamproof_le"] if "streamproof_le" in row else row["le"], row["id"])
            for table in tables for row in table.to_pylist()]  # fmt: skip


@pytest.mark.parametrize("ending", ["csv", "jsonl", "arrow", "parquet"])
def test_a_file_with_an_older_time_is_read_as_a_new_one(ending: str, tmp_path: Path) -> None:
    lay(tmp_path / "in", f"b.{ending}", [1, 2])
    take(tmp_path / "in", tmp_path / "cp")
    lay(tmp_path / "in", f"a.{ending}", [3], 1e9 - 30 * 86400)
    ledger = take(tmp_path / "in", tmp_path / "cp")
    assert [entry.name for entry in ledger.entries] == [f"b.{ending}", f"a.{ending}"]
    if ending != "parquet":
        found = rows(ledger)
        assert [le for le, _ in found] == [1, 2, 3]
        assert ending == "jsonl" or len({name for _, name in found}) == 3


def touched(place: Path, file: Path) -> None:
    os.utime(file, (2e9, 2e9))


def grown(place: Path, file: Path) -> None:
    file.write_bytes(file.read_bytes() + file.read_bytes()[-4:])


def shrunk(place: Path, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def replaced(place: Path, file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1] ^= 3
    file.write_bytes(bytes(data))
    os.utime(file, (2e9, 2e9))


def renamed(place: Path, file: Path) -> None:
    file.rename(file.with_stem("other"))


def renamed_and_touched(place: Path, file: Path) -> None:
    os.utime(file.rename(file.with_stem("other")), (2e9, 2e9))


def with_folder(place: Path, file: Path) -> None:
    (place / "day=1").mkdir()


def compressed(place: Path, file: Path) -> None:
    lay(place, f"{file.name}.gz", b"\x1f\x8b")


def of_two_kinds(place: Path, file: Path) -> None:
    lay(place, "other.csv" if file.suffix == ".parquet" else "other.parquet", [7])


def hidden(place: Path, file: Path) -> None:
    for name in (f".{file.name}", f"_{file.name}", "_SUCCESS", f"{file.name}.tmp", f"empty{file.suffix}"):
        lay(place, name, b"" if "empty" in name else b"half")


CHANGES: dict[Callable[[Path, Path], None], str | None] = {
    touched: None,
    grown: r"has grown from [\d,]+ to [\d,]+ bytes since it was read",
    shrunk: r"has shrunk from [\d,]+ to [\d,]+ bytes since it was read",
    replaced: "was replaced since it was read",
    renamed: r"other\.\w+ was read before, as a\.\w+: with a new name it would be read again",
    renamed_and_touched: r"other\.\w+ was read before, as a\.\w+: with a new name it would be read again",
    with_folder: "folders in a folder are not read",
    compressed: "compressed files are not read",
    of_two_kinds: "the folder holds Parquet files and others",
    hidden: None,
}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_files_that_change_are_named(change: Callable[[Path, Path], None], ending: str, tmp_path: Path) -> None:
    file = lay(tmp_path / "in", f"a.{ending}", [1, 2])
    before = [entry.name for entry in take(tmp_path / "in", tmp_path / "cp").entries]
    change(tmp_path / "in", file)
    words = CHANGES[change]
    if words is None:
        assert [entry.name for entry in take(tmp_path / "in", tmp_path / "cp").entries] == before
    else:
        with pytest.raises(InputError, match=words) as raised:
            take(tmp_path / "in", tmp_path / "cp")
        assert raised.value.at
        assert raised.value.fix
    if change is hidden:
        assert len(Listing.of(tmp_path / "in").skipped) == 5


@pytest.mark.parametrize(
    ("name", "content", "is_whole"),
    [
        ("a.csv", "at,v\n1,2\n", True),
        ("a.csv", "at,v\r\n1,2\r\n", True),
        ("a.csv", "at,v\n1,2".encode("utf-16-le"), False),
        ("a.csv", "at,v\n1,2\n".encode("utf-16-le"), True),
        ("a.csv", "at,v\n1,23", False),
        ("a.jsonl", '{"le": 1}\n{"le": 2', False),
        ("a.jsonl", '{"le": 1}\n{"le": 2}', True),
        ("a.jsonl", '{"le": 1}\n{"pay": "\xe4'.encode()[:-1], False),
        ("a.arrow", b"ARROW", True),  # its own reader sees that
    ],
)
def test_a_last_line_without_an_end_is_not_read_while_its_folder_grows(
    name: str, content: str | bytes, is_whole: bool, tmp_path: Path
) -> None:
    file = lay(tmp_path / "in", name, content)
    if is_whole:
        refuse_unfinished(file)
        return
    with pytest.raises(InputError, match="ends within a line, and its folder is one that grows") as raised:
        refuse_unfinished(file)
    assert "rename it when it is whole" in str(raised.value.fix)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("b.csv", "at,v,x\n1,2,3\n", "other columns than a.csv: it has x"),
        ("b.csv", "at,w\n1,2\n", "it has w and has no v"),
        ("b.csv", "v,at\n9,8\n", None),
        ("b.parquet", {"at": [1], "v": ["a"]}, "it has v string and has no v int64"),
        ("b.parquet", {"v": [9], "at": [8]}, None),
        ("b.parquet", b"PAR1 half of a file", "b.parquet is no whole Parquet file"),
    ],
)
def test_other_columns_are_refused(name: str, content: Any, words: str | None, tmp_path: Path) -> None:
    lay(tmp_path / "in", f"a.{name[2:]}", [1, 2])
    take(tmp_path / "in", tmp_path / "cp")
    if isinstance(content, dict):
        pq.write_table(pa.table(content), tmp_path / "in" / name)
    else:
        lay(tmp_path / "in", name, content)
    os.utime(tmp_path / "in" / name, (2e9, 2e9))
    if words is None:
        assert len(take(tmp_path / "in", tmp_path / "cp").entries) == 2
        return
    with pytest.raises(InputError, match=words):
        take(tmp_path / "in", tmp_path / "cp")


def test_an_empty_file_is_taken_once_it_has_content(tmp_path: Path) -> None:
    lay(tmp_path / "in", "a.csv", [1])
    lay(tmp_path / "in", "b.csv", "")
    assert len(take(tmp_path / "in", tmp_path / "cp").entries) == 1
    lay(tmp_path / "in", "b.csv", [2])
    assert [le for le, _ in rows(take(tmp_path / "in", tmp_path / "cp"))] == [1, 2]
    lay(tmp_path / "none", "x.txt", "text")
    with pytest.raises(InputError, match=r"no files of events in .*; not read: x\.txt"):
        Listing.of(tmp_path / "none")


class Crash(Exception):
    """The run is killed here."""


def test_a_crash_while_spooling_is_followed_by_a_clean_redo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However far it came, and whatever arrives before the redo."""
    real, whole = spooling.write_whole, spooling._tables

    def in_small_pieces(reader: Reader) -> Iterator[pa.Table]:
        return (table.slice(n, 2) for table in whole(reader) for n in range(0, table.num_rows, 2))

    monkeypatch.setattr(spooling, "_tables", in_small_pieces)
    for crash in range(9):
        place, checkpoint, parts = tmp_path / f"in{crash}", tmp_path / f"cp{crash}", iter(range(100))
        is_done = False
        lay(place, "b.csv", [1, 2, 3, 4, 5], 1e9)
        lay(place, "c.csv", [6, 7, 8], 1e9 + 9)

        def write(table: pa.Table, file: Path, parts: Iterator[int] = parts, crash: int = crash) -> None:
            number = next(parts)
            if number == crash:
                file.with_name(f".{file.name}.part").write_bytes(b"half")
                raise Crash
            real(table, file)

        with monkeypatch.context() as patched:
            patched.setattr(spooling, "write_whole", write)
            try:
                take(place, checkpoint)
                is_done = True
            except Crash:
                pass
        if is_done:
            break
        lay(place, "a.csv", [9, 10, 11], 1e9 - 9)
        found = rows(take(place, checkpoint))
        assert sorted(le for le, _ in found) == list(range(1, 12))
        assert len({name for _, name in found}) == 11
    assert crash == 5


def test_no_damage_to_records_and_spool_goes_unnoticed(tmp_path: Path) -> None:
    for name in "abc":
        lay(tmp_path / "in", f"{name}.csv", [ord(name), 2])
    checkpoint, draw = tmp_path / "cp", random.Random(1)
    whole = rows(take(tmp_path / "in", checkpoint))
    for file in sorted(p for p in checkpoint.rglob("*") if p.suffix in (".parquet", ".json")):
        data, about = file.read_bytes(), file.stat()
        for number in range(80):
            flipped = bytearray(data)
            flipped[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            file.write_bytes(data[: draw.randrange(len(data))] if number % 4 == 0 else bytes(flipped))
            with pytest.raises(StreamproofError) as raised:
                take(tmp_path / "in", checkpoint)
            assert raised.value.fix
        file.write_bytes(data)
        os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert rows(take(tmp_path / "in", checkpoint)) == whole
    (checkpoint / "spool/S/_000001.json").unlink()
    with pytest.raises(InputError, match="has lost the record of file 1"):
        take(tmp_path / "in", checkpoint)


def test_a_record_that_is_lost_after_spark_read_the_file_is_missed(tmp_path: Path) -> None:
    lay(tmp_path / "in", "a.csv", [1])
    ledger = take(tmp_path / "in", tmp_path / "cp")
    (tmp_path / "cp/sources/0").mkdir(parents=True)
    (tmp_path / "cp/sources/0/0").write_text(f'v1\n{{"path":"file:///{ledger.entries[0].parts[0].name}"}}')
    (ledger.folder / "_000000.json").unlink()
    with pytest.raises(InputError, match="has lost the record of a file that was read"):
        take(tmp_path / "in", tmp_path / "cp")


def test_files_are_read_in_one_way(tmp_path: Path) -> None:
    lay(tmp_path / "in", "a.csv", [1])
    take(tmp_path / "in", tmp_path / "cp", mapping={"start": "at"})
    with pytest.raises(InputError, match=r'mapping\.start="at", this run has mapping\.start="v"'):
        take(tmp_path / "in", tmp_path / "cp", mapping={"start": "v"})


def test_one_at_a_time(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    with pytest.raises(InputError, match=rf"another query goes on from this checkpoint, in process {os.getpid()}"):
        Lock(tmp_path)
    lock.close()
    Lock(tmp_path).close()
