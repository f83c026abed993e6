"""The tracer: what it tells of an event is what the event changes, in random plans and in a worked one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from streamproof.engines.job import on
from streamproof.engines.local.trace import Passage, trace
from streamproof.errors import InputError, StreamproofError
from streamproof.events.event import Event, Insert
from streamproof.events.notation import write_value
from streamproof.events.stream import PhysicalStream
from streamproof.language.notation import from_document
from streamproof.plan.check import check
from streamproof.workbench.case import Case
from streamproof.workbench.draw.plans import seeded_case
from streamproof.workbench.evaluator.evaluate import TooManyRows, evaluate
from streamproof.workbench.evaluator.fold import fold
from streamproof.workbench.modules import all_modules

PLAN = from_document({
    "op": "group_apply", "in": {"op": "where", "in": {"op": "source", "name": "S"}, "expr": "v > 0"}, "key": ["k"],
    "apply": {
        "op": "agg", "in": {"op": "group_input"}, "window": {"type": "tumbling", "size": 10}, "aggs": {"n": ["count"]},
    },
})  # fmt: skip
EVENTS = [
    {"kind": "insert", "id": "x", "le": 2, "re": 4, "payload": {"k": "red", "v": 7}},
    {"kind": "insert", "id": "a", "le": 1, "re": "inf", "payload": {"k": "red", "v": 2}},
    {"kind": "insert", "id": "b", "le": 3, "re": 4, "payload": {"k": "blue", "v": 0}},
    {"kind": "cti", "t": 3},
    {"kind": "retract", "id": "a", "le": 1, "re": "inf", "re_new": 13, "payload": {"k": "red", "v": 2}},
    {"kind": "cti", "t": 14},
    {"kind": "insert", "id": "late", "le": 15, "re": 16, "payload": {"k": "red", "v": 1}},
    {"kind": "cti", "t": 25},
]


def test_the_way_of_an_event() -> None:
    told = str(trace(on(PLAN, "local"), {"S": EVENTS}, "a")).splitlines()
    window = told[told.index("agg(tumbling(size=10), n=count())") :]
    assert window[: window.index("group end")] == [
        "agg(tumbling(size=10), n=count())",
        "  touched: [0, 10) k='red', [10, 20) k='red'",
        "  CTI 14 of S",
        "    + [0, 10) k='red', n=2",
        "  CTI 25 of S",
        "    + [10, 20) k='red', n=2",
        "  without the event there would be",
        "    [0, 10) k='red', n=1",
        "    [10, 20) k='red', n=1",
        "  final: sealed by the end of S",
    ]


def test_an_event_that_a_filter_keeps_back() -> None:
    told = trace(on(PLAN, "local"), {"S": EVENTS}, "b").to_json()
    operators = told["operators"]
    assert isinstance(operators, list)
    assert [(part["operator"], len(part["changes"])) for part in operators] == [
        ("source(S)", 1), ("where(v > 0)", 0), ("group by k", 0), ("agg(tumbling(size=10), n=count())", 0),
        ("group end", 0),
    ]  # fmt: skip
    assert operators[0]["sealed"] == "CTI 14 of S"
    assert told["arrivals"] == [EVENTS[2]]


@pytest.mark.parametrize(
    ("event", "inputs", "text"),
    [
        ("q", {"S": EVENTS}, 'no input has an event "q"'),
        ("a", {}, 'no input is given for the source "S"'),
        ("a", {"S": EVENTS, "T": EVENTS}, 'the plan has no source "T"'),
        ("a", {"S": on(PLAN, "local").run({"S": EVENTS}).history}, "the input S is a history: its rows have no ids"),
    ],
)
def test_what_cannot_be_followed(event: str, inputs: dict[str, object], text: str) -> None:
    with pytest.raises(InputError) as raised:
        trace(on(PLAN, "local"), inputs, event)  # type: ignore[arg-type]  # any kind of input
    assert text in str(raised.value)


def test_an_id_in_two_inputs_needs_a_source() -> None:
    both = from_document({"op": "union", "ins": [{"op": "source", "name": "S"}, {"op": "source", "name": "T"}]})
    with pytest.raises(InputError, match='both S and T have an event "a"'):
        trace(on(both, "local"), {"S": EVENTS, "T": EVENTS}, "a")
    assert trace(on(both, "local"), {"S": EVENTS, "T": EVENTS}, "a", source="T").source == "T"


def test_advance_time_seals_and_drops() -> None:
    plan = from_document({"op": "advance_time", "in": {"op": "source", "name": "S"}, "every": 1, "delay": 0})
    events = [{"id": f"e{at}", "le": at, "re": at + 1, "payload": {}} for at in (1, 5, 2, 9)]
    told = trace(on(plan, "local"), {"S": events}, "e1")
    assert told.passages[-1].sealed == "CTI 5 of S"
    with pytest.raises(InputError, match='the event "e2" of S came too late for advance_time and was dropped'):
        trace(on(plan, "local"), {"S": events}, "e2")


def test_what_is_told_is_what_the_event_changes() -> None:
    """Law: over random plans, the history with the event less the one without it is what the last operator tells."""
    compared = 0
    for number in range(80):
        case = seeded_case(number)
        name, event = _some_event(case, number)
        if event is None:
            continue
        try:
            expected = Counter(_history(case, None))
            expected.subtract(_history(case, (name, event)))
            job = on(case.plan, "local", horizon=case.horizon, limits=case.limits, modules=list(all_modules()))
            streams = {n: PhysicalStream.from_events(s.events, schema=s.schema) for n, s in case.streams.items()}
            told = trace(job, streams, event, source=name)
        except (StreamproofError, TooManyRows):
            continue
        last = told.passages[-1]
        assert _total(last) == {row: w for row, w in expected.items() if w}, f"case {number}, event {event} of {name}"
        compared += 1
    assert compared > 40


def _some_event(case: Case, number: int) -> tuple[str, str | None]:
    name = sorted(case.streams)[number % len(case.streams)]
    ids = [event.id for event in case.streams[name].events if isinstance(event, Insert)]
    return name, ids[number % len(ids)] if ids else None


def _history(case: Case, without: tuple[str, str] | None) -> Counter[tuple[int, int, str]]:
    def kept(name: str, events: tuple[Event, ...]) -> list[Event]:
        return [e for e in events if without is None or (name, getattr(e, "id", None)) != without]

    typed = check(case.plan, case.schemas, registry=all_modules())
    histories = {n: fold(tuple(kept(n, s.events)), s.schema.names) for n, s in case.streams.items()}
    rows = evaluate(typed, histories, horizon=case.horizon, limits=case.limits, registry=all_modules(), most_rows=600)
    return Counter((le, re, _text(payload)) for le, re, payload in rows)


def _total(passage: Passage) -> dict[tuple[int, int, str], int]:
    signed = [*passage.added, *(row._replace(w=-row.w) for row in passage.missing)]
    return {(row.le, row.re, _text(dict(row.payload))): row.w for row in signed}


def _text(payload: Mapping[str, object]) -> str:
    values = {name: value + 0.0 if isinstance(value, float) else value for name, value in payload.items()}  # no −0.0
    return repr([(name, write_value(value)) for name, value in sorted(values.items())])
