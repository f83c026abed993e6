"""Every language gives back the plan that it was given, whatever the plan."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import streamproof
from streamproof.errors import PlanError
from streamproof.language import json, python, xml
from streamproof.language.python import render
from streamproof.plan import nodes
from streamproof.plan.event_nodes import NODES
from streamproof.plan.nodes import Plan
from tests.language.plans import counting_events, plans

ROUNDS = settings(max_examples=150, deadline=None)


def shown(plan: Plan) -> str:
    """Plans compare by their text here: 1, True and 1.0 are equal in Python, and NaN is not equal to itself."""
    return repr(plan)


@given(plans)
@ROUNDS
def test_json_gives_the_plan_back(plan: Plan) -> None:
    assert shown(json.loads(json.dumps(plan))) == shown(plan)


@given(plans)
@ROUNDS
def test_xml_gives_the_plan_back_or_names_the_character_it_cannot_hold(plan: Plan) -> None:
    missing = re.search("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", json.dumps(plan))
    escaped = re.search(r"(?<!\\)(?:\\\\)*\\(?:u00[01]|[bf])", json.dumps(plan))  # a control character in JSON
    if missing or escaped:
        with pytest.raises(PlanError, match="XML cannot hold the character U\\+") as caught:
            xml.dumps(plan)
        assert caught.value.fix == "write the plan as JSON"
    else:
        assert shown(xml.loads(xml.dumps(plan))) == shown(plan)


def evaluated(text: str) -> Plan:
    names: dict[str, Any] = {name: getattr(streamproof, name) for name in streamproof.__all__}
    names.update(Decimal=Decimal, date=date, datetime=datetime, UTC=UTC)
    found: streamproof.Stream = eval(text, names)
    return found.plan


@given(plans)
@ROUNDS
def test_python_gives_the_plan_back(plan: Plan) -> None:
    assert shown(evaluated(python.dumps(plan))) == shown(counting_events(plan))


@given(plans, st.integers(20, 60))
@settings(max_examples=60, deadline=None)
def test_the_layout_of_python_changes_nothing(plan: Plan, width: int) -> None:
    chain = python._chain(plan, None)
    assert shown(evaluated(render(chain, width=width))) == shown(counting_events(plan))


def test_every_node_is_covered() -> None:
    """The generator makes every node there is."""
    found: set[type[nodes.Node]] = set()

    @given(plans)
    @settings(max_examples=400, derandomize=True, deadline=None, phases=[Phase.generate])
    def collect(plan: Plan) -> None:
        found.update(type(node) for node in nodes.walk(plan))

    collect()
    assert found == set(NODES)
