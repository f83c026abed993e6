from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamproof.events.compare import explain_difference, same_bag, same_schema, same_snapshots
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from tests.events.strategies import SMALL, rows

Items = list[tuple[int, int, dict[str, object]]]
F = Schema.of({"k": "string", "v": "float64"})
V = Schema.of({"v": "int64"})


def of(items: Items, schema: Schema = SMALL) -> History:
    return History.from_rows(schema, items)


def v(*spans: tuple[int, int, object], schema: Schema = V) -> History:
    return History.from_rows(schema, [(le, re, {"v": value}) for le, re, value in spans])


@given(rows(), rows())
def test_the_same_bag_has_no_difference_to_explain(a: Items, b: Items) -> None:
    same = of(a) == of(b)
    assert same_bag(of(a), of(b)) == same
    assert (explain_difference(of(a), of(b)) is None) == same


@given(rows(most=5), rows(most=5))
def test_same_snapshots_is_equality_at_every_instant(a: Items, b: Items) -> None:
    times = {t for le, re, _ in a + b for t in (le, re)}

    def at(items: Items, t: int) -> Counter[str]:
        return Counter(repr(sorted(p.items())) for le, re, p in items if le <= t < re)

    equal = all(at(a, t) == at(b, t) for t in times)
    assert same_snapshots(of(a), of(b)) == equal


@given(rows(), st.data())
def test_cutting_lifetimes_keeps_snapshots(a: Items, data: st.DataObject) -> None:
    cut: Items = []
    for le, re, payload in a:
        middle = data.draw(st.integers(le, min(re, le + 20)))
        cut += [(s, e, payload) for s, e in ((le, middle), (middle, re)) if s < e]
    assert same_snapshots(of(a), of(cut))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(-1e6, 1e6)), max_size=6), st.data())
@example([("a", 1.0), ("a", 1.0)], None)
def test_floats_may_differ_in_their_last_bits(values: list[tuple[str, float]], data: st.DataObject | None) -> None:
    noisy = [(k, x * (1 + (data.draw(st.integers(-3, 3)) if data else 1) * 2**-52)) for k, x in values]
    a, b = (of([(1, 5, {"k": k, "v": x}) for k, x in side], F) for side in (values, noisy))
    assert same_bag(a, b)
    assert same_snapshots(a, b)
    assert explain_difference(a, b) is None


def test_near_floats_match_across_columns() -> None:
    schema = Schema.of({"x": "float64", "y": "float64"})
    third, near = 1 / 3, 1 / 3 + 2**-54
    a = of([(1, 5, {"x": third, "y": 1}), (1, 5, {"x": near, "y": 2})], schema)
    b = of([(1, 5, {"x": near, "y": 1}), (1, 5, {"x": third, "y": 2})], schema)
    assert third != near
    assert same_bag(a, b)
    assert not same_bag(a, of([(1, 5, {"x": near, "y": 1}), (1, 5, {"x": third, "y": 3})], schema))


def test_dense_floats_are_not_chained_together() -> None:
    a = [(0, 9, {"k": "a", "v": 1e9 + i / 4}) for i in range(40)]
    b = [(0, 9, {"k": "a", "v": 1e9 + i / 4 + 30}) for i in range(40)]
    assert not same_snapshots(of(a, F), of(b, F))
    assert not same_bag(of(a, F), of(b, F))


def test_a_chain_of_near_floats_keeps_its_ends_apart() -> None:
    chain = [1e9 + i / 4 for i in range(40)]
    a, b = (of([(0, 9, {"k": "a", "v": v}) for v in [*chain, extra]], F) for extra in (chain[0], chain[-1]))
    assert not same_snapshots(a, b)
    assert not same_bag(a, b)


def test_lifetimes_cut_where_floats_differ_in_their_last_bits() -> None:
    near = 0.1 + 0.2
    a = of([(0, 5, {"k": "a", "v": 0.3}), (5, 9, {"k": "a", "v": near})], F)
    assert same_snapshots(a, of([(0, 9, {"k": "a", "v": 0.3})], F))
    assert not same_snapshots(a, of([(0, 9, {"k": "a", "v": 0.4})], F))


def test_nan_null_and_infinity_are_themselves_only() -> None:
    odd = [float("nan"), None, float("inf"), float("-inf"), 0.0]
    for i, x in enumerate(odd):
        for j, y in enumerate(odd):
            a, b = (of([(1, 2, {"v": value})], F) for value in (x, y))
            assert same_bag(a, b) == (i == j), (x, y)


def test_numbers_compare_across_types_unless_told_otherwise() -> None:
    whole, real = v((1, 2, 15)), v((1, 2, 15.0), schema=Schema.of({"v": "float64"}))
    money = v((1, 2, 15), schema=Schema.of({"v": "decimal(5,2)"}))
    assert same_bag(whole, real)
    assert same_bag(whole, money)
    assert same_bag(money, real)
    assert not same_bag(whole, real, numeric_types_loose=False)
    text = explain_difference(whole, real, numeric_types_loose=False)
    assert text == 'column "v": expected type int64, found float64'
    assert not same_schema(whole.schema, real.schema)
    assert same_schema(whole.schema, V)


def test_columns_compare_by_name() -> None:
    a = of([(1, 2, {"k": "a", "v": 1})])
    b = of([(1, 2, {"v": 1, "k": "a"})], Schema.of({"v": "int64", "k": "string"}))
    assert same_bag(a, b)
    assert same_bag(v((1, 2, None)), v((1, 2, None), schema=Schema.of({"v": "null"})))
    assert explain_difference(a, v((1, 2, 1))) == "columns differ: expected k, v, found v"
    assert not same_bag(a, v())
    assert not same_snapshots(a, v())


@pytest.mark.parametrize(
    ("expected", "actual", "text"),
    [
        ([(3, 7, 4)], [(3, 7, 5)], "at [3, 7): expected v=4, found v=5"),
        ([(3, 7, 4)], [(3, 9, 4)], "at 3: v=4 expected to end at 7, found 9"),
        ([(3, FOREVER, 4)], [(3, 9, 4)], "at 3: v=4 expected to end at inf, found 9"),
        ([(3, 7, 4)], [(4, 7, 4)], "v=4 until 7: expected from 3, found from 4"),
        ([(4, 7, 4)], [(3, 7, 4)], "v=4 until 7: expected from 4, found from 3"),
        ([(3, 7, 4)], [], "at [3, 7): missing v=4"),
        ([], [(3, 7, None)], "at [3, 7): surplus v=null"),
        ([(3, 7, 4)] * 2, [(3, 7, 4)], "at [3, 7): v=4 expected 2 times, found once"),
        ([(3, 7, 4)], [(3, 7, 4)] * 3, "at [3, 7): v=4 expected once, found 3 times"),
        ([(1, 2, 1), (3, 7, 4)], [(1, 2, 1), (3, 7, 5)], "at [3, 7): expected v=4, found v=5"),
        ([(5, 6, 1), (8, 9, 1)], [(2, 3, 9)], "at [2, 3): surplus v=9 (and 1 more row differs)"),
    ],
)
def test_the_first_difference_in_words(expected: list, actual: list, text: str) -> None:  # type: ignore[type-arg]
    assert explain_difference(v(*expected), v(*actual)) == text


def test_columns_that_agree_are_context() -> None:
    a, b = (of([(3, 7, {"k": "a", "v": x}), (3, 7, {"k": "b", "v": 1})]) for x in (4, 5))
    assert explain_difference(a, b) == "at [3, 7) k='a': expected v=4, found v=5"
