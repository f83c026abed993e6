"""A stream of windows as a drawing: lanes of rows above and below a band of windows that shows how a formula fared.

>>> drawn = timeline([RowLane("in", [RowMark(10.0, "v=1")])], [], [TimelineStep(0.0, "fails", "false")], 60.0, 0)
>>> drawn.startswith("<svg"), drawn.count("<circle")
(True, 1)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamproof.errors import on_a_page

WIDTH, LEFT, LANE, BAND = 1120, 52, 46, 26
COLOURS = {"holds": "#2e7d32", "fails": "#b3261e", "undecided": "#d9b44a", "error": "#6a1b9a"}
ROW = {"in": "#1565c0", "out": "#00796b"}
DRAWN = 160  # windows that are drawn


@dataclass(frozen=True)
class RowMark:
    """A row: seconds from the start, and what it says."""

    at: float
    text: str


@dataclass(frozen=True)
class RowLane:
    """Rows of one stream."""

    name: str
    marks: Sequence[RowMark]


@dataclass(frozen=True)
class TimelineStep:
    """A window of the formula: where it starts, how the formula stands after it, and in words."""

    start: float
    verdict: str
    text: str


def timeline(
    above: Sequence[RowLane], below: Sequence[RowLane], steps: Sequence[TimelineStep], width: float, decided: int | None
) -> str:
    """The drawing as SVG: one column per window, the deciding one framed."""
    shown = list(steps[:DRAWN])
    end = shown[-1].start + width if shown else 1.0
    scale = (WIDTH - LEFT - 8) / max(end, 1e-9)
    band = 8 + LANE * len(above)
    height = band + BAND + 6 + LANE * len(below) + 8
    parts = [
        *_columns(shown, width, scale, height),
        *(piece for n, lane in enumerate(above) for piece in _lane(lane, 8 + LANE * n, scale, end, "in")),
        *_band(shown, width, scale, band, decided),
        *(
            piece
            for n, lane in enumerate(below)
            for piece in _lane(lane, band + BAND + 6 + LANE * n, scale, end, "out")
        ),
    ]
    if decided is not None and decided < len(shown):
        x = LEFT + shown[decided].start * scale
        parts.append(
            f'<rect x="{x:.1f}" y="3" width="{width * scale:.1f}" height="{height - 6}" fill="none" '
            f'stroke="{COLOURS[shown[decided].verdict]}" stroke-width="2" rx="3"/>'
        )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="11">{"".join(parts)}</svg>'
    )


def _columns(steps: Sequence[TimelineStep], width: float, scale: float, height: int) -> Iterator[str]:
    """The background: every other window a little darker."""
    for number, step in enumerate(steps):
        fill = "#f4f7f9" if number % 2 else "#eaf0f4"
        x = LEFT + step.start * scale
        yield f'<rect x="{x:.1f}" y="4" width="{width * scale:.1f}" height="{height - 8}" fill="{fill}"/>'


def _lane(lane: RowLane, top: int, scale: float, end: float, side: str) -> Iterator[str]:
    yield f'<text x="4" y="{top + LANE / 2 + 4:.0f}" fill="#5b6b7a">{on_a_page(lane.name)}</text>'
    for number, mark in enumerate(lane.marks):
        if 0 <= mark.at < end:
            x, y = LEFT + mark.at * scale, top + 8 + (number * 11) % (LANE - 16)  # so that close rows stay apart
            yield (
                f'<circle cx="{x:.1f}" cy="{y}" r="3.2" fill="{ROW[side]}" fill-opacity="0.75">'
                f"<title>{on_a_page(mark.text)}</title></circle>"
            )


def _band(steps: Sequence[TimelineStep], width: float, scale: float, top: int, decided: int | None) -> Iterator[str]:
    """The windows, coloured by how the formula stands; after the deciding one they no longer matter."""
    yield f'<text x="4" y="{top + BAND / 2 + 4:.0f}" fill="#5b6b7a">formula</text>'
    wide = width * scale
    for number, step in enumerate(steps):
        past = decided is not None and number > decided
        x = LEFT + step.start * scale
        colour = "#c9d3dc" if past else COLOURS[step.verdict]
        yield (
            f'<rect x="{x + 1:.1f}" y="{top}" width="{max(wide - 2, 1):.1f}" height="{BAND}" rx="3" fill="{colour}">'
            f"<title>{on_a_page(step.text)}</title></rect>"
        )
        if wide > 16:
            yield (
                f'<text x="{x + wide / 2:.1f}" y="{top + BAND / 2 + 4:.0f}" text-anchor="middle" fill="#fff">'
                f"{number}</text>"
            )
