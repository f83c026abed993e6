"""Facets: words, numbers, and what contradicts what."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from streamproof.errors import PlanError
from streamproof.generate.facets import DISORDERS, Facets, Values, contradiction
from streamproof.generate.stream import generated
from tests.generate.space import Words, facet_words


def error_of(**words: object) -> PlanError:
    with pytest.raises(PlanError) as raised:
        Facets(**words)  # type: ignore[arg-type]  # on purpose
    return raised.value


@pytest.mark.parametrize(
    ("facet", "word", "near"),
    [
        ("shape", "pont", "point"), ("duration", "shrot", "short"), ("overlap", "hihg", "high"),
        ("pattern", "back-to-bakc", "back_to_back"), ("liveliness", "eagre", "eager"), ("disorder", "higly", "highly"),
        ("speculation", "chain", "chains"), ("duplicates", "sme", "some"), ("keys", "uniqe", "unique"),
        ("skew", "zpf", "zipf"), ("nulls", "non", "none"), ("boundary", "mny", "many"),
        ("illegal", "cti_violaton", "cti_violation"),
    ],
)  # fmt: skip
def test_a_mistyped_word_gets_a_hint(facet: str, word: str, near: str) -> None:
    error = error_of(**{facet: word})
    assert error.what == f"unknown {facet} {word!r}"
    assert f'did you mean "{near}"?' in str(error.fix)
    assert error.at == f"Facets({facet}={word!r})"


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ({"disorder": 0.95}, "disorder must be a number from 0 to 0.9, got 0.95"),
        ({"disorder": float("nan")}, "disorder must be a number from 0 to 0.9, got nan"),
        ({"disorder": (0.5, 0)}, "disorder's places must be from 1 to 1,048,576, got 0"),
        ({"duration": 0}, "duration must be from 1 to 281,474,976,710,656, got 0"),
        ({"duration": (5, 4)}, "duration must be from 5 to 281,474,976,710,656, got 4"),
        ({"liveliness": 0}, "liveliness must be from 1 to 2,147,483,648, got 0"),
        ({"liveliness": True}, "liveliness must be text or a whole number, got True"),
        ({"nulls": -1}, "nulls must be a number from 0 to 1, got -1"),
        ({"nulls": [1]}, "nulls must be text or a whole number, a number or a Fraction, got a list"),
        ({"skew": 0.3}, "skew must be a multiple of 1/2, got 0.3"),
        ({"start": 2**62}, f"start must be from {-(2**61):,} to {2**61:,}, got {2**62:,}"),
        ({"columns": {"v": Values(nulls=2)}}, "nulls must be a number from 0 to 1, got 2"),
    ],
)
def test_numbers_have_bounds(words: Words, what: str) -> None:
    assert error_of(**words).what == what


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ({"shape": "point", "duration": "long"}, "a point lasts one tick"),
        ({"shape": "point", "speculation": "extend"}, "a point cannot shrink: it can only be taken back whole"),
        ({"shape": "edge", "speculation": "chains"}, "an edge cannot change: its end edge comes once"),
        ({"duration": "infinite", "pattern": "disjoint"}, "infinite lifetimes overlap, and the pattern is disjoint"),
        ({"duration": "infinite", "speculation": "shrink"}, "an infinite lifetime is not what is left after shrinking"),
        ({"duration": "point", "speculation": "extend"}, "a lifetime of one tick has not been shorter before"),
        ({"pattern": "staggered", "overlap": "high"}, "this pattern decides how much events overlap"),
        ({"pattern": list, "duration": 5}, "the pattern's function gives the lifetimes"),
        ({"keys": "unique", "skew": "zipf"}, "values that are all different have no skew"),
        ({"illegal": "shape"}, "intervals may have any lifetime"),
        ({"illegal": "order", "disorder": "highly"}, "a stream with late events breaks its order anyway"),
    ],
)
def test_facets_that_no_stream_has_are_refused(words: Words, what: str) -> None:
    assert error_of(**words).what == what
    assert contradiction(**words) == what


def test_words_are_read_kindly_and_mean_numbers() -> None:
    assert Facets(disorder="Out of order").numbers.places == 64
    assert Facets(disorder="Out-of-order").numbers == Facets(disorder="out_of_order").numbers
    assert Facets(disorder=0.1).numbers.late == Fraction(1, 10) == DISORDERS["out_of_order"][0]


@given(facet_words())
def test_facets_are_plain_data(words: Words) -> None:
    facets = Facets(**words)
    assert Facets(**facets.as_dict()) == facets  # type: ignore[arg-type]  # what was given


def test_values_of_one_column_override_those_of_all() -> None:
    facets = Facets(keys=50, nulls="some", columns={"k": Values(keys=2), "v": Values(nulls=0, skew="zipf")})
    assert facets.values("k").keys == 2
    assert facets.values("k").nulls == Fraction(1, 10)
    assert facets.values("v") == (50, 1, 0, 0)
    assert facets.values("other") == (50, 0, Fraction(1, 10), 0)


def test_facets_of_a_column_that_is_not_there() -> None:
    with pytest.raises(PlanError) as raised:
        generated({"value": "int64"}, 1, 0, Facets(columns={"valu": Values(keys=1)}))
    assert (raised.value.name, raised.value.what) == ("unknown_column", 'the facets speak of a column "valu"')
    assert raised.value.fix == 'did you mean "value"? Known: "value"'
