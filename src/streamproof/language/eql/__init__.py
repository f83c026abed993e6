"""EQL: queries driven by events, as text.

>>> plan = loads("SELECT avg(temp) FROM Room AT BECOMES(Door: open = 1) WINDOW 5s")
>>> print(dumps(plan))
SELECT avg(temp)
FROM Room
AT BECOMES(Door: open = 1)
WINDOW 5s;
"""

from __future__ import annotations

from streamproof.errors import PlanError
from streamproof.language.eql.parser import parse_document
from streamproof.language.eql.printer import print_query
from streamproof.plan import nodes
from streamproof.plan.eql.query import EqlQuery
from streamproof.plan.event_nodes import EventQuery
from streamproof.plan.nodes import Plan

__all__ = ["dumps", "loads", "loads_all", "suffix"]

suffix = ".eql"


def loads(text: str) -> Plan:
    """The plan of the one query in a text. Law: ``loads(dumps(plan)) == plan``."""
    found = loads_all(text)
    if len(found) > 1:
        raise PlanError(f"there are {len(found)} queries here", fix=f"choose one: FILE.eql#1 to FILE.eql#{len(found)}")
    return next(iter(found.values()))


def loads_all(text: str) -> dict[str, Plan]:
    """The plans of all queries in a text, by their number."""
    return {str(n): as_plan(query) for n, query in enumerate(parse_document(text), start=1)}


def as_plan(query: EqlQuery) -> Plan:
    """The query over the sources it names."""
    return EventQuery(tuple((name, nodes.Source(name)) for name in query.streams()), query)


def dumps(plan: Plan) -> str:
    """The plan as EQL, if it is an event-driven query over sources."""
    if not isinstance(plan, EventQuery):
        raise PlanError("only event-driven queries can be written as EQL", fix="write it as JSON, or as SQL")
    for name, part in plan.bind:
        if part != nodes.Source(name):
            raise PlanError(
                f'EQL has no words for what the stream "{name}" is made of', fix="write it as JSON or Python"
            )
    return print_query(plan.query)
