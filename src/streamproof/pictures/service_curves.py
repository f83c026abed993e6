"""Arrival and service curves of queries with their bounds, and how often policies miss, as SVG, PNG or PDF."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamproof.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, float]]
ENDINGS: Final = (".svg", ".png", ".pdf")
ARRIVAL, SERVICE, QUIET = "#c44e52", "#4c72b0", "#888888"


@dataclass(frozen=True)
class CurvePair:
    """What may come and what is served, as points, with the bounds between them."""

    name: str
    arrival: Points
    service: Points
    delay: float
    backlog: float
    note: str = ""


def draw_curves(
    pairs: Sequence[CurvePair],
    path: Path,
    *,
    misses: Mapping[str, Mapping[str, float]] | None = None,
    overwrite: bool = True,
) -> None:
    """One panel per query, and one with the share of missed deadlines by policy and query."""
    if path.suffix not in ENDINGS:
        raise InputError(f"cannot draw into {path}", at=str(path), fix=f"give a name that ends in {', '.join(ENDINGS)}")
    if os.path.lexists(path) and not overwrite:
        raise InputError(f"{path} exists", at=str(path), fix="choose another name, or --overwrite")
    figure, axes = _figure(len(pairs) + bool(misses))
    for pair, axis in zip(pairs, axes, strict=False):
        _draw_pair(axis, pair)
    if misses:
        _draw_misses(axes[len(pairs)], misses)
    _save(figure, path)


def _figure(panels: int) -> tuple[Any, list[Axes]]:
    from matplotlib.figure import Figure  # noqa: PLC0415  # half a second that only pictures cost

    columns = min(3, max(1, panels))
    rows = -(-panels // columns)
    figure = Figure(figsize=(4.6 * columns, 3.4 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    axes = [axis for row in grid for axis in row]
    for axis in axes[panels:]:
        axis.set_visible(False)
    return figure, axes[:panels]


def _draw_pair(axis: Axes, pair: CurvePair) -> None:
    axis.plot(*zip(*pair.arrival, strict=True), color=ARRIVAL, label="arrival α")
    axis.plot(*zip(*pair.service, strict=True), color=SERVICE, label="service β")
    axis.set_title(f"{pair.name}: delay ≤ {pair.delay:.4g} ms, backlog ≤ {pair.backlog:.4g}", fontsize=9)
    axis.set_xlabel(f"ms{'  ' + pair.note if pair.note else ''}", fontsize=8)
    axis.set_ylabel("tasks", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)


def _draw_misses(axis: Axes, misses: Mapping[str, Mapping[str, float]]) -> None:
    """Bars side by side: one group per policy, one bar per query."""
    queries = list(next(iter(misses.values())))
    width = 0.8 / max(1, len(queries))
    for number, query in enumerate(queries):
        places = [position + number * width for position in range(len(misses))]
        axis.bar(places, [found[query] for found in misses.values()], width, label=query)
    axis.set_xticks([position + 0.4 - width / 2 for position in range(len(misses))], list(misses), fontsize=8)
    axis.set_title("missed deadlines, %", fontsize=9)
    axis.tick_params(labelsize=8)
    axis.legend(fontsize=8)


def draw_lines(
    path: Path,
    series: Mapping[str, Points],
    *,
    title: str,
    across: str,
    up: str,
    marks: Mapping[str, float] | None = None,
) -> None:
    """Lines over one axis, for instance a bound and what was observed over the rate of an input."""
    figure, (axis,) = _figure(1)
    for name, points in series.items():
        axis.plot(*zip(*points, strict=True), marker=".", label=name)
    for name, place in (marks or {}).items():
        axis.axvline(place, color=QUIET, linestyle="--")
        axis.annotate(name, (place, axis.get_ylim()[1]), fontsize=7, color=QUIET, ha="right", va="top", rotation=90)
    axis.set_title(title, fontsize=9)
    axis.set_xlabel(across, fontsize=8)
    axis.set_ylabel(up, fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "streamproof", "font.family": "DejaVu Sans"}):  # the same bytes every time
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
        try:
            figure.savefig(path, metadata=metadata)
        except OSError as error:
            raise InputError(
                f"cannot write {path.name}: {error.strerror}",
                at=str(path),
                fix="give the path of a file in an existing folder",
            ) from None
