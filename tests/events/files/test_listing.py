"""A path may be a file, a folder or a pattern; files may be packed, and CSV may have another separator or no header."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, read, write
from streamproof.events.files.csv import CsvFile
from streamproof.events.files.listing import files_at
from streamproof.events.files.rejects import Rejects
from streamproof.events.history import History
from streamproof.events.schema import INT64, Schema
from streamproof.events.time import Unit

AT = ColumnMapping(start="t")


def lay(folder: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


def rows(path: Path | str, **options: object) -> list[tuple[int, dict[str, object]]]:
    reader = read(path, **{"mapping": AT, **options})  # type: ignore[arg-type]  # what each test is about
    return [(row.le, dict(row.payload)) for row in reader.history().to_rows()]


TABLE = 't,v\n1,a\n2,"b\nc"\n'
LINES = '{"t": 1, "v": "a"}\n{"t": 2, "v": "b\\nc"}\n'


@pytest.mark.parametrize(("name", "content"), [("f.csv", TABLE), ("f.jsonl", LINES)])
def test_a_packed_file_reads_as_what_is_in_it(tmp_path: Path, name: str, content: str) -> None:
    lay(tmp_path, {name: content, f"packed/{name}.gz": content})
    assert rows(tmp_path / "packed" / f"{name}.gz") == rows(tmp_path / name) == [(1, {"v": "a"}), (2, {"v": "b\nc"})]


def test_a_packed_file_tells_the_lines_of_bad_rows_and_of_an_open_quote(tmp_path: Path) -> None:
    lay(tmp_path, {"f.csv.gz": 't,v\n1,a\n2\n3,"b\n4,c\n'})
    reader = read(tmp_path / "f.csv.gz", mapping=AT)
    assert [row.le for row in reader.history().to_rows()] == [1]
    assert [reject.line for reject in reader.first_rejects] == [3, 4]
    assert "never closed" in reader.first_rejects[1].why


def test_our_own_notation_may_be_packed_too(tmp_path: Path) -> None:
    known = history([(1, 5, 7), (2, 3, 8)])
    whole = write(known, tmp_path / "h.jsonl")
    (tmp_path / "h.jsonl.gz").write_bytes(gzip.compress(whole.read_bytes()))
    assert read(tmp_path / "h.jsonl.gz").history() == known


def history(values: list[tuple[int, int, int]], unit: Unit | None = None) -> History:
    return History.from_rows(Schema((("v", INT64),), unit), [(le, re, {"v": v}) for le, re, v in values])


DAMAGED = {
    "cut off": (gzip.compress(b"t,v\n" + b"1,a\n" * 9999)[:-20], "cannot be unpacked"),
    "flipped": (gzip.compress(b"t,v\n1,a\n")[:12] + b"\0\0" + gzip.compress(b"t,v\n1,a\n")[14:], "cannot be unpacked"),
    "not packed": (b"t,v\n1,a\n", "is not packed by gzip"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_is_refused_by_name(tmp_path: Path, case: str) -> None:
    content, what = DAMAGED[case]
    (tmp_path / "f.csv.gz").write_bytes(content)
    with pytest.raises(InputError, match=f"f.csv.gz {what}"):
        read(tmp_path / "f.csv.gz", mapping=AT).history()


def test_a_folder_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    lay(tmp_path, {
        "b.csv": "t,v\n3,c\n", "a.csv.gz": "t,v\n2,b\n1,a\n", "c/d.csv": "v,t\nd,4\n", "_SUCCESS": "",
        ".a.csv.crc": "x", "e.csv": "",
    })  # fmt: skip
    reader = read(tmp_path, mapping=AT)
    events = [event["id"] for event in reader.stream().to_dicts() if event["kind"] == "insert"]
    assert events == ["#1.2", "#1.3", "#2.2", "#3.2"]
    assert rows(tmp_path) == [(1, {"v": "a"}), (2, {"v": "b"}), (3, {"v": "c"}), (4, {"v": "d"})]
    assert rows(str(tmp_path / "*.csv")) == [(3, {"v": "c"})]
    assert len(rows(str(tmp_path / "**" / "*.csv"))) == 2
    assert reader.makes_ids


def test_types_are_those_that_keep_the_values_of_all_files(tmp_path: Path) -> None:
    lay(tmp_path, {"c/a.csv": "t,v\n1,1\n", "c/b.csv": "t,v\n2,1.5\n"})
    lay(tmp_path, {"j/a.jsonl": '{"t": 1, "v": 1}\n', "j/b.jsonl": '{"t": 2, "v": 1.5}\n'})
    lay(tmp_path, {"h/a.jsonl": '{"le": 1, "re": 2, "payload": {"v": 1}}\n', "h/b.jsonl": '{"kind": "cti", "t": 7}\n'})
    assert rows(tmp_path / "c") == rows(tmp_path / "j") == [(1, {"v": 1.0}), (2, {"v": 1.5})]
    own = read(tmp_path / "h")
    assert own.schema == Schema.of({"v": "int64"})
    assert [event.get("id", event.get("t")) for event in own.stream().to_dicts()] == ["#1.1", 7]
    lay(tmp_path, {"h/b.jsonl": '{"le": 3, "re": 4, "payload": {"v": 0.5}}\n'})
    assert [row.payload["v"] for row in read(tmp_path / "h").history().to_rows()] == [1.0, 0.5]


DIFFERENT = {
    "a column less": ({"a.csv": "t,v\n1,a\n", "b.csv": "t\n1\n"}, 'b.csv differs from a.csv: it has no column "v"'),
    "a column more": ({"a.csv": "t\n1\n", "b.csv": "t,v\n1,a\n"}, 'b.csv differs from a.csv: it also has a column "v"'),
    "another key": ({"a.jsonl": '{"t": 1}\n', "b.jsonl": '{"t": 1, "v": 1}\n'}, 'it also has a column "v"'),
    "another type": ({"a.jsonl": '{"t": 1, "v": 1}\n', "b.jsonl": '{"t": 1, "v": "x"}\n'}, 'its column "v" is string'),
    "other formats": ({"a.jsonl": '{"t": 1}\n', "b.csv": "t\n1\n"}, "several formats: a.jsonl is jsonl, b.csv is csv"),
    "no format": ({"a.csv": "t\n1\n", "b.txt": "t\n1\n"}, "cannot tell the format of 'b.txt'"),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_file_that_differs_is_refused_by_name(tmp_path: Path, case: str) -> None:
    files, what = DIFFERENT[case]
    lay(tmp_path, files)  # type: ignore[arg-type]  # text
    with pytest.raises(InputError) as info:
        read(tmp_path, mapping=AT).history()
    assert what in info.value.what
    assert info.value.at
    assert info.value.fix


@pytest.mark.parametrize(("other", "what"), [
    ({"t": pa.array([1]), "v": pa.array(["x"])}, 'its column "v" is string, not int64'),
    ({"t": pa.array([1])}, 'it has no column "v"'),
])  # fmt: skip
def test_tables_that_differ_are_refused_by_name(tmp_path: Path, other: dict[str, pa.Array], what: str) -> None:
    pq.write_table(pa.table({"t": [1], "v": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table(other), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=f"b.parquet differs from a.parquet: {what}"):
        read(tmp_path, mapping=AT)


def test_files_with_ticks_of_other_units_are_refused(tmp_path: Path) -> None:
    write(history([(1, 2, 3)], "ms"), tmp_path / "a.parquet")
    write(history([(1, 2, 3)], "s"), tmp_path / "b.parquet")
    with pytest.raises(InputError, match="its ticks are of the unit s, not ms"):
        read(tmp_path)


def test_rejected_rows_name_their_file(tmp_path: Path) -> None:
    lay(tmp_path, {"in/a.csv": "t,v\n1,a\n", "in/deep/b.csv": "t,v\nx,a\n2\n"})
    reader = read(tmp_path / "in", mapping=AT, rejects=tmp_path / "r.jsonl")
    assert len(reader.history()) == 1
    assert [str(reject).partition(":")[0] for reject in reader.first_rejects] == [
        "deep/b.csv, line 3",
        "deep/b.csv, line 2",
    ]
    found = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [(one["file"], one["line"]) for one in found] == [("deep/b.csv", 3), ("deep/b.csv", 2)]
    lay(tmp_path, {"bad/a.csv": "t\nx\n"})
    with pytest.raises(InputError, match=r"none of the 1 rows could be read.*\n  at: bad, a.csv, line 2"):
        read(tmp_path / "bad", mapping=AT).history()


def test_a_folder_that_gets_a_file_while_it_is_read_changed(tmp_path: Path) -> None:
    lay(tmp_path, {"a.csv": "t\n1\n"})
    reader = read(tmp_path, mapping=AT)
    lay(tmp_path, {"b.csv": "t\n1\n"})
    with pytest.raises(InputError, match="changed while it was read"):
        reader.history()


def test_one_file_under_two_names_is_refused(tmp_path: Path) -> None:
    lay(tmp_path, {"a.csv": "t\n1\n"})
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(InputError, match="are the same file"):
        files_at(tmp_path)


def test_a_name_with_a_star_is_a_name_first(tmp_path: Path) -> None:
    lay(tmp_path, {"a*.csv": "t\n7\n", "ab.csv": "t\n8\n"})
    assert rows(tmp_path / "a*.csv") == [(7, {})]
    assert len(rows(tmp_path / "a?.csv")) == 2


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators(tmp_path: Path, separator: str) -> None:
    text = 't;v\n1;a,"x"\n2;"b;\nc"\n3\n4;"open\n'.replace(";", separator)
    lay(tmp_path, {"f.csv": text})
    reader = read(tmp_path / "f.csv", mapping=AT, separator=separator)
    assert [row.payload["v"] for row in reader.history().to_rows()] == ['a,"x"', f"b{separator}\nc"]
    assert [(reject.line, reject.why.partition(":")[0]) for reject in reader.first_rejects] == [
        (5, "1 fields instead of 2"),
        (6, "a quote that opens in this row is never closed"),
    ]


def test_without_a_header_columns_have_numbers(tmp_path: Path) -> None:
    lay(tmp_path, {"f.csv": "\ufeff1,a\n\n2\n3,b\n"})
    reader = read(tmp_path / "f.csv", mapping=ColumnMapping(start="c0"), header=False)
    assert [(row.le, row.payload) for row in reader.history().to_rows()] == [(1, {"c1": "a"}), (3, {"c1": "b"})]
    assert [reject.line for reject in reader.first_rejects] == [3]
    assert [part.lines.tolist() for part in CsvFile(tmp_path / "f.csv", header=False).parts(Rejects())] == [[1, 4]]


@pytest.mark.parametrize(("name", "content", "options", "what"), [
    ("f.jsonl", '{"t": 1}\n', {"separator": ";"}, "a separator, or no header, is of CSV files"),
    ("f.jsonl", '{"t": 1}\n', {"header": False}, "a separator, or no header, is of CSV files"),
    ("f.csv", "t\n1\n", {"separator": "::"}, "the separator cannot be '::'"),
    ("f.csv", "t\n1\n", {"separator": '"'}, "the separator cannot be"),
    ("f.csv", "", {"header": False}, "the file is empty"),
    ("f.parquet.gz", "x", {}, "f.parquet.gz is packed"),
])  # fmt: skip
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, name: str, content: str, options: dict[str, object], what: str
) -> None:
    lay(tmp_path, {name: content})
    with pytest.raises(InputError, match=what):
        read(tmp_path / name, mapping=AT, **options)  # type: ignore[arg-type]  # the options are what is wrong


def test_how_text_is_meant_is_part_of_what_a_run_claims(tmp_path: Path) -> None:
    lay(tmp_path, {"f.csv": "t;v\n1;2\n", "g.csv": "t,v\n1,2\n"})
    assert read(tmp_path / "f.csv", mapping=AT, separator=";").claim["separator"] == ";"
    assert set(read(tmp_path / "g.csv", mapping=AT).claim) == {
        "format",
        "mapping",
    }  # as ever
