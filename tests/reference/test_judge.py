"""The judge judged: engines with a seeded bug are found out, and the case that shows it is small."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof.plan import nodes
from streamproof.workbench.shrink import shrink
from tests.reference import lifetimes
from tests.reference.engine import ReferenceEngine
from tests.reference.evaluator import Rule
from tests.reference.judge import judge
from tests.reference.random_cases import Case, seeded_case
from tests.reference.values import Row

CASES = 3000


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


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_operator_is_found_and_shrunk(mutant: str) -> None:
    engine = ReferenceEngine(dict([MUTANTS[mutant]]))
    case = next(case for case in map(seeded_case, range(CASES)) if judge(case, engine).agrees is False)

    def differs(smaller: Case) -> bool:
        return judge(smaller, engine).agrees is False

    small = shrink(case, differs)
    assert differs(small)
    assert len(list(nodes.walk(small.plan))) <= 4
    assert sum(len(stream.events) for stream in small.streams.values()) <= 3


def test_the_evaluator_agrees_with_itself() -> None:
    assert all(judge(seeded_case(seed), ReferenceEngine()).agrees is not False for seed in range(100))
