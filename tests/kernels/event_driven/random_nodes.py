"""Random transitions, drifts, pairings and durings over random streams."""

from __future__ import annotations

from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.event_nodes import POLICIES, TRIGGERS, WAYS, Drift, During, Pairing, Transition
from streamproof.plan.expr import Col, literal
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.workbench.case import Case
from streamproof.workbench.draw.choices import Choices
from streamproof.workbench.draw.dense import random_stream

SCHEMA = Schema.of(
    {"k": "string", "v": "int64", "f": "float64", "b": "bool", "d": "decimal(10,2)", "u": "int64", "s": "string"}
)
COMBINING = tuple(
    Aggregate(fn, None if arg is None else parse(arg))
    for fn, arg in (
        ("count", None), ("sum", "v"), ("avg", "f"), ("min", "v"), ("max", "f"), ("sum", "f"), ("avg", "v"),
        ("max", "v"), ("sum", "d"), ("avg", "d"), ("min", "b"),
    )
)  # fmt: skip
OTHERS = tuple(
    Aggregate(fn, parse(arg))
    for fn, arg in (
        ("last", "v"), ("first", "f"), ("median", "v"), ("count_distinct", "v"), ("var_pop", "v"), ("max", "s"),
    )
)  # fmt: skip
A, B, D = nodes.Source("A"), nodes.Source("B"), nodes.Source("D")


def random_node(choices: Choices) -> Plan:
    key = ("k",) if choices.chance(60) else ()
    match choices.pick(("transition", "drift", "pairing", "during", "during", "during")):
        case "transition":
            return Transition(A, parse(choices.pick(("v > 1", "f >= 1.0", "b", "v % 2 = 0"))), key)
        case "drift":
            step = literal(choices.pick((1, 2, 3, 0.5, 1.5)))
            return Drift(A, parse(choices.pick(("v", "f", "d", "v + u"))), step, choices.pick(WAYS), key)
        case "pairing":
            return Pairing(A, B, key, choices.pick(POLICIES), choices.integer(1, 9) if choices.chance(50) else None)
    return _during(choices, key)


def _during(choices: Choices, key: tuple[str, ...]) -> Plan:
    trigger = choices.pick(TRIGGERS)
    left: Plan = nodes.Select(A, (("k", parse("k")), ("x", parse("v"))))
    if choices.chance(30) and trigger != "start":
        longest = None if choices.chance(50) else 6
        left = nodes.Select(Pairing(nodes.ToPoint(A), B, ("k",), choices.pick(POLICIES), longest), (("k", parse("k")),))
    library = COMBINING if choices.chance(60) else COMBINING + OTHERS
    aggs = tuple((f"n{n}", choices.pick(library)) for n in range(choices.integer(1, 3)))
    group = choices.pick(((), (), ("s",), ("b",)))
    latest = trigger == "start" and choices.chance(30)
    empty = trigger in ("start", "end") and not latest and not group and choices.chance(30)
    reach = choices.integer(1, 8) if choices.chance(60) and trigger != "end" and not latest else None
    hop = choices.integer(1, 5) if trigger == "hop" else None
    begin = "begin" if choices.chance(50) else None
    end = "end" if choices.chance(50) else None
    return During(left, D, aggs, trigger, key, group, reach, hop, begin, end, latest, empty)


def grouped(plan: Plan) -> Plan:
    """The same inside a group_apply: all streams are parts of the group's events."""
    parts = {"A": "v > 1 or v is null", "B": "v <= 1", "D": "true"}

    def inside(node: Plan) -> Plan:
        if not isinstance(node, nodes.Source):
            return node
        return nodes.Where(nodes.GroupInput(), parse(parts[node.name]))

    branch = nodes.transform(plan, inside)
    if isinstance(plan, During):
        assert isinstance(plan.left, nodes.Select)
        names = [*plan.group, *(name for name, _ in plan.left.exprs), *(name for name, _ in plan.aggs)]
    else:
        names = ["k", "v", "s"]
    kept = tuple((f"{name}_in", Col(name)) for name in names)
    return nodes.GroupApply(A, ("b",), nodes.Select(branch, kept))


def random_node_case(choices: Choices) -> Case:
    plan = random_node(choices)
    if choices.chance(25):
        plan = grouped(plan)
    streams = {name: random_stream(choices, SCHEMA, far=choices.chance(5)) for name in nodes.sources(plan)}
    return Case(plan, streams, horizon=choices.integer(0, 20) if choices.chance(50) else None)
