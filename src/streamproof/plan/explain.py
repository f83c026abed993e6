"""A plan for people: a tree in text, with schemas and what each engine supports, or a Mermaid flowchart.

>>> from streamproof.plan.parse import parse
>>> print(explain(nodes.Join(nodes.Source("A"), nodes.Source("B"), parse("l.k = r.k"))))
join(on=l.k = r.k)
├─ left: source(A)
└─ right: source(B)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from streamproof.errors import StreamproofError
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import EventQuery
from streamproof.plan.labels import label
from streamproof.plan.library import installed
from streamproof.plan.modules import Module
from streamproof.plan.nodes import Node, Plan
from streamproof.plan.results import cut_results

Support: TypeAlias = "Mapping[str, Mapping[str, bool | str]]"
"""By engine: each node's name with True, or with the reason why it is refused."""

_RESOLVED: Final = ("Let", "Ref", "GroupInput", "EventQuery")  # the check resolves these, so no engine ever sees them


@dataclass(frozen=True, slots=True)
class _Branch:
    """A node with the role it plays for its parent, and its type if known."""

    role: str
    node: Node
    typed: Typed | None
    children: tuple[_Branch, ...] = ()


def explain(plan: Plan, *, typed: Typed | None = None, support: Support | None = None) -> str:
    """The plan as a tree, one node per line, followed by notes on what is refused and what to watch out for.

    A typed plan adds each node's schema; ``support`` adds a column per engine.
    """
    root = _branch("", plan, typed, {})
    lines = list(_lines(root, "", ""))
    table = [[text for text, _ in lines]]
    if typed is not None:
        table.append([_schema(branch.typed) for _, branch in lines])
    for engine, known in (support or {}).items():
        table.append([_mark(engine, known, branch.node) for _, branch in lines])
    branches = [branch for _, branch in lines]
    cut = () if typed is None else (f"warning: {_visible(text)}" for text in cut_results(typed))
    return "\n".join([*_aligned(table), *_refusals(branches, support or {}), *_warnings(branches), *cut])


def _branch(role: str, plan: Plan, typed: Typed | None, bound: dict[str, Typed | None]) -> _Branch:
    match plan:
        case nodes.Let():
            return _let(role, plan, typed, bound)
        case nodes.Ref(name):
            bound[name] = bound.get(name) or typed
            return _Branch(role, plan, typed)
        case nodes.GroupApply():
            source, applied = (None, None) if typed is None else typed.inputs
            inside: dict[str, Typed | None] = {}
            children = (_branch("in", plan.input, source, bound), _branch("apply", plan.apply, applied, inside))
            return _Branch(role, plan, typed, children)
        case EventQuery():  # the check makes other nodes of it, so what is known of those is not shown
            return _Branch(role, plan, typed, tuple(_branch(name, part, None, bound) for name, part in plan.bind))
    typed_inputs = [None] * len(plan.inputs) if typed is None else typed.inputs
    parts = zip(_roles(plan), plan.inputs, typed_inputs, strict=True)
    return _Branch(role, plan, typed, tuple(_branch(r, child, t, bound) for r, child, t in parts))


def _let(role: str, plan: nodes.Let, typed: Typed | None, outside: dict[str, Typed | None]) -> _Branch:
    """The types of bound streams are known where they are read, so the body comes first."""
    bound = {name: known for name, known in outside.items() if name not in dict(plan.bind)}
    body = _branch("in", plan.body, typed, bound)
    binds = [_branch(f"{name} =", part, bound.get(name), bound) for name, part in reversed(plan.bind)]
    return _Branch(role, plan, typed, (*reversed(binds), body))


def _roles(plan: Plan) -> tuple[str, ...]:
    if isinstance(plan, nodes.Clip):
        return ("in", "by")
    return plan.input_fields if len(plan.input_fields) > 1 else ("",) * len(plan.inputs)


def _lines(branch: _Branch, first: str, rest: str) -> Iterator[tuple[str, _Branch]]:
    role = "" if not branch.role else branch.role + (" " if branch.role.endswith("=") else ": ")
    yield f"{first}{_visible(role + label(branch.node))}", branch
    for n, child in enumerate(branch.children):
        is_last = n == len(branch.children) - 1
        yield from _lines(child, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "))


def _visible(text: str) -> str:
    """Names may hold anything; line breaks and terminal escapes must not leave their line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _schema(typed: Typed | None) -> str:
    if typed is None:
        return ""
    columns = ", ".join(f"{name} {kind}" for name, kind in typed.schema)
    return _visible(f"[{columns}]") + (f" in {typed.schema.unit}" if typed.schema.unit else "")


def _mark(engine: str, known: Mapping[str, bool | str], node: Node) -> str:
    name = type(node).__name__
    if name in _RESOLVED:
        return ""
    return f"{engine} {'yes' if known.get(name) is True else 'no'}"


def _aligned(table: list[list[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in table]
    for row in zip(*table, strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _refusals(branches: list[_Branch], support: Support) -> Iterator[str]:
    names = dict.fromkeys(type(branch.node).__name__ for branch in branches)
    for engine, known in support.items():
        for name in names:
            answer = known.get(name, "it has no rule for it")
            if answer is not True and name not in _RESOLVED:
                yield f"note: {engine} does not run {name}: {answer or 'not supported'}"


def _warnings(branches: list[_Branch]) -> Iterator[str]:
    for branch in branches:
        node = branch.node
        if isinstance(node, nodes.Uda | nodes.Udo) and node.restriction == "none":
            module = _module(node, branch.typed)
            if module is not None and module.time_sensitive:
                yield (
                    f"warning: {module} is time-sensitive and unrestricted: no CTI passes {_visible(label(node))}; "
                    'promise restriction "window_based" or "time_bound" if it keeps to it'
                )


def _module(node: nodes.Uda | nodes.Udo, typed: Typed | None) -> Module | None:
    if typed is not None:
        return typed.module
    try:
        return installed().find(node.fn, "uda" if isinstance(node, nodes.Uda) else "udo")
    except StreamproofError:  # an unknown module: the check reports it
        return None


# --- Mermaid ----------------------------------------------------------------------------------------------------------


def mermaid(plan: Plan) -> str:
    """The plan as a Mermaid flowchart from the sources to the result; what is read twice appears once.

    >>> print(mermaid(nodes.Shift(nodes.Source("S"), 2)))
    flowchart LR
      n1["source(S)"]
      n2["shift(2)"]
      n1 --> n2
    """
    chart = _Chart()
    chart.add(plan, {}, None)
    return "\n".join(["flowchart LR", *(f"  {line}" for line in chart.lines)])


class _Chart:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sources: dict[str, str] = {}  # each source is drawn once
        self.count = 0

    def add(self, plan: Plan, bound: Mapping[str, str], group: str | None) -> str:
        """Draw a plan; the answer is the id of its last node."""
        match plan:
            case nodes.Source(name):
                if name not in self.sources:
                    self.sources[name] = self.box(plan)
                return self.sources[name]
            case nodes.Ref(name) if name in bound:
                return bound[name]
            case nodes.GroupInput() if group is not None:
                return group
            case nodes.Let():
                for name, part in plan.bind:
                    bound = {**bound, name: self.add(part, bound, group)}
                return self.add(plan.body, bound, group)
            case nodes.GroupApply():
                return self.add_group(plan, bound, group)
        inputs = [(role, self.add(child, bound, group)) for role, child in zip(_roles(plan), plan.inputs, strict=True)]
        box = self.box(plan)
        for role, source in inputs:
            self.arrow(source, box, role)
        return box

    def add_group(self, plan: nodes.GroupApply, bound: Mapping[str, str], group: str | None) -> str:
        source = self.add(plan.input, bound, group)
        split = self.box(nodes.GroupInput(), f"per {', '.join(plan.key)}")
        self.arrow(source, split, "")
        result = self.add(plan.apply, {}, split)
        box = self.box(plan)
        self.arrow(result, box, "")
        return box

    def box(self, node: Node, text: str | None = None) -> str:
        self.count += 1
        self.lines.append(f'n{self.count}["{_escaped(text or label(node))}"]')
        return f"n{self.count}"

    def arrow(self, source: str, target: str, role: str) -> None:
        self.lines.append(f"{source} -->|{role}| {target}" if role else f"{source} --> {target}")


def _escaped(text: str) -> str:
    """Text that Mermaid shows as it is: whatever it could read as markup becomes a character code."""
    return "".join(c if c.isprintable() and c not in '"#<>&`\\' else f"#{ord(c)};" for c in text)
