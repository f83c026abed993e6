"""What a run of a suite gave: how often what was exercised, what held, and what was found; plain data that adds up.

>>> from streamproof.workbench.draw.plans import seeded_case
>>> seen = Coverage()
>>> seen.add([seeded_case(3)])
>>> seen.cases
1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES
from streamproof.plan.event_nodes import NODES
from streamproof.plan.expr import Apply, Call, Cast, Expr, walk
from streamproof.workbench import repro
from streamproof.workbench.case import Case
from streamproof.workbench.facets import WORDS
from streamproof.workbench.holes import WINDOWS
from streamproof.workbench.repro import Repro
from streamproof.workbench.verdict import Word, worst

SHOWN: Final = ("shape", "duration", "pattern", "liveliness", "disorder", "speculation", "duplicates")
"""The facets that have a table against operators."""


@dataclass
class Coverage:
    """How often each thing, and each pair of things, was in a case."""

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, cases: Sequence[Case]) -> None:
        """Cases of one plan."""
        if not cases:
            return
        self.cases += len(cases)
        things = Counter(dict.fromkeys(things_of(cases[0].plan), len(cases)))
        ops = sorted({node.op for node in nodes.walk(cases[0].plan)} - {"source", "group_input", "ref"})
        for case in cases:
            things.update(f"law|{law}" for law in case.schedule.laws)
            words = [f"{name}={case.factors[name]}" for name in WORDS if name in case.factors]
            things.update(f"facet|{word}" for word in words)
            things.update(f"{op}×{word}" for op in ops for word in words)
        self.counts += things

    def merge(self, other: Coverage) -> None:
        """Add what another has seen."""
        self.cases += other.cases
        self.counts += other.counts

    def section(self, name: str) -> dict[str, int]:
        """All things of one sort: op, aggregate, module, function, law, facet."""
        return {k.partition("|")[2]: n for k, n in sorted(self.counts.items()) if k.startswith(f"{name}|")}

    def table(self, columns: str) -> tuple[list[str], list[tuple[str, list[int]]]]:
        """Operators against kinds of window, or against the words of a facet."""
        heads = list(WINDOWS) if columns == "window" else [str(word) for word in WORDS[columns]]
        keys = heads if columns == "window" else [f"{columns}={word}" for word in heads]
        ops = windowed_ops() if columns == "window" else all_ops()
        return heads, [(op, [self.counts[f"{op}×{key}"] for key in keys]) for op in ops]

    def missing(self) -> list[str]:
        """What no case exercised: operators, windows of operators, aggregates, facets."""
        wanted = [f"op|{op}" for op in all_ops()]
        wanted += [f"{op}×{kind}" for op in windowed_ops() for kind in WINDOWS]
        wanted += [f"aggregate|{fn}" for fn in AGGREGATES]
        wanted += [f"facet|{name}={word}" for name, words in WORDS.items() for word in words]
        return [thing.replace("op|", "").replace("|", " ") for thing in wanted if not self.counts[thing]]


def all_ops() -> list[str]:
    """Every operator but the leaves."""
    return [node.op for node in NODES if node.op not in ("source", "group_input", "ref", "eql")]


def windowed_ops() -> list[str]:
    return [node.op for node in NODES if issubclass(node, nodes.WindowNode)]


def things_of(plan: nodes.Plan) -> Iterator[str]:
    """What a plan exercises, each thing once or more."""
    for node in nodes.walk(plan):
        yield f"op|{node.op}"
        window = getattr(node, "window", None)
        if window is not None:
            yield f"{node.op}×{window.kind}"
        yield from (f"aggregate|{agg.fn}" for _, agg in getattr(node, "aggs", ()))
        if isinstance(node, nodes.Uda | nodes.Udo):
            yield f"module|{node.op} {node.fn} clip={node.clip}"
        for expr in expressions_of(node):
            yield from functions_of(expr)


def expressions_of(node: nodes.Node) -> Iterator[Expr]:
    """The expressions of a node."""
    for name in ("expr", "on", "arg", "dur"):
        value: Any = getattr(node, name, None)
        if value is not None and not isinstance(value, int | str):
            yield value
    for name in ("exprs", "select", "map"):
        yield from (expr for _, expr in getattr(node, name, None) or ())
    yield from (agg.arg for _, agg in getattr(node, "aggs", ()) if agg.arg is not None)
    if isinstance(node, nodes.TopK):
        yield from (expr for expr, _ in node.by)


def functions_of(expr: Expr) -> Iterator[str]:
    """The functions that an expression calls."""
    for part in walk(expr):
        if isinstance(part, Call | Apply):
            yield f"function|{part.fn}"
        elif isinstance(part, Cast):
            yield f"function|cast to {part.to.kind}"


@dataclass
class EngineResult:
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

    def merge(self, other: EngineResult) -> None:
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
    def from_dict(data: dict[str, Any]) -> EngineResult:
        """The inverse of `as_dict`."""
        words, laws, errors = (Counter(data[name]) for name in ("words", "laws", "errors"))
        coverage = Coverage(data["cases"], Counter(data["coverage"]))
        found = [repro.read(one) for one in data["found"]]
        numbers = data["rows"], data["events"], data["seconds"]
        return EngineResult(data["engine"], words, laws, errors, *numbers, coverage, found)
