"""Bound against observation: delays, backlogs and misses of every query, each miss with the fault that made it.

A guarantee holds as long as inputs keep their arrival curves and pushes their costs. So a miss is the fault of the
*input* (its rows were held back because more came than declared), of the *cost* (some push since the machine was last
idle took longer than declared), or else of the *scheduler*.

A run is a report as data, and as a page that needs nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from streamproof.qos.server import Registration
    from streamproof.qos.serving import Serving


Fault = Literal["input", "cost", "scheduler"]
FAULTS: Final[tuple[Fault, ...]] = ("input", "cost", "scheduler")
KEPT: Final = 200_000  # delays that are kept for quantiles, per query


@dataclass
class Observed:
    """What one query got so far. Times are milliseconds; tasks are pushes, rows are events."""

    name: str
    delay_bound: float
    backlog_bound: float
    rows: int = 0
    pushes: int = 0
    backlog: int = 0  # rows that wait now
    max_backlog: int = 0
    max_delay: float = 0.0
    held_back: int = 0  # rows that came faster than declared
    overruns: int = 0  # pushes that took longer than declared
    worst_push: float = 0.0
    stolen: float = 0.0  # ms in which a push did not have the processor
    misses: dict[Fault, int] = field(default_factory=lambda: dict.fromkeys(FAULTS, 0))
    _delays: list[npt.NDArray[np.float64]] = field(default_factory=list)
    _kept: int = 0

    def wait(self, rows: int) -> None:
        """So many rows wait now."""
        self.backlog = rows
        self.max_backlog = max(self.max_backlog, rows)

    def done(self, delays: npt.NDArray[np.float64], fault: Fault) -> int:
        """Note rows that are done after these delays; returns how many missed the bound, by that fault."""
        self.rows += len(delays)
        late = int(np.count_nonzero(delays > self.delay_bound))
        self.misses[fault] += late
        self.max_delay = max(self.max_delay, float(delays.max(initial=0.0)))
        if self._kept < KEPT:
            self._delays.append(delays)
            self._kept += len(delays)
        return late

    def quantile(self, share: float) -> float:
        """The delay that so many rows do not exceed."""
        return float(np.quantile(np.concatenate(self._delays), share)) if self._kept else 0.0

    @property
    def missed(self) -> int:
        return sum(self.misses.values())

    @property
    def text_of_misses(self) -> str:
        """How many rows missed, and whose fault it was."""
        found = [f"{count:,} {fault}" for fault, count in self.misses.items() if count]
        return ", ".join(found) or "none"

    def as_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "delay_bound_ms": round(self.delay_bound, 3),
            "max_delay_ms": round(self.max_delay, 3),
            "p50_delay_ms": round(self.quantile(0.5), 3),
            "p99_delay_ms": round(self.quantile(0.99), 3),
            "backlog_bound": round(self.backlog_bound, 3),
            "max_backlog": self.max_backlog,
            "rows": self.rows,
            "pushes": self.pushes,
            "held_back": self.held_back,
            "overruns": self.overruns,
            "worst_push_ms": round(self.worst_push, 3),
            "stolen_ms": round(self.stolen, 3),
            "misses": self.missed,
            "faults": dict(self.misses),
        }


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
