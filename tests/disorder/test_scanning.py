"""Rows, fields and times, beside Python's own csv, json and datetime."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamproof.disorder.scanning import (
    AFTER_QUOTE,
    BLANK,
    FIELDS,
    GOOD,
    NAIVE,
    NO_OBJECT,
    NO_TIME,
    NUMBER,
    ODD_TIME,
    OPEN_QUOTE,
    TOO_FINE,
    ZONED,
    fields_of,
    members_of,
    row_ends,
    times_of,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(text: str, per_second: int = 10**6) -> tuple[int, int, int]:
    data = np.frombuffer(text.encode() + b"\n", np.uint8)
    status = np.zeros(1, np.uint8)
    ticks, kinds = times_of(data, status, np.zeros(1, np.int64), np.array([len(data) - 1]), per_second)
    return int(status[0]), int(ticks[0]), int(kinds[0])


@given(
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),
    st.sampled_from(["T", " "]),
    st.none() | st.integers(-14 * 60, 14 * 60),
)
def test_instants_mean_what_python_says(moment: datetime, letter: str, minutes: int | None) -> None:
    zone = UTC if minutes is None else timezone(timedelta(minutes=minutes))
    zoned = moment.replace(tzinfo=zone)
    text = (moment if minutes is None else zoned).isoformat(letter)
    status, ticks, kind = time_of(text)
    assert (status, kind) == (GOOD, NAIVE if minutes is None else ZONED)
    assert ticks == (zoned - EPOCH) // timedelta(microseconds=1)


@given(st.integers(-(4 * 10**18), 4 * 10**18))
def test_numbers_are_ticks(number: int) -> None:
    assert time_of(str(number)) == (GOOD, number, NUMBER)
    assert time_of(f"  {number}.000 ") == (GOOD, number, NUMBER)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", NO_TIME), ("  ", NO_TIME), ("abc", ODD_TIME), ("1e9", ODD_TIME), ("12x", ODD_TIME), ("-", ODD_TIME),
        ("9" * 30, ODD_TIME), ("1.5", TOO_FINE), ("2024-13-01", ODD_TIME), ("2023-02-29", ODD_TIME),
        ("2024-05-01T25:00", ODD_TIME), ("2024-05-01T12:00:60", ODD_TIME), ("2024-05-01Tx", ODD_TIME),
        ("2024-05-01T12:00:00.1234567Z", TOO_FINE), ("2024-05-01T12:00:00.Z", ODD_TIME),
        ("2024-05-01T12:00Zz", ODD_TIME),
        ("2024-05-01T12:00:00+99", ODD_TIME), ("2024-02-29", GOOD), ("2024-05-01 12:00:00,123", GOOD),
        ("2024-05-01T12:00:00.123000000Z", GOOD), ("2024-05-01T12:00:00 +0200", GOOD),
    ],
)  # fmt: skip
def test_what_is_a_time_and_what_is_not(text: str, status: int) -> None:
    assert time_of(text)[0] == status


CELLS = st.lists(
    st.lists(st.text(st.sampled_from('ab",\n;\té '), max_size=6), min_size=2, max_size=2), min_size=1, max_size=8
)


@given(CELLS)
def test_fields_are_those_of_python(rows: list[list[str]]) -> None:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    data = np.frombuffer(file.getvalue().encode(), np.uint8)
    ends = row_ends(data, 0, len(data), ord(","))
    starts = np.concatenate([[0], ends[:-1]])
    status, spans, counts = fields_of(data, starts, ends, ord(","), True, np.array([0, 1]), 2)
    assert status.tolist() == [GOOD] * len(rows)
    assert counts.tolist() == [2] * len(rows)
    for n, row in enumerate(rows):
        found = [data[spans[2 * k, n] : spans[2 * k + 1, n]].tobytes().decode().replace('""', '"') for k in (0, 1)]
        assert found == row


def test_an_open_quote_concerns_its_own_line_only() -> None:
    data = np.frombuffer(b'1,"open\n2,fine\n\n3,x,y\n', np.uint8)
    ends = row_ends(data, 0, len(data), 0)
    starts = np.concatenate([[0], ends[:-1]])
    status, _, counts = fields_of(data, starts, ends, ord(","), True, np.array([0]), 2)
    assert status[0] == OPEN_QUOTE
    assert status[1] == GOOD
    assert status[2] == BLANK
    assert counts[3] == 3


@given(st.text(alphabet='a,"', max_size=10).filter(lambda text: text != ""))
@example('"3"0,c')
@example('x,"a" ')
def test_a_row_is_taken_if_it_is_well_formed(text: str) -> None:
    data = np.frombuffer(text.encode() + b"\n", np.uint8)
    status, *_ = fields_of(
        data, np.array([0]), np.array([len(data)]), ord(","), True, np.array([0]), text.count(",") + 1
    )
    try:
        next(csv.reader([text], strict=True))
    except csv.Error:
        assert status[0] in (OPEN_QUOTE, AFTER_QUOTE)
    else:
        assert status[0] in (GOOD, FIELDS)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), st.integers(), st.booleans())
def test_members_are_those_of_python(others: dict[str, object], time: int, ascii_only: bool) -> None:
    document = {**others, "time": time, "after": {"time": -1}}
    line = (json.dumps(document, ensure_ascii=ascii_only) + "\n").encode()
    data = np.frombuffer(line, np.uint8)
    status, spans = members_of(
        data, np.array([0]), np.array([len(data)]), np.frombuffer(b"time", np.uint8), np.array([4])
    )
    assert status.tolist() == [GOOD]
    assert line[spans[0, 0] : spans[1, 0]] == str(time).encode()


@pytest.mark.parametrize("line", ['{"time": 5', '{"time": }', "[1]", "5", '{"a" 5}', '{"a": "x}', '{"a": 1} x', "{,}"])
def test_lines_that_are_no_objects(line: str) -> None:
    data = np.frombuffer(line.encode() + b"\n", np.uint8)
    status, _ = members_of(data, np.array([0]), np.array([len(data)]), np.frombuffer(b"time", np.uint8), np.array([4]))
    assert status.tolist() == [NO_OBJECT]
