"""The check: a plan against the schemas of its sources gives a typed plan, or an error that names the node and the fix.

In a typed plan nothing is left open: durations are ticks, expressions are bound, with every argument cast to the type
that it is computed in, every node knows its schema, and a stream that is read twice is one shared object (`Let` and
`Ref` are gone).

>>> from streamproof.plan.parse import parse
>>> typed = check(nodes.Where(nodes.Source("S"), parse("v > 1")), {"S": Schema.of({"v": "int64"})})
>>> typed.schema.names, typed.inputs[0].node.name
(('v',), 'S')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, TypeAlias

from streamproof.errors import PlanError, StreamproofError, did_you_mean, each, together
from streamproof.events.schema import BOOL, INT64, Schema, Type, check_names
from streamproof.events.time import Span, duration
from streamproof.plan import nodes
from streamproof.plan.carried import carried
from streamproof.plan.eql import typed as event_rules
from streamproof.plan.eql.lowering import lowered
from streamproof.plan.event_nodes import Drift, During, EventQuery, Pairing, Transition
from streamproof.plan.expr import Col, Lit
from streamproof.plan.functions import common_type
from streamproof.plan.labels import label
from streamproof.plan.library import installed
from streamproof.plan.modules import Module, Registry
from streamproof.plan.nodes import Named, Node, Plan
from streamproof.plan.rules import Rules
from streamproof.plan.source_location import at_place, word_offset
from streamproof.plan.typing import Scope, aggregate_type, bind, bound_aggregate, require, type_of
from streamproof.plan.windows import in_ticks


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """A node of a typed plan. Nodes that are the same object are computed once."""

    node: Node
    schema: Schema
    inputs: tuple[Typed, ...] = ()
    module: Module | None = None  # what a Uda or Udo calls


def check(plan: Plan, sources: Mapping[str, Schema] | None = None, *, registry: Registry | None = None) -> Typed:
    """The typed plan, given the schemas of the sources that do not declare their own; or all its errors at once."""
    checker = _Checker(dict(sources or {}), registry or installed())
    try:
        return checker.whole(plan)
    except RecursionError:
        fix = "name parts of it and combine those, or ask for less at once"
        raise PlanError("the plan is nested too deeply", fix=fix, name="limit_exceeded") from None


def walk(typed: Typed) -> Iterator[Typed]:
    """Every node of a typed plan once, inputs before the nodes that read them."""
    seen: set[int] = set()

    def visit(part: Typed) -> Iterator[Typed]:
        if id(part) in seen:
            return
        seen.add(id(part))
        for child in part.inputs:
            yield from visit(child)
        yield part

    yield from visit(typed)


def group_inputs(typed: Typed) -> list[Typed]:
    """The leaves of an apply branch that stand for its group; those of inner groups belong to them."""
    if isinstance(typed.node, nodes.GroupInput):
        return [typed]
    inputs = typed.inputs[:1] if isinstance(typed.node, nodes.GroupApply) else typed.inputs
    return [leaf for part in inputs for leaf in group_inputs(part)]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the plan we are: the path for errors, the streams in scope, the group's input inside an apply."""

    path: str = "plan"
    bound: tuple[tuple[str, Typed], ...] = ()
    group: Typed | None = None
    made: dict[tuple[int, int], Typed] | None = (
        None  # of a lowered query: its parts, many of which stand in many places
    )

    def into(self, step: str) -> _Place:
        return replace(self, path=f"{self.path}.{step}")


Outcome: TypeAlias = "tuple[Node, Schema]"


class _Checker:
    def __init__(self, sources: dict[str, Schema], registry: Registry) -> None:
        self.sources = sources
        self.registry = registry
        self.seen: dict[str, Typed] = {}  # each source once, so that two mentions share one object
        self.errors: list[StreamproofError] = []  # as they were met

    def whole(self, plan: Plan) -> Typed:
        """The typed plan, if there is no error anywhere."""
        try:
            found = self.visit(plan, _Place())
        except StreamproofError as error:
            raise together(self.errors or [error]) from None
        if self.errors:
            raise together(self.errors)
        return found

    def visit(self, plan: Plan, place: _Place) -> Typed:
        if place.made is None:
            return self._located(plan, place)
        key = id(plan), id(place.group)
        if key not in place.made:
            place.made[key] = self._located(plan, place)
        return place.made[key]

    def _located(self, plan: Plan, place: _Place) -> Typed:
        try:
            return self._visit(plan, place)
        except StreamproofError as error:
            self.errors.append(error.located(f"{place.path}: {label(plan)}"))
            raise

    def _visit(self, plan: Plan, place: _Place) -> Typed:
        match plan:
            case nodes.Source():
                return self._source(plan, place)
            case nodes.GroupInput():
                return self._group_input(place)
            case nodes.Ref(name):
                return self._ref(name, place)
            case nodes.Let():
                return self._let(plan, place)
            case nodes.GroupApply():
                return self._group_apply(plan, place)
            case EventQuery():
                return self._event_query(plan, place)
        inputs = tuple(each(steps(plan), lambda step: self.visit(step[1], place.into(step[0]))))
        rule = RULES[plan]
        try:
            _one_unit(inputs)
            module = self._module(plan)
            node, schema = rule(_Inputs(inputs, self.registry, module), plan)
        except StreamproofError as error:
            if rule not in _KEEP_COLUMNS:
                raise
            self.errors.append(error.located(f"{place.path}: {label(plan)}"))
            return Typed(plan, inputs[0].schema, inputs)
        return Typed(node, schema, inputs, module)

    def _module(self, plan: Plan) -> Module | None:
        if isinstance(plan, nodes.Uda):
            return self.registry.find(plan.fn, "uda")
        return self.registry.find(plan.fn, "udo") if isinstance(plan, nodes.Udo) else None

    def _source(self, plan: nodes.Source, place: _Place) -> Typed:
        if place.group is not None:
            raise PlanError(
                f'the source "{plan.name}" cannot stand inside group_apply',
                fix="inside apply the only leaf is group_input; join outside the group instead",
            )
        if plan.name not in self.seen:
            schema = self._schema_of(plan)
            self.seen[plan.name] = Typed(replace(plan, schema=schema, unit=schema.unit), schema)
        return self.seen[plan.name]

    def _schema_of(self, plan: nodes.Source) -> Schema:
        found = self.sources.get(plan.name)
        schema = plan.schema or found
        if schema is None:
            fix = did_you_mean(plan.name, self.sources)
            raise PlanError(f'no schema is known for the source "{plan.name}"', fix=fix)
        if found is not None and plan.unit and found.unit and plan.unit != found.unit:
            raise PlanError(
                f'the source "{plan.name}" counts in {plan.unit}, its data in {found.unit}',
                fix="read the data in that unit",
            )
        return Schema(schema.columns, plan.unit or (found.unit if found else None))

    def _group_input(self, place: _Place) -> Typed:
        if place.group is None:
            raise PlanError("group_input stands outside of group_apply", fix="use a source here")
        return place.group

    def _ref(self, name: str, place: _Place) -> Typed:
        for known, typed in reversed(place.bound):
            if known == name:
                return typed
        names = [known for known, _ in place.bound]
        raise PlanError(f'the stream "{name}" is not bound by any let here', fix=did_you_mean(name, names))

    def _let(self, plan: nodes.Let, place: _Place) -> Typed:
        for name, bound in plan.bind:
            typed = self.visit(bound, place.into(f"bind.{name}"))
            place = replace(place, bound=(*place.bound, (name, typed)))
        return self.visit(plan.body, place.into("in"))

    def _event_query(self, plan: EventQuery, place: _Place) -> Typed:
        schemas = {}
        for name, part in plan.bind:
            try:
                schemas[name] = self.visit(part, place.into(f"bind.{name}")).schema
            except StreamproofError as error:
                raise at_place(error, plan.query.text, word_offset(plan.query.text, name, 0)) from None
        query = lowered(plan, schemas, self.registry)  # lives as long as the parts that are known by their identity
        return self.visit(query, replace(place, made={}))

    def _group_apply(self, plan: nodes.GroupApply, place: _Place) -> Typed:
        source = self.visit(plan.input, place.into("in"))
        key = [(name, source.schema[name]) for name in plan.key]
        # bindings from outside are hidden: inside, everything is per group
        group = Typed(nodes.GroupInput(), source.schema)
        inside = _Place(f"{place.path}.apply", group=group, made=place.made)
        applied = self.visit(plan.apply, inside)
        repeated = [name for name in plan.key if name in applied.schema]
        kept = carried(applied, {name: name for name in plan.key}) if repeated else {}
        for name in repeated:
            if kept.get(name) != name:
                raise PlanError(
                    f'the apply branch changes "{name}", which is a key of the group',
                    fix=f'call the new column something else: group_apply adds the key "{name}" by itself',
                    name="duplicate_column",
                )
        return self._with_key(plan, key, source, applied)

    def _with_key(self, plan: nodes.GroupApply, key: list[tuple[str, Type]], source: Typed, applied: Typed) -> Typed:
        """The groups' results with the key; what a branch passes on of the key itself is left out before."""
        rest = tuple((name, Col(name)) for name in applied.schema.names if name not in plan.key)
        if len(rest) == len(applied.schema.names):
            schema = Schema((*key, *applied.schema.columns), source.schema.unit)
            return Typed(plan, schema, (source, applied))
        if not rest:  # the branch is nothing but the key: a payload needs a column
            spare = "one" if "one" not in plan.key else "_".join(("one", *plan.key))
            whole = self._with_key(plan, key, source, self._select(applied, ((spare, Lit(1, INT64)),)))
            return self._select(whole, tuple((name, Col(name)) for name in plan.key))
        return self._with_key(plan, key, source, self._select(applied, rest))

    def _select(self, part: Typed, exprs: Named) -> Typed:
        node, schema = _select(_Inputs((part,), self.registry, None), nodes.Select(part.node, exprs))
        return Typed(node, schema, (part,))


def steps(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """The inputs of a node with the notation's name for each: in, left, right, by, ins[0]…"""
    if isinstance(plan, nodes.Union):
        yield from ((f"ins[{n}]", child) for n, child in enumerate(plan.ins))
        return
    for name in plan.input_fields:
        yield ("in" if name == "input" else name), getattr(plan, name)


def _one_unit(inputs: tuple[Typed, ...]) -> None:
    units = {part.schema.unit for part in inputs}
    if len(units) > 1:
        shown = " and ".join(sorted(str(unit or "none") for unit in units))
        raise PlanError(f"the inputs count time in different units: {shown}", fix="read both in one unit")


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What a rule needs of the inputs: schemas, scopes, durations in ticks."""

    typed: tuple[Typed, ...]
    registry: Registry
    module: Module | None

    @property
    def schema(self) -> Schema:
        return self.typed[0].schema

    def scope(self, *, times: tuple[str, ...] = ("le",)) -> Scope:
        return Scope.one(self.schema, times=times, registry=self.registry)

    def both(self) -> Scope:
        return Scope.two(self.typed[0].schema, self.typed[1].schema, registry=self.registry)

    def ticks(self, span: Span) -> int:
        return duration(span, self.schema.unit)

    def named(self, exprs: Named, scope: Scope) -> tuple[Named, Schema]:
        """Bound expressions and the schema they make."""
        bound = tuple(each(exprs, lambda pair: (pair[0], bind(pair[1], scope))))
        kinds = each(bound, lambda pair: (pair[0], type_of(pair[1], scope)))
        return bound, Schema(tuple(kinds), self.schema.unit)


def _where(inputs: _Inputs, node: nodes.Where) -> Outcome:
    return replace(node, expr=require(node.expr, inputs.scope(), BOOL, "the condition of where")), inputs.schema


def _select(inputs: _Inputs, node: nodes.Select) -> Outcome:
    exprs, schema = inputs.named(node.exprs, inputs.scope())
    return replace(node, exprs=exprs), schema


def _move(inputs: _Inputs, node: nodes.Shift | nodes.Extend) -> Outcome:
    return replace(node, by=inputs.ticks(node.by)), inputs.schema


def _alter_duration(inputs: _Inputs, node: nodes.AlterDuration) -> Outcome:
    if node.dur is None:
        return node, inputs.schema
    dur = Lit(inputs.ticks(node.dur), INT64) if isinstance(node.dur, int | str | timedelta) else node.dur
    return replace(node, dur=require(dur, inputs.scope(times=("le", "re")), INT64, "the duration")), inputs.schema


def _same(inputs: _Inputs, node: Node) -> Outcome:
    return node, inputs.schema


def _chop(inputs: _Inputs, node: nodes.Chop) -> Outcome:
    return replace(node, period=inputs.ticks(node.period), offset=inputs.ticks(node.offset)), inputs.schema


def _union(inputs: _Inputs, node: nodes.Union) -> Outcome:
    first = inputs.schema
    for other in inputs.typed[1:]:
        if set(other.schema.names) != set(first.names):
            odd = ", ".join(sorted(set(other.schema.names) ^ set(first.names)))
            raise PlanError(
                f"a union needs the same columns everywhere; not in all inputs: {odd}",
                fix="use select to give every input the same columns",
                name="type_mismatch",
            )
    columns = tuple((name, _united(name, [part.schema[name] for part in inputs.typed])) for name in first.names)
    return node, Schema(columns, first.unit)


def _united(name: str, types: list[Type]) -> Type:
    joined = common_type(types)
    if joined is None:
        shown = " and ".join(sorted({str(kind) for kind in types}))
        raise PlanError(f'the column "{name}" is {shown} in a union', fix="cast it in one input", name="type_mismatch")
    return joined


def _join(inputs: _Inputs, node: nodes.Join) -> Outcome:
    scope = inputs.both()
    on = require(node.on, scope, BOOL, "the join condition")
    select = node.select if node.select is not None else _all_columns(inputs)
    exprs, schema = inputs.named(select, scope)
    return replace(node, on=on, select=exprs), schema


def _all_columns(inputs: _Inputs) -> Named:
    left, right = (part.schema.names for part in inputs.typed)
    clash = [name for name in left if name in right]
    if clash:
        raise PlanError(
            f'both sides have a column "{clash[0]}"',
            fix=f'give select, e.g. {{"l_{clash[0]}": "l.{clash[0]}", "r_{clash[0]}": "r.{clash[0]}"}}',
            name="duplicate_column",
        )
    return tuple((n, Col(n, "l")) for n in left) + tuple((n, Col(n, "r")) for n in right)


def _matched(inputs: _Inputs, node: nodes.AntiJoin | nodes.Clip) -> Outcome:
    return replace(node, on=require(node.on, inputs.both(), BOOL, "the condition")), inputs.schema


def _session(inputs: _Inputs, node: nodes.Session) -> Outcome:
    each(node.key, lambda name: inputs.schema[name])  # an unknown key column is an error
    longest = None if node.max is None else inputs.ticks(node.max)
    return replace(node, timeout=inputs.ticks(node.timeout), max=longest), inputs.schema


def _aggregation(inputs: _Inputs, node: nodes.Aggregation) -> Outcome:
    scope = inputs.scope()
    aggs = tuple(each(node.aggs, lambda pair: (pair[0], bound_aggregate(pair[1], scope))))
    columns = tuple(each(aggs, lambda pair: (pair[0], aggregate_type(pair[1], scope))))
    return replace(node, window=_window(inputs, node), aggs=aggs), Schema(columns, inputs.schema.unit)


def _window(inputs: _Inputs, node: nodes.WindowNode) -> Any:
    return in_ticks(node.window, inputs.schema.unit)


def _topk(inputs: _Inputs, node: nodes.TopK) -> Outcome:
    scope = inputs.scope()
    by = tuple(each(node.by, lambda pair: (bind(pair[0], scope), pair[1])))
    columns = inputs.schema.columns
    if node.rank is not None:
        columns = (*columns, (node.rank, INT64))
    return replace(node, window=_window(inputs, node), by=by), Schema(columns, inputs.schema.unit)


def _uda(inputs: _Inputs, node: nodes.Uda) -> Outcome:
    scope = inputs.scope()
    module = _required(inputs.module)
    kind = type_of(node.arg, scope)
    taken = kind if module.takes is None else module.takes[0]
    if common_type([kind, taken]) != taken:
        raise PlanError(f"{module} takes {taken}, got {kind}", fix="cast the argument", name="type_mismatch")
    result = module.result_type(Schema((("value", taken),)))
    if isinstance(result, Schema):
        raise PlanError(f"{module} gives rows, not a value", fix="use it as a udo", name="type_mismatch")
    params = tuple(module.bind(dict(node.params)).items())
    bound = replace(node, window=_window(inputs, node), arg=bind(node.arg, scope, taken), params=params)
    return bound, Schema(((node.as_, result),), inputs.schema.unit)


def _udo(inputs: _Inputs, node: nodes.Udo) -> Outcome:
    module = _required(inputs.module)
    every = tuple((name, Col(name)) for name in inputs.schema.names)
    mapping, seen = inputs.named(node.map if node.map is not None else every, inputs.scope())
    result = module.result_type(seen)
    if not isinstance(result, Schema):
        raise PlanError(f"{module} gives a value, not rows", fix="use it as a uda", name="type_mismatch")
    if node.stamp != "align" and not module.time_sensitive:
        raise PlanError(
            f"{module} is time-insensitive, so its rows can only be aligned to the window", fix='use stamp "align"'
        )
    check_names(result.names)
    params = tuple(module.bind(dict(node.params)).items())
    bound = replace(node, window=_window(inputs, node), map=mapping, params=params)
    return bound, Schema(result.columns, inputs.schema.unit)


def _required(module: Module | None) -> Module:
    assert module is not None
    return module


def _advance_time(inputs: _Inputs, node: nodes.AdvanceTime) -> Outcome:
    if not isinstance(node.input, nodes.Source):
        raise PlanError("advance_time must stand directly above a source", fix="move it down to the source")
    every = None if node.every_duration is None else inputs.ticks(node.every_duration)
    return replace(node, every_duration=every, delay=inputs.ticks(node.delay)), inputs.schema


Rule: TypeAlias = Callable[[_Inputs, Any], Outcome]
RULES: Rules[Rule] = Rules(
    "the check",
    {
        nodes.Where: _where,
        nodes.Select: _select,
        nodes.Shift: _move,
        nodes.Extend: _move,
        nodes.AlterDuration: _alter_duration,
        nodes.ToPoint: _same,
        nodes.PointAtEnd: _same,
        nodes.Chop: _chop,
        nodes.Stitch: _same,
        nodes.Coalesce: _same,
        nodes.Distinct: _same,
        nodes.Union: _union,
        nodes.Join: _join,
        nodes.LeftOuter: _join,
        nodes.FullOuter: _join,
        nodes.FollowedBy: _join,
        nodes.AntiJoin: _matched,
        nodes.Clip: _matched,
        nodes.Session: _session,
        nodes.Aggregation: _aggregation,
        nodes.TopK: _topk,
        nodes.Uda: _uda,
        nodes.Udo: _udo,
        nodes.AdvanceTime: _advance_time,
        Transition: event_rules.transition,
        Drift: event_rules.drift,
        Pairing: event_rules.pairing,
        During: event_rules.during,
    },
)
_KEEP_COLUMNS: Final = frozenset({_where, _move, _alter_duration, _same, _chop, _matched, _session, _advance_time})
"""Rules of nodes that pass on the columns of their first input: with an error in them, what stands above is checked."""
