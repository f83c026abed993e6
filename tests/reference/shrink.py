"""Smaller cases with the same difference: fewer events, smaller plans, simpler values.

Greedy: the first smaller case that still differs is taken, until none does or the budget is spent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any

from streamproof.events.event import Cti, Event, Insert
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.expr import Apply, Call, Cast, Col, Expr, Lit, children, literal
from streamproof.plan.expr import Case as CaseExpr
from streamproof.plan.limits import Limits
from streamproof.plan.nodes import Node, Plan
from streamproof.plan.windows import Hopping, Snapshot, Tumbling
from tests.reference.random_cases import Case
from tests.reference.streams import Stream
from tests.reference.values import Row

Differs = Callable[[Case], bool]
BUDGET = 1500


def shrink(case: Case, differs: Differs, *, budget: int = BUDGET) -> Case:
    """The smallest case that we find for which ``differs`` still holds."""
    tries = budget
    improved = True
    while improved and tries > 0:
        improved = False
        for smaller in smaller_cases(case):
            tries -= 1
            if tries <= 0:
                break
            if _holds(differs, smaller):
                case, improved = smaller, True
                break
    return case


def _holds(differs: Differs, case: Case) -> bool:
    try:
        return differs(case)
    except Exception:  # a smaller plan may be no plan at all
        return False


def smaller_cases(case: Case) -> Iterator[Case]:
    """Cases one step smaller, the largest steps first."""
    for plan in chain(smaller_plans(case.plan), _everywhere(case.plan)):
        used = {name: case.streams[name] for name in nodes.sources(plan)}
        yield replace(case, plan=plan, streams=used)
    if case.horizon is not None:
        yield replace(case, horizon=None)
    if case.limits != Limits():
        yield replace(case, limits=Limits())
    for name, stream in case.streams.items():
        for smaller in smaller_streams(stream):
            yield replace(case, streams={**case.streams, name: smaller})


# --- streams ----------------------------------------------------------------------------------------------------------


def smaller_streams(stream: Stream) -> Iterator[Stream]:
    """Without retractions, without single events, without columns, with simpler values and times."""
    rows = stream.rows
    plain = _plain(stream.schema, rows)
    if plain.events != stream.events:
        yield plain
        yield from _fewer_events(stream)
        return
    for n in range(len(rows)):
        yield _plain(stream.schema, rows[:n] + rows[n + 1 :])
    for name in stream.schema.names:
        yield _without_column(stream, name)
    if stream.schema.unit is not None:
        yield Stream(Schema(stream.schema.columns), stream.events)
    for n, row in enumerate(rows):
        for simpler in _simpler_rows(row):
            yield _plain(stream.schema, [*rows[:n], simpler, *rows[n + 1 :]])


def _plain(schema: Schema, rows: list[Row]) -> Stream:
    events = tuple(Insert(f"e{n}", le, re, payload) for n, (le, re, payload) in enumerate(rows))
    return Stream(schema, events)


def _fewer_events(stream: Stream) -> Iterator[Stream]:
    """Without a CTI, or without all events of one id."""
    for n, event in enumerate(stream.events):
        if isinstance(event, Cti):
            yield replace(stream, events=stream.events[:n] + stream.events[n + 1 :])
        elif isinstance(event, Insert):
            yield replace(stream, events=tuple(e for e in stream.events if _id(e) != event.id))


def _id(event: Event) -> str | None:
    return None if isinstance(event, Cti) else event.id


def _without_column(stream: Stream, name: str) -> Stream:
    schema = Schema(tuple(pair for pair in stream.schema if pair[0] != name), stream.schema.unit)
    rows = [(le, re, {n: v for n, v in payload.items() if n != name}) for le, re, payload in stream.rows]
    return _plain(schema, rows)


def _simpler_rows(row: Row) -> Iterator[Row]:
    le, re, payload = row
    for name, value in payload.items():
        for simpler in _simpler_values(value):
            yield le, re, {**payload, name: simpler}
    if le not in (0, BEGINNING) and re != FOREVER:
        yield 0, re - le, payload
    if re not in (le + 1, FOREVER):
        yield le, le + 1, payload
    if re == FOREVER:
        yield le, le + 5, payload
    if le == BEGINNING:
        yield 0, re, payload


def _simpler_values(value: Any) -> list[Any]:
    """Simpler values of the same type, simplest first, up to the value itself."""
    ladders: tuple[list[Any], ...] = (
        [None, False, True], [None, 0, 1, 2, -1], [None, 0.0, 1.0, -1.0, 0.5, float("nan")], [None, "", "a", "b"],
        [None, Decimal("0.00"), Decimal("1.00")],
    )  # fmt: skip
    for ladder in ladders:
        if type(value) is type(ladder[1]):
            found = [n for n, step in enumerate(ladder) if repr(step) == repr(value)]
            return ladder[: found[0]] if found else ladder
    if isinstance(value, datetime):
        return [] if value == datetime(1970, 1, 1, tzinfo=UTC) else [None, datetime(1970, 1, 1, tzinfo=UTC)]
    if isinstance(value, date):
        return [] if value == date(1970, 1, 1) else [None, date(1970, 1, 1)]
    return []


# --- plans ------------------------------------------------------------------------------------------------------------


def smaller_plans(plan: Plan) -> Iterator[Plan]:
    """The plan's inputs, the plan with one of its inputs smaller, the plan with simpler parameters."""
    yield from _instead(plan)
    for n, child in enumerate(plan.inputs):
        for smaller in smaller_plans(child):
            yield plan.with_inputs((*plan.inputs[:n], smaller, *plan.inputs[n + 1 :]))
    yield from _simpler_nodes(plan)


def _everywhere(plan: Plan) -> Iterator[Plan]:
    """A part that occurs more than once replaced by its input in all places: one alone may not be enough."""
    counts = Counter(part for part in nodes.walk(plan) if part.inputs)
    for part, count in counts.items():
        for child in part.inputs if count > 1 else ():
            yield _replaced(plan, part, child)


def _replaced(plan: Plan, part: Node, child: Node) -> Plan:
    return nodes.transform(plan, lambda node: child if node == part else node)


def _instead(plan: Plan) -> Iterator[Plan]:
    if isinstance(plan, nodes.Let):
        yield nodes.transform(plan.body, lambda node: _bound(plan, node))
        yield from (bound for _, bound in plan.bind)
        return
    if isinstance(plan, nodes.GroupApply):
        yield nodes.transform(plan.apply, lambda node: plan.input if isinstance(node, nodes.GroupInput) else node)
        yield plan.input
        return
    yield from plan.inputs
    if isinstance(plan, nodes.Union) and len(plan.ins) > 1:
        yield from (replace(plan, ins=plan.ins[:n] + plan.ins[n + 1 :]) for n in range(len(plan.ins)))
    if isinstance(plan, nodes.LeftOuter | nodes.FullOuter | nodes.FollowedBy):
        yield nodes.Join(plan.left, plan.right, plan.on, plan.select)


def _bound(let: nodes.Let, node: Node) -> Node:
    return dict(let.bind).get(node.name, node) if isinstance(node, nodes.Ref) else node


def _simpler_nodes(plan: Plan) -> Iterator[Plan]:
    """One field of the node simpler."""
    for field in fields(plan):
        if field.name in (*plan.input_fields, "ins", "bind", "body"):
            continue
        for simpler in _simpler_fields(getattr(plan, field.name), field.default):
            try:
                yield replace(plan, **{field.name: simpler})
            except Exception:  # a node refuses fields that make no sense
                continue


def _simpler_fields(value: Any, default: Any) -> Iterator[Any]:
    if isinstance(default, str | int | None) and value != default:
        yield default
    if isinstance(value, Hopping):
        yield Tumbling(value.size, value.offset)
    if isinstance(value, Hopping | Tumbling):
        yield Snapshot()
        yield replace(value, offset=0) if value.offset else Snapshot()
    elif is_dataclass(value) and isinstance(value, Col | Lit | Call | Apply | Cast | CaseExpr):
        yield from smaller_expressions(value)
    elif isinstance(value, tuple):
        yield from _smaller_tuples(value)


def _smaller_tuples(values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for n, value in enumerate(values):
        if len(values) > 1:
            yield values[:n] + values[n + 1 :]
        for simpler in _smaller_parts(value):
            yield (*values[:n], simpler, *values[n + 1 :])


def _smaller_parts(value: Any) -> Iterator[Any]:
    """A named expression, a named aggregate or an expression to rank by, with a smaller expression."""
    if not (isinstance(value, tuple) and len(value) == 2):
        return
    first, second = value
    if isinstance(second, Aggregate):
        if second.arg is not None:
            yield from ((first, replace(second, arg=arg)) for arg in smaller_expressions(second.arg))
    elif isinstance(second, Col | Lit | Call | Apply | Cast | CaseExpr):
        yield from ((first, expr) for expr in smaller_expressions(second))
    elif isinstance(first, Col | Lit | Call | Apply | Cast | CaseExpr):
        yield from ((expr, second) for expr in smaller_expressions(first))


def smaller_expressions(expr: Expr) -> Iterator[Expr]:
    """A constant, the parts of the expression, and the expression with one part smaller."""
    if not isinstance(expr, Lit | Col):
        yield from (literal(True), literal(0))  # the check refuses the one of another type
    yield from children(expr)
    match expr:
        case Call(args=args) | Apply(args=args):
            for n, arg in enumerate(args):
                if len(args) > 2:
                    yield replace(expr, args=args[:n] + args[n + 1 :])
                for smaller in smaller_expressions(arg):
                    yield replace(expr, args=(*args[:n], smaller, *args[n + 1 :]))
        case Cast(arg=arg):
            yield from (replace(expr, arg=smaller) for smaller in smaller_expressions(arg))
        case CaseExpr(branches, default):
            for n, (when, then) in enumerate(branches):
                if len(branches) > 1:
                    yield CaseExpr(branches[:n] + branches[n + 1 :], default)
                for smaller in smaller_expressions(when):
                    yield CaseExpr((*branches[:n], (smaller, then), *branches[n + 1 :]), default)
                for smaller in smaller_expressions(then):
                    yield CaseExpr((*branches[:n], (when, smaller), *branches[n + 1 :]), default)
            yield from (CaseExpr(branches, smaller) for smaller in smaller_expressions(default))
        case Lit(value, kind):
            yield from (Lit(simpler, kind) for simpler in _simpler_values(value) if simpler is not None)
