"""What a run of a suite has seen so far, as plain data that can be kept and added up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from streamproof.workbench import repro
from streamproof.workbench.coverage import Coverage
from streamproof.workbench.repro import Repro
from streamproof.workbench.verdict import Word, worst


@dataclass
class Tally:
    """Of one engine."""

    engine: str
    words: Counter[str] = field(default_factory=Counter)
    laws: Counter[str] = field(default_factory=Counter)  # how many cases put each to the test
    errors: Counter[str] = field(default_factory=Counter)  # both sides say so
    rows: int = 0
    events: int = 0
    seconds: float = 0.0
    coverage: Coverage = field(default_factory=Coverage)
    found: list[Repro] = field(default_factory=list)  # shrunk

    @property
    def cases(self) -> int:
        return sum(self.words.values())

    @property
    def verdict(self) -> Word:
        return worst(word for word, count in self.words.items() if count)  # type: ignore[misc]  # they are words

    def merge(self, other: Tally) -> None:
        """Add what another has seen."""
        self.words += other.words
        self.laws += other.laws
        self.errors += other.errors
        self.rows += other.rows
        self.events += other.events
        self.seconds += other.seconds
        self.coverage.merge(other.coverage)
        self.found += other.found

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "engine": self.engine, "words": dict(self.words), "laws": dict(self.laws), "errors": dict(self.errors),
            "rows": self.rows, "events": self.events, "seconds": self.seconds, "cases": self.coverage.cases,
            "coverage": dict(self.coverage.counts), "found": [repro.write(one) for one in self.found],
        }  # fmt: skip

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Tally:
        """The inverse of `as_dict`."""
        words, laws, errors = (Counter(data[name]) for name in ("words", "laws", "errors"))
        coverage = Coverage(data["cases"], Counter(data["coverage"]))
        found = [repro.read(one) for one in data["found"]]
        numbers = data["rows"], data["events"], data["seconds"]
        return Tally(data["engine"], words, laws, errors, *numbers, coverage, found)
