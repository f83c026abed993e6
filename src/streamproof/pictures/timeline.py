"""Timelines: lifetimes, windows and CTIs on one time axis. One layout, drawn as SVG, PNG or text.

>>> picture = Timeline("two events", (Lane("S", (Bar(1, 4, "a"), Bar(3, FOREVER, "b")), (2,)),))
>>> print(picture.text(width=40))
two events
S           ├───────────┤ a
                    ├──────▶ b
        CTI     ▲
            1   2   3   4
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from streamproof.events.time import BEGINNING, FOREVER, Unit, show_moment

Tone = Literal["input", "window", "expected", "actual", "wrong"]
CELLS: Final = 48  # times that fall together on a line of so many cells are drawn in order, not to scale
APART: Final = 0.035  # of the line, from label to label
LETTER: Final = 0.016


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
    unit: Unit | None = None  # of its ticks: times with a unit are written as moments

    def text(self, *, width: int = 100) -> str:
        """For terminals."""
        from streamproof.pictures.text import as_text  # noqa: PLC0415  # which draws timelines

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
    """Where on a line from 0 to 1 a tick stands: to scale if all can be told apart so, else in order."""

    ticks: tuple[int, ...]
    places: dict[int, float] = field(repr=False)
    unit: Unit | None = None

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
    linear = last > first and to_scale(finite, CELLS) is not None
    places = {}
    for rank, tick in enumerate(finite):
        share = (tick - first) / (last - first) if linear else rank / max(1, len(finite) - 1)
        places[tick] = left + (right - left) * share
    places |= {BEGINNING: 0.0, FOREVER: 1.0}
    ends = [tick for tick in (BEGINNING, *finite, FOREVER) if tick in found or tick == first]
    return Axis(tuple(ends), places, picture.unit)


def to_scale(times: Sequence[int], cells: int, *, most: int | None = None) -> dict[int, int] | None:
    """Places in proportion to time, at most so many cells a tick, if no two times fall together; else None.

    >>> to_scale([1, 2, 9], 20, most=4), to_scale([1, 2, 900], 20)
    ({1: 0, 2: 2, 9: 16}, None)
    """
    span = times[-1] - times[0]
    if span == 0:
        return {times[0]: 0}
    per_tick = min(most or cells, cells // span)
    if per_tick:
        return {t: (t - times[0]) * per_tick for t in times}
    places = {t: (t - times[0]) * (cells - 1) // span for t in times}
    return places if len(set(places.values())) == len(times) else None


def labels(axis: Axis) -> Iterator[tuple[float, str]]:
    """The ticks that are written at the axis: as many as there is room for. A day is named once."""
    free, day = -1.0, ""
    for tick in axis.ticks:
        place, moment = axis.at(tick), _written(tick, axis.unit)
        today, _, clock = moment.rpartition("T")
        label = clock.removesuffix("Z") if today and today == day else moment
        half = max(APART, len(label) * LETTER) / 2
        if place - half >= free or tick == FOREVER:
            free, day = place + half, today
            yield place, label


def _written(tick: int, unit: Unit | None) -> str:
    return "∞" if tick == FOREVER else "−∞" if tick == BEGINNING else show_moment(tick, unit)


def bar_text(bar: Bar) -> str:
    """What is written beside a bar."""
    return ("✗ " if bar.wrong else "") + bar.label + (" (taken back)" if bar.gone else "")
