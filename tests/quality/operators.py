"""Small changes of a program's text, as slips make them: where a module can be changed, and how.

>>> [(site.operator, site.new) for site in sites("def f(a, b):\\n    return a < b\\n")]
[('comparison', '    return a <= b')]

Texts that people read, annotations, decorators and docstrings are left as they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

_SYMBOLS: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: (r"not\s+in", "in"),
    ast.Is: ("is", "is not"), ast.IsNot: (r"is\s+not", "is"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
    ast.Add: (r"\+", "-"), ast.Sub: ("-", "+"),
}  # fmt: skip
_SIBLINGS: Final = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum",
    "greatest": "least", "least": "greatest", "floor": "ceil", "ceil": "floor",
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """One change: the lines that it touches, with as many before them as make them unique, and what they become."""

    operator: str
    line: int
    old: str
    new: str

    def applied(self, text: str) -> str:
        """The text with the change in it."""
        if text.count(self.old) != 1:
            raise LookupError(f"{self.old!r} occurs {text.count(self.old)} times")
        return text.replace(self.old, self.new)


def sites(text: str) -> list[Site]:
    """Every change that can be made of a module's text, in its order; each still compiles."""
    lines = text.splitlines()
    found = []
    for operator, start, end, new in _edits(ast.parse(text), lines):
        site = _site(lines, operator, (start, end, new))
        if site is not None and _compiles(site.applied(text)):
            found.append(site)
    return found


def chosen(text: str, seed: str) -> Site | None:
    """The change that a seed picks: first a kind of change, then a place for it."""
    by_kind: dict[str, list[Site]] = {}
    for site in sites(text):
        by_kind.setdefault(site.operator, []).append(site)
    draw = Random(seed)
    return draw.choice(by_kind[draw.choice(sorted(by_kind))]) if by_kind else None


Place = tuple[int, int]  # line from 0, character
Edit = tuple[str, Place, Place, str]


def _edits(tree: ast.AST, lines: list[str]) -> Iterator[Edit]:
    for node in _code(tree):
        match node:
            case ast.Compare(left=left, ops=[op, *_], comparators=[right, *_]) if type(op) in _SYMBOLS:
                yield from _between(lines, left, right, op, "comparison")
            case ast.BoolOp(op=op, values=[left, right, *_]):
                yield from _between(lines, left, right, op, "and, or")
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right) if not _is_text(left, right):
                yield from _between(lines, left, right, op, "plus, minus")
            case ast.Constant(value=bool(value)):
                yield "true, false", *_span(lines, node), str(not value)
            case ast.Constant(value=int(value)):
                yield "constant", *_span(lines, node), str(value + 1)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield "negation", *_span(lines, node), f"({_text(lines, operand)})"
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                if not isinstance(test, ast.UnaryOp) and "TYPE_CHECKING" not in _text(lines, test):
                    yield "negation", *_span(lines, test), f"(not ({_text(lines, test)}))"
            case ast.Call(func=ast.Name() | ast.Attribute() as function):
                yield from _calls(lines, node, function)
            case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign() | ast.Raise():
                yield "dropped statement", *_span(lines, node), "pass"
            case ast.Continue() | ast.Break():
                yield "dropped statement", *_span(lines, node), "pass"


def _calls(lines: list[str], node: ast.Call, function: ast.expr) -> Iterator[Edit]:
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    if name in _SIBLINGS:
        start, end = _span(lines, function)
        yield "sibling", (end[0], end[1] - len(name)), end, _SIBLINGS[name]
    if len(node.args) > 1 and not any(isinstance(one, ast.Starred | ast.GeneratorExp) for one in node.args[:2]):
        first, second = node.args[:2]
        start, end = _span(lines, first)[0], _span(lines, second)[1]
        inside = _slice(lines, _span(lines, first)[1], _span(lines, second)[0])
        alike = type(first) is type(second) and name not in {"isinstance", "cast"}
        if alike and "\n" not in inside and _text(lines, first) != _text(lines, second):
            yield "swapped arguments", start, end, f"{_text(lines, second)}{inside}{_text(lines, first)}"


def _between(lines: list[str], left: ast.expr, right: ast.expr, op: ast.AST, operator: str) -> Iterator[Edit]:
    start, end = _span(lines, left)[1], _span(lines, right)[0]
    old, new = _SYMBOLS[type(op)]
    text, count = re.subn(rf"(?<![\w<>=!]){old}(?![\w=])", new, _slice(lines, start, end), count=1)
    if count:
        yield operator, start, end, text


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that do something when the program runs."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom | ast.Assert):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: a check of ours, not a meaning
            continue
        yield node
        skipped = {"annotation", "returns", "decorator_list", "bases", "type_comment"}
        for name, field in ast.iter_fields(node):
            if name not in skipped:
                waiting += [one for one in (field if isinstance(field, list) else [field]) if isinstance(one, ast.AST)]


def _is_text(*sides: ast.expr) -> bool:
    return any(isinstance(one, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)
               or (isinstance(one, ast.Constant) and isinstance(one.value, str)) for one in sides)  # fmt: skip


def _span(lines: list[str], node: ast.AST) -> tuple[Place, Place]:
    """Where a node begins and ends, in characters."""
    ends = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))  # type: ignore[attr-defined]
    start, end = ((row - 1, len(lines[row - 1].encode()[:column].decode())) for row, column in ends)
    return start, end


def _slice(lines: list[str], start: Place, end: Place) -> str:
    if start[0] == end[0]:
        return lines[start[0]][start[1] : end[1]]
    return "\n".join([lines[start[0]][start[1] :], *lines[start[0] + 1 : end[0]], lines[end[0]][: end[1]]])


def _text(lines: list[str], node: ast.AST) -> str:
    return _slice(lines, *_span(lines, node))


def _site(lines: list[str], operator: str, edit: tuple[Place, Place, str]) -> Site | None:
    (row, column), (last, until), new = edit
    old_lines = lines[row : last + 1]
    new_text = lines[row][:column] + new + lines[last][until:]
    whole = "\n".join(lines)
    for first in range(row, max(row - 6, -1), -1):
        before = lines[first:row]
        old = "\n".join([*before, *old_lines])
        if whole.count(old) == 1:
            return Site(operator, row + 1, old, "\n".join([*before, new_text]))
    return None


def _compiles(text: str) -> bool:
    try:
        compile(text, "changed", "exec")
    except (SyntaxError, ValueError):
        return False
    return True
