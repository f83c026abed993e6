"""What the predicates of a formula said of a letter: the reasons in a report."""

from __future__ import annotations

from typing import Any

from streamproof.properties.formula import Constant, Consume, Formula, Next, Not, Now, Release, Until
from streamproof.properties.matchers import Match
from streamproof.properties.text import show

MOST = 6  # reasons in a report


def said(f: Formula, letter: Any) -> list[str]:
    """One line for every predicate that looks at the letter, the unwelcome ones first."""
    lines: list[tuple[bool, str]] = []
    stack: list[tuple[Formula, bool]] = [(f, True)]
    seen: set[tuple[Formula, bool]] = set()
    while stack:
        current, wanted = stack.pop()
        if (current, wanted) in seen or isinstance(current, Constant | Next):
            continue
        seen.add((current, wanted))
        if isinstance(current, Now | Consume):
            lines += _asked(current, letter, wanted=wanted)
            continue
        turned = not wanted if isinstance(current, Not) else wanted
        parts = (
            current.operands[1:2] if isinstance(current, Until | Release) and current.bound == 1 else current.operands
        )
        stack += [(part, turned) for part in reversed(parts) if isinstance(part, Formula)]
    return [text for _, text in sorted(lines, key=lambda line: line[0])][:MOST]


def _asked(f: Formula, letter: Any, *, wanted: bool) -> list[tuple[bool, str]]:
    if isinstance(f, Consume):
        return []
    predicate, _, call = f.operands
    try:
        value = call(predicate, letter)
    except Exception as error:  # shown, not hidden
        return [(False, f"{show(f)}: raised {type(error).__name__}: {error}")]
    good = bool(value) == wanted if isinstance(value, bool | Match) else False
    return [(good, f"{show(f)}: {value if isinstance(value, Match) else str(value).lower()}")]
