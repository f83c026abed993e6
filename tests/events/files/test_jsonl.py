from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.event import Event
from streamproof.events.files import jsonl, read, write
from streamproof.events.files.jsonl import Block, JsonLines
from streamproof.events.files.rejects import Rejects
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER
from tests.events.strategies import SMALL, legal_events, schemas


def save(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "s.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    return path


GOOD = '{"le":1,"re":5,"payload":{"v":1}}'


@pytest.mark.parametrize("odd", ["null", " null", "\tnull ", "null\n", "null" + GOOD, GOOD + "null"])
@pytest.mark.parametrize("before", [0, 1])
def test_a_null_for_a_line_is_no_event(odd: str, before: int, tmp_path: Path) -> None:
    """Arrow makes a row of it, and dies if it comes first."""
    path = save(tmp_path, *[GOOD] * before, odd, GOOD)
    reader = read(path, rejects=tmp_path / "rejects.jsonl")
    assert len(reader.history()) == before + 1
    assert reader.rejected == 1


@settings(max_examples=80)
@given(data=st.data())
def test_arrow_and_python_parse_alike(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    schema = data.draw(st.just(SMALL) | schemas())
    events = data.draw(legal_events(schema, most=6))
    text = "".join(json.dumps(d) + "\n" for d in PhysicalStream.from_events(events, schema=schema).to_dicts())
    block = Block(text.encode(), 1)
    path = tmp_path_factory.getbasetemp() / "agree.jsonl"
    path.write_text(text)
    slow = PhysicalStream.from_events(JsonLines(path, schema=schema, unit=None)._lines(block, Rejects()), schema=schema)
    assert slow == PhysicalStream.from_events(events, schema=schema)
    try:
        fast = jsonl._parse(block, schema)
    except (jsonl._Unusual, jsonl.pa.ArrowInvalid):
        return
    assert fast == slow


@given(events=legal_events(), size=st.integers(1, 200))
@settings(max_examples=50)
def test_blocks_do_not_matter(events: list[Event], size: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    stream = PhysicalStream.from_events(events, schema=SMALL)
    path = write(stream, tmp_path_factory.getbasetemp() / "blocks.jsonl", overwrite=True)
    source = JsonLines(path, schema=SMALL, unit=None, block_bytes=size)
    chunks = [chunk for chunk, _ in source.chunks(Rejects())]
    assert PhysicalStream.concat(chunks, schema=SMALL) == stream


def test_usual_lines_take_the_fast_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = save(
        tmp_path,
        '{"kind": "insert", "id": "a", "le": 1, "re": "inf", "payload": {"v": 1, "at": "2024-05-01T00:00:00Z"}}',
        '{"kind": "retract", "id": "a", "le": 1, "re": "inf", "re_new": "inf", "payload": {"v": 1}}',
        '{"kind": "cti", "t": "inf"}',
    )
    monkeypatch.setattr(JsonLines, "_lines", lambda *_: 1 / 0)
    stream = read(path).stream()
    assert [str(e) for e in stream.to_events()] == ["insert a [1, inf)", "retract a [1, inf) → inf", "cti inf"]
    assert stream.schema == Schema.of({"v": "int64", "at": "string"})


def test_bad_lines_are_rejected_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    lines = [
        b'{"le": 1, "re": 2, "payload": {"v": 1}}',
        b"",
        b"not json",
        b'{"le": 1, "re": "inf", "payload": {"v": NaN}}',
        b'{"le": 1, "re": 2, "payload": {"v": "x"}}',
        b'{"le": 3}',
        b'{"le": 1, "re": 2, "payload": {"v": "\xff"}}',
        b'{"le": 1, "re": 2, "payload": {"v": [1]}}',
    ]
    path.write_bytes(b"\n".join(lines))
    reader = read(path, rejects=tmp_path / "rejects.jsonl")
    assert reader.history().to_rows()[0].payload == {"v": 1.0}
    assert (reader.rejected, reader.rows_read) == (5, 7)
    written = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert [(r["line"], r["why"]) for r in written] == [
        (3, "not JSON: Expecting value at column 1"),
        (5, "column \"v\": 'x' is not of type float64"),
        (6, '"re" is missing'),
        (7, "not UTF-8: byte 37 is 0xff"),
        (8, 'column "v": [1] is not of type float64'),
    ]
    assert written[0]["row"] == "not json"


def test_types_widen_across_blocks(tmp_path: Path) -> None:
    path = save(tmp_path, *(f'{{"le": 1, "re": 2, "payload": {{"v": {v}}}}}' for v in ("null", "1", "2.5", "3")))
    assert JsonLines(path, schema=None, unit=None, block_bytes=10).schema == Schema.of({"v": "float64"})


def test_lines_are_counted_across_blocks(tmp_path: Path) -> None:
    path = save(tmp_path, *(f'{{"le": {i}, "re": 9}}' if i % 3 else "bad" for i in range(9)))
    rejects = Rejects()
    chunks = [chunk for chunk, _ in JsonLines(path, schema=None, unit=None, block_bytes=30).chunks(rejects)]
    assert [r.line for r in rejects.first] == [1, 4, 7]
    ids = [event.id for chunk in chunks for event in chunk.to_events()]  # type: ignore[union-attr]
    assert ids == ["#2", "#3", "#5", "#6", "#8", "#9"]


def test_the_first_type_wins_and_the_others_are_rejected(tmp_path: Path) -> None:
    path = save(tmp_path, *(f'{{"le": 1, "re": 2, "payload": {{"v": {v}}}}}' for v in ("1", '"a"', "2")))
    reader = read(path)
    assert len(reader.history()) == 2
    assert [str(r) for r in reader.first_rejects] == ["line 2: column \"v\": 'a' is not of type int64"]


@pytest.mark.parametrize("text", ['"inf"', '{"t": "inf"}', '{"re_new": "inf", "v": "\\"re\\": \\"inf\\""}'])
def test_text_that_looks_like_infinity_stays_text(tmp_path: Path, text: str) -> None:
    payload = text if text.startswith("{") else f'{{"v": {text}}}'
    path = save(tmp_path, f'{{"kind": "insert", "id": "a", "le": 1, "re": "inf", "payload": {payload}}}')
    event = read(path).stream().to_events()[0]
    assert (event.re, event.payload) == (FOREVER, json.loads(payload))  # type: ignore[union-attr]


def test_a_file_without_a_good_line_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"none of the 1 rows could be read; the first: not JSON.*\n  at: s.jsonl, line 1"
    ):
        read(save(tmp_path, "{")).history()


def test_an_empty_file_is_an_empty_history(tmp_path: Path) -> None:
    assert len(read(save(tmp_path)).history()) == 0
    assert len(read(save(tmp_path, "", " ")).history()) == 0


def test_unicode_separators_do_not_end_lines(tmp_path: Path) -> None:
    path = save(tmp_path, '{"le": 1, "re": 2, "payload": {"v": "a\u2028b\x85"}}', "", '{"le": 1}')
    reader = read(path)
    assert reader.history().to_rows()[0].payload == {"v": "a\u2028b\x85"}
    assert reader.first_rejects[0].line == 3
