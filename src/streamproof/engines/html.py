"""Results as small self-contained HTML, for notebooks: a timeline and a table. Every text from data is escaped."""

from __future__ import annotations

from streamproof.errors import on_a_page
from streamproof.events.history import History, Row
from streamproof.events.time import BEGINNING, FOREVER, show_moment

ROWS = 20  # of the table and of the timeline
WIDTH, LINE = 640, 18
BAR = "#4c78a8"


def query_page(title: str, history: History, details: str = "") -> str:
    """A title, the first rows as a timeline and as a table, and details to unfold.

    >>> from streamproof.events.schema import Schema
    >>> page = query_page("a < b", History.from_rows(Schema.of({"v": "int64"}), [(1, 5, {"v": 7})]))
    >>> "a &lt; b" in page, "<svg" in page, "<td>7</td>" in page
    (True, True, True)
    """
    rows = History(history.schema, history.rows.slice(0, ROWS)).to_rows()[:ROWS]
    more = f"<p>… {len(history) - len(rows):,} more</p>" if len(history) > len(rows) else ""
    unfold = f"<details><summary>metrics</summary><pre>{on_a_page(details)}</pre></details>" if details else ""
    return f"<div><b>{on_a_page(title)}</b>{_timeline(rows)}{_table(rows, history)}{more}{unfold}</div>"


def _table(rows: list[Row], history: History) -> str:
    names = history.schema.names
    head = "".join(f"<th>{on_a_page(name)}</th>" for name in ("from", "to", *names))
    body = "".join(
        f"<tr>{''.join(f'<td>{on_a_page(cell)}</td>' for cell in _cells(row, history))}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Row, history: History) -> list[str]:
    times = [show_moment(tick, history.schema.unit) for tick in (row.le, row.re)]
    return times + ["" if row.payload[name] is None else str(row.payload[name]) for name in history.schema.names]


def _timeline(rows: list[Row]) -> str:
    """A bar for every event; those without an end run out of the picture."""
    ticks = [tick for row in rows for tick in (row.le, row.re) if BEGINNING < tick < FOREVER]
    if not ticks:
        return ""
    low, high = min(ticks), max(*ticks, min(ticks) + 1)
    bars = []
    for number, row in enumerate(rows):
        start, end = (_place(tick, low, high) for tick in (row.le, row.re))
        label = on_a_page(", ".join(str(value) for value in row.payload.values())[:60])
        bars.append(
            f'<rect x="{start:.1f}" y="{number * LINE + 3}" width="{max(end - start, 2):.1f}" height="{LINE - 6}" '
            f'fill="{BAR}"><title>{label}</title></rect>'
        )
    height = len(rows) * LINE
    return f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">{"".join(bars)}</svg>'


def _place(tick: int, low: int, high: int) -> float:
    """Where an instant lies, from left to right."""
    if tick <= BEGINNING:
        return 0.0
    if tick >= FOREVER:
        return float(WIDTH)
    return 10 + (tick - low) / (high - low) * (WIDTH - 30)
