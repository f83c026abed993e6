"""The judge judged: engines with a seeded bug are found out, and the case that shows it is small."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof.plan import nodes
from streamproof.workbench.case import Case
from streamproof.workbench.draw.plans import seeded_case
from streamproof.workbench.evaluator import lifetimes
from streamproof.workbench.evaluator.evaluate import RULES, Rule
from streamproof.workbench.evaluator.values import Row
from streamproof.workbench.judge import Judge
from streamproof.workbench.modules import all_modules
from streamproof.workbench.oracle import EvaluatorOracle
from streamproof.workbench.shrink import shrink
from streamproof.workbench.subjects import OracleSubject

CASES = 3000
MODULES = all_modules()


def _covered_at_start(context: Any, node: nodes.AntiJoin, left: list[Row], right: list[Row]) -> list[Row]:
    """Asks only whether something matches at the start of the left event."""
    match = context.match(node.on)
    return [a for a in left if not any(b[0] <= a[0] < b[1] and match(a, b) for b in right)]


def _touching_members(context: Any, node: nodes.Clip, rows: list[Row], by: list[Row]) -> list[Row]:
    """Lets a start at the very start clip too."""
    match = context.match(node.on)
    found = [(a, [b[0] for b in by if a[0] <= b[0] < a[1] and match(a, b)]) for a in rows]
    return [(a[0], min([a[1], *starts]), a[2]) for a, starts in found if min([a[1], *starts]) > a[0]]


MUTANTS: dict[str, tuple[type[nodes.Node], Rule]] = {
    "coalesce keeps touching apart": (nodes.Coalesce, lambda context, node, rows: lifetimes.distinct(rows)),
    "stitch merges overlaps": (nodes.Stitch, lambda context, node, rows: lifetimes.coalesced(rows)),
    "extend keeps empty lifetimes at one tick": (
        nodes.Extend,
        lambda context, node, rows: [(le, max(le + 1, lifetimes.moved(re, node.by)), p) for le, re, p in rows],
    ),
    "anti join looks at starts only": (nodes.AntiJoin, _covered_at_start),
    "clip at the same start": (nodes.Clip, _touching_members),
}


def judge_with(rules: dict[type[nodes.Node], Rule]) -> Judge:
    """A judge of the evaluator with other rules for some operators."""
    return Judge(OracleSubject(EvaluatorOracle(MODULES, {**RULES, **rules})), EvaluatorOracle(MODULES))


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_operator_is_found_and_shrunk(mutant: str) -> None:
    judge = judge_with(dict([MUTANTS[mutant]]))
    case = next(case for case in map(seeded_case, range(CASES)) if judge.verdict(case).is_found)

    def differs(smaller: Case) -> bool:
        return judge.verdict(smaller).is_found

    small = shrink(case, differs)
    assert differs(small)
    assert len(list(nodes.walk(small.plan))) <= 4
    assert sum(len(stream.events) for stream in small.streams.values()) <= 3


def test_the_evaluator_agrees_with_itself() -> None:
    assert not any(judge_with({}).verdict(seeded_case(seed)).is_found for seed in range(100))
