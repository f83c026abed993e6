"""No number changes on its way in: it keeps its value, or it is text as written, or its row is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, Reader, read
from streamproof.events.files.csv import CsvFile
from streamproof.events.files.jsonl import JsonLines
from streamproof.events.files.listing import FileSet
from streamproof.events.files.reader import EventFile
from streamproof.events.files.records import RecordsFile
from streamproof.events.files.tabular import RowsFile, TabularFile
from streamproof.events.schema import BOOL, FLOAT64, INT64, STRING, Schema

MAPPING = ColumnMapping(start="t")
EDGES = [0, 2**53, 2**63, -(2**63), 10**15, 10**19, 12345678901234567890, 10**38, 10**400]

whole = st.builds(
    lambda edge, by, sign: str((edge + by) * sign),
    st.sampled_from(EDGES),
    st.integers(-3, 3),
    st.sampled_from([1, -1]),
)
fractions = st.builds(
    lambda a, b: f"{a}.{b}", st.integers(-(10**18), 10**18), st.text("0123456789", min_size=1, max_size=22)
)
doubles = st.floats(allow_nan=False, allow_infinity=False).map(repr)
powers = st.builds(
    lambda a, e: f"{a}e{e}", st.integers(-99, 99), st.sampled_from([-400, -310, -5, 5, 22, 300, 308, 309, 400])
)
numbers = st.one_of(whole, fractions, doubles, powers)
odd = st.sampled_from(
    ["00123", "+5", "-0", "007", "0x1F", "1_000", "5.", ".5", "nan", "NaN", "inf", "-inf", "NAN", "Infinity", "", "1e5",
     "true", "False", "T", "2024-05-01", "2024-05-01T00:00:00Z", "2024-05-01T00:00:00.123456789Z", "1.10", " 5",
     "0000-01-01", "10000-01-01", "-", "1,5", "٣", "1e400", "1e-400", "--1", "0.1000000000000000055511151231257827"]
)  # fmt: skip


def values(source: EventFile) -> dict[int, object]:
    """The values of the column v, by time."""
    reader = Reader(source, FileSet(Path("f"), (), several=False), claim={}, rejects=None, on_rows=None)
    try:
        return {event.le: event.payload["v"] for event in reader.stream().to_events() if hasattr(event, "payload")}
    except InputError:  # no row could be read
        return {}


def is_kept(text: str, value: object) -> bool:
    """Whether a value is what the text says."""
    match value:
        case bool():
            return text.lower() == str(value).lower()
        case str():
            return value == text
        case int():
            return str(value) == text
        case float():
            word = text.lower().removesuffix("inity")
            if word in ("nan", "inf", "-inf"):
                return repr(value) == word
            return Decimal(text) in (Decimal(value), Decimal(repr(value)))
    return str(value).startswith(text[:10])  # dates and instants


def csv(folder: Path, texts: list[str]) -> Path:
    path = folder / "f.csv"
    path.write_text("t,v\n" + "".join(f'{n},"{text}"\n' if text else f"{n},\n" for n, text in enumerate(texts)))
    return path


def tabular(file: RowsFile, schema: Schema | None = None) -> TabularFile:
    return TabularFile(file, mapping=MAPPING, schema=schema, unit=None)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(numbers, numbers, odd), min_size=1, max_size=60), st.sampled_from([512, 1 << 20]))
@example(["9007199254740993", "0.5"], 512)
@example([*map(str, range(200)), "12345678901234567890"], 512)
def test_a_column_of_csv_keeps_every_value(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], block: int
) -> None:
    source = tabular(CsvFile(csv(tmp_path_factory.mktemp("csv"), texts), block_bytes=block))
    kind, found = source.schema["v"], values(source)
    for n, text in enumerate(texts):
        assert n in found, "nothing is refused where text will do"
        assert found[n] is None if not text else is_kept(text, found[n]), (text, found[n], kind)
    if any(text.removeprefix("-").isdecimal() and not -(2**63) <= int(text) < 2**63 for text in texts):
        assert kind == STRING


@settings(max_examples=150, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=8), st.sampled_from([16, 1 << 20]), st.booleans())
@example(["9007199254740993", "0.5"], 1 << 20, False)
@example(["9007199254740993", "0.5"], 16, True)
@example(["1", "2", "3", "4", "12345678901234567890"], 16, True)
def test_a_column_of_json_keeps_every_number(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], block: int, own: bool
) -> None:
    path = tmp_path_factory.mktemp("json") / "f.jsonl"
    line = '{"le": %d, "re": 99, "payload": {"v": %s}}\n' if own else '{"t": %d, "v": %s}\n'
    texts = [f"0{text}" if text.startswith(".") else text for text in texts if json_can_say(text)]
    path.write_text("".join(line % pair for pair in enumerate(texts)))
    if not texts:
        return
    found = values(
        JsonLines(path, schema=None, unit=None, block_bytes=block)
        if own
        else tabular(RecordsFile(path, block_bytes=block))
    )
    assert sorted(found) == list(range(len(texts)))
    for n, text in enumerate(texts):
        assert is_kept(text, found[n]) or (isinstance(found[n], int) and text == "-0"), (text, found[n])


def json_can_say(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


DECLARED = ["0x1F", "00123", "+5", "1_000", " 7 ", "1e400", "-1e400", "inf", "NAN", "1", "0", "true", "x", "2.5", "٣"]


@pytest.mark.parametrize("kind", ["int64", "float64", "bool", "decimal(10,2)", "date", "timestamp"])
@pytest.mark.parametrize("text", DECLARED)
def test_whether_a_value_fits_does_not_depend_on_others(tmp_path: Path, kind: str, text: str) -> None:
    schema = Schema.of({"v": kind})
    alone = values(tabular(CsvFile(csv(tmp_path, [text])), schema))
    beside = values(tabular(CsvFile(csv(tmp_path, [text, "no such value"])), schema))
    assert repr(alone) == repr(beside)
    if text in ("0x1F", "1e400", "-1e400", "1_000", "x"):
        assert not alone


def test_the_types_of_numbers(tmp_path: Path) -> None:
    expected = {
        ("1", "-7"): INT64, ("1", "2.5", "1e5"): FLOAT64, ("0.1", "nan", "-inf"): FLOAT64, ("-0", "1"): FLOAT64,
        ("12345678901234567890", "1"): STRING, ("9223372036854775808",): STRING, ("007",): STRING, ("+5",): STRING,
        ("9007199254740993", "0.5"): STRING, ("9007199254740992", "0.5"): FLOAT64, ("0.12345678901234567890",): STRING,
        ("1e400",): STRING, ("1e-400",): STRING, ("True", "false"): BOOL, ("T",): STRING, ("0x1F",): STRING,
        ("-122.41941550000001", "1.7976931348623157e+308", "5e-324"): FLOAT64,
    }  # fmt: skip
    for texts, kind in expected.items():
        assert tabular(CsvFile(csv(tmp_path, list(texts)))).schema["v"] == kind, texts


def test_different_ids_stay_different(tmp_path: Path) -> None:
    ids = ["12345678901234567890", "12345678901234567891"]
    assert list(values(tabular(CsvFile(csv(tmp_path, ids)))).values()) == ids
    path = tmp_path / "f.jsonl"
    path.write_text("".join(f'{{"t": {n}, "v": {one}}}\n' for n, one in enumerate(ids)))
    assert list(values(tabular(RecordsFile(path))).values()) == ids
    pq.write_table(pa.table({"t": [0, 1], "v": pa.array(map(int, ids), pa.uint64())}), tmp_path / "f.parquet")
    reader = read(tmp_path / "f.parquet", mapping=MAPPING)
    assert [row.payload["v"] for row in reader.history().to_rows()] == ids
    pq.write_table(pa.table({"t": [0], "v": pa.array([7], pa.uint64())}), tmp_path / "f.parquet")
    assert read(tmp_path / "f.parquet", mapping=MAPPING).schema["v"] == INT64


def test_a_declared_decimal_keeps_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"t": 1, "v": 0.1234567890123456789}\n{"t": 2, "v": 1234567890123456789}\n')
    reader = read(path, mapping=MAPPING, schema=Schema.of({"v": "decimal(38,19)"}))
    assert [row.payload["v"] for row in reader.history().to_rows()] == [
        Decimal("0.1234567890123456789"), Decimal("1234567890123456789"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"t": 2, "v": %s}' % ("9" * 5000), "a number of 5,000 characters, the limit is 1,000: 999999999999…"),
        ('{"t": 2, "v": 1, "v": 2}', 'the key "v" is there twice'),
        ('{"t": 2, "v": 1, "\\u0076": 2}', 'the key "v" is there twice'),
        ('{"t": 2, "v": "\\ud800"}', "half of a surrogate pair is no character"),
        ('{"t": 1e400, "v": 1}', "column \"t\": '1e400' is not a time"),
    ],
)
def test_lines_of_json_that_would_change_are_rejected(tmp_path: Path, line: str, why: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(f'{{"t": 1, "v": 1}}\n{line}\n{{"t": 3, "v": 1}}\n')
    reader = read(path, mapping=MAPPING)
    assert [row.le for row in reader.history().to_rows()] == [1, 3]
    assert [(reject.line, reject.why) for reject in reader.first_rejects] == [(2, why)]
    own = line.replace('{"t"', '{"re": 9, "le"').replace('"v"', '"payload": {"v"', 1).removesuffix("}") + "}}"
    if "1e400" not in line and "u0076" not in line:
        path.write_text(f'{{"le": 1, "re": 9, "payload": {{"v": 1}}}}\n{own}\n')
        reader = read(path)
        assert [row.le for row in reader.history().to_rows()] == [1]
        assert [(reject.line, reject.why) for reject in reader.first_rejects] == [(2, why)]


UNKEPT = {
    "nanoseconds": (pa.array([1_500_000_001, 0], pa.timestamp("ns", "UTC")), "timestamp", "is not of type timestamp"),
    "the year 10000": (pa.array([253402300800_000_000, 0], pa.timestamp("us", "UTC")), None, "not within the years 1"),
    "days of the year 10000": (pa.array([2932897, 0], pa.date32()), None, "is not within the years 1 to 9999"),
    "numbers as instants": (pa.array([5, None], pa.int64()), "timestamp", "5 is not of type timestamp"),
    "numbers as truth": (pa.array([5, None], pa.int64()), "bool", "5 is not of type bool"),
    "parts of a decimal": (pa.array([0.123, None], pa.float64()), "decimal(5,2)", "0.123 is not of type decimal(5,2)"),
    "zoneless instants": (pa.array([0, None], pa.timestamp("us")), "timestamp", "is not of type timestamp"),
    "instants as dates": (pa.array([1, None], pa.timestamp("us", "UTC")), "date", "is not of type date"),
    "floats as text": (pa.array([1.0, None], pa.float64()), "string", "1.0 is not of type string"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNKEPT)
def test_values_that_a_cast_would_change_are_rejected(tmp_path: Path, case: str) -> None:
    column, kind, why = UNKEPT[case]
    pq.write_table(pa.table({"t": [1, 2], "v": column}), tmp_path / "f.parquet")
    schema = None if kind is None else Schema.of({"v": kind})
    reader = read(tmp_path / "f.parquet", mapping=MAPPING, schema=schema, rejects=tmp_path / "r.jsonl")
    assert [row.le for row in reader.history().to_rows()] == [2]
    assert why in reader.first_rejects[0].why
    assert json.loads((tmp_path / "r.jsonl").read_text())["row"]["t"] == 1


def test_nanoseconds_are_ticks_wherever_they_stand(tmp_path: Path) -> None:
    texts = ["1970-01-01T00:00:00.123456789Z", "1970-01-01T00:00:00.000000001Z"]
    for extra in ([], ["no time"]):
        path = tmp_path / "f.csv"
        path.write_text("t\n" + "\n".join([*texts, *extra]) + "\n")
        reader = read(path, mapping=ColumnMapping(start="t", unit="ns"))
        assert sorted(row.le for row in reader.history().to_rows()) == [1, 123456789]
