"""Intents: they concretise, the same way for the same seed, and compose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamproof.errors import PlanError, StreamproofError
from streamproof.plan import nodes
from streamproof.plan.windows import Hopping
from streamproof.workbench import intent as I  # noqa: N812
from streamproof.workbench.concretise import concretise, covering_groups, factors_of
from streamproof.workbench.suite import load_suite


def test_the_equi_join_over_highly_disordered_streams() -> None:
    left, right = I.stream(), I.stream()
    data = I.events(disorder="highly", duration=I.any, overlap="high", speculative=True)
    scenario = left.join(right).on(I.expr(left) == I.expr(right)).over(data).called("equi-join")
    cases = scenario.concrete(40, seed=3)
    assert len(cases) == 40
    for case in cases:
        joins = [node for node in nodes.walk(case.plan) if isinstance(node, nodes.Join)]
        assert len(joins) == 1
        assert joins[0].on.fn == "eq"  # type: ignore[union-attr]
        assert any(isinstance(node, nodes.TopK) for node in nodes.walk(case.plan)), "made speculative by the query"
        assert case.factors["disorder"] == "highly"
    assert {case.factors["duration"] for case in cases} >= {"short", "long", "infinite"}


def test_the_same_seed_gives_the_same_cases() -> None:
    scenario = I.operator(I.stream()).called("one")
    first, again = scenario.concrete(20, seed=5), scenario.concrete(20, seed=5)
    assert [case.id for case in first] == [case.id for case in again]
    assert [case.id for case in first] != [case.id for case in scenario.concrete(20, seed=6)]
    assert [c.id for c in concretise(scenario, 6, seed=5, start=7)] == [c.id for c in first[7:13]]


def test_every_pair_of_choices_is_covered() -> None:
    scenario = I.operator(I.stream()).called("one")
    factors = factors_of(scenario).all
    rows = [row for group in covering_groups(scenario, seed=1, size=4).groups for row in group]
    seen = {(a, row[a], b, row[b]) for row in rows for a in row for b in row}
    lives = ("shape", "duration", "pattern", "speculation")
    for a, values in factors.items():
        for b, others in factors.items():
            if a < b and not (a in lives and b in lives):
                missing = [(x, y) for x in values for y in others if (a, x, b, y) not in seen]
                assert missing == [], f"{a} × {b}"


def test_scenarios_compose() -> None:
    filtered = I.stream().where()
    counted = I.stream().aggregate(window=I.window("hopping"))
    both = (filtered >> counted).called("both")
    case = both.concrete(1, seed=2)[0]
    aggregation = next(node for node in nodes.walk(case.plan) if isinstance(node, nodes.Aggregation))
    assert isinstance(aggregation.window, Hopping)
    assert any(isinstance(node, nodes.Where) for node in nodes.walk(aggregation))
    nested = I.operator(both, I.stream().group_apply(lambda g: g.group_apply(I.operator))).called("nested")
    assert all(len(list(nodes.walk(case.plan))) > 6 for case in nested.concrete(8, seed=4))


def test_what_is_said_stays_as_it_is_said() -> None:
    stream = I.stream({"k": "string", "v": "int64"})
    scenario = stream.where("v > 1").group_apply(lambda g: g.aggregate(window="tumbling", aggs={"n": "count"}), key="k")
    for case in scenario.called("said").concrete(6, seed=1):
        where = next(node for node in nodes.walk(case.plan) if isinstance(node, nodes.Where))
        group = next(
            node for node in nodes.walk(case.plan) if isinstance(node, nodes.GroupApply) and node.key == ("k",)
        )
        assert str(where.expr) == str(nodes.Where(where.input, where.expr).expr)
        assert next(iter(group.apply.aggs))[1].fn == "count"  # type: ignore[attr-defined]
        assert set(case.streams["S"].schema.names) == {"k", "v"}


def test_a_stream_with_a_pattern_of_ones_own() -> None:
    def stairs() -> list[tuple[int, int]]:
        return [(n * 3, n * 3 + 4) for n in range(50)]

    data = I.events(pattern=stairs, speculation="none", disorder="in_order", shape="interval", duplicates="none")
    case = I.operator(I.stream()).over(data).called("stairs").concrete(1)[0]
    assert [(row[0], row[1]) for row in case.streams["S"].rows] == stairs()[: len(case.streams["S"].rows)]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: I.stream().then("jion"), 'there is no operator "jion"'),
        (lambda: I.events(disorders="highly"), 'there is no facet "disorders"'),
        (lambda: I.events(disorder="very"), 'disorder is never "very"'),
        (lambda: I.events(pattern="dnse"), 'pattern is never "dnse"'),
        (lambda: I.events(speculative="none"), "speculative must be true or false, got 'none'"),
        (lambda: I.group().fed_by(I.stream()), "the scenario has no stream to feed"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: object, text: str) -> None:
    assert callable(make)
    with pytest.raises(PlanError, match=text):
        make()


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"scenarios": {"a": "stream"}, "casess": 3}, 'a suite has no "casess"'),
        ({"scenarios": {"a": "stream"}, "cases": "3"}, "\"cases\" of a suite is '3'"),
        ({"scenarios": {"a": "stream"}, "seed": True}, '"seed" of a suite is True'),
        ([], '"scenarios" of a suite is None'),
        ({}, "the suite cannot be read"),
        ({"scenarios": {"a": {"op": "stream", "colums": {}}}}, '"stream" has no field "colums"'),
        ({"scenarios": {"a": {"op": "to_point", "in": "stream", "zap": 1}}}, '"to_point" has no field "zap"'),
        (
            {"scenarios": {"a": {"op": "to_point", "in": "stream", "right": "stream"}}},
            '"to_point" takes 1 inputs, got 2',
        ),
        ({"scenarios": {"a": {"op": "join", "left": "stream"}}}, '"join" takes 2 inputs, got 1'),
        ({"scenarios": {"a": {"op": "stream", "in": "stream"}}}, '"stream" has no input'),
        ({"scenarios": {"a": {"op": "random", "in": "stream", "dept": 2}}}, '"random" has no field "dept"'),
        ({"scenarios": {"a": {"op": "operator", "in": "stream", "amon": []}}}, '"operator" has no field "amon"'),
        ({"scenarios": {"a": {"op": "stream", "over": {"disordr": "highly"}}}}, 'there is no facet "disordr"'),
    ],
)
def test_what_a_suite_file_says_is_known_or_refused(document: object, says: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(document))
    with pytest.raises(StreamproofError) as raised:
        load_suite(str(path))
    assert says in str(raised.value)
