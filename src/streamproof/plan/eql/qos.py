"""What a plan promises about time: the QOS clause of its event-driven query."""

from __future__ import annotations

from streamproof.plan.eql.query import Qos
from streamproof.plan.event_nodes import EventQuery
from streamproof.plan.nodes import Plan, walk


def plan_qos(plan: Plan) -> Qos | None:
    """How late results may be and how many tuples may wait; None where the plan does not say.

    >>> from streamproof.plan.nodes import Source
    >>> plan_qos(Source("S")) is None
    True
    """
    return next((node.query.qos for node in walk(plan) if isinstance(node, EventQuery) and node.query.qos), None)
