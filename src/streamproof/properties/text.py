"""Formulas as people read them; a predicate shows its label, its name, or the text of its lambda.

>>> from streamproof.properties.operators import eventually, now
>>> show(now(lambda i, o: len(o) > 0) & eventually(now(bool, "alarm")).within(2))
'len(o) > 0 & eventually(alarm).within(2)'
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from streamproof.properties.formula import (
    And,
    Bounded,
    Constant,
    Consume,
    Formula,
    Implies,
    Next,
    Not,
    Now,
    Or,
    Release,
    Until,
    Verdict,
)
from streamproof.properties.matchers import Match

DEEPEST, WIDEST = 8, 4  # what is deeper or wider is shown as …
_CONSTANTS = {Verdict.HOLDS: "true", Verdict.FAILS: "false", Verdict.UNDECIDED: "unknown"}


def show(f: Formula, depth: int = 0) -> str:
    """The formula as text, shortened where it is deep or wide."""
    if depth > DEEPEST:
        return "…"
    match f:
        case Constant():
            return _CONSTANTS[f.verdict]
        case Now(operands=(predicate, label, _)):
            return label or name_of(predicate)
        case Consume(operands=(function, _)):
            return f"consume({name_of(function)})"
        case Not(operands=(inner,)):
            return f"~{_inside(inner, depth)}"
        case And():
            return _joined(f, " & ", depth)
        case Or():
            return _joined(f, " | ", depth)
        case Implies(operands=(left, right)):
            return f"{_inside(left, depth)} → {_inside(right, depth)}"
        case Next(operands=(n, inner)):
            return f"next({n}, {show(inner, depth + 1)})" if n > 1 else f"next({show(inner, depth + 1)})"
        case _:
            return _bounded(f, depth)


def _bounded(f: Formula, depth: int) -> str:
    assert isinstance(f, Bounded)
    bound = "" if f.bound is None else f".{f.word}({f.bound})"
    if isinstance(f, Until | Release):
        left, right = f.operands[:2]
        word = "until" if isinstance(f, Until) else "release"
        return f"{word}({show(left, depth + 1)}, {show(right, depth + 1)}){bound}"
    return f"{type(f).__name__.lower()}({show(f.operands[0], depth + 1)}){bound}"


def _joined(f: Formula, word: str, depth: int) -> str:
    shown = [_inside(part, depth) for part in f.operands[:WIDEST]]
    if len(f.operands) > WIDEST:
        shown.append(f"… {len(f.operands) - WIDEST} more")
    return word.join(shown)


def _inside(f: Formula, depth: int) -> str:
    """As part of a connective: in parentheses where needed."""
    text = show(f, depth + 1)
    return f"({text})" if isinstance(f, And | Or | Implies) else text


def name_of(function: Callable[..., Any]) -> str:
    """What to call a function: its name, or for a lambda its body."""
    name = getattr(function, "__name__", None)
    if name is None:
        return getattr(getattr(function, "func", None), "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    if name != "<lambda>" or code is None:
        return str(name)
    return _lambda_text(code) or "<lambda>"


@lru_cache(maxsize=1024)
def _lambda_text(code: Any) -> str | None:
    """The body of a lambda in its file; where a line holds several, the one whose columns match."""
    lambdas = [node for node in _lambdas(code.co_filename) if node.body.lineno >= code.co_firstlineno]
    wanted = {(line, column) for line, _, column, _ in code.co_positions() if line is not None and column is not None}
    for node in lambdas:
        start = (node.body.lineno, node.body.col_offset)
        names = [argument.arg for argument in node.args.args]
        if node.lineno == code.co_firstlineno and start in wanted and names == list(code.co_varnames[: len(names)]):
            text = " ".join(ast.unparse(node.body).split())
            return (text if len(text) <= 70 else f"{text[:67]}…").replace("'", '"')
    return None


@lru_cache(maxsize=64)
def _lambdas(file: str) -> tuple[ast.Lambda, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Lambda))


MOST = 6  # reasons in a report


def said(f: Formula, step: Any) -> list[str]:
    """One line for every predicate that looks at the step, the unwelcome ones first."""
    lines: list[tuple[bool, str]] = []
    stack: list[tuple[Formula, bool]] = [(f, True)]
    seen: set[tuple[Formula, bool]] = set()
    while stack:
        current, wanted = stack.pop()
        if (current, wanted) in seen or isinstance(current, Constant | Next):
            continue
        seen.add((current, wanted))
        if isinstance(current, Now | Consume):
            lines += _asked(current, step, wanted=wanted)
            continue
        turned = not wanted if isinstance(current, Not) else wanted
        parts = (
            current.operands[1:2] if isinstance(current, Until | Release) and current.bound == 1 else current.operands
        )
        stack += [(part, turned) for part in reversed(parts) if isinstance(part, Formula)]
    return [text for _, text in sorted(lines, key=lambda line: line[0])][:MOST]


def _asked(f: Formula, step: Any, *, wanted: bool) -> list[tuple[bool, str]]:
    if isinstance(f, Consume):
        return []
    predicate, _, call = f.operands
    try:
        value = call(predicate, step)
    except Exception as error:  # shown, not hidden
        return [(False, f"{show(f)}: raised {type(error).__name__}: {error}")]
    good = bool(value) == wanted if isinstance(value, bool | Match) else False
    return [(good, f"{show(f)}: {value if isinstance(value, Match) else str(value).lower()}")]
