"""Plans for people: trees and diagrams."""

from __future__ import annotations

import re

from hypothesis import given, settings

from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.explain import explain, mermaid
from streamproof.plan.labels import label
from streamproof.plan.nodes import Plan
from streamproof.query.aggregates import count
from streamproof.query.stream import let, ref, source
from tests.language.plans import plans

SCHEMAS = {"S": Schema.of({"k": "string", "v": "int64"}, unit="ms")}
S = source("S")


def test_a_tree_names_the_role_of_each_input() -> None:
    stream = S.clip(source("R"), "l.k = r.k").group_apply("k", apply=lambda g: g.snapshot().aggregate(n=count()))
    shown = let(M=stream).in_(ref("M").union(ref("M"), S.without(source("R")))).explain()
    assert shown == "\n".join(
        [
            "let(M)",
            "├─ M = group_apply(k)",
            "│  ├─ in: clip(on=l.k = r.k)",
            "│  │  ├─ in: source(S)",
            "│  │  └─ by: source(R)",
            "│  └─ apply: agg(snapshot, n=count())",
            "│     └─ group_input",
            "└─ in: union",
            "   ├─ ref(M)",
            "   ├─ ref(M)",
            "   └─ lasj(on=true)",
            "      ├─ left: source(S)",
            "      └─ right: source(R)",
        ]
    )


def test_a_typed_plan_shows_schemas_also_of_bound_streams() -> None:
    plan = let(M=S.select("v")).in_(ref("M").shift("1s")).plan
    assert explain(plan, typed=check(plan, SCHEMAS)) == "\n".join(
        [
            "let(M)            [v int64] in ms",
            "├─ M = select(v)  [v int64] in ms",
            "│  └─ source(S)   [k string, v int64] in ms",
            "└─ in: shift(1s)  [v int64] in ms",
            "   └─ ref(M)      [v int64] in ms",
        ]
    )


def test_support_marks_every_node_and_gives_the_reasons_below() -> None:
    support: dict[str, dict[str, bool | str]] = {
        "duckdb": {"Source": True, "Shift": True},
        "toy": {"Source": True, "Shift": "time stands still here"},
    }
    assert explain(S.shift(2).plan, support=support) == "\n".join(
        [
            "shift(2)      duckdb yes  toy no",
            "└─ source(S)  duckdb yes  toy yes",
            "note: toy does not run Shift: time stands still here",
        ]
    )


def test_an_unrestricted_time_sensitive_module_is_warned_about() -> None:
    warning = (
        "warning: uda twavg@1 is time-sensitive and unrestricted: no CTI passes "
        'uda(tumbling(size=10), twavg=twavg(v)); promise restriction "window_based" or "time_bound" if it keeps to it'
    )
    assert warning in S.tumbling(10).uda("twavg", "v").explain()
    assert "warning" not in S.tumbling(10).uda("twavg", "v", restriction="window_based").explain()
    assert "warning" not in S.tumbling(10).uda("median", "v").explain()
    assert "warning" not in S.tumbling(10).uda("unknown_module", "v").explain()


@given(plans)
@settings(max_examples=25, deadline=None)
def test_every_plan_has_a_tree_of_one_printable_line_per_node(plan: Plan) -> None:
    lines = [line for line in explain(plan).split("\n") if not line.startswith("warning: ")]
    assert len(lines) == len(list(nodes.walk(plan)))
    assert all(line.isprintable() for line in lines)


@given(plans)
@settings(max_examples=25, deadline=None)
def test_every_plan_has_a_diagram_whose_labels_cannot_break_out(plan: Plan) -> None:
    first, *lines = mermaid(plan).split("\n")
    assert first == "flowchart LR"
    boxes = [re.fullmatch(r'  (n\d+)\["([^"<>`\\]*)"\]', line) for line in lines]
    arrows = [re.fullmatch(r"  (n\d+) -->(?:\|(?:in|by|left|right)\|)? (n\d+)", line) for line in lines]
    assert all(box or arrow for box, arrow in zip(boxes, arrows, strict=True))
    drawn = {box.group(1) for box in boxes if box}
    assert all({*arrow.groups()} <= drawn for arrow in arrows if arrow)


def test_what_is_read_twice_is_drawn_once() -> None:
    chart = S.where("v > 1").multicast(lambda m: m.clip(m)).union(S).mermaid()
    assert chart.split("\n") == [
        "flowchart LR",
        '  n1["source(S)"]',
        '  n2["where(v #62; 1)"]',
        "  n1 --> n2",
        '  n3["clip(on=true)"]',
        "  n2 -->|in| n3",
        "  n2 -->|by| n3",
        '  n4["union"]',
        "  n3 --> n4",
        "  n1 --> n4",
    ]


def test_a_group_is_drawn_between_its_input_and_its_result() -> None:
    chart = S.group_by("k").snapshot().aggregate(n=count()).mermaid()
    assert chart.split("\n") == [
        "flowchart LR",
        '  n1["source(S)"]',
        '  n2["per k"]',
        "  n1 --> n2",
        '  n3["agg(snapshot, n=count())"]',
        "  n2 --> n3",
        '  n4["group_apply(k)"]',
        "  n3 --> n4",
    ]


@given(plans)
@settings(max_examples=60, deadline=None)
def test_every_node_has_a_label_that_begins_with_its_op(plan: Plan) -> None:
    assert all(label(node).startswith(node.op) for node in nodes.walk(plan))
