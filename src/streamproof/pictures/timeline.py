"""Timelines: lifetimes, windows and CTIs on one time axis. One layout, drawn as SVG, PNG or text.

>>> picture = Timeline("two events", (Lane("S", (Bar(1, 4, "a"), Bar(3, FOREVER, "b")), (2,)),))
>>> print(picture.text(width=40))
two events
            1       2      3       4  ∞
S           ├──────────────────────┤ a
                           ├──────────▶ b
            CTI     ▲
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from streamproof.errors import printable
from streamproof.events.time import BEGINNING, FOREVER, show_tick

Tone = Literal["input", "window", "expected", "actual", "wrong"]
LINEAR: Final = 48  # a longer range of ticks is drawn by rank, not by length
MOST_LABELS: Final = 24


@dataclass(frozen=True)
class Bar:
    """A lifetime ``[le, re)`` with its label; ``wrong`` marks the first difference, ``gone`` what was taken back."""

    le: int
    re: int
    label: str = ""
    wrong: bool = False
    gone: bool = False


@dataclass(frozen=True)
class Lane:
    """A stream: its bars one below the other, and its CTIs."""

    title: str
    bars: tuple[Bar, ...] = ()
    ctis: tuple[int, ...] = ()
    tone: Tone = "input"


@dataclass(frozen=True)
class Timeline:
    """Lanes over one time axis."""

    title: str
    lanes: tuple[Lane, ...]
    note: str = ""  # what the picture shows, in words: the alternative text

    def text(self, *, width: int = 100) -> str:
        """For terminals."""
        return as_text(self, width=width)

    def svg(self) -> str:
        """For pages: it follows the page's colours, light or dark."""
        from streamproof.pictures.svg import as_svg  # noqa: PLC0415

        return as_svg(self)

    def png(self, path: Path | str) -> None:
        """For documents."""
        from streamproof.pictures.png import save_png  # noqa: PLC0415  # it loads matplotlib

        save_png(self, Path(path))

    def _repr_html_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Axis:
    """Where on a line from 0 to 1 a tick stands: by length if the range is short, else by rank."""

    ticks: tuple[int, ...]
    places: dict[int, float] = field(repr=False)

    def at(self, tick: int) -> float:
        return self.places[tick]


def axis_of(picture: Timeline) -> Axis:
    """The axis of a picture: all endpoints, with −∞ and ∞ at the edges."""
    found = {tick for lane in picture.lanes for bar in lane.bars for tick in (bar.le, bar.re)}
    found |= {tick for lane in picture.lanes for tick in lane.ctis}
    finite = sorted(found - {BEGINNING, FOREVER}) or [0]
    first, last = finite[0], finite[-1]
    left = 0.12 if BEGINNING in found else 0.0
    right = 0.88 if FOREVER in found else 1.0
    linear = 0 < last - first <= LINEAR
    places = {}
    for rank, tick in enumerate(finite):
        share = (tick - first) / (last - first) if linear else rank / max(1, len(finite) - 1)
        places[tick] = left + (right - left) * share
    places |= {BEGINNING: 0.0, FOREVER: 1.0}
    ends = [tick for tick in (BEGINNING, *finite, FOREVER) if tick in found or tick == first]
    return Axis(tuple(ends), places)


def labels(axis: Axis, *, apart: float) -> Iterator[tuple[float, str]]:
    """The ticks that are written at the axis: as many as there is room for."""
    last = -1.0
    for tick in axis.ticks:
        place = axis.at(tick)
        if place - last >= apart or tick == FOREVER:
            last = place
            yield place, "∞" if tick == FOREVER else "−∞" if tick == BEGINNING else str(show_tick(tick))


def bar_text(bar: Bar) -> str:
    """What is written beside a bar."""
    return ("✗ " if bar.wrong else "") + bar.label + (" (taken back)" if bar.gone else "")


# --- as text ----------------------------------------------------------------------------------------------------------


def as_text(picture: Timeline, *, width: int = 100) -> str:
    """The picture in characters."""
    axis = axis_of(picture)
    margin = min(24, max([len(lane.title) for lane in picture.lanes], default=0) + 2)
    margin = max(margin, 12)
    columns = max(20, min(width - margin - 1, 100))

    def column(tick: int) -> int:
        return round(axis.at(tick) * (columns - 1))

    lines = [picture.title] if picture.title else []
    lines.append(" " * margin + _ruler(axis, columns))
    for lane in picture.lanes:
        lines += _lane(lane, column, margin)
    return printable("\n".join(line.rstrip() for line in lines))


def _ruler(axis: Axis, columns: int) -> str:
    line = [" "] * (columns + 12)
    free = 0
    for place, label in labels(axis, apart=0.0):
        start = round(place * (columns - 1))
        if start >= free:
            line[start : start + len(label)] = label
            free = start + len(label) + 1
    return "".join(line)


def _lane(lane: Lane, column: object, margin: int) -> Sequence[str]:
    assert callable(column)
    lines = []
    for number, bar in enumerate(lane.bars):
        title = lane.title[: margin - 1] if number == 0 else ""
        lines.append(f"{title:<{margin}}{_bar(bar, column(bar.le), column(bar.re))} {bar_text(bar)}")
    if not lane.bars:
        lines.append(f"{lane.title[: margin - 1]:<{margin}}(nothing)")
    if lane.ctis:
        marks: dict[int, str] = {column(tick): "▲" for tick in lane.ctis}
        row = "".join(marks.get(n, " ") for n in range(max(marks) + 1))
        head = "CTI" if min(marks) > 3 else ""  # beside the first mark where there is room, else in the margin
        row = row if not head else head + row[3:]
        lines.append((" " * margin if head else f"{'CTI':>{margin - 1}} ") + row)
    return lines


def _bar(bar: Bar, start: int, end: int) -> str:
    left = "◀" if bar.le == BEGINNING else "├"
    right = "▶" if bar.re == FOREVER else "┤"
    middle = "┄" if bar.gone else "━" if bar.wrong else "─"
    if end <= start:
        return " " * start + "│"
    return " " * start + left + middle * (end - start - 1) + right
