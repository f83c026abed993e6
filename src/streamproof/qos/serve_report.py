"""A run as a report: bound against observation, as data and as a page that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from streamproof.qos.observed import Observed
from streamproof.qos.server import Registration
from streamproof.qos.serving import Serving

HEADER: Final = ("query", "events", "delay", "bound", "backlog", "bound", "held back", "misses")

_STYLE: Final = """body{font:15px system-ui,sans-serif;max-width:62rem;margin:2rem auto;color:#222}
table{border-collapse:collapse}td,th{padding:.3rem .8rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}.bar{background:#e8e8e8;width:16rem;height:.8rem;position:relative}
.bar i{display:block;height:100%;background:#4c72b0}.late i{background:#c44e52}p.no{color:#b3261e}"""


def row(found: Observed) -> tuple[str, ...]:
    """One query as the table shows it."""
    return (
        found.name,
        f"{found.rows:,}",
        f"{found.max_delay:,.1f} ms",
        f"≤ {found.delay_bound:,.1f} ms",
        f"{found.max_backlog:,}",
        f"≤ {found.backlog_bound:,.0f}",
        f"{found.held_back:,}",
        found.text_of_misses,
    )


def as_dict(serving: Serving, registrations: Sequence[Registration]) -> dict[str, object]:
    """Everything, as ``--json`` prints it."""
    refused = [found.as_dict() for found in registrations if not found.admitted and hasattr(found, "as_dict")]
    return {
        "seconds": round(serving.elapsed, 3),
        "busy_share": round(serving.busy_share, 4),
        "scheduling_share": round(serving.scheduling_share, 4),
        "queries": [{"admitted": True, **found.as_dict()} for found in serving.observed.values()] + refused,
    }


def page(serving: Serving, registrations: Sequence[Registration]) -> str:
    """The run as one HTML page."""
    head = "".join(f"<th>{escape(name)}</th>" for name in (*HEADER, "longest delay of its bound"))
    body = "".join(_html_row(found) for found in serving.observed.values())
    texts = "".join(f"<p{'' if found.admitted else ' class=no'}>{escape(found.text)}</p>" for found in registrations)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>streamproof serve</title><style>{_STYLE}</style>"
        f"<h1>Bound and observation</h1><p>{serving.elapsed:,.1f} s, {serving.busy_share:.1%} of a processor in pushes"
        f", {serving.scheduling_share:.1%} in scheduling.</p><table><tr>{head}</tr>{body}</table>"
        f"<h2>Admission</h2>{texts}</html>\n"
    )


def _html_row(found: Observed) -> str:
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row(found))
    share = min(1.0, found.max_delay / found.delay_bound if found.delay_bound else 0.0)
    late = " late" if found.missed else ""
    return f'<tr>{cells}<td><div class="bar{late}"><i style="width:{share:.1%}"></i></div></td></tr>'
