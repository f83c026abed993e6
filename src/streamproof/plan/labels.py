"""One line for a node: used by explain, in errors and by the tracer.

>>> from streamproof.plan.parse import parse
>>> label(nodes.Where(nodes.Source("S"), parse("v>1")))
'where(v > 1)'
>>> from streamproof.plan.windows import Hopping
>>> label(nodes.Aggregation(nodes.Source("S"), Hopping(10, 5), (("n", Aggregate("count")),)))
'agg(hopping(size=10, hop=5), n=count())'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import timedelta
from typing import Any, TypeAlias

from streamproof.events.time import Span
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.event_nodes import Drift, During, EventQuery, Pairing, Transition
from streamproof.plan.expr import Expr
from streamproof.plan.nodes import Named, Node
from streamproof.plan.rules import Rules
from streamproof.plan.text import to_text
from streamproof.plan.windows import Window


def label(node: Node) -> str:
    """The node's operator with its parameters, without its inputs."""
    details = ", ".join(DETAILS.find(node, _fields)(node))
    return f"{node.op}({details})" if details else node.op


def window_label(window: Window) -> str:
    """A window in one word with its lengths; offsets of 0 are left out."""
    pairs = ((f.name, getattr(window, f.name)) for f in fields(window))
    shown = ", ".join(f"{name}={value}" for name, value in pairs if (name, value) != ("offset", 0))
    return f"{window.kind}({shown})" if shown else window.kind


def aggregate_label(agg: Aggregate) -> str:
    fn, arg = agg.noted
    parts = [*([] if arg is None else [to_text(arg)]), *map(str, agg.params)]
    return f"{fn}({', '.join(parts)})"


def _exprs(exprs: Named | None) -> Iterator[str]:
    for name, expr in exprs or ():
        text = to_text(expr)
        yield name if text == name else f"{name}={text}"


def _span(value: Expr | Span | None) -> str:
    if value is None:
        return "inf"
    return str(value) if isinstance(value, int | str | timedelta) else to_text(value)


def _join(node: nodes.Join) -> Iterator[str]:
    yield f"on={to_text(node.on)}"
    yield from _exprs(node.select)


def _session(node: nodes.Session) -> Iterator[str]:
    yield f"timeout={node.timeout}"
    if node.max is not None:
        yield f"max={node.max}"
    if node.key:
        yield f"key={', '.join(node.key)}"


def _output(output: str) -> Iterator[str]:
    if output != "window":
        yield f"output={output}"


def _aggregation(node: nodes.Aggregation) -> Iterator[str]:
    yield window_label(node.window)
    yield from (f"{name}={aggregate_label(agg)}" for name, agg in node.aggs)
    yield from _output(node.output)


def _topk(node: nodes.TopK) -> Iterator[str]:
    yield window_label(node.window)
    yield f"k={node.k}"
    yield "by=" + ", ".join(f"{to_text(expr)} {direction}" for expr, direction in node.by)
    if node.rank:
        yield f"rank={node.rank}"
    yield from _output(node.output)


def _settings(node: nodes.Uda | nodes.Udo) -> Iterator[str]:
    yield from (f"{name}={value!r}" for name, value in node.params)
    if node.clip != "none":
        yield f"clip={node.clip}"
    if node.restriction != "none":
        yield f"restriction={node.restriction}"


def _uda(node: nodes.Uda) -> Iterator[str]:
    yield window_label(node.window)
    yield f"{node.as_}={node.fn}({to_text(node.arg)})"
    yield from _settings(node)
    yield from _output(node.output)


def _udo(node: nodes.Udo) -> Iterator[str]:
    yield window_label(node.window)
    yield f"{node.fn}({', '.join(_exprs(node.map)) if node.map else '*'})"
    yield from _settings(node)
    if node.stamp != "align":
        yield f"stamp={node.stamp}"


def _advance_time(node: nodes.AdvanceTime) -> Iterator[str]:
    yield f"every={node.every}" if node.every is not None else f"every_duration={node.every_duration}"
    yield f"delay={node.delay}"
    yield f"late={node.late}"


def _key(node: Transition | Drift | Pairing | During) -> Iterator[str]:
    if node.key:
        yield f"key={', '.join(node.key)}"


def _transition(node: Transition) -> Iterator[str]:
    yield to_text(node.expr)
    yield from _key(node)


def _drift(node: Drift) -> Iterator[str]:
    yield f"{to_text(node.expr)} by {to_text(node.step)}"
    if node.way != "any":
        yield node.way
    yield from _key(node)


def _pairing(node: Pairing) -> Iterator[str]:
    yield node.policy
    yield from _key(node)
    if node.max is not None:
        yield f"max={node.max}"


def _during(node: During) -> Iterator[str]:
    yield node.trigger + (f" every {node.hop}" if node.hop is not None else "")
    yield from (f"{name}={aggregate_label(agg)}" for name, agg in node.aggs)
    yield from _key(node)
    if node.group:
        yield f"group={', '.join(node.group)}"
    if node.reach is not None:
        yield f"reach={node.reach}"
    yield from (word for word in ("latest", "empty") if getattr(node, word))


def _event_query(node: EventQuery) -> Iterator[str]:
    """The data, the model, and what is asked; the events are in its text."""
    query = node.query
    yield query.stream
    yield query.model
    yield from (f"{item.name}={aggregate_label(item.aggregate)}" for item in query.items)
    if query.where is not None:
        yield f"where {to_text(query.where)}"
    if query.group:
        yield f"group={', '.join(query.group)}"
    yield from (f"{name}={span}" for name, span in (("window", query.window), ("hop", query.hop)) if span is not None)


def _fields(node: Node) -> Iterator[str]:
    """Parameters by name, for nodes that have no words of their own here."""
    yield from (f"{name}={value}" for name, value in nodes.parameters(node).items())


def _nothing(node: Node) -> Iterator[str]:
    return iter(())


Details: TypeAlias = Callable[[Any], Iterator[str]]
DETAILS: Rules[Details] = Rules(
    "labels",
    {
        nodes.Source: lambda node: iter([node.name]),
        nodes.GroupInput: _nothing,
        nodes.Ref: lambda node: iter([node.name]),
        nodes.Let: lambda node: (name for name, _ in node.bind),
        nodes.Where: lambda node: iter([to_text(node.expr)]),
        nodes.Select: lambda node: _exprs(node.exprs),
        nodes.Shift: lambda node: iter([str(node.by)]),
        nodes.Extend: lambda node: iter([str(node.by)]),
        nodes.AlterDuration: lambda node: iter([_span(node.dur)]),
        nodes.ToPoint: _nothing,
        nodes.PointAtEnd: _nothing,
        nodes.Chop: lambda node: iter([f"period={node.period}"] + ([f"offset={node.offset}"] if node.offset else [])),
        nodes.Stitch: _nothing,
        nodes.Coalesce: _nothing,
        nodes.Distinct: _nothing,
        nodes.Union: _nothing,
        nodes.Join: _join,
        nodes.LeftOuter: _join,
        nodes.FullOuter: _join,
        nodes.FollowedBy: _join,
        nodes.AntiJoin: lambda node: iter([f"on={to_text(node.on)}"]),
        nodes.Clip: lambda node: iter([f"on={to_text(node.on)}"]),
        nodes.GroupApply: lambda node: iter([", ".join(node.key)]),
        nodes.Session: _session,
        nodes.Aggregation: _aggregation,
        nodes.TopK: _topk,
        nodes.Uda: _uda,
        nodes.Udo: _udo,
        nodes.AdvanceTime: _advance_time,
        Transition: _transition,
        Drift: _drift,
        Pairing: _pairing,
        During: _during,
        EventQuery: _event_query,
    },
)
