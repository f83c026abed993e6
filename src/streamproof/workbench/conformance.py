"""Conformance: one call for the author of an engine or of a language, and everything the workbench knows is tried.

    def test_my_engine():
        conformance(MyEngine(), suite="smoke").require()

>>> from streamproof.engines.base import engine
>>> conformance(engine("duckdb", threads=1), cases=4).verdict
'holds'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from streamproof.engines.base import Engine
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.event_nodes import NODES
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.workbench.bench import open_bench
from streamproof.workbench.case import Case
from streamproof.workbench.concretise import concretise
from streamproof.workbench.repro import Repro, shown_rows
from streamproof.workbench.results import EngineResult
from streamproof.workbench.runner import count
from streamproof.workbench.suite import Suite, load_suite
from streamproof.workbench.verdict import Word


class Language(Protocol):
    """What a language offers: one file with two functions."""

    def dumps(self, plan: Plan, /) -> str: ...

    def loads(self, text: str, /) -> Plan: ...


@dataclass(frozen=True)
class Conformance:
    """What came of it."""

    tally: EngineResult
    refused: tuple[str, ...] = ()  # nodes that the engine says it does not do

    @property
    def verdict(self) -> Word:
        return self.tally.verdict

    @property
    def found(self) -> list[Repro]:
        return self.tally.found

    def require(self) -> None:
        """Fail with the first difference, shrunk, if there is one."""
        if self.found:
            one = self.found[0]
            lines = [one.verdict.text, "expected:", *shown_rows(one.verdict.expected), "found:"]
            raise AssertionError("\n".join([*lines, *shown_rows(one.verdict.actual), f"plan: {one.case.plan}"]))

    def __str__(self) -> str:
        words = ", ".join(f"{number} {word}" for word, number in self.tally.words.items())
        missing = f"; does not do {', '.join(self.refused)}" if self.refused else ""
        return f"{self.tally.engine}: {words or 'nothing tried'}{missing}"


def conformance(
    engine: Engine,
    *,
    suite: str | Suite = "smoke",
    cases: int | None = None,
    seed: int | None = None,
    oracle: str = "duckdb",
    dsn: str | None = None,
    shrink_seconds: float = 60.0,
) -> Conformance:
    """An engine against the oracle: every scenario of a suite, over whatever of it the engine says it supports.

    Nodes that its ``supports()`` refuses are left out and listed; what it accepts must be right.
    """
    chosen = load_suite(suite) if isinstance(suite, str) else suite
    refused = tuple(node.__name__ for node in NODES if engine.supports().get(node.__name__) is not True)
    tally = EngineResult(engine.name)
    with open_bench([engine], oracle=oracle, dsn=dsn, registry=chosen.modules) as bench:
        judge = bench.judges[engine.name]
        for case in _cases(chosen, cases, seed, refused):
            verdict = judge.verdict(case)
            count(tally, case, verdict, judge.subject.laws)
            tally.coverage.add([case])
            if verdict.is_found:
                small, again = judge.shrunk(case, verdict, seconds=shrink_seconds)
                tally.found.append(Repro(small, again, engine.name, oracle, chosen.name))
                break
    return Conformance(tally, refused)


def _cases(suite: Suite, wanted: int | None, seed: int | None, refused: tuple[str, ...]) -> list[Case]:
    each = max(1, -(-(suite.cases if wanted is None else wanted) // len(suite.scenarios)))
    found: list[Case] = []
    for intent in suite.scenarios:
        made = concretise(intent, each, seed=suite.seed if seed is None else seed, registry=suite.modules)
        found += [case for case in made if not any(type(node).__name__ in refused for node in nodes.walk(case.plan))]
    return found[: wanted or None]


def language_conformance(
    language: Language,
    *,
    cases: int = 300,
    seed: int = 1,
    skip: Callable[[Plan], bool] = lambda plan: False,
    registry: Registry | None = None,
) -> list[Case]:
    """A language: plans of every operator, printed and read back. The cases whose plan is not the same afterwards.

    >>> from streamproof.language import xml
    >>> language_conformance(xml, cases=40)
    []

    ``skip`` leaves out plans that the language has no words for.
    """
    suite = load_suite("full")
    each = max(1, -(-cases // len(suite.scenarios)))
    wrong = []
    for intent in suite.scenarios:
        for case in concretise(intent, each, seed=seed, streams_per_plan=1, registry=registry or suite.modules):
            if not skip(case.plan) and not _is_same(language, case, registry or suite.modules):
                wrong.append(case)
    return wrong


def _is_same(language: Language, case: Case, registry: Registry) -> bool:
    """Whether the plan that is read back is the plan, and means something."""
    again = language.loads(language.dumps(case.plan))
    return again == case.plan and check(again, case.schemas, registry=registry) is not None
