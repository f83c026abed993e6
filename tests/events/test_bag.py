from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from streamproof.events.bag import consolidate, difference, identical, instants
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from tests.events.strategies import SMALL, rows

Items = list[tuple[int, int, dict[str, object]]]


@given(rows(), rows())
def test_difference_is_what_only_one_side_has(a: Items, b: Items) -> None:
    left, right = (History.from_rows(SMALL, items).rows for items in (a, b))
    rest = difference(left, right)
    assert identical(difference(left, rest), right)
    assert identical(consolidate(rest), rest)
    assert difference(left, left).num_rows == 0


@given(rows())
def test_instants_are_maximal_pieces_with_a_count(a: Items) -> None:
    pieces = instants(History.from_rows(SMALL, a).rows).to_pylist()
    for piece, following in pairwise(pieces):
        touching = piece["re"] == following["le"] and (piece["k"], piece["v"]) == (following["k"], following["v"])
        assert not (touching and piece["w"] == following["w"])
    for piece in pieces:
        assert piece["le"] < piece["re"]
        same = [(le, re) for le, re, p in a if (p["k"], p["v"]) == (piece["k"], piece["v"])]
        assert sum(le <= piece["le"] < re for le, re in same) == piece["w"] > 0


def test_gaps_have_no_rows() -> None:
    rows = Batch.from_rows(Schema(), [(1, 2, 1, {}), (5, 6, 1, {})]).rows
    assert [(row["le"], row["re"]) for row in instants(rows).to_pylist()] == [(1, 2), (5, 6)]
