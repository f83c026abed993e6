"""A stream as text: a tree, a diagram, or one of the languages that plans are written in."""

from __future__ import annotations

from typing import Protocol

from streamproof import extensions
from streamproof.arguments import doors
from streamproof.errors import printable
from streamproof.plan.explain import explain, mermaid
from streamproof.plan.labels import label
from streamproof.plan.nodes import Node, Plan


class HasPlan(Protocol):
    """Anything that holds a plan."""

    @property
    def plan(self) -> Plan: ...


@doors
class Shown:
    """The ways to look at a plan."""

    __slots__ = ()

    def __repr__(self: HasPlan) -> str:
        """The plan in one line; of several inputs, the first."""
        path: list[Node] = [self.plan]
        while path[-1].inputs:
            path.append(path[-1].inputs[-1 if path[-1].op == "let" else 0])
        return printable(" → ".join(map(label, reversed(path))))

    def explain(self: HasPlan) -> str:
        """The plan as a tree.

        >>> print(source("S").where("v > 1").explain())
        where(v > 1)
        └─ source(S)
        """
        return explain(self.plan)

    def mermaid(self: HasPlan) -> str:
        """The plan as a Mermaid flowchart."""
        return mermaid(self.plan)

    def to_json(self: HasPlan) -> str:
        """The plan as a JSON plan file."""
        return _written(self.plan, "json")

    def to_xml(self: HasPlan) -> str:
        """The plan as an XML plan file."""
        return _written(self.plan, "xml")

    def to_python(self: HasPlan) -> str:
        """The plan as Python: text that evaluates to an equal stream.

        >>> print(source("S").where("v>1").to_python())
        source("S").where("v > 1")
        """
        return _written(self.plan, "python")

    def to_eql(self: HasPlan) -> str:
        """An event-driven query as EQL."""
        return _written(self.plan, "eql").rstrip()

    def to_sql(self: HasPlan) -> str:
        """The plan as SQL, where it has words for it."""
        return _written(self.plan, "sql").rstrip()


def _written(plan: Plan, language: str) -> str:
    text: str = extensions.load("languages", language).dumps(plan)
    return text
