"""CSV that is damaged, or is something else: rows are rejected by line, files are refused in words."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, read
from streamproof.events.files.csv import CsvFile
from streamproof.events.files.quotes import is_open
from streamproof.events.files.rejects import Rejects

fields = st.sampled_from(
    ["a", "", '"b"', '"x,y"', '"two\nlines"', '""', '"say ""no"""', 'inch 5"', '"tail\n"', '"\n"', '""""']
)
rows = st.lists(st.tuples(fields, fields), max_size=8)
opened = st.sampled_from(['1,"x', '"x', '1,"', '1,"say ""', '1,"a""', '1,"two\nlines'])

blocks = st.sampled_from([256, 1 << 20])


def bodies(found: list[tuple[str, str]], end: str) -> str:
    return "".join(f"{a},{b}{end}" for a, b in found)


@settings(max_examples=200, deadline=None)
@given(rows, st.none() | opened, rows, st.sampled_from([("\n", True), ("\n", False), ("\r\n", True)]), blocks)
def test_a_row_is_rejected_if_and_only_if_it_is_open_at_the_end(  # noqa: PLR0917  # what is drawn
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[str, str]],
    damaged: str | None,
    after: list[tuple[str, str]],
    ends: tuple[str, bool],
    block: int,
) -> None:
    end, ended = ends
    after = [row for row in after if '"' not in row[0] + row[1]]
    text = bodies(before, end) + ("" if damaged is None else damaged + end) + bodies(after, end)
    text = "p,q" + end + (text if ended else text.removesuffix(end))
    path = tmp_path_factory.mktemp("open") / "f.csv"
    path.write_bytes(text.encode())
    rejects = Rejects()
    count = sum(len(part.lines) for part in CsvFile(path, block_bytes=block).parts(rejects))
    whole = [row for row in (before if damaged is not None else before + after) if row != ("", "")]
    assert count == len(whole)
    assert rejects.count == (damaged is not None)
    if damaged is not None:
        line = 2 + bodies(before, end).count("\n")
        assert (rejects.first[0].line, "never closed" in rejects.first[0].why) == (line, True), rejects.first


def test_what_an_open_quote_takes_with_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text('t,v\n1,a\n2,"b\n3,c\n4,d\n')
    reader = read(tmp_path / "f.csv", mapping=ColumnMapping(start="t"), rejects=tmp_path / "r.jsonl")
    assert [row.le for row in reader.history().to_rows()] == [1]
    (reject,) = map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines())
    assert reject["why"] == "a quote that opens in this row is never closed: the 2 lines after it are part of it"
    assert (reject["line"], reject["row"]) == (3, '2,"b\n3,c\n4,d\n')


def test_a_row_has_a_budget(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("t,v\n1,a\n" + '2,"b\n' + "3,c\n" * 1000)
    with pytest.raises(
        InputError, match="the row is longer than 256 bytes: perhaps a quote in it is never closed"
    ) as info:
        list(CsvFile(path, block_bytes=256).parts(Rejects()))
    assert (info.value.name, info.value.fix) == ("limit_exceeded", "close the quote")
    assert not is_open(b"")


REFUSED = {
    "empty": (b"", "the file is empty", "the first line names the columns"),
    "blank": (b"\n\n", "the file is empty", "the first line names the columns"),
    "UTF-16": ("t,v\n1,2\n".encode("utf-16"), "not text but UTF-16", "iconv"),
    "UTF-16, big": ("\ufefft,v\n1,2\n".encode("utf-16-be"), "not text but UTF-16", "iconv"),
    "UTF-16 without a mark": ("t,v\n1,2\n".encode("utf-16-le"), "the first line has NUL bytes", "UTF-8"),
    "gzip": (b"\x1f\x8b\x08\x00rest", "not text but compressed", "gunzip"),
    "a workbook": (b"PK\x03\x04rest", "a zip archive, or a workbook", "save the sheet as CSV"),
    "Parquet": (b"PAR1rest", "not text but Parquet", "call it"),
    "CR alone": (b"t,v\r1,2\r", "its lines end in CR alone", "tr "),
    "a long name": (b"t," + b"v" * 140_000 + b"\n1,2\n", "a name is longer than 131,072", "names the columns"),
    "two of a name": (b"t,t\n1,2\n", 'two columns called "t"', "rename one"),
    "no header": (b"1,0.50,0.50\n2,1,2\n", 'two columns called "0.50"', "the first line looks like data"),
    "no header, instants": (b"2024-05-01T00:00:00Z,a\n", 'no column "t"', "the first line looks like data"),
    "semicolons": (b"t;v\n1;2\n", 'no column "t"', "separated by semicolons"),
    "tabs": (b"t\tv\n1\t2\n", 'no column "t"', "separated by tabs"),
    "Latin-1 names": ("t,größe\n1,2\n".encode("latin-1"), "the header is not UTF-8", "UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_csv_is_refused_in_words(tmp_path: Path, case: str) -> None:
    content, what, fix = REFUSED[case]
    (tmp_path / "f.csv").write_bytes(content)
    with pytest.raises(InputError) as info:
        read(tmp_path / "f.csv", mapping=ColumnMapping(start="t")).history()
    assert what in info.value.what
    assert info.value.at
    assert fix in (info.value.fix or "")


ODD = {
    "a field of 200,000": (b"t,v\n1," + b"x" * 200_000 + b"\n2,y\n", [1, 2], []),
    "NUL in a field": (b"t,v\n1,a\x00b\n2,y\n", [1, 2], []),
    "ragged": (b"t,v\n1\n2,y\n3,a,b\n", [2], [2, 4]),
    "bytes that are no text": (b"t,v\n1,\xff\n2,y\n", [2], [2]),
    "a surrogate": (b"t,v\n1,\xed\xa0\x80\n2,y\n", [2], [2]),
    "a mark and CRLF": (b"\xef\xbb\xbft,v\r\n1,a\r\n2,b\r\n", [1, 2], []),
    "header only": (b"t,v\n", [], []),
    "blank lines": (b"t,v\n\n1,a\n\n\n2,b\n\n", [1, 2], []),
}  # fmt: skip


@pytest.mark.parametrize("case", ODD)
def test_odd_rows(tmp_path: Path, case: str) -> None:
    content, times, lines = ODD[case]
    (tmp_path / "f.csv").write_bytes(content)
    reader = read(tmp_path / "f.csv", mapping=ColumnMapping(start="t"), rejects=tmp_path / "r.jsonl")
    assert [row.le for row in reader.history().to_rows()] == times
    assert [reject.line for reject in reader.first_rejects] == lines


def as_python_reads(text: str) -> list[list[str]] | None:
    """The rows of well-formed CSV, without blank lines; else None."""
    try:
        return [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error:
        return None


drawn_rows = st.text(alphabet='a,"\n', max_size=8) | st.lists(fields, min_size=2, max_size=2).map(",".join)


@settings(max_examples=500, deadline=None)
@given(st.lists(drawn_rows, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.sampled_from([64, 1 << 20]))
@example(['"x"y,1'], "\n", True, 1 << 20)
@example(['x"y,"z"'], "\n", True, 1 << 20)
@example(['"",a"', '"a,"b,'], "\n", False, 64)
def test_rows_are_taken_that_are_well_formed(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[str], end: str, ended: bool, block: int
) -> None:
    text = end.join(drawn).replace("\r\n", "\n").replace("\n", end) + end * ended
    path = tmp_path_factory.mktemp("csv") / "f.csv"
    path.write_bytes(f"p,q{end}{text}".encode())
    rejects = Rejects()
    parts = list(CsvFile(path, block_bytes=block).parts(rejects))
    found = [[(v or b"").decode() for v in row.values()] for part in parts for row in part.rows.to_pylist()]
    expected = as_python_reads(text)
    if expected is not None:
        good = [row for row in expected if len(row) == 2]
        assert [row for row in found if any(row)] == [row for row in good if any(row)]
        assert rejects.count == len(expected) - len(good)
    else:
        assert any("quote" in reject.why for reject in rejects.first), rejects.first
        lines = text.split("\n")
        for part in parts:  # each row alone is well formed, from its line on
            for line, row in zip(part.lines.tolist(), part.rows.to_pylist(), strict=True):
                alone = as_python_first("\n".join(lines[line - 2 :]))
                assert alone == [(v or b"").decode() for v in row.values()]


def as_python_first(text: str) -> list[str]:
    return next(csv.reader(io.StringIO(text, newline=""), strict=True))


def test_text_after_a_closing_quote_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text('t,v\n1,"x"y\n2,x"y\n3,"a\n"b\n4,"x",y"z"\n"5"0,ok\n6,"a","b"c\n')
    reader = read(tmp_path / "f.csv", mapping=ColumnMapping(start="t"), rejects=tmp_path / "r.jsonl")
    assert [row.le for row in reader.history().to_rows()] == [2]
    found = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert {reject["line"]: reject["row"] for reject in found} == {
        2: '1,"x"y\n', 4: '3,"a\n"b\n', 6: '4,"x",y"z"', 7: '"5"0,ok\n', 8: '6,"a","b"c',
    }  # fmt: skip
    assert ["text after a closing quote" in reject["why"] for reject in sorted(found, key=lambda r: r["line"])] == [
        True, True, False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize("rows", ["", "\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("header", ["t,v", '"t","v"', "\ufefft,v", 't,"v\nw"'])
def test_a_header_alone_is_an_empty_stream(tmp_path: Path, header: str, rows: str) -> None:
    (tmp_path / "f.csv").write_bytes((header + rows).encode())
    reader = read(tmp_path / "f.csv", mapping=ColumnMapping(start="t"))
    assert reader.history().to_rows() == []
    assert reader.rejected == 0


def test_a_malformed_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(b'"t"x,v\n1,2\n')
    with pytest.raises(InputError, match="the header cannot be read"):
        read(tmp_path / "f.csv", mapping=ColumnMapping(start="tx"))


@pytest.mark.parametrize("block", range(16, 24))
def test_no_line_break_of_a_field_is_lost_between_blocks(tmp_path: Path, block: int) -> None:
    (tmp_path / "f.csv").write_bytes(b'p,q\r\n1,"a\r\n\r\n\r\nb"\r\n')
    (part,) = CsvFile(tmp_path / "f.csv", block_bytes=block).parts(Rejects())
    assert part.rows.to_pylist() == [{"p": b"1", "q": b"a\r\n\r\n\r\nb"}]
