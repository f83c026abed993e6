"""Streams that break one rule on purpose: the validator names that rule, once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.stream import PhysicalStream
from streamproof.events.validate import RULES, Validator
from streamproof.generate.facets import ILLEGAL, Facets, contradiction
from streamproof.generate.stream import generate, generated
from tests.generate.space import Words, facet_words, possible

SCHEMA = {"k": "string", "v": "float64"}
RULE_OF = {"unknown_retraction": "unmatched_retraction"}


def validator(facets: Facets, rule: str, policy: Any = "drop") -> Validator:
    order = "by_le" if rule == "order" else None
    return Validator(policy=policy, shape=facets.shape, order=order)  # type: ignore[arg-type]  # a word that Facets checked


@settings(max_examples=120)
@given(facet_words(), st.sampled_from(ILLEGAL), st.sampled_from([0, 1, 2, 9, 80]), st.integers(0, 2**64 - 1))
def test_exactly_one_event_breaks_exactly_that_rule(words: Words, rule: str, count: int, seed: int) -> None:
    words = {**words, "illegal": rule}
    if rule == "order":
        words["disorder"] = "in_order"
    if rule == "shape" and words["shape"] == "interval":
        words = {**words, "shape": "edge", "speculation": "none"}
    assume(possible(words))
    facets = Facets(**words)
    stream = generated(SCHEMA, count, seed, facets)
    lenient = validator(facets, rule)
    lenient.check(stream)
    assert [violation.rule for violation in lenient.violations] == [RULE_OF.get(rule, rule)]
    with pytest.raises(InputError):
        validator(facets, rule, "fail").check(stream)


def test_every_rule_can_be_broken() -> None:
    assert {RULE_OF.get(word, word) for word in ILLEGAL} == set(RULES)
    assert contradiction(illegal="cti_violation") is None


@pytest.mark.parametrize("rule", [word for word in ILLEGAL if word not in ("shape", "order")])
def test_the_rule_is_broken_half_way_whatever_the_chunks(rule: str) -> None:
    facets = Facets(illegal=rule, disorder="out_of_order", speculation="mixed")
    stream = generated(SCHEMA, 400, 8, facets)
    lenient = Validator(policy="drop")
    lenient.check(stream)
    (violation,) = lenient.violations
    assert 150 < violation.position < 300
    assert PhysicalStream.concat(generate(SCHEMA, 400, 8, facets, chunk_rows=33)) == stream


@pytest.mark.parametrize("rule", [word for word in ILLEGAL if word != "shape"])
def test_all_else_is_as_without_the_broken_rule(rule: str) -> None:
    calm = generated(SCHEMA, 100, 8, Facets())
    broken = generated(SCHEMA, 100, 8, Facets(illegal=rule))
    planted = {str(event) for event in broken.to_events()} - {str(event) for event in calm.to_events()}
    assert 1 <= len(planted) <= 2
    assert len(broken) - len(calm) <= 2
