"""A timeline as SVG, in the colours of the page that it stands in."""

from __future__ import annotations

from typing import Final

from streamproof.errors import on_a_page
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.pictures.timeline import Axis, Bar, Lane, Timeline, axis_of, bar_text, labels

WIDTH: Final = 760
LEFT: Final = 130  # where the time axis begins
RIGHT: Final = 180  # room for what is written beside bars
ROW: Final = 22
STYLE: Final = (
    ".tl{font:12px system-ui,sans-serif;color:var(--ink,#1d2433)}"
    ".tl text{fill:var(--ink,#1d2433)}.tl .dim{fill:var(--dim,#667085)}"
    ".tl .grid{stroke:var(--line,#d0d5dd);stroke-width:1}.tl .cti{fill:var(--cti,#7a5af8)}"
    ".tl .input{fill:var(--input,#2e90fa)}.tl .window{fill:var(--window,#98a2b3)}"
    ".tl .expected{fill:var(--good,#12b76a)}.tl .actual{fill:var(--input,#2e90fa)}"
    ".tl .wrong{fill:var(--bad,#d92d20)}.tl .gone{fill-opacity:.25;stroke-dasharray:3 2;stroke:currentColor}"
    ".tl .mark{fill:var(--bad,#d92d20);font-weight:600}"
)


def as_svg(picture: Timeline) -> str:
    """The picture as one element; it needs nothing from outside."""
    axis = axis_of(picture)
    rows = sum(max(1, len(lane.bars)) + bool(lane.ctis) for lane in picture.lanes)
    height = 44 + rows * ROW + len(picture.lanes) * ROW // 2
    parts = [_grid(axis, height), *_lanes(picture, axis)]
    title = on_a_page(picture.note or picture.title)
    return (
        f'<svg class="tl" role="img" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" '
        f'style="max-width:100%;height:auto"><title>{title}</title><style>{STYLE}</style>{"".join(parts)}</svg>'
    )


def _x(axis: Axis, tick: int) -> float:
    return round(LEFT + axis.at(tick) * (WIDTH - LEFT - RIGHT), 1)


def _grid(axis: Axis, height: int) -> str:
    lines = []
    for place, label in labels(axis, apart=0.035):
        x = round(LEFT + place * (WIDTH - LEFT - RIGHT), 1)
        lines.append(f'<line class="grid" x1="{x}" y1="26" x2="{x}" y2="{height - 6}"/>')
        lines.append(f'<text class="dim" x="{x}" y="18" text-anchor="middle">{on_a_page(label)}</text>')
    return "".join(lines)


def _lanes(picture: Timeline, axis: Axis) -> list[str]:
    parts, y = [], 34
    for lane in picture.lanes:
        parts.append(f'<text x="8" y="{y + 14}" font-weight="600">{on_a_page(lane.title)}</text>')
        for bar in lane.bars:
            parts.append(_bar(bar, lane, axis, y))
            y += ROW
        if not lane.bars:
            parts.append(f'<text class="dim" x="{LEFT}" y="{y + 14}">nothing</text>')
            y += ROW
        if lane.ctis:
            parts.append(_ctis(lane, axis, y))
            y += ROW
        y += ROW // 2
    return parts


def _bar(bar: Bar, lane: Lane, axis: Axis, y: int) -> str:
    x, end = _x(axis, bar.le), _x(axis, bar.re)
    tone = "wrong" if bar.wrong else lane.tone
    gone = " gone" if bar.gone else ""
    arrows = ("◀" if bar.le == BEGINNING else "") + ("▶" if bar.re == FOREVER else "")
    shape = f'<rect class="{tone}{gone}" x="{x}" y="{y + 4}" width="{max(end - x, 2):.1f}" height="12" rx="3"/>'
    mark = ' class="mark"' if bar.wrong else ""
    text = f'<text{mark} x="{end + 6}" y="{y + 14}">{on_a_page((arrows + " " + bar_text(bar)).strip())}</text>'
    return shape + text


def _ctis(lane: Lane, axis: Axis, y: int) -> str:
    marks = [f'<text class="dim" x="{LEFT - 8}" y="{y + 13}" text-anchor="end">CTI</text>']
    for tick in lane.ctis:
        x = _x(axis, tick)
        marks.append(f'<path class="cti" d="M{x} {y + 3}l5 10h-10z"/>')
    return "".join(marks)
