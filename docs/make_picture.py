"""Draws docs/picture.svg: a swarm of earthquakes, hour-long lifetimes above and how many are alive below.

python docs/make_picture.py
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import streamproof as sp

HERE = Path(__file__).parent
BOX = "cast(floor(latitude / 0.9) as int64) = 37 and cast(floor(longitude / 0.9) as int64) = -130"
FROM, TO = (int(datetime(2021, 4, 27, hour, tzinfo=UTC).timestamp() * 1000) for hour in (7, 10))
LEFT, RIGHT, TOP, ROW = 64, 836, 74, 11
CHART = 130  # height of the lower part
MANY = 8


def main() -> None:
    quakes = sp.read(
        HERE.parent / "examples/earthquakes.csv", mapping=sp.ColumnMapping(start="time", duration="1h", unit="ms")
    )
    box = sp.source("quakes").where(BOX)
    shown = _run(box.select("mag"), quakes)
    alive = _run(box.snapshot().aggregate(alive=sp.count()), quakes)
    (HERE / "picture.svg").write_text(draw(shown, alive), encoding="utf-8")


def _run(stream: sp.Stream, quakes: object) -> list[tuple[int, int, dict[str, object]]]:
    """The rows that touch the hours shown."""
    history = stream.on("duckdb").run({"quakes": quakes}).history
    return [tuple(row) for row in history.to_rows() if row.re > FROM and row.le < TO]


def draw(shown: list[tuple[int, int, dict[str, object]]], alive: list[tuple[int, int, dict[str, object]]]) -> str:
    floor = TOP + len(shown) * ROW + 40 + CHART
    height = floor + 42
    most = max(int(payload["alive"]) for _, _, payload in alive)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}" font-family="system-ui, sans-serif">',
        "<title>A swarm of earthquakes: hour-long lifetimes, and how many are alive at once</title>",
        f'<rect width="900" height="{height}" rx="10" fill="#fbfcfc" stroke="#cfd8d8"/>',
        _text(
            24,
            34,
            "Earthquakes in one box of about 100 km, 27 April 2021. Each lives for an hour.",
            size=17,
            weight=600,
        ),
        _text(
            24, 56, 'quakes.group_by("north", "east").snapshot().aggregate(alive=count())', mono=True, fill="#00796b"
        ),
    ]
    for n, (le, re, _) in enumerate(shown):
        y = TOP + n * ROW
        parts.append(f'<rect x="{_x(le)}" y="{y}" width="{_x(re) - _x(le):.1f}" height="7" rx="2" fill="#4db6ac"/>')
    parts += [_grid(floor - CHART * count / most, count) for count in (MANY, most)]
    parts += [_bar(row, floor, most) for row in alive]
    parts.append(f'<path d="M{LEFT} {floor}H{RIGHT}" stroke="#607d8b"/>')
    parts += [_hour(step, floor) for step in range(7)]
    parts.append(_text(RIGHT, floor + 34, f"dark: at least {MANY} alive at once", size=12, anchor="end"))
    return "\n".join([*parts, "</svg>", ""])


def _x(tick: int) -> float:
    inside = min(max(tick, FROM), TO)
    return round(LEFT + (RIGHT - LEFT) * (inside - FROM) / (TO - FROM), 1)


def _bar(row: tuple[int, int, dict[str, object]], floor: int, most: int) -> str:
    le, re, payload = row
    count = int(payload["alive"])
    high = round(CHART * count / most, 1)
    fill = "#00695c" if count >= MANY else "#b2dfdb"
    return f'<rect x="{_x(le)}" y="{floor - high:.1f}" width="{_x(re) - _x(le):.1f}" height="{high}" fill="{fill}"/>'


def _grid(y: float, count: int) -> str:
    line = f'<path d="M{LEFT} {y:.1f}H{RIGHT}" stroke="#cfd8d8" stroke-dasharray="3 3"/>'
    return line + _text(LEFT - 8, y + 4, str(count), size=12, anchor="end")


def _hour(step: int, floor: int) -> str:
    """A label under the axis, every half hour."""
    tick = FROM + step * (TO - FROM) // 6
    moment = datetime.fromtimestamp(tick / 1000, UTC)
    return _text(_x(tick), floor + 17, f"{moment:%H:%M}", size=12, anchor="middle")


def _text(
    x: float, y: float, text: str, *, size: int = 14, anchor: str = "start", weight: int = 400, mono: bool = False,
    fill: str = "#263238",
) -> str:  # fmt: skip
    font = ' font-family="ui-monospace, monospace"' if mono else ""
    shown = text.replace("&", "&amp;").replace("<", "&lt;")
    style = f'font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" fill="{fill}"{font}'
    return f'<text x="{x}" y="{y:.1f}" {style}>{shown}</text>'


if __name__ == "__main__":
    main()
