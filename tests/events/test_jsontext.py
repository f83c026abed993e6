"""Columnar JSON text is the text that JSON writes for each event."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamproof.events.event import write_event
from streamproof.events.history import History
from streamproof.events.notation import write_json
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import show_tick
from tests.events.strategies import legal_events, rows, schemas


@st.composite
def streams(draw: st.DrawFn) -> PhysicalStream:
    schema = draw(schemas())
    return PhysicalStream.from_events(draw(legal_events(schema)), schema=schema)


@st.composite
def histories(draw: st.DrawFn) -> History:
    schema: Schema = draw(schemas())
    return History.from_rows(schema, draw(rows(schema)))


@given(streams())
def test_streams_are_written_as_their_events_are(stream: PhysicalStream) -> None:
    assert stream.to_json_lines() == "".join(write_json(write_event(event)) + "\n" for event in stream.to_events())


@given(histories())
def test_histories_are_written_as_their_rows_are(history: History) -> None:
    lines = history.to_json_lines().splitlines()
    assert len(lines) == len(history)
    for line, row in zip(lines, history.to_rows(), strict=True):
        assert line.startswith(write_json({"le": show_tick(row.le), "re": show_tick(row.re)})[:-1] + ', "payload": {')
