from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamproof.errors import InputError
from streamproof.events.event import Cti, Insert, Retract
from streamproof.events.files import ColumnMapping, Reader, read
from streamproof.events.files.csv import CsvFile
from streamproof.events.files.rejects import Rejects
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER

T0 = 1714521600  # 2024-05-01T00:00:00Z


def csv(tmp_path: Path, text: str | bytes, **options: object) -> Reader:
    path = tmp_path / "f.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path, **options)  # type: ignore[arg-type]


def spans(reader: Reader) -> list[tuple[int, int]]:
    return [(row.le, row.re) for row in reader.history().to_rows()]


def test_instants_become_ticks_and_points(tmp_path: Path) -> None:
    reader = csv(
        tmp_path, "time,v\n2024-05-01T00:00:00Z,1\n2024-05-01T02:00:00.5+02:00,2\n", mapping=ColumnMapping(start="time")
    )
    us = T0 * 10**6
    assert spans(reader) == [(us, us + 1), (us + 500_000, us + 500_001)]
    assert reader.unit == "us"
    assert reader.schema == Schema.of({"v": "int64"}, unit="us")


@pytest.mark.parametrize(("duration", "length"), [("1h", 3600), (5, 5), ("long", 60)])
def test_durations(tmp_path: Path, duration: str | int, length: int) -> None:
    mapping = ColumnMapping(start="time", duration=duration, unit="s")
    assert spans(csv(tmp_path, "time,long\n2024-05-01T00:00:00Z,1 min\n", mapping=mapping)) == [(T0, T0 + length)]


def test_ends_that_are_null_are_infinite(tmp_path: Path) -> None:
    mapping = ColumnMapping(start="a", end="b")
    assert spans(csv(tmp_path, "a,b\n1,5\n2,\n3,inf\n", mapping=mapping)) == [(1, 5), (2, FOREVER), (3, FOREVER)]


def test_kinds_ids_and_ctis(tmp_path: Path) -> None:
    text = "op,key,from,to,new,mark,v\ninsert,a,1,,,,7\nRETRACT,a,1,,9,,7\ncti,,,,,5,\n"
    mapping = ColumnMapping(start="from", end="to", kind="op", id="key", new_end="new", cti="mark")
    reader = csv(tmp_path, text, mapping=mapping)
    assert reader.stream().to_events() == [
        Insert("a", 1, FOREVER, {"v": 7}),
        Retract("a", 1, FOREVER, 9, {"v": 7}),
        Cti(5),
    ]
    with pytest.raises(InputError, match="where they end instead"):
        csv(tmp_path, text, mapping=ColumnMapping(start="from", kind="op", id="key", cti="mark")).history()


def test_bad_rows_are_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    text = (
        b"time,v,s\n"  # line 1
        b'2024-05-01T00:00:00Z,1,"two\nlines"\n'  # 2 and 3
        b"2024-05-01T00:00:00,2,naive\n"
        b",3,null\n"
        b"\n"  # 6: blank
        b"yesterday,4,x\n"
        b"2024-05-01T00:00:00Z,x,y\n"
        b"2024-05-01T00:00:00Z,5\n"
        b"2024-05-01T00:00:00Z,6,a,b\n"
        b"2024-05-01T00:00:00Z,7,\xff\n"
        b"123,8,z\n"
        b"2024-05-01T00:00:01Z,9,ok\n"
    )
    schema = Schema.of({"v": "int64", "s": "string"})
    reader = csv(tmp_path, text, mapping=ColumnMapping(start="time"), schema=schema, rejects=tmp_path / "r.jsonl")
    assert [row.payload for row in reader.history().to_rows()] == [{"v": 1, "s": "two\nlines"}, {"v": 9, "s": "ok"}]
    written = sorted(map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines()), key=lambda r: r["line"])
    assert [(r["line"], r["why"]) for r in written] == [
        (4, "column \"time\": the time '2024-05-01T00:00:00' has no zone"),
        (5, 'the time in "time" is missing'),
        (7, "column \"time\": 'yesterday' is not a time"),
        (8, "column \"v\": 'x' is not of type int64"),
        (9, "2 fields instead of 3"),
        (10, "4 fields instead of 3"),
        (11, 'column "s" is not UTF-8'),
        (12, 'column "time": the number 123 among instants needs a unit'),
    ]
    assert written[2]["row"] == {"time": "yesterday", "v": "4", "s": "x"}
    assert (reader.rejected, reader.rows_read) == (8, 10)


def test_lines_are_counted_across_blocks(tmp_path: Path) -> None:
    lines = ["a,b"] + [f'{i},"x\ny"' if i % 3 == 0 else f"{i}" if i % 7 == 0 else f"{i},z" for i in range(1, 60)]
    path = tmp_path / "f.csv"
    path.write_text("\n".join(lines) + "\n")
    rejects = Rejects(tmp_path / "r.jsonl")
    seen = {}
    for part in CsvFile(path, block_bytes=64).parts(rejects):
        seen |= dict(zip(part.rows["a"].to_pylist(), part.lines.tolist(), strict=True))
    rejects.close()
    expected = {int(t.split(",")[0]): n for n, t in enumerate(path.read_text().split("\n"), 1) if t[:1].isdigit()}
    found = {int(a): line for a, line in seen.items()}
    for row in map(json.loads, (tmp_path / "r.jsonl").read_text().splitlines()):
        found[int(row["row"])] = row["line"]
    assert found == expected


def test_a_file_of_naive_times_names_the_fix(tmp_path: Path) -> None:
    text = "time\n2024-05-01T00:00:00\n2024-05-01 01:00:00\n"
    with pytest.raises(InputError, match="has no zone") as info:
        csv(tmp_path, text, mapping=ColumnMapping(start="time")).history()
    assert info.value.fix == 'say which zone is meant: ColumnMapping(…, assume_zone="UTC"), or --map assume_zone=UTC'
    reader = csv(tmp_path, text, mapping=ColumnMapping(start="time", assume_zone="UTC", unit="s"))
    assert spans(reader) == [(T0, T0 + 1), (T0 + 3600, T0 + 3601)]
    berlin = csv(tmp_path, text, mapping=ColumnMapping(start="time", assume_zone="Europe/Berlin", unit="s"))
    assert spans(berlin)[0] == (T0 - 7200, T0 - 7199)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "", "-2"], "int64"),
        (["1", "2.5"], "float64"),
        (["1e3", "nan", "inf"], "float64"),
        (["true", "FALSE"], "bool"),
        (["2024-05-01"], "date"),
        (["2024-05-01T00:00:00Z"], "timestamp"),
        (["2024-05-01T00:00:00"], "string"),
        (["1", "x"], "string"),
        (["0x1F"], "string"),
        (['""', "1"], "string"),
        (["9223372036854775808"], "string"),
        (["", ""], "null"),
    ],
)
def test_types_are_inferred_over_the_whole_file(tmp_path: Path, texts: list[str], kind: str) -> None:
    text = "t,v\n" + "".join(f"1,{value}\n" for value in texts)
    assert str(csv(tmp_path, text, mapping=ColumnMapping(start="t")).schema["v"]) == kind


def test_columns_called_like_ours_are_payload_where_a_mapping_says_what_is_what(tmp_path: Path) -> None:
    reader = csv(tmp_path, "t,w,le,kind\n1,2,3,a\n", mapping=ColumnMapping(start="t", rename={"w": "re"}))
    (row,) = reader.history().to_rows()
    assert (row.le, row.payload) == (1, {"re": 2, "le": 3, "kind": "a"})


@pytest.mark.parametrize(
    ("mapping", "name", "text"),
    [
        (None, "bad_input", r'no columns le and re.*\n  fix: .*ColumnMapping\(start="time"\)'),
        (ColumnMapping(start="tme"), "unknown_column", r"no column \"tme\"\n  at: .*\n  fix: did you mean \"time\""),
        (ColumnMapping(start="time", payload=["vv"]), "unknown_column", 'no column "vv"'),
        (ColumnMapping(start="time", rename={"v": "x", "x": "x"}), "duplicate_column", 'two columns are called "x"'),
    ],
)
def test_mappings_that_do_not_fit(tmp_path: Path, mapping: ColumnMapping | None, name: str, text: str) -> None:
    with pytest.raises(InputError, match=text) as info:
        csv(tmp_path, "time,v,x\n1,2,3\n", mapping=mapping)
    assert info.value.name == name


def test_mappings_and_files_that_contradict_themselves(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not both"):
        ColumnMapping(start="a", end="b", duration=1)
    with pytest.raises(InputError, match='two columns called "a"'):
        csv(tmp_path, "a,a\n", mapping=ColumnMapping(start="a"))
    with pytest.raises(InputError, match="which the schema names"):
        csv(tmp_path, "a\n1\n", mapping=ColumnMapping(start="a"), schema=Schema.of({"v": "int64"}))
    with pytest.raises(InputError, match="the header is not UTF-8"):
        csv(tmp_path, b"a\xff,b\n1,2\n")


def parquet(tmp_path: Path, columns: dict[str, object], mapping: ColumnMapping) -> Reader:
    pq.write_table(pa.table(columns), tmp_path / "f.parquet")
    return read(tmp_path / "f.parquet", mapping=mapping)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_arrow_timestamps_of_every_unit(tmp_path: Path, unit: str) -> None:
    times = pa.array([datetime(2024, 5, 1, tzinfo=UTC), None], pa.timestamp(unit, "UTC"))
    reader = parquet(tmp_path, {"t": times, "v": [1, 2]}, ColumnMapping(start="t", unit="ms"))
    assert spans(reader) == [(T0 * 1000, T0 * 1000 + 1)]
    assert [str(r) for r in reader.first_rejects] == ['row 2: the time in "t" is missing']


def test_arrow_timestamps_before_the_epoch_are_cut_down(tmp_path: Path) -> None:
    times = pa.array([-1], pa.timestamp("us", "UTC"))
    assert spans(parquet(tmp_path, {"t": times}, ColumnMapping(start="t", unit="s"))) == [(-1, 0)]


def test_naive_arrow_times_and_dates_need_a_zone(tmp_path: Path) -> None:
    for times in (pa.array([0], pa.timestamp("us")), pa.array([date(1970, 1, 1)])):
        with pytest.raises(InputError, match="has no zone"):
            parquet(tmp_path, {"t": times}, ColumnMapping(start="t")).history()
        reader = parquet(tmp_path, {"t": times, "p": times}, ColumnMapping(start="t", assume_zone="UTC"))
        assert spans(reader) == [(0, 1)]
    with pytest.raises(InputError, match=r'without a zone\n  at: column "p"\n  fix: .*assume_zone="UTC"'):
        parquet(tmp_path, {"t": [1], "p": pa.array([0], pa.timestamp("us"))}, ColumnMapping(start="t"))


def test_columns_that_cannot_be_payload_can_be_left_out(tmp_path: Path) -> None:
    columns = {"t": [1], "v": [2], "deep": [[1, 2]]}
    with pytest.raises(InputError, match=r'not supported\n  at: column "deep"\n  fix: .*payload='):
        parquet(tmp_path, columns, ColumnMapping(start="t"))
    reader = parquet(tmp_path, columns, ColumnMapping(start="t", payload=["v", "t"]))
    assert reader.history().to_rows() == [(1, 2, {"v": 2, "t": 1})]


def test_narrow_and_coded_columns_widen(tmp_path: Path) -> None:
    columns = {
        "t": pa.array([1], pa.int32()),
        "k": pa.array(["a"]).dictionary_encode(),
        "f": pa.array([1.5], pa.float32()),
    }
    reader = parquet(tmp_path, columns, ColumnMapping(start="t"))
    assert reader.history().to_rows() == [(1, 2, {"k": "a", "f": 1.5})]


def test_times_outside_the_range_are_rejected(tmp_path: Path) -> None:
    reader = csv(tmp_path, f"t\n1\n{2**63}\n{2**62 + 1}\n{2**62 - 5}\n", mapping=ColumnMapping(start="t", duration=10))
    assert spans(reader) == [(1, 11)]
    assert [r.line for r in reader.first_rejects] == [3, 4, 5]
    far = pa.array([datetime(2300, 1, 1, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert parquet(tmp_path, {"t": far}, ColumnMapping(start="t", unit="ns")).history().rows.num_rows == 1


def test_a_byte_order_mark_is_no_part_of_the_header(tmp_path: Path) -> None:
    assert spans(csv(tmp_path, b"\xef\xbb\xbfle,re\n1,2\n")) == [(1, 2)]
