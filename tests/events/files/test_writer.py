"""Streams written chunk by chunk read back as streams that are written whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.event import Cti, Insert
from streamproof.events.files import read, write
from streamproof.events.files.writer import write_chunks
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from tests.events.strategies import legal_events, schemas


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
@settings(max_examples=25)
@given(st.data())
def test_chunks_read_back_as_the_whole(
    ending: str, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    schema = data.draw(schemas())
    stream = PhysicalStream.from_events(data.draw(legal_events(schema)), schema=schema)
    size = data.draw(st.integers(1, 5))
    chunks = [stream.slice(start, size) for start in range(0, len(stream), size)]
    chunks.insert(data.draw(st.integers(0, len(chunks))), PhysicalStream.empty(schema))
    folder = tmp_path_factory.mktemp("chunks")
    whole = write(stream, folder / f"whole.{ending}")
    parts = write_chunks(schema, iter(chunks), folder / f"parts.{ending}")
    found = read(parts, schema=schema, unit=schema.unit).stream()
    assert found == read(whole, schema=schema, unit=schema.unit).stream()
    assert found == stream or not len(stream)  # an empty file of lines may as well be an empty history


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
def test_an_empty_stretch_between_others_leaves_no_trace(ending: str, tmp_path: Path) -> None:
    stream = PhysicalStream.from_events([Insert("a", 1, 5, {}), Cti(9)], schema=Schema())
    empty = PhysicalStream.empty(Schema())
    torn = PhysicalStream.concat([empty, stream.slice(0, 1), empty, stream.slice(1, 1), empty], schema=Schema())
    for path in (
        write(torn, tmp_path / f"whole.{ending}"),
        write_chunks(Schema(), [empty, torn, empty], tmp_path / f"parts.{ending}"),
    ):
        assert read(path).stream() == stream


def test_nothing_is_left_behind_where_a_chunk_fails(tmp_path: Path) -> None:
    def failing() -> object:
        yield PhysicalStream.empty(Schema())
        raise InputError("no more")

    with pytest.raises(InputError, match="no more"):
        write_chunks(Schema(), failing(), tmp_path / "s.parquet")  # type: ignore[arg-type]  # a generator
    assert list(tmp_path.iterdir()) == []
