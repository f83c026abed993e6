"""The five models of event-driven queries on a timeline: what triggers, what is seen, and when the result comes.

>>> sorted(MODELS)
['aec', 'ies', 'lec', 'les', 'tec']
>>> as_svg("les").startswith("<svg")
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streamproof.errors import on_a_page

WIDTH: Final = 760
LEFT: Final = 120
RIGHT: Final = 24
ROW: Final = 30
END: Final = 60  # the last second that is shown
STYLE: Final = (
    ".dm{font:12px system-ui,sans-serif}.dm text{fill:#1d2433}.dm .dim{fill:#667085}.dm .axis{stroke:#98a2b3}"
    ".dm .datum{fill:#2e90fa}.dm .unseen{fill:#b2ccff}.dm .event{fill:#f79009}.dm .scope{fill:#12b76a;fill-opacity:.28}"
    ".dm .result{fill:#d92d20}.dm .fall{stroke:#d92d20;stroke-dasharray:2 3}"
    "@media (prefers-color-scheme:dark){.dm text{fill:#eaecf0}.dm .dim{fill:#98a2b3}}"
)


@dataclass(frozen=True, slots=True)
class Trigger:
    """One look at the data from ``low`` to ``high``, with its result at ``t``."""

    low: float
    high: float
    t: float


@dataclass(frozen=True, slots=True)
class Model:
    """What one picture shows."""

    title: str
    eql: str
    data: tuple[int, ...]
    events: tuple[tuple[float, float | None], ...]  # instants, or lasting events with their end
    triggers: tuple[Trigger, ...]
    lane: str  # what the lane of events is called


_DATA: Final = (4, 9, 13, 21, 26, 33, 38, 44, 52, 57)
MODELS: Final[dict[str, Model]] = {
    "aec": Model(
        "AEC: each arrival looks back",
        "SELECT avg(temp) FROM Room ON ARRIVAL WINDOW 10s",
        _DATA,
        tuple((float(t), None) for t in (13, 26, 38)),
        (Trigger(3.2, 13, 13), Trigger(16.2, 26, 26), Trigger(28.2, 38, 38)),
        "arrivals",
    ),
    "tec": Model(
        "TEC: a clock looks back",
        "SELECT avg(temp) FROM Room EVERY 20s WINDOW 12s",
        _DATA,
        ((20.0, None), (40.0, None), (60.0, None)),
        (Trigger(8.2, 20, 20), Trigger(28.2, 40, 40), Trigger(48.2, 60, 60)),
        "every 20 s",
    ),
    "ies": Model(
        "IES: an instant event looks back",
        "SELECT avg(temp) FROM Room AT BECOMES(Door: open = 1) WINDOW 10s",
        _DATA,
        ((17.0, None), (47.0, None)),
        (Trigger(7.2, 17, 17), Trigger(37.2, 47, 47)),
        "door opens",
    ),
    "les": Model(
        "LES: once, at the end of a lasting event, over all of it",
        "SELECT avg(temp) FROM Room DURING LASTING(ARRIVE(Badge: dir = 'in'), ARRIVE(Badge: dir = 'out') BY person)",
        _DATA,
        ((6.0, 29.0), (18.0, 48.0)),
        (Trigger(6, 28.8, 29), Trigger(18, 47.8, 48)),
        "in the room",
    ),
    "lec": Model(
        "LEC: again and again while an event lasts, never before its begin",
        "SELECT count(*) FROM Heart DURING LASTING(…, … BY soldier) CONTINUOUS WINDOW 15s HOP 12s",
        _DATA,
        ((10.0, 55.0),),
        (Trigger(10, 22, 22), Trigger(19, 34, 34), Trigger(31, 46, 46)),
        "stands still",
    ),
}


def as_svg(name: str) -> str:
    """One model as one element; it needs nothing from outside."""
    model = MODELS[name]
    rows = 2 + len(model.events if model.events[0][1] is not None else model.events[:1]) + len(model.triggers)
    height = 70 + rows * ROW
    parts = [
        _text(12, 22, model.title, "", weight=600),
        _text(12, 42, model.eql, "dim"),
        *_events(model),
        *_lanes(model, height),
    ]
    return (
        f'<svg class="dm" role="img" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{on_a_page(model.title)}</title><style>{STYLE}</style>{''.join(parts)}</svg>"
    )


def _x(t: float) -> float:
    return round(LEFT + t / END * (WIDTH - LEFT - RIGHT), 1)


def _text(x: float, y: float, words: str, kind: str, *, weight: int = 400) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" font-weight="{weight}">{on_a_page(words)}</text>'


def _events(model: Model) -> list[str]:
    parts = [_text(12, 76, model.lane, "")]
    for n, (begin, end) in enumerate(model.events):
        y = 62 + (n * ROW if end is not None else 0)
        if end is None:
            parts.append(f'<path class="event" d="M{_x(begin)} {y} l6 9 l-6 9 l-6 -9 z"/>')
        else:
            width = round(_x(end) - _x(begin), 1)
            parts.append(f'<rect class="event" x="{_x(begin)}" y="{y + 3}" width="{width}" height="12" rx="3"/>')
    return parts


def _lanes(model: Model, height: int) -> list[str]:
    lasting = len(model.events) if model.events[0][1] is not None else 1
    y = 70 + lasting * ROW
    seen = {t for t in model.data for look in model.triggers if look.low <= t <= look.high}
    parts = [_text(12, y + 6, "data", "")]
    parts += [
        f'<circle class="{"datum" if t in seen else "unseen"}" cx="{_x(t)}" cy="{y + 2}" r="5"/>' for t in model.data
    ]
    for n, look in enumerate(model.triggers):
        row = y + (n + 1) * ROW
        parts.append(_text(12, row + 6, "sees" if n == 0 else "", "dim"))
        width = round(_x(look.high) - _x(look.low), 1)
        parts.append(f'<rect class="scope" x="{_x(look.low)}" y="{row - 8}" width="{width}" height="20" rx="3"/>')
        parts.append(f'<line class="fall" x1="{_x(look.t)}" y1="{row - 8}" x2="{_x(look.t)}" y2="{height - 30}"/>')
        parts.append(f'<circle class="result" cx="{_x(look.t)}" cy="{height - 26}" r="5"/>')
    parts.append(_text(12, height - 22, "results", ""))
    parts.append(f'<line class="axis" x1="{LEFT}" y1="{height - 14}" x2="{WIDTH - RIGHT}" y2="{height - 14}"/>')
    parts += [_text(_x(t) - 4, height - 2, str(t), "dim") for t in range(0, END + 1, 10)]
    return parts
