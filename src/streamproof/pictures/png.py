"""A timeline as PNG, drawn by matplotlib without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from streamproof.events.time import FOREVER
from streamproof.pictures.timeline import Bar, Lane, Timeline, axis_of, bar_text, labels

COLOURS: Final = {
    "input": "#2e90fa", "window": "#98a2b3", "expected": "#12b76a", "actual": "#2e90fa", "wrong": "#d92d20",
}  # fmt: skip


def save_png(picture: Timeline, path: Path) -> None:
    """Write the picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # it is large
    from matplotlib.figure import Figure  # noqa: PLC0415

    axis = axis_of(picture)
    rows = sum(max(1, len(lane.bars)) + bool(lane.ctis) for lane in picture.lanes) + len(picture.lanes)
    figure = Figure(figsize=(9, 0.8 + rows * 0.27), layout="constrained")
    FigureCanvasAgg(figure)
    plot: Any = figure.add_subplot()
    y = 0
    for lane in picture.lanes:
        plot.text(-0.02, y, lane.title, ha="right", va="center", weight="bold", fontsize=9)
        for bar in lane.bars:
            _draw(plot, bar, lane, (axis.at(bar.le), axis.at(bar.re)), y)
            y += 1
        y += 0 if lane.bars else 1
        if lane.ctis:
            plot.plot([axis.at(tick) for tick in lane.ctis], [y] * len(lane.ctis), "^", color="#7a5af8", markersize=6)
            y += 1
        y += 1
    _frame(plot, picture, list(labels(axis)), y)
    figure.savefig(path, format="png", dpi=130)


def _draw(plot: Any, bar: Bar, lane: Lane, ends: tuple[float, float], y: int) -> None:
    colour = COLOURS["wrong" if bar.wrong else lane.tone]
    width = max(ends[1] - ends[0], 0.003)
    plot.barh(y, width, left=ends[0], height=0.55, color=colour, alpha=0.3 if bar.gone else 1.0)
    text = ("▶ " if bar.re == FOREVER else "") + bar_text(bar)
    plot.text(ends[0] + width + 0.01, y, text, va="center", fontsize=8, color=colour if bar.wrong else "#1d2433")


def _frame(plot: Any, picture: Timeline, ticks: list[tuple[float, str]], rows: int) -> None:
    plot.set_ylim(rows, -1)
    plot.set_xlim(0, 1.3)
    plot.set_xticks([place for place, _ in ticks], [label for _, label in ticks], fontsize=8)
    plot.xaxis.tick_top()
    plot.set_yticks([])
    plot.grid(axis="x", alpha=0.3)
    for side in ("left", "right", "bottom", "top"):
        plot.spines[side].set_visible(False)
    plot.set_title(picture.title, fontsize=10)
