from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.encode import Encoder
from streamproof.events.event import Cti, Event, Insert, Retract, sync
from streamproof.events.history import History
from streamproof.events.physical import from_batches, to_batches, to_history
from streamproof.events.schema import Schema, parse_type
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.events.validate import Validator
from tests.events.strategies import SMALL, legal_events, payloads, schemas

CASES = json.loads((Path(__file__).parent.parent / "data" / "algebra.json").read_text())["cases"]
STREAMS = [(f"{c['id']}-{n}", s) for c in CASES for n, s in (c.get("streams") or {}).items()]
N = Schema()


def stream(events: Iterable[Event], schema: Schema = SMALL) -> PhysicalStream:
    return PhysicalStream.from_events(events, schema=schema)


def folded(events: list[Event]) -> History:
    """The history by hand: the last state of every event that is still there."""
    done: list[Insert] = []
    live: dict[str, Insert] = {}
    for event in events:
        if isinstance(event, Insert):
            done += [live[event.id]] if event.id in live else []
            live[event.id] = event
        elif isinstance(event, Retract):
            live.pop(event.id)
            if event.re_new > event.le:
                live[event.id] = Insert(event.id, event.le, event.re_new, event.payload)
    return History.from_rows(SMALL, [(e.le, e.re, e.payload) for e in [*done, *live.values()]])


@pytest.mark.parametrize(("name", "documents"), STREAMS, ids=[name for name, _ in STREAMS])
def test_the_notation_of_the_cases_round_trips(name: str, documents: list[dict[str, object]]) -> None:
    assert PhysicalStream.from_dicts(documents).to_dicts() == documents


@given(st.data())
def test_every_type_round_trips_through_events_and_json(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    events = [Insert(str(i), 1, 5, p) for i, p in enumerate(data.draw(st.lists(payloads(schema), max_size=4)))]
    original = stream([*events, Cti(3)], schema)
    assert stream(original.to_events(), schema) == original
    written = json.loads(json.dumps(original.to_dicts()))
    assert PhysicalStream.from_dicts(written, schema=schema) == original


@given(legal_events())
def test_history_is_the_fold_of_events(events: list[Event]) -> None:
    assert to_history(stream(events)) == folded(events)


@given(legal_events(), st.integers(1, 5))
def test_signed_rows_keep_history_and_frontier(events: list[Event], size: int) -> None:
    whole = stream(events)
    chunks = [whole.slice(i, size) for i in range(0, len(whole), size)]
    batches = list(to_batches(chunks))
    assert History.from_batches(SMALL, batches) == to_history(whole)
    frontiers = [batch.frontier for batch in batches]
    assert frontiers == sorted(frontiers)
    assert [t for t in dict.fromkeys(frontiers) if t > BEGINNING] == list(
        dict.fromkeys(e.t for e in events if isinstance(e, Cti))
    )


@given(legal_events())
def test_encoding_signed_rows_keeps_history_and_obeys_every_rule(events: list[Event]) -> None:
    batches = list(to_batches(stream(events)))
    encoded = from_batches(batches, schema=SMALL)
    assert to_history(encoded, schema=SMALL) == to_history(stream(events))
    assert len(Validator().check(encoded)) == len(encoded)
    assert encoded == from_batches(batches, schema=SMALL)
    marks = [e.t for e in encoded.to_events() if isinstance(e, Cti)]
    assert marks == list(dict.fromkeys(e.t for e in events if isinstance(e, Cti)))


@given(legal_events())
def test_compensation_is_minimal(events: list[Event]) -> None:
    encoder = Encoder(SMALL)
    for batch in to_batches(stream(events)):
        net = History.from_batches(SMALL, [batch], allow_negative=True).rows.to_pylist()
        made = [e for e in encoder.encode(batch).to_events() if not isinstance(e, Cti)]
        pairs: dict[object, list[int]] = {}
        for row in net:
            sides = pairs.setdefault((row["le"], row["k"], row["v"]), [0, 0])
            sides[row["w"] < 0] += abs(row["w"])
        assert len(made) == sum(max(sides) for sides in pairs.values())


def batch(*signed: tuple[int, int, int], frontier: int = BEGINNING) -> Batch:
    return Batch.from_rows(N, [(le, re, w, {}) for le, re, w in signed], frontier=frontier)


def test_a_moved_end_is_one_retraction() -> None:
    encoder = Encoder(N, prefix="out-")
    encoder.encode(batch((1, 9, 2)))
    changed = encoder.encode(batch((1, 9, -1), (1, 5, 1), (2, 3, 1), frontier=4))
    assert [str(e) for e in changed.to_events()] == ["retract out-0 [1, 9) → 5", "insert out-2 [2, 3)", "cti 4"]
    changed = encoder.encode(batch((1, 9, -1), (1, 5, -1), frontier=4))
    assert [str(e) for e in changed.to_events()] == ["retract out-0 [1, 5) → 1", "retract out-1 [1, 9) → 1"]


def test_after_an_error_the_encoder_still_knows_its_rows() -> None:
    encoder = Encoder(N)
    encoder.encode(batch((1, 9, 1), (1, 8, 1)))
    with pytest.raises(InputError, match="matches no live event"):
        encoder.encode(batch((1, 9, -1), (1, 7, -1)))
    assert [str(e) for e in encoder.encode(batch((1, 8, -1))).to_events()] == ["retract e0 [1, 8) → 1"]


def test_a_minus_row_that_was_never_emitted_is_an_error() -> None:
    with pytest.raises(InputError, match=r"a −row matches no live event: \[1, 9\) \(no columns\)") as info:
        Encoder(N).encode(batch((1, 9, -1)))
    assert info.value.name == "unmatched_retraction"


def test_the_encoder_forgets_what_the_frontier_has_passed() -> None:
    encoder = Encoder(N)
    for t in range(50):
        encoder.encode(Batch.from_rows(N, [(t, t + 1, 100, {})], frontier=t + 1))
    assert encoder.live < 2200


def test_a_batch_closes_at_each_cti() -> None:
    events = [Insert("a", 1, 9, {}), Cti(2), Cti(1), Retract("a", 1, 9, 4, {}), Cti(5), Insert("b", 6, 7, {})]
    shapes = [(b.frontier, b.rows["w"].to_pylist()) for b in to_batches(stream(events, N))]
    assert shapes == [(2, [1]), (2, []), (5, [-1, 1]), (5, [1])]
    assert list(to_batches(PhysicalStream.empty(N))) == []
    assert len(to_history([])) == 0


def test_sync_is_where_history_changes() -> None:
    retractions = [(1, 9, 4, 4), (1, 9, 1, 1), (1, 9, -3, 1), (1, 4, 9, 4), (1, FOREVER, 9, 9)]
    assert [sync(Retract("a", le, re, new, {})) for le, re, new, _ in retractions] == [s for *_, s in retractions]
    assert sync(Insert("a", 3, 9, {})) == 3
    assert sync(Cti(7)) == 7


def inferred(*values: object) -> str:
    events = [Insert(f"e{i}", 1, 2, {"v": value}) for i, value in enumerate(values)]
    return str(PhysicalStream.from_events(events).schema["v"])


def test_types_are_inferred() -> None:
    assert inferred(1, None, 2) == "int64"
    assert inferred(1, 2.5) == "float64"
    assert inferred(2.5, 2**60) == "float64"
    assert inferred("a") == "string"
    assert inferred(True) == "bool"
    assert inferred(Decimal("1.5"), Decimal("10.25")) == "decimal(4,2)"
    assert inferred(Decimal("1.5"), 7) == "decimal(20,1)"
    assert inferred(date(2024, 5, 1)) == "date"
    assert inferred(datetime(2024, 5, 1, tzinfo=UTC)) == "timestamp"
    assert inferred(None) == "null"
    missing = PhysicalStream.from_events([Insert("a", 1, 2, {}), Insert("b", 1, 2, {"v": 1})])
    assert missing.payload["v"].to_pylist() == [None, 1]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((1, "a"), r'column "v" is int64 in insert e0 \[1, 2\), but string in insert e1 \[1, 2\)'),
        ((None, True, 1), r'column "v" is bool in insert e1 \[1, 2\), but int64 in insert e2'),
        ((2**63,), "does not fit into int64"),
        (([1],), 'column "v": values of type list cannot be payload'),
        ((datetime(2024, 5, 1),), "has no zone"),
    ],
)
def test_values_without_a_common_type_are_refused(values: tuple[object, ...], text: str) -> None:
    with pytest.raises(InputError, match=text) as info:
        inferred(*values)
    assert info.value.name in ("type_mismatch", "bad_input")


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"kind": "insrt"}, r"unknown kind 'insrt'\n  at: .*\n  fix: did you mean \"insert\""),
        ({"le": 1}, '"re" is missing'),
        ({"le": 1, "re": 1.5}, "1.5 is not a time"),
        ({"le": 1, "re": 2**63}, "outside"),
        (
            {"le": 1, "re": 2, "paylod": {}},
            r'an? insert has no field "paylod"\n  at: .*\n  fix: did you mean "payload"',
        ),
        ({"kind": "retract", "le": 1, "re": 2, "re_new": 1}, '"id" is missing'),
        ({"kind": "cti", "t": None}, "None is not a time"),
        ({"le": 1, "re": 2, "payload": 3}, "the payload 3 is not an object"),
        ({"le": 1, "re": 2, "payload": {"w\0": 3}}, "has a NUL character"),
        ({"le": 1, "re": 2, "id": []}, "is not text"),
        (7, "7 is not an event"),
    ],
)
def test_documents_that_are_no_events_are_refused(document: dict[str, object], text: str) -> None:
    with pytest.raises(InputError, match=text):
        PhysicalStream.from_dicts([document])


def test_payload_columns_may_be_called_like_control_columns() -> None:
    names = {"id": 1, "kind": "x", "re_new": 2.5, "payload.id": None}
    made = PhysicalStream.from_events([Insert("a", 1, 2, names)])
    assert made.to_events()[0].payload == names  # type: ignore[union-attr]
    assert to_history(made).to_rows()[0].payload == names


def test_streams_show_and_compare() -> None:
    made = stream([Insert("a", 1, 2, {"v": 1}), Cti(3)], Schema.of({"v": "int64"}))
    assert repr(made) == "PhysicalStream of 2 events\ninsert a [1, 2) v=1\ncti 3"
    assert made != made.slice(1)
    assert made != 1
    with pytest.raises(InputError, match="arrow_schema"):
        PhysicalStream(N, pa.table({"le": [1]}))
    with pytest.raises(InputError, match='unknown column "x"'):
        stream([Insert("a", 1, 2, {"x": 1})])
    with pytest.raises(InputError, match="""column "v": 'a' is not of type int64"""):
        stream([Insert("a", 1, 2, {"v": "a"})])


def test_text_becomes_what_the_schema_says() -> None:
    schema = Schema.of({"d": "decimal(5,2)", "at": "timestamp"})
    document = {"le": 1, "re": 2, "payload": {"d": "1.5", "at": "2024-05-01T14:00:00+02:00"}}
    event = PhysicalStream.from_dicts([document], schema=schema).to_events()[0]
    assert event.payload == {"d": Decimal("1.50"), "at": datetime(2024, 5, 1, 12, tzinfo=UTC)}  # type: ignore[union-attr]
    for bad in ({"d": "1.555"}, {"d": "1000"}, {"at": "2024-05-01T14:00:00"}, {"d": True}, {"at": 5}):
        with pytest.raises(InputError, match=r"is not of type .*\n  at: insert #0 \[1, 2\)"):
            PhysicalStream.from_dicts([{**document, "payload": bad}], schema=schema)
    assert parse_type("decimal(5,2)") == schema["d"]
