"""Results as small self-contained HTML, for notebooks: a timeline and a table. Every text from data is escaped."""

from __future__ import annotations

from streamproof.errors import on_a_page
from streamproof.events.history import History, Row
from streamproof.events.notation import show_payload
from streamproof.events.time import show_moment
from streamproof.pictures.timeline import Bar, Lane, Timeline

ROWS = 20  # of the table and of the timeline


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
    return f"<div><b>{on_a_page(title)}</b>{_picture(title, rows, history)}{_table(rows, history)}{more}{unfold}</div>"


def _picture(title: str, rows: list[Row], history: History) -> str:
    bars = tuple(Bar(row.le, row.re, show_payload(row.payload)) for row in rows)
    return Timeline(title, (Lane("", bars),), unit=history.schema.unit).svg() if bars else ""


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
