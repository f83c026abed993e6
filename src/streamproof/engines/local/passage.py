"""What the tracer tells: an event's way through each operator, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from streamproof.engines.local.watch import Signed
from streamproof.errors import printable


@dataclass(slots=True)
class Change:
    """What one moment did to the output of an operator because of the event."""

    moment: str
    rows: list[Signed]


@dataclass(slots=True)
class Passage:
    """The event's way through one operator."""

    operator: str
    touched: list[str] = field(default_factory=list)  # windows that have the event in them, or are there because of it
    changes: list[Change] = field(default_factory=list)
    added: list[Signed] = field(default_factory=list)  # what is there in the end because of the event
    missing: list[Signed] = field(default_factory=list)  # what would be there in the end without it
    sealed: str | None = None  # the moment after which none of it can change

    def lines(self) -> Iterator[str]:
        yield self.operator
        if self.touched:
            yield f"  touched: {', '.join(self.touched)}"
        for change in self.changes:
            yield f"  {change.moment}"
            yield from (f"    {row}" for row in change.rows)
        if not self.changes:
            yield "  nothing: the event makes no difference here"
            return
        if self.missing:
            yield "  without the event there would be"
            yield from (f"    {str(row).removeprefix('+ ')}" for row in self.missing)
        yield f"  final: sealed by {self.sealed}" if self.sealed else "  not sealed by any CTI: it may still change"

    def to_json(self) -> dict[str, object]:
        return {
            "operator": self.operator,
            "touched": self.touched,
            "changes": [{"moment": c.moment, "rows": [row.to_json() for row in c.rows]} for c in self.changes],
            "added": [row.to_json() for row in self.added],
            "missing": [row.to_json() for row in self.missing],
            "sealed": self.sealed,
        }


@dataclass(slots=True)
class Trace:
    """Where an event came in, and its way through every operator, inputs before readers."""

    event: str
    source: str
    arrivals: list[dict[str, object]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"event {self.event} of {self.source}", *(f"  {text}" for text in self.shown)]
        return printable("\n".join([*lines, *chain.from_iterable(passage.lines() for passage in self.passages)]))

    def to_json(self) -> dict[str, object]:
        operators = [passage.to_json() for passage in self.passages]
        return {"event": self.event, "source": self.source, "arrivals": self.arrivals, "operators": operators}
