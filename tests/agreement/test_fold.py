"""Two ways to the history of a physical stream agree: event by event, and columns at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.physical import to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.validate import Validator
from streamproof.workbench.case import CaseStream
from streamproof.workbench.evaluator.fold import fold
from tests.reference.compare import difference
from tests.reference.drawn import folded, streams

TIMES = st.integers(-3, 6)
IDS = st.sampled_from("abc")
PAYLOADS = st.fixed_dictionaries({"v": st.sampled_from([1, 2, None])})
SCHEMA = Schema.of({"v": "int64"})
ANY_EVENTS = st.lists(
    st.one_of(
        st.builds(Insert, IDS, TIMES, TIMES, PAYLOADS),
        st.builds(Retract, IDS, TIMES, TIMES, TIMES, PAYLOADS),
        st.builds(Cti, TIMES),
    ),
    max_size=6,
)


@given(streams())
def test_legal_streams_are_accepted_and_fold_alike(stream: CaseStream) -> None:
    physical = PhysicalStream.from_events(stream.events, schema=stream.schema)
    accepted = Validator().check(physical)
    assert len(accepted) == len(stream.events)
    found = [(row.le, row.re, row.payload) for row in to_history(accepted).to_rows()]
    assert difference(folded(stream), found) is None


@given(ANY_EVENTS)
def test_any_stream_breaks_the_same_rule_or_none(events: list[Event]) -> None:
    assert _validated(events) == _folded(events)


def _validated(events: list[Event]) -> str | None:
    try:
        Validator().check(PhysicalStream.from_events(events, schema=SCHEMA))
    except InputError as error:
        return error.name
    return None


def _folded(events: list[Event]) -> str | None:
    try:
        fold(events, SCHEMA.names)
    except InputError as error:
        return error.name
    return None
