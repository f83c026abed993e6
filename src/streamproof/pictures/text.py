"""Timelines in characters: small streams and histories as `marbles`, and pictures with lanes; one time axis for both.

>>> from streamproof.events.event import Cti, Insert, Retract
>>> print(marbles([
...     Insert("a", 1, 6, {"v": 1}), Insert("b", 3, FOREVER, {"v": 2}), Cti(5), Retract("b", 3, FOREVER, 9, {"v": 2}),
... ], width=48))
a v=1     ├───────────────────┤
b v=2             ├──────────────────────────▶
CTI                       ╵5
b v=2 → 9         ├───────────────────────┤╌╌▶
          1       3       5   6           9

A dotted part is what a retraction takes away. ``ascii=True`` uses plain characters only.

    places of times on the axis       0   4   8       16          those of a picture are in order of time
    a bar, drawn from its place           ├───────────┤           its end stands at the place of its end
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from streamproof.arguments import door
from streamproof.errors import InputError, printable
from streamproof.events.bag import python_rows
from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.history import History
from streamproof.events.notation import show_payload
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER, Unit, show_moment, show_tick
from streamproof.pictures.timeline import bar_text, to_scale

if TYPE_CHECKING:
    from streamproof.pictures.timeline import Lane, Timeline


class Ink(NamedTuple):
    """The characters of a picture."""

    start: str
    line: str
    end: str
    gone: str  # what a retraction takes away
    old_end: str
    never: str  # the start of an event that is fully retracted
    forever: str
    ever: str
    mark: str
    dots: str
    times: str
    arrow: str
    infinity: str
    wrong: str  # the line of what differs
    cti: str  # one of several in a line


UNICODE: Final = Ink("├", "─", "┤", "╌", "┆", "╳", "▶", "◀", "╵", "…", "×", "→", "∞", "━", "▲")
ASCII: Final = Ink("[", "-", ")", ".", "|", "x", ">", "<", "^", "...", "x", "->", "inf", "=", "^")
MIN_WIDTH: Final = 4
_LABEL: Final = 32
_PER_TICK: Final = 4


class _Line(NamedTuple):
    """One line of marbles."""

    label: str
    le: int
    re: int
    old: int | None = None  # the end before a retraction
    cti: bool = False


@door
def marbles(
    content: PhysicalStream | History | Iterable[Event],
    *,
    width: int = 80,
    rows: int = 20,
    ascii: bool = False,  # noqa: A002  # the word users know
) -> str:
    """A picture of at most ``rows`` events, at most ``width`` wide; always the same for the same events.

    >>> from streamproof.events.schema import Schema
    >>> twice = History.from_rows(Schema(), [(1, 3, {}), (1, 3, {}), (2, 4, {})])
    >>> print(marbles(twice, ascii=True, width=40))
    x2 [-------)
           [-------)
       1   2   3   4
    """
    for name, least, number in (("width", MIN_WIDTH, width), ("rows", 1, rows)):
        if not least <= number < 1 << 31:
            raise InputError(f"{name} must be at least {least}, got {number}", fix=f"give {name}={max(20, least)}")
    ink = ASCII if ascii else UNICODE
    bars, more = _bars(content, rows, ink)
    if not bars:
        return "(no events)"
    labels = [_cut(_plain(bar.label) if ascii else bar.label, min(_LABEL, width // 2), ink) for bar in bars]
    margin = max(map(_wide, labels)) + 1
    unit = content.schema.unit if isinstance(content, PhysicalStream | History) else None
    ends = [t for bar in bars for t in (bar.le, bar.re, bar.old) if t is not None]
    axis = _Axis(ends, max(8, width - margin), ink, unit)
    lines = [label + " " * (margin - _wide(label)) + axis.draw(bar) for label, bar in zip(labels, bars, strict=True)]
    lines.append(" " * margin + axis.labels())
    if more:
        lines.append(f"{ink.dots} {more} more")
    return "\n".join(line.rstrip() for line in lines)


class _Axis:
    """Where times stand, in cells: to scale if all of them can be told apart so, else in order."""

    def __init__(self, ends: Collection[int], width: int, ink: Ink, unit: Unit | None) -> None:
        self._ink = ink
        self._width = width
        self._unit = unit
        self._times = sorted({t for t in ends if BEGINNING < t < FOREVER}) or [0]
        self._first = 1 if min(ends) <= BEGINNING else 0  # room for the arrow to the left
        room = width - self._first - 4
        self._places = to_scale(self._times, room, most=_PER_TICK) or _in_order(self._times, room)
        self._last = self._first + max(self._places.values()) + (3 if max(ends) >= FOREVER else 0)

    def place(self, t: int) -> int:
        if t >= FOREVER:
            return self._last
        return 0 if t <= BEGINNING else self._first + self._places[t]

    def draw(self, bar: _Line, line: str = "") -> str:
        """The bar of a line, or the mark of its CTI."""
        if bar.cti:
            return self._mark(self.place(bar.le), _time(bar.le, self._ink))
        cells = [" "] * (self._last + 1)
        kept = bar.re > bar.le
        if bar.old is not None and bar.old > bar.re:
            self._fill(cells, bar.re if kept else bar.le, bar.old, self._ink.gone, self._ink.old_end)
        if not kept:
            cells[self.place(bar.le)] = self._ink.never
            return "".join(cells)
        self._fill(cells, bar.le, bar.re, line or self._ink.line, self._ink.end)
        if bar.old is not None and bar.le < bar.old < bar.re:
            cells[self.place(bar.old)] = self._ink.old_end
        cells[self.place(bar.le)] = self._ink.ever if bar.le <= BEGINNING else self._ink.start
        return "".join(cells)

    def marks(self, times: Iterable[int]) -> str:
        """Several CTIs in one line."""
        cells = [" "] * (self._last + 1)
        for t in times:
            cells[self.place(t)] = self._ink.cti
        return "".join(cells)

    def _mark(self, place: int, text: str) -> str:
        """A CTI with its time beside it, on the side where there is room."""
        if place + 1 + len(text) <= self._width:
            return " " * place + self._ink.mark + text
        return " " * (place - len(text)) + text[-place:] + self._ink.mark if place else self._ink.mark

    def _fill(self, cells: list[str], start: int, end: int, line: str, last: str) -> None:
        left, right = self.place(start), self.place(end)
        cells[left:right] = line * (right - left)
        cells[right] = self._ink.forever if end >= FOREVER else last

    def labels(self) -> str:
        """The times under the bars, as far as they have room."""
        text, day = "", ""
        for t in self._times:
            place, moment = self.place(t), show_moment(t, self._unit)
            today, _, clock = moment.rpartition("T")
            label = clock.removesuffix("Z") if today and today == day else moment  # a day is named once
            if (not text or place > len(text)) and place + len(label) <= self._width:
                text, day = text.ljust(place) + label, today
        return text


def _in_order(times: list[int], room: int) -> dict[int, int]:
    """Places at equal distances; together where there are too many."""
    count = max(1, len(times) - 1)
    step = min(2 * _PER_TICK, room // count)
    return {t: rank * step if step else rank * (room - 1) // count for rank, t in enumerate(times)}


def _bars(content: PhysicalStream | History | Iterable[Event], rows: int, ink: Ink) -> tuple[list[_Line], int]:
    """The first lines, and how many more there are."""
    if isinstance(content, History):
        shown = [_counted(le, re, w, payload, ink) for le, re, w, payload in python_rows(content.rows.slice(0, rows))]
        return shown, content.rows.num_rows - len(shown)
    events = content.slice(0, rows).to_events() if isinstance(content, PhysicalStream) else list(content)
    total = len(content) if isinstance(content, PhysicalStream) else len(events)
    return [_bar(event, ink) for event in events[:rows]], max(0, total - rows)


def _counted(le: int, re: int, w: int, payload: dict[str, object], ink: Ink) -> _Line:
    words = ([f"{ink.times}{w}"] if w != 1 else []) + ([show_payload(payload)] if payload else [])
    return _Line(" ".join(words), le, re)


def _bar(event: Event, ink: Ink) -> _Line:
    if isinstance(event, Cti):
        return _Line("CTI", event.t, event.t, cti=True)
    name = event.id if event.id.isprintable() else repr(event.id)
    label = f"{name} {show_payload(event.payload)}" if event.payload else name
    if isinstance(event, Insert):
        return _Line(label, event.le, event.re)
    return _Line(f"{label} {ink.arrow} {_change(event, ink)}", event.le, max(event.re_new, event.le), event.re)


def _change(event: Retract, ink: Ink) -> str:
    return "never" if event.re_new <= event.le else _time(event.re_new, ink)


def _time(t: int, ink: Ink) -> str:
    if t >= FOREVER:
        return ink.infinity
    return f"-{ink.infinity}" if t <= BEGINNING else str(show_tick(t))


def _wide(text: str) -> int:
    """How many cells a terminal needs for the text."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, most: int, ink: Ink) -> str:
    if _wide(text) <= most:
        return text
    while _wide(text) > most - len(ink.dots):
        text = text[:-1]
    return text + ink.dots


def _plain(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


# --- pictures with lanes ----------------------------------------------------------------------------------------------


def as_text(picture: Timeline, *, width: int = 100) -> str:
    """A timeline with its lanes: what is written beside a bar stands to its right, the times stand below."""
    margin = max(12, min(_LABEL, max((_wide(lane.title) for lane in picture.lanes), default=0) + 2))
    ends = [t for lane in picture.lanes for t in (*lane.ctis, *(t for bar in lane.bars for t in (bar.le, bar.re)))]
    room = max(20, min(width - margin - _beside(picture), 100))
    axis = _Axis(ends or [0], room, UNICODE, picture.unit)
    lines = [picture.title] if picture.title else []
    lines += [line for lane in picture.lanes for line in _lane(lane, axis, margin)]
    lines.append(" " * margin + axis.labels())
    return printable("\n".join(line.rstrip() for line in lines))


def _beside(picture: Timeline) -> int:
    """Room for what is written beside bars."""
    return min(30, max((_wide(bar_text(bar)) + 1 for lane in picture.lanes for bar in lane.bars), default=0))


def _lane(lane: Lane, axis: _Axis, margin: int) -> Iterator[str]:
    title = _cut(lane.title, margin - 1, UNICODE)
    heads = [title + " " * (margin - _wide(title)), *[" " * margin] * len(lane.bars)]
    if not lane.bars:
        yield heads[0] + "(nothing)"
    for head, bar in zip(heads, lane.bars, strict=False):
        line = UNICODE.gone if bar.gone else UNICODE.wrong if bar.wrong else UNICODE.line
        yield f"{head}{axis.draw(_Line('', bar.le, bar.re), line).rstrip()} {bar_text(bar)}"
    if lane.ctis:
        yield f"{'CTI':>{margin - 1}} {axis.marks(lane.ctis)}"
