"""Damaged and crafted binary files: each is refused in words or read; nothing raw, and no dead process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, read, write
from streamproof.events.history import History
from streamproof.events.schema import Schema


def campaign(seed: int, count: int) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.events.files.flipping", str(seed), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("seed", "count"), [(1, 300), pytest.param(2, 3000, marks=pytest.mark.slow)])
def test_a_damaged_file_is_refused_or_read(seed: int, count: int) -> None:
    found = campaign(seed, count)
    assert set(found) == {"refused", "read"}, found
    assert found["refused"] > count / 4


def crafted(array: pa.Array, path: Path) -> Path:
    batch = pa.RecordBatch.from_arrays([pa.array(range(len(array))), array], names=["t", "v"])
    with pa.ipc.new_file(str(path), batch.schema) as file:
        file.write_batch(batch)
    return path


def words(offsets: list[int], data: bytes) -> pa.Array:
    """Two texts, whose offsets nobody has looked at: a slice of an array in which all is well at the ends."""
    whole = [0, *offsets, len(data)]
    return pa.Array.from_buffers(pa.string(), len(whole) - 1, [None, buffer(whole), pa.py_buffer(data)])


def buffer(values: list[int], kind: str = "int32") -> pa.Buffer:
    return pa.array(values, getattr(pa, kind)()).buffers()[1]


CRAFTED = {
    "offsets beyond the data": words([1 << 30], b"ab"),
    "offsets that go back": words([-5], b"ab"),
    "text that is none": words([1], b"\xff\xfe"),
    "codes beyond the words": pa.DictionaryArray.from_arrays(pa.array([0, 99]), pa.array(["a"]), safe=False),
    "digits beyond the precision": pa.Array.from_buffers(pa.decimal128(3, 0), 2, [None, pa.py_buffer(b"\x7f" * 32)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CRAFTED)
def test_crafted_arrays_are_refused_before_anything_looks_into_them(tmp_path: Path, case: str) -> None:
    path = crafted(CRAFTED[case], tmp_path / "f.arrow")
    with pytest.raises(InputError, match="not an Arrow file, or damaged") as info:
        read(path, mapping=ColumnMapping(start="t")).history()
    assert info.value.at == f"{path}, after row 0"
    assert info.value.fix == "check its format; if it was whole once, fetch or write it again"


def test_what_we_write_as_parquet_is_known_to_be_whole(tmp_path: Path) -> None:
    schema = Schema.of({"v": "int64"})
    path = write(History.from_rows(schema, [(n, n + 1, {"v": n * 7919}) for n in range(5000)]), tmp_path / "f.parquet")
    data = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    data[(column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size // 2] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"not a Parquet file, or damaged: .*CRC"):
        read(path).history()


def test_rows_do_not_stand_for_more_events_than_fit(tmp_path: Path) -> None:
    pq.write_table(pa.table({"le": [1, 1], "re": [2, 2], "w": [1 << 40, 2]}), tmp_path / "f.parquet")
    with pytest.raises(InputError, match="rows stand for 1,099,511,627,778 events, the limit is 33,554,432") as info:
        read(tmp_path / "f.parquet").history()
    assert (info.value.name, info.value.at) == ("limit_exceeded", 'column "w", rows 1 to 2')
