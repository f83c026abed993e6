"""A timeline as SVG, in the colours of the page that it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streamproof.errors import on_a_page
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.pictures.timeline import Bar, Lane, Timeline, axis_of, bar_text, labels

WIDTH: Final = 760
LEFT: Final = 130  # where the time axis begins, beside the titles of lanes
UNTITLED: Final = 84  # where it begins if there are none
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
    return _Drawing(picture).svg()


class _Drawing:
    """Rows of lanes below each other, over one axis."""

    def __init__(self, picture: Timeline) -> None:
        self._picture, self._axis = picture, axis_of(picture)
        self._left = LEFT if any(lane.title for lane in picture.lanes) else UNTITLED

    def svg(self) -> str:
        lanes = self._picture.lanes
        rows = sum(max(1, len(lane.bars)) + bool(lane.ctis) for lane in lanes)
        height = 44 + rows * ROW + len(lanes) * ROW // 2
        title = on_a_page(self._picture.note or self._picture.title)
        return (
            f'<svg class="tl" role="img" viewBox="0 0 {WIDTH} {height}" xmlns="http://www.w3.org/2000/svg" '
            f'style="max-width:100%;height:auto"><title>{title}</title><style>{STYLE}</style>'
            f"{''.join([*self._grid(height), *self._lanes()])}</svg>"
        )

    def _x(self, place: float) -> float:
        return round(self._left + place * (WIDTH - self._left - RIGHT), 1)

    def _grid(self, height: int) -> Iterator[str]:
        for place, label in labels(self._axis):
            x = self._x(place)
            yield f'<line class="grid" x1="{x}" y1="26" x2="{x}" y2="{height - 6}"/>'
            yield f'<text class="dim" x="{x}" y="18" text-anchor="middle">{on_a_page(label)}</text>'

    def _lanes(self) -> Iterator[str]:
        y = 34
        for lane in self._picture.lanes:
            yield f'<text x="8" y="{y + 14}" font-weight="600">{on_a_page(lane.title)}</text>'
            for bar in lane.bars:
                yield self._bar(bar, lane, y)
                y += ROW
            if not lane.bars:
                yield f'<text class="dim" x="{self._left}" y="{y + 14}">nothing</text>'
                y += ROW
            if lane.ctis:
                yield from self._ctis(lane, y)
                y += ROW
            y += ROW // 2

    def _bar(self, bar: Bar, lane: Lane, y: int) -> str:
        x, end = (self._x(self._axis.at(tick)) for tick in (bar.le, bar.re))
        tone, gone = "wrong" if bar.wrong else lane.tone, " gone" if bar.gone else ""
        arrows = ("◀" if bar.le == BEGINNING else "") + ("▶" if bar.re == FOREVER else "")
        mark = ' class="mark"' if bar.wrong else ""
        return (
            f'<rect class="{tone}{gone}" x="{x}" y="{y + 4}" width="{max(end - x, 2):.1f}" height="12" rx="3"/>'
            f'<text{mark} x="{end + 6}" y="{y + 14}">{on_a_page((arrows + " " + bar_text(bar)).strip())}</text>'
        )

    def _ctis(self, lane: Lane, y: int) -> Iterator[str]:
        yield f'<text class="dim" x="{self._left - 8}" y="{y + 13}" text-anchor="end">CTI</text>'
        for tick in lane.ctis:
            yield f'<path class="cti" d="M{self._x(self._axis.at(tick))} {y + 3}l5 10h-10z"/>'
