"""Each node's rule: the SQL that computes it. None is refused."""

from __future__ import annotations

from typing import Any

from streamproof.engines.oracle import aggregates, event_nodes, joins, lifetimes, modules, payloads, windows
from streamproof.engines.oracle.compiler import Compiler, EventTable, listed
from streamproof.engines.oracle.database import rows_of
from streamproof.engines.oracle.dialect import Sql, order_keys
from streamproof.engines.oracle.expressions import convert
from streamproof.engines.oracle.program import Load
from streamproof.events.schema import INT64
from streamproof.plan import nodes
from streamproof.plan.check import Typed, group_inputs
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition
from streamproof.plan.rules import Rules


def compile_node(compiler: Compiler, typed: Typed) -> EventTable:
    """The relation of a node and, before it, of its inputs."""
    return compiler.visit(typed, _node)


def _node(compiler: Compiler, typed: Typed) -> EventTable:
    if isinstance(typed.node, nodes.Source):
        return _source(compiler, typed, typed.node)
    if isinstance(typed.node, nodes.GroupApply):
        return _group_apply(compiler, typed, typed.node)
    inputs = [compile_node(compiler, part) for part in typed.inputs]
    if isinstance(typed.node, nodes.Union):
        return _union(compiler, typed, typed.node, *inputs)
    relation: EventTable = RULES[typed.node](compiler, typed, typed.node, *inputs)
    return relation


def _source(compiler: Compiler, typed: Typed, node: nodes.Source) -> EventTable:
    loaded = compiler.name("source")
    columns = (("g", INT64), *rows_of(typed.schema))
    compiler.steps.append(Load(loaded, node.name, columns, compiler.note))
    return EventTable(loaded, typed.schema)


def _union(compiler: Compiler, typed: Typed, node: nodes.Union, *inputs: EventTable) -> EventTable:
    """Columns are matched by name, and brought to the common type."""
    parts = []
    for source in inputs:
        place = {name: n for n, name in enumerate(source.schema.names)}
        columns = [
            convert(Sql(f"c{place[name]}", source.schema[name]), kind, compiler.dialect).text + f" AS c{n}"
            for n, (name, kind) in enumerate(typed.schema)
        ]
        parts.append(f"SELECT {listed('g, le, re', columns)} FROM {source.table}")
    return compiler.relation("united", " UNION ALL ".join(parts), typed.schema)


def _group_apply(compiler: Compiler, typed: Typed, node: nodes.GroupApply) -> EventTable:
    """Each key becomes a number in g, null a key of its own; inside, everything is per g."""
    source_node, applied_node = typed.inputs
    source = compile_node(compiler, source_node)
    names = source.schema.names
    keys = [source.keys[names.index(key)] for key in node.key]
    order = order_keys(compiler.dialect, [("g", INT64), *keys])
    ranked = compiler.create("ranked", f"SELECT *, dense_rank() OVER (ORDER BY {order}) AS inner_g FROM {source.table}")
    columns = [f"{name} AS k{n}" for n, (name, _) in enumerate(keys)]
    groups = compiler.create("groups", f"SELECT DISTINCT {listed('inner_g, g', columns)} FROM {ranked}")
    inside = compiler.relation(
        "grouped", f"SELECT {listed('inner_g AS g, le, re', source.payload)} FROM {ranked}", source.schema
    )
    for leaf in group_inputs(applied_node):
        compiler.done[id(leaf)] = inside
    applied = compile_node(compiler, applied_node)
    out = [f"k.k{n} AS c{n}" for n in range(len(keys))]
    rest = [f"a.{name} AS c{n + len(keys)}" for n, name in enumerate(applied.payload)]
    query = f"SELECT {listed('k.g, a.le, a.re', out, rest)} FROM {applied.table} a JOIN {groups} k ON k.inner_g = a.g"
    return compiler.relation("applied", query, typed.schema)


RULES: Rules[Any] = Rules(
    "the oracle",
    {
        nodes.Source: _source,
        nodes.GroupInput: None,  # bound by group_apply
        nodes.Where: lifetimes.where,
        nodes.Select: lifetimes.select,
        nodes.Shift: lifetimes.shift,
        nodes.Extend: lifetimes.extend,
        nodes.AlterDuration: lifetimes.alter_duration,
        nodes.ToPoint: lifetimes.to_point,
        nodes.PointAtEnd: lifetimes.point_at_end,
        nodes.Chop: windows.chop,
        nodes.Stitch: payloads.stitch,
        nodes.Coalesce: payloads.coalesce,
        nodes.Distinct: payloads.distinct,
        nodes.Union: _union,
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
        nodes.AdvanceTime: lifetimes.advance_time,
        Transition: event_nodes.transition,
        Drift: event_nodes.drift,
        Pairing: event_nodes.pairing,
        During: event_nodes.during,
    },
)
