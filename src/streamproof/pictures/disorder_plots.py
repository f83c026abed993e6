"""Plots of disorder as SVG: bars, and curves over a logarithmic axis of time.

Colours come from the page (``--ink``, ``--line``, ``--mark``…), so that a plot follows it into the dark.

>>> bar_plot([PlotBar("1s", 3.0, "3 events")], title="lateness")[:4]
'<svg'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from streamproof.errors import on_a_page

WIDTH: Final = 720
HEIGHT: Final = 240
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 12, 44
INNER_WIDTH: Final = WIDTH - LEFT - RIGHT
INNER_HEIGHT: Final = HEIGHT - TOP - BOTTOM
MOST_LABELS: Final = 7


class PlotBar(NamedTuple):
    """One bar: what it stands for, how high it is, and what a pointer on it shows."""

    label: str
    height: float
    hint: str
    part: float = 0.0  # the part of it that is marked


class CurveMark(NamedTuple):
    """A place on a curve that is worth a line: where, and what it says."""

    x: float
    text: str


def bar_plot(bars: Sequence[PlotBar], *, title: str, y_label: str = "") -> str:
    """Bars side by side."""
    top = _round_up(max((bar.height for bar in bars), default=1.0))
    step = INNER_WIDTH / max(1, len(bars))
    shapes = [_grid(top, y_label)]
    every = -(-len(bars) // MOST_LABELS)
    for n, bar in enumerate(bars):
        x = LEFT + n * step
        shapes.append(_rect(x, bar.height / top, step, "bar", bar.hint))
        if bar.part:
            shapes.append(_rect(x, bar.part / top, step, "part", bar.hint))
        if n % every == 0:
            shapes.append(_text(x + step / 2, HEIGHT - BOTTOM + 18, bar.label, "middle"))
    return _svg(title, shapes)


def curve_plot(
    points: Sequence[tuple[float, float]],
    *,
    title: str,
    x_text: Callable[[float], str],
    y_label: str = "%",
    marks: Sequence[CurveMark] = (),
) -> str:
    """A line over times that may span milliseconds to years; zero stands at the left edge."""
    known = [x for x, _ in points if x > 0]
    low, high = (min(known), max(known)) if known else (1.0, 1.0)
    top = _round_up(max((y for _, y in points), default=1.0))
    place = _log_axis(low, high)
    shapes = [_grid(top, y_label), *_x_ticks(low, high, place, x_text)]
    path = " L".join(f"{place(x):.1f},{_y(y / top):.1f}" for x, y in points)
    shapes.append(f'<path d="M{path}" class="curve"/>' if path else "")
    for n, mark in enumerate(marks):
        x = place(mark.x)
        end = "end" if x > WIDTH / 2 else "start"
        shapes.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="mark"/>')
        shapes.append(_text(x + (-5 if end == "end" else 5), TOP + 14 + 16 * n, mark.text, end, "note"))
    return _svg(title, shapes)


def _log_axis(low: float, high: float) -> Callable[[float], float]:
    span = math.log(high / low) or 1.0
    first = LEFT + 18  # room for zero

    def place(x: float) -> float:
        if x <= 0:
            return LEFT
        return first + (INNER_WIDTH - 18) * min(1.0, max(0.0, math.log(x / low) / span))

    return place


def _x_ticks(low: float, high: float, place: Callable[[float], float], x_text: Callable[[float], str]) -> Sequence[str]:
    count = 6
    values = [low * (high / low) ** (n / (count - 1)) for n in range(count)] if high > low else [low]
    shapes = [_text(LEFT, HEIGHT - BOTTOM + 18, "0", "middle")]
    for value in values:
        x = place(value)
        shapes.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}" class="axis"/>'
        )
        if x > LEFT + 30:
            shapes.append(_text(x, HEIGHT - BOTTOM + 18, x_text(value), "middle"))
    return shapes


def _grid(top: float, label: str) -> str:
    shapes = []
    for n in range(5):
        y = _y(n / 4)
        shapes.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        shapes.append(_text(LEFT - 6, y + 4, _number(top * n / 4) + (label if label == "%" else ""), "end"))
    return "".join(shapes)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - INNER_HEIGHT * min(1.0, share)


def _rect(x: float, share: float, width: float, kind: str, hint: str) -> str:
    y = _y(share)
    gap = 1 if width > 4 else 0
    return (
        f'<rect x="{x + gap / 2:.1f}" y="{y:.1f}" width="{max(0.5, width - gap):.1f}" '
        f'height="{HEIGHT - BOTTOM - y:.1f}" class="{kind}"><title>{on_a_page(hint)}</title></rect>'
    )


def _text(x: float, y: float, text: str, anchor: str, kind: str = "tick") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{on_a_page(text)}</text>'


def _number(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _round_up(value: float) -> float:
    """The next number that divides well into four."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 4, 5, 8) if step * power >= value), 10 * power)


def _svg(title: str, shapes: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{on_a_page(title)}" class="plot">'
        f"{''.join(shapes)}</svg>"
    )
