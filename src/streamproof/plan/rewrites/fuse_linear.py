"""Adjacent linear operators become one.

>>> from streamproof.plan.explain import explain
>>> from streamproof.plan.parse import parse
>>> plan = nodes.Select(nodes.Source("S"), (("sum", parse("a + b")), ("k", parse("k"))))
>>> plan = nodes.Shift(nodes.Shift(nodes.Select(plan, (("x", parse("sum * 2")),)), 2), 3)
>>> print(explain(plan))
shift(3)
└─ shift(2)
   └─ select(x=sum * 2)
      └─ select(sum=a + b, k)
         └─ source(S)
>>> print(explain(fuse_linear(plan, Registry())))
shift(5)
└─ select(x=(a + b) * 2)
   └─ source(S)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from streamproof.events.time import FOREVER, Span
from streamproof.plan import nodes
from streamproof.plan.expr import LIFE_END, TRUE, Col, Expr, Lit, columns_of, user_functions, walk
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Named, Node, Plan
from streamproof.plan.rewrites.normal_form import both_of, size, with_definitions
from streamproof.thresholds import GROWTH, LARGEST_EXPRESSION


def fuse_linear(plan: Plan, registry: Registry) -> Plan:
    """Fuse where, select, shift, extend, to_point, alter_duration and union with an operator of their kind below."""
    return nodes.transform(plan, _fused)


def _fused(node: Node) -> Node:
    match node:
        case nodes.Where(below, expr) if expr == TRUE:
            return below
        case nodes.Where(nodes.Where(below, first), second) if (both := both_of(first, second)) is not None:
            return nodes.Where(below, both)
        case nodes.Select(nodes.Select() as inner, _):
            return _fused_selects(node, inner)
        case nodes.Shift(below, 0) | nodes.Extend(below, 0) | nodes.Union((below,)):
            return below
        case nodes.Shift(nodes.Shift(below, int(first)), int(second)) if abs(first + second) < FOREVER:
            return _fused(nodes.Shift(below, first + second))
        case nodes.Extend(nodes.Extend(below, int(first)), int(second)) if _add_up(first, second):
            return nodes.Extend(below, first + second)
        case nodes.ToPoint(below) if (start := _same_starts(below)) is not None:
            return _fused(nodes.ToPoint(start))
        case nodes.AlterDuration(below, dur) if not _reads_end(dur) and (start := _same_starts(below)) is not None:
            return _fused(replace(node, input=start))
        case nodes.Union(ins) if any(isinstance(part, nodes.Union) for part in ins):
            return nodes.Union(tuple(leaf for part in ins for leaf in _united(part)))
    return node


def _add_up(first: int, second: int) -> bool:
    """Of two signs, the first might empty lifetimes that the second would not bring back."""
    return (first >= 0) == (second >= 0) and abs(first + second) < FOREVER


def _same_starts(plan: Plan) -> Plan | None:
    """What lies below an operator that changes nothing but ends, and removes no event."""
    match plan:
        case nodes.ToPoint(below) | nodes.AlterDuration(below, None):
            return below
        case nodes.Extend(below, int(by)) if by >= 0:
            return below
        case nodes.AlterDuration(below, Lit(int(ticks), _)) if ticks > 0:
            return below
    return None


def _reads_end(dur: Expr | Span | None) -> bool:
    return not isinstance(dur, int | str | timedelta | None) and Col(LIFE_END) in columns_of(dur)


def _united(plan: Plan) -> tuple[Plan, ...]:
    return plan.ins if isinstance(plan, nodes.Union) else (plan,)


def _fused_selects(outer: nodes.Select, inner: nodes.Select) -> Node:
    """One select, unless it would call a user-defined function twice or repeat too much."""
    definitions = dict(inner.exprs)
    uses = Counter(part.name for _, expr in outer.exprs for part in walk(expr) if isinstance(part, Col))
    if any(uses[name] > 1 and user_functions(expr) for name, expr in inner.exprs):
        return outer
    exprs = tuple((name, with_definitions(expr, definitions)) for name, expr in outer.exprs)
    if not _is_small(exprs, (*outer.exprs, *inner.exprs)):
        return outer
    return nodes.Select(inner.input, exprs)


def _is_small(fused: Named, apart: Named) -> bool:
    """Selects that repeat each other's expressions would double in size again and again."""
    largest = max((size([expr]) for _, expr in fused), default=0)
    return largest <= LARGEST_EXPRESSION.now and size(e for _, e in fused) <= size(e for _, e in apart) + GROWTH.now
