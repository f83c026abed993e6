from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.event import Cti, Insert, Retract
from streamproof.events.files import FORMATS, Format, read, write
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER
from tests.events.strategies import lifetimes, payloads, schemas

V = Schema.of({"v": "int64"}, unit="us")
ONE = History.from_rows(V, [(1, FOREVER, {"v": 7}), (1, 5, {"v": None}), (1, 5, {"v": None})])


@st.composite
def contents(draw: st.DrawFn) -> tuple[History, PhysicalStream]:
    schema = draw(schemas())
    rows = draw(st.lists(st.tuples(lifetimes(), payloads(schema)), max_size=4))
    events = [Insert(str(i), le, re, p) for i, ((le, re), p) in enumerate(rows)]
    changes = [Retract(e.id, e.le, e.re, e.le, e.payload) for e in events[:1]]
    stream = PhysicalStream.from_events([*events, *changes, Cti(FOREVER)], schema=schema)
    return History.from_rows(schema, [(le, re, p) for (le, re), p in rows]), stream


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=60)
@given(contents())
def test_what_is_written_reads_back_equal(kind: Format, pair: tuple[History, PhysicalStream]) -> None:
    history, stream = pair
    with tempfile.TemporaryDirectory() as folder:
        whole = read(write(history, Path(folder) / "h", format=kind), format=kind, schema=history.schema)
        assert whole.history() == history
        again = read(write(stream, Path(folder) / "s", format=kind), format=kind, schema=stream.schema)
        assert again.stream() == stream
        assert (whole.rejected, again.rejected) == (0, 0)


@pytest.mark.parametrize("kind", ["parquet", "ipc"])
@given(contents())
@settings(max_examples=30)
def test_binary_files_know_their_schema(kind: Format, pair: tuple[History, PhysicalStream]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in zip("hs", pair, strict=True):
            reader = read(write(content, Path(folder) / name, format=kind), format=kind)
            assert reader.schema == content.schema
            assert (reader.history() if isinstance(content, History) else reader.stream()) == content


@pytest.mark.parametrize("name", ["h.jsonl", "h.csv", "h.parquet", "h.arrow"])
def test_a_history_is_complete(tmp_path: Path, name: str) -> None:
    reader = read(write(ONE, tmp_path / name), unit="us")
    assert reader.stream().to_events()[-1] == Cti(FOREVER)
    assert reader.history() == ONE
    assert reader.unit == "us"
    assert reader.rows_read == (3 if name == "h.jsonl" else 2)  # equal rows are one row with a weight


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(ONE, tmp_path / "h.csv")
    before = path.read_text()
    with pytest.raises(InputError, match=r"exists\n  at: .*\n  fix: .*overwrite=True \(--overwrite\)"):
        write(ONE, path)
    monkeypatch.setattr(History, "json_lines", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write(ONE, path, format="jsonl", overwrite=True)
    assert path.read_text() == before
    assert os.listdir(tmp_path) == ["h.csv"]
    assert write(History.empty(V), path, overwrite=True).read_text() == '"le","re","v"\n'


def test_written_files_have_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    assert write(ONE, tmp_path / "h.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "quakes.csv").write_text("le,re\n")
    with pytest.raises(InputError, match=r'there is no file .*\n  at: .*\n  fix: did you mean "quakes.csv"'):
        read(tmp_path / "quake.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"the folder .*empty holds no files"):
        read(tmp_path / "empty")
    with pytest.raises(InputError, match="no file matches "):
        read(tmp_path / "*.jsonl")
    with pytest.raises(InputError, match="folder that does not exist"):
        write(ONE, tmp_path / "no" / "h.csv")
    with pytest.raises(InputError, match="is a folder"):
        write(ONE, tmp_path, format="csv", overwrite=True)
    with pytest.raises(InputError, match=r"cannot tell the format of 'h.xyz'"):
        write(ONE, tmp_path / "h.xyz")
    with pytest.raises(InputError, match=r"unknown format 'parket'\n  at: .*\n  fix: did you mean \"parquet\""):
        write(ONE, tmp_path / "h", format="parket")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"the rejects file .* is the file that is read"):
        read(tmp_path / "quakes.csv", rejects=tmp_path / "quakes.csv")
    with pytest.raises(InputError, match=r"the rejects file .* folder that does not exist"):
        read(tmp_path / "quakes.csv", rejects=tmp_path / "no" / "r.jsonl")


def test_links_are_followed_when_reading_and_writing(tmp_path: Path) -> None:
    target = write(ONE, tmp_path / "h.csv")
    link = tmp_path / "link.csv"
    link.symlink_to(target)
    assert read(link, unit="us").history() == ONE
    write(History.empty(V), link, overwrite=True)
    assert link.is_symlink()
    assert len(read(target, schema=V).history()) == 0


def test_an_unknown_version_is_refused(tmp_path: Path) -> None:
    table = pa.table({"le": [1], "re": [2]}).replace_schema_metadata({"streamproof.version": "99"})
    pq.write_table(table, tmp_path / "h.parquet")
    with pytest.raises(InputError, match="format version '99', this program reads version 1"):
        read(tmp_path / "h.parquet")


@pytest.mark.parametrize("name", ["h.parquet", "h.arrow"])
def test_files_of_another_format_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("le,re\n1,2\n")
    with pytest.raises(InputError, match=r"not an? (Parquet|Arrow) file"):
        read(tmp_path / name)


def test_arrow_streams_are_read_too(tmp_path: Path) -> None:
    table = pa.table({"le": [1], "re": [2], "v": [3]})
    with pa.ipc.new_stream(str(tmp_path / "h.arrow"), table.schema) as file:
        file.write_table(table)
    assert read(tmp_path / "h.arrow").history().to_rows() == [(1, 2, {"v": 3})]


def test_chunks_and_progress(tmp_path: Path) -> None:
    schema = Schema.of({"v": "int64"})
    path = write(History.from_rows(schema, [(i, i + 1, {"v": i}) for i in range(10)]), tmp_path / "h.parquet")
    told: list[int] = []
    reader = read(path, chunk_rows=4, on_rows=told.append)
    assert [len(chunk) for chunk in reader] == [4, 4, 2, 1]
    assert told == [4, 8, 10]
    assert reader.rows_read == 10
    assert [len(chunk) for chunk in reader] == [4, 4, 2, 1]  # it can be read again


def test_weights_that_are_no_counts_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("le,re,w,v\n1,2,2,a\n1,2,0,b\n1,2,-1,c\n1,2,x,d\n")
    reader = read(tmp_path / "h.csv")
    assert len(reader.history()) == 2
    assert [r.line for r in reader.first_rejects] == [3, 4, 5]
