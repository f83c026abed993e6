"""Speculation by query: a fragment above each source that turns late events into insertions and retractions.

A top-k per group is emitted as soon as it can be, and corrected when a late event changes it. So instead of making
retractions, one puts such a fragment above a plain source, feeds it out of order, and whatever stands above it sees a
stream rich in overlapping insertions and retractions. The data is influenced by manipulating the query.

>>> from streamproof.plan.expr import TRUE
>>> from streamproof.plan.nodes import Where, walk
>>> plan = Where(Source("S", Schema.of({"k": "string", "v": "int64"})), TRUE)
>>> [type(node).__name__ for node in walk(make_speculative(plan))]
['Where', 'Select', 'GroupApply', 'Source', 'Select', 'TopK', 'GroupInput']

Law: the changed plan has the columns of the plan, and its history is that of the fragment over the source's history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from streamproof.arguments import door
from streamproof.errors import PlanError
from streamproof.events.schema import Schema
from streamproof.plan.expr import Col
from streamproof.plan.nodes import (
    AdvanceTime,
    GroupApply,
    GroupInput,
    Let,
    Plan,
    Ref,
    Select,
    Source,
    TopK,
    Union,
    walk,
)
from streamproof.plan.windows import Snapshot, Window


@door
def make_speculative(
    plan: Plan,
    *,
    schemas: Mapping[str, Schema] | None = None,
    key: Sequence[str] | None = None,
    k: int = 1,
    window: Window | None = None,
) -> Plan:
    """The plan with a top-k per group above every source.

    ``key`` names the columns of the groups, else it is the source's first; events are ranked by the other columns, from
    the greatest down. ``window`` is what the top-k is taken over, snapshots unless given. A source that declares no
    schema needs one in ``schemas``.
    """
    columns = _columns(schemas or {})
    return _above_sources(plan, lambda source, name: _top(source, columns(source), key, k, window or Snapshot()))


@door
def make_duplicates(plan: Plan) -> Plan:
    """The plan with a multicast and a union above every source, so that everything comes twice.

    >>> [type(node).__name__ for node in walk(make_duplicates(Source("S")))]
    ['Let', 'Source', 'Union', 'Ref', 'Ref']

    Over `make_speculative` it makes duplicate retractions: ``make_speculative(make_duplicates(plan))``, since what is
    called later stands closer to the source.
    """
    taken = {node.name for node in walk(plan) if isinstance(node, Ref)}
    taken |= {name for node in walk(plan) if isinstance(node, Let) for name, _ in node.bind}

    def twice(source: Plan, name: str) -> Plan:
        fresh = next(word for n in count(1) if (word := f"{name}_twice" + (str(n) if n > 1 else "")) not in taken)
        return Let(((fresh, source),), Union((Ref(fresh), Ref(fresh))))

    return _above_sources(plan, twice)


def _above_sources(plan: Plan, change: Callable[[Plan, str], Plan]) -> Plan:
    """The plan with every source changed; an advance_time belongs to the source that it stands on."""
    match plan:
        case Source():
            return change(plan, plan.name)
        case AdvanceTime(input=Source(name=name)):
            return change(plan, name)
    inputs = tuple(_above_sources(child, change) for child in plan.inputs)
    return plan.with_inputs(inputs) if inputs != plan.inputs else plan


def _columns(schemas: Mapping[str, Schema]) -> Callable[[Plan], tuple[str, ...]]:
    def columns(plan: Plan) -> tuple[str, ...]:
        source = plan.input if isinstance(plan, AdvanceTime) else plan
        assert isinstance(source, Source)
        schema = source.schema or schemas.get(source.name)
        if schema is None or not schema.columns:
            what = "is not known" if schema is None else "has no columns"
            raise PlanError(
                f'the schema of the source "{source.name}" {what}, and speculation ranks its events',
                fix='declare it: source("S", schema=…), or give schemas={"S": …}',
            )
        return schema.names

    return columns


def _top(source: Plan, columns: tuple[str, ...], key: Sequence[str] | None, k: int, window: Window) -> Plan:
    """The top k of each group, with the columns in their order; of everything, where there is only one column."""
    groups = tuple(columns[:1] if key is None else key)
    for name in groups:
        if name not in columns:
            Schema.of(dict.fromkeys(columns, "null"))[name]  # raises the error that names the known columns
    ranked = tuple(name for name in columns if name not in groups)
    if not ranked or not groups:
        return TopK(source, window, k, tuple((Col(name), "desc") for name in columns))
    top = TopK(GroupInput(), window, k, tuple((Col(name), "desc") for name in ranked))
    apply = Select(top, tuple((name, Col(name)) for name in ranked))
    return Select(GroupApply(source, groups, apply), tuple((name, Col(name)) for name in columns))
