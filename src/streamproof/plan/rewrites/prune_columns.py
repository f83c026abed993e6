"""Columns that nothing above reads are not carried along.

>>> from streamproof.events.schema import Schema
>>> from streamproof.plan.aggregates import Aggregate
>>> from streamproof.plan.explain import explain
>>> from streamproof.plan.parse import parse
>>> from streamproof.plan.windows import Tumbling
>>> wide = nodes.Source("S", Schema.of({"k": "string", "v": "int64", "note": "string"}))
>>> sums = (("total", Aggregate("sum", parse("v"))),)
>>> plan = nodes.Aggregation(nodes.Where(wide, parse("k = 'a'")), Tumbling(10), sums)
>>> print(explain(prune_columns(plan, Registry())))
agg(tumbling(size=10), total=sum(v))
└─ select(v)
   └─ where(k = 'a')
      └─ source(S)

Operators that compare whole payloads (stitch, coalesce, distinct) or order by them (first, last, modules that depend on
order) need every column. The inputs of a union keep the same columns everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from streamproof.plan import nodes
from streamproof.plan.check import Typed, check
from streamproof.plan.event_nodes import During, Pairing
from streamproof.plan.expr import LIFE_START, Col, Expr, Side, columns_of
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Named, Plan
from streamproof.plan.rewrites.normal_form import inputs_in_scope, names_read, parts_in_scope, to_plan

Names = frozenset[str]


def prune_columns(plan: Plan, registry: Registry) -> Plan:
    """Narrow selects, joins and aggregations to what is read, and put a select above sources that carry more."""
    typed = check(plan, registry=registry)
    return _Scope.of(typed, frozenset(typed.schema.names)).plan(typed)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is needed of every part of a scope, and the columns that each part gives once it is narrowed."""

    needed: dict[int, Names]
    given: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(root: Typed, wanted: Names) -> _Scope:
        needed: dict[int, Names] = {id(root): wanted}
        for part in reversed(parts_in_scope(root)):
            for child, names in zip(inputs_in_scope(part), _wants(part, needed[id(part)]), strict=True):
                needed[id(child)] = needed.get(id(child), frozenset()) | (names & set(child.schema.names))
        return _Scope(needed)

    def plan(self, root: Typed) -> Plan:
        return to_plan(root, self.rebuilt)

    def rebuilt(self, part: Typed, inputs: tuple[Plan, ...]) -> Plan:
        """The part over its narrowed inputs, giving at least what is needed of it."""
        needed = self.needed[id(part)]
        plan, given = self._narrowed(part, needed, self._inputs(part, inputs, needed))
        self.given[id(part)] = given
        return plan

    def _inputs(self, part: Typed, inputs: tuple[Plan, ...], needed: Names) -> tuple[Plan, ...]:
        if isinstance(part.node, nodes.Union):
            pairs = zip(part.inputs, inputs, strict=True)
            return tuple(_exactly(plan, self.given[id(child)], _united(part, needed)) for child, plan in pairs)
        if part.node.meets == "none":
            return inputs
        wants = _wants(part, needed)
        return tuple(
            _only(plan, child.schema.names, names)
            for child, plan, names in zip(inputs_in_scope(part), inputs, wants, strict=True)
        )

    def _narrowed(self, part: Typed, needed: Names, inputs: tuple[Plan, ...]) -> tuple[Plan, tuple[str, ...]]:
        node: Any = part.node
        match node:
            case nodes.Select():
                exprs = _kept(node.exprs, needed)
                return nodes.Select(inputs[0], exprs), _names(exprs)
            case nodes.Join():
                select = _kept(node.select or (), needed)
                return replace(node, left=inputs[0], right=inputs[1], select=select), _names(select)
            case nodes.Aggregation():
                aggs = _kept(node.aggs, needed)
                return replace(node, input=inputs[0], aggs=aggs), _names(aggs)
            case nodes.GroupApply():
                return self._narrowed_group(part, needed, inputs[0])
            case nodes.Union():
                return nodes.Union(inputs), _united(part, needed)
        return node.with_inputs(inputs), tuple(self._unchanged(part))

    def _narrowed_group(self, part: Typed, needed: Names, source: Plan) -> tuple[Plan, tuple[str, ...]]:
        node: Any = part.node
        branch = part.inputs[1]
        inside = _Scope.of(branch, needed & set(branch.schema.names))
        apply = inside.plan(branch)
        return replace(node, input=source, apply=apply), (*node.key, *inside.given[id(branch)])

    def _unchanged(self, part: Typed) -> Iterator[str]:
        """The columns of a part that narrows nothing itself: what its first input still gives, and its own."""
        if not part.node.keeps_payload:
            yield from part.schema.names
            return
        first = part.inputs[0]
        yield from self.given[id(first)]
        yield from (name for name in part.schema.names if name not in first.schema)


# --- what an operator needs of its inputs -----------------------------------------------------------------------------


def _wants(part: Typed, needed: Names) -> tuple[Names, ...]:
    """The columns that a part needs of each input, so that it can give what is needed of it."""
    node: Any = part.node
    match node:
        case nodes.Select(_, exprs):
            return (_read_by(expr for _, expr in _kept(exprs, needed)),)
        case nodes.Join(select=select):
            read = [node.on, *(expr for _, expr in _kept(select or (), needed))]
            return _of_side(read, "l"), _of_side(read, "r")
        case nodes.AntiJoin(on=on) | nodes.Clip(on=on):
            return needed | _of_side([on], "l"), _of_side([on], "r")
        case nodes.Union():
            return (frozenset(_united(part, needed)),) * len(part.inputs)
        case nodes.GroupApply():
            return (_wants_of_group(part, needed),)
        case Pairing(key=key):
            return _all(part), frozenset(key)
        case During():
            return _all(part), _wants_of_data(part, node)
        case nodes.Aggregation():
            node = replace(node, aggs=_kept(node.aggs, needed))
    depends_on_order = part.module is not None and not part.module.properties.order_insensitive
    if node.reads is None or depends_on_order or len(part.inputs) > 1:
        return tuple(frozenset(child.schema.names) for child in part.inputs)
    handed_on = needed if node.keeps_payload else frozenset[str]()
    return (handed_on | _read_by(node.reads),) * len(part.inputs)


def _wants_of_group(part: Typed, needed: Names) -> Names:
    node: Any = part.node
    branch = part.inputs[1]
    inside = _Scope.of(branch, needed & set(branch.schema.names)).needed
    groups = (leaf for leaf in parts_in_scope(branch) if isinstance(leaf.node, nodes.GroupInput))
    return frozenset(node.key).union(*(inside[id(leaf)] for leaf in groups))


def _wants_of_data(part: Typed, node: During) -> Names:
    if node.latest or any(agg.function.ordered for _, agg in node.aggs):
        return frozenset(part.inputs[1].schema.names)
    return _read_by(agg.arg for _, agg in node.aggs if agg.arg is not None) | set(node.key) | set(node.group)


def _all(part: Typed) -> Names:
    return frozenset(part.inputs[0].schema.names)


def _read_by(exprs: Iterable[Expr]) -> Names:
    return frozenset[str]().union(*map(names_read, exprs))


def _of_side(exprs: Iterable[Expr], side: Side) -> Names:
    columns = (column for expr in exprs for column in columns_of(expr))
    return frozenset(column.name for column in columns if column.side == side and column.name != LIFE_START)


# --- narrowing --------------------------------------------------------------------------------------------------------


def _kept(columns: Any, needed: Names) -> Any:
    """The named parts that are needed; at least one, since a payload without columns is hard to see."""
    return tuple((name, part) for name, part in columns if name in needed) or columns[:1]


def _names(columns: tuple[tuple[str, Any], ...]) -> tuple[str, ...]:
    return tuple(name for name, _ in columns)


def _columns(names: Iterable[str]) -> Named:
    return tuple((name, Col(name)) for name in names)


def _united(part: Typed, needed: Names) -> tuple[str, ...]:
    """The columns that every input of a union must give, no more and no less."""
    return tuple(name for name in part.schema.names if name in needed) or part.schema.names[:1]


def _exactly(plan: Plan, given: tuple[str, ...], wanted: tuple[str, ...]) -> Plan:
    return plan if set(given) == set(wanted) else nodes.Select(plan, _columns(wanted))


def _only(plan: Plan, given: tuple[str, ...], wanted: Names) -> Plan:
    """A source with its filters, narrowed; other operators narrow themselves."""
    kept = tuple(name for name in given if name in wanted) or given[:1]
    return nodes.Select(plan, _columns(kept)) if len(kept) < len(given) and _carries_all(plan) else plan


def _carries_all(plan: Plan) -> bool:
    while plan.meets == "none" and plan.keeps_payload:
        plan = plan.inputs[0]
    return isinstance(plan, nodes.Source)
