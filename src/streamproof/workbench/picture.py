"""A case as a picture: what comes in, the windows, what should come out and what does, the first difference marked."""

from __future__ import annotations

from collections.abc import Iterator

from streamproof.events.event import Cti, Insert, Retract
from streamproof.events.history import History, Row
from streamproof.events.notation import show_payload
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.pictures.timeline import Bar, Lane, Timeline
from streamproof.plan import nodes
from streamproof.plan.windows import Hopping, Tumbling
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.repro import Repro
from streamproof.workbench.verdict import Outcome

MOST_BARS = 24
MOST_WINDOWS = 8


def timeline_of(repro: Repro) -> Timeline:
    """The picture of a repro."""
    verdict = repro.verdict
    lanes = [*inputs_of(repro.case), *_windows(repro.case)]
    wrong = _differing(verdict.expected, verdict.actual)
    lanes.append(_output("expected", verdict.expected, wrong[0]))
    lanes.append(_output("actual", verdict.actual, wrong[1]))
    first = verdict.text.splitlines()[0] if verdict.text else verdict.word
    return Timeline(f"{repro.engine}: {first}"[:160], tuple(lanes), note=verdict.text)


def inputs_of(case: Case) -> list[Lane]:
    """One lane for each stream: every event with its last lifetime, and the CTIs."""
    return [_input(name, stream) for name, stream in case.streams.items()]


def _input(name: str, stream: CaseStream) -> Lane:
    live: dict[str, tuple[Insert, int, bool]] = {}
    for event in stream.events:
        if isinstance(event, Insert):
            live[event.id] = (event, event.re, False)
        elif isinstance(event, Retract) and event.id in live:
            first = live[event.id][0]
            gone = event.re_new <= event.le
            live[event.id] = (first, event.re if gone else event.re_new, gone)
    bars = [
        Bar(first.le, re, f"{ident} {show_payload(dict(first.payload))}{_changed(first, re)}", gone=gone)
        for ident, (first, re, gone) in live.items()
    ]
    ctis = tuple(event.t for event in stream.events if isinstance(event, Cti))
    return Lane(name, tuple(bars[:MOST_BARS]), ctis)


def _changed(first: Insert, re: int) -> str:
    if re == first.re:
        return ""
    return " (shortened)" if re < first.re else " (extended)"


def _windows(case: Case) -> Iterator[Lane]:
    """The windows of the outermost window that time alone decides."""
    rows = [row for stream in case.streams.values() for row in stream.rows]
    ends = [tick for row in rows for tick in row[:2] if tick not in (BEGINNING, FOREVER)]
    window = next((n.window for n in nodes.walk(case.plan) if hasattr(n, "window")), None)
    if window is None or not ends or not isinstance(window, Hopping | Tumbling) or not isinstance(window.size, int):
        return
    hop = window.hop if isinstance(window, Hopping) else window.size
    if not isinstance(hop, int) or not isinstance(window.offset, int):
        return
    first = (min(ends) - window.size - window.offset) // hop + 1
    starts = [window.offset + (first + k) * hop for k in range(MOST_WINDOWS)]
    bars = tuple(Bar(start, start + window.size) for start in starts if start < max(ends))
    yield Lane("windows", bars, tone="window")


def _output(title: str, outcome: Outcome | None, wrong: Row | None) -> Lane:
    tone = "expected" if title == "expected" else "actual"
    if not isinstance(outcome, History):
        text = title if outcome is None else f"{title}: error {outcome.name}"
        return Lane(text, tone=tone)  # type: ignore[arg-type]  # a word of Tone
    bars = [Bar(r.le, r.re, show_payload(dict(r.payload)), wrong=r == wrong) for r in outcome.to_rows()[:MOST_BARS]]
    return Lane(title, tuple(bars), tone=tone)  # type: ignore[arg-type]  # a word of Tone


def _differing(expected: Outcome | None, actual: Outcome | None) -> tuple[Row | None, Row | None]:
    """The first row that only one side has, on each side."""
    if not isinstance(expected, History) or not isinstance(actual, History):
        return None, None
    left, right = expected.to_rows(), actual.to_rows()
    return _first_only(left, right), _first_only(right, left)


def _first_only(mine: list[Row], theirs: list[Row]) -> Row | None:
    others = [repr(row) for row in theirs]
    for row in mine:
        if repr(row) not in others:
            return row
        others.remove(repr(row))
    return None
