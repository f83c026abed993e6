"""Each node's rule in batch mode: the DataFrame that computes it. None is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from streamproof.engines.spark.batch import aggregates, event_nodes, joins, linear, modules, payloads, windows
from streamproof.engines.spark.batch.relation import BatchContext, Relation
from streamproof.events.schema import FLOAT64
from streamproof.plan import nodes
from streamproof.plan.check import Typed, group_inputs
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition
from streamproof.plan.labels import label
from streamproof.plan.library import calls_modules
from streamproof.plan.rules import Rules


def build(context: BatchContext, typed: Typed) -> Relation:
    """The relation of a node and, before it, of its inputs; one that several nodes read is built once."""
    if id(typed) not in context.done:
        outer, context.note = context.note, label(typed.node)
        context.done[id(typed)] = _node(context, typed)
        context.note = outer
    return context.done[id(typed)]


def _node(context: BatchContext, typed: Typed) -> Relation:
    if isinstance(typed.node, nodes.Source):
        name = typed.node.name
        return Relation(context.sources[name], typed.schema, cheap=True, origin=context.given.get(name))
    if isinstance(typed.node, nodes.GroupApply):
        return _group_apply(context, typed, typed.node)
    inputs = [build(context, part) for part in typed.inputs]
    relation: Relation = BATCH[typed.node](context, typed, typed.node, *inputs)
    node = typed.node
    cheap = node.meets == "none" and node.gives != "any" and all(part.cheap for part in inputs)
    origin = inputs[0].origin if cheap and node.keeps_payload else None
    return replace(relation, cheap=cheap and not calls_modules(typed.node), origin=origin)


def _group_apply(context: BatchContext, typed: Typed, node: nodes.GroupApply) -> Relation:
    """The key becomes columns beside the payload; inside, every rule works per group."""
    source_node, applied_node = typed.inputs
    source = build(context, source_node)
    names = source.schema.names
    added = [f"g{len(source.groups) + n}" for n in range(len(node.key))]
    keys = [f"{_as_key(source, names.index(key))} AS {name}" for key, name in zip(node.key, added, strict=True)]
    groups = (*source.groups, *added)
    inner = source.frame.selectExpr("le", "re", *source.groups, *keys, *source.payload)
    inside = Relation(inner, source.schema, groups, source.points, source.cheap, source.origin)
    for leaf in group_inputs(applied_node):
        context.done[id(leaf)] = inside
    applied = build(context, applied_node)
    out = [f"{name} AS c{n}" for n, name in enumerate([*added, *applied.payload])]
    return Relation(applied.frame.selectExpr("le", "re", *source.groups, *out), typed.schema, source.groups)


def _as_key(source: Relation, number: int) -> str:
    """A column to group by: one NaN, and no −0.0, because Python compares keys too."""
    column = f"c{number}"
    if source.schema.columns[number][1] != FLOAT64:
        return column
    return f"CASE WHEN isnan({column}) THEN double('NaN') ELSE {column} + 0D END"


BATCH: Rules[Any] = Rules(
    "Spark in batch mode",
    {
        nodes.Source: None,  # bound by the run
        nodes.GroupInput: None,  # bound by group_apply
        nodes.Where: linear.where,
        nodes.Select: linear.select,
        nodes.Shift: linear.shift,
        nodes.Extend: linear.extend,
        nodes.AlterDuration: linear.alter_duration,
        nodes.ToPoint: linear.to_point,
        nodes.PointAtEnd: linear.point_at_end,
        nodes.Chop: windows.chop,
        nodes.Stitch: payloads.stitch,
        nodes.Coalesce: payloads.coalesce,
        nodes.Distinct: payloads.distinct,
        nodes.Union: linear.union,
        nodes.Join: joins.join,
        nodes.LeftOuter: joins.left_outer,
        nodes.FullOuter: joins.full_outer,
        nodes.FollowedBy: joins.followed_by,
        nodes.AntiJoin: joins.anti_join,
        nodes.Clip: joins.clip,
        nodes.GroupApply: _group_apply,
        nodes.Session: payloads.session,
        nodes.Aggregation: aggregates.aggregation,
        nodes.TopK: aggregates.top_k,
        nodes.Uda: modules.uda,
        nodes.Udo: modules.udo,
        nodes.AdvanceTime: linear.advance_time,
        Transition: event_nodes.keyed,
        Drift: event_nodes.keyed,
        Pairing: event_nodes.keyed,
        During: event_nodes.keyed,
    },
)
