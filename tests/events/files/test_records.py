"""JSON lines of one's own, read through a mapping; and formats that another package brings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof import extensions
from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, read, write
from streamproof.events.files.records import RecordsFile
from streamproof.events.files.rejects import Rejects
from streamproof.events.history import History
from streamproof.events.schema import FLOAT64, STRING

MAPPING = ColumnMapping(start="at", unit="s")


def lay(folder: Path, *lines: object) -> Path:
    path = folder / "own.jsonl"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def test_flat_objects_become_events(tmp_path: Path) -> None:
    path = lay(tmp_path, {"at": "1970-01-01T00:00:05Z", "v": 1, "k": "007"}, {"at": "1970-01-01T00:00:06Z", "v": 2.5})
    reader = read(path, mapping=MAPPING)
    assert reader.schema.columns == (("v", FLOAT64), ("k", STRING))
    assert [(row.le, row.re, row.payload) for row in reader.history().to_rows()] == [
        (5, 6, {"v": 1.0, "k": "007"}),
        (6, 7, {"v": 2.5, "k": None}),
    ]


def test_bad_lines_are_rejected_by_number(tmp_path: Path) -> None:
    path = lay(
        tmp_path, {"at": 1, "v": 1}, "", "oops", [1], {"at": 2, "v": {"x": 1}}, {"at": 3, "v": "text"}, {"at": 4}
    )
    reader = read(path, mapping=ColumnMapping(start="at"), rejects=tmp_path / "rejects.jsonl")
    assert [row.le for row in reader.history().to_rows()] == [1, 4]
    lines = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert [line["line"] for line in lines] == [3, 4, 5, 6]
    assert lines[3]["why"] == "'text' in column \"v\" is not of type int64"


@pytest.mark.parametrize("before", [0, 1])
def test_a_null_for_a_line_is_no_record(before: int, tmp_path: Path) -> None:
    path = lay(tmp_path, *[{"at": 1, "v": 1}] * before, " null", {"at": 2, "v": 3})
    reader = read(path, mapping=MAPPING, rejects=tmp_path / "rejects.jsonl")
    assert len(reader.history()) == before + 1
    assert reader.rejected == 1


def test_a_file_without_objects_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line is a JSON object; line 1: not an object: 1"):
        read(lay(tmp_path, "1", "2"), mapping=MAPPING)


values = st.one_of(
    st.none(), st.integers(-(2**60), 2**60), st.text(max_size=5), st.booleans(), st.floats(allow_nan=False)
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), values), min_size=1, max_size=8))
def test_fast_and_slow_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, object]]
) -> None:
    path = lay(tmp_path_factory.mktemp("records"), *({"at": n, **record} for n, record in enumerate(records)))
    file = RecordsFile(path)
    slow = [file._slow(block, Rejects()) for block in _blocks(path)]
    fast = [file._fast(block) for block in _blocks(path)]
    for part, other in zip(fast, slow, strict=True):
        if part is not None:
            assert part.rows.to_pylist() == other.rows.to_pylist()


def _blocks(path: Path) -> list[object]:
    from streamproof.events.files.jsonl import blocks

    return list(blocks(path, 1 << 20))


class Numbers:
    """A format from elsewhere: one number per line, each a point event."""

    word = "line"
    metadata: ClassVar[dict[str, str]] = {}
    fields = pa.schema([("at", pa.int64())])

    def __init__(self, path: Path) -> None:
        self.path = path

    def parts(self, rejects: Rejects):  # type: ignore[no-untyped-def]
        import numpy as np

        from streamproof.events.files.tabular import FilePart

        numbers = [int(line) for line in self.path.read_text().splitlines()]
        yield FilePart(pa.table({"at": numbers}), np.arange(1, len(numbers) + 1))


def write_numbers(content: History, path: Path) -> None:
    path.write_text("".join(f"{row.le}\n" for row in content.to_rows()))


def test_another_package_can_bring_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {("sources", "numbers"): Numbers, ("sinks", "numbers"): write_numbers}
    monkeypatch.setattr(extensions, "names", lambda point: [name for known, name in offered if known == point])
    monkeypatch.setattr(extensions, "load", lambda point, name: offered[point, name])
    path = tmp_path / "x.numbers"
    path.write_text("3\n5\n")
    history = read(path, mapping=ColumnMapping(start="at")).history()
    assert [row.le for row in history.to_rows()] == [3, 5]
    assert write(history, tmp_path / "y.numbers").read_text() == "3\n5\n"
