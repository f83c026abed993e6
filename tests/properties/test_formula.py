"""Formulas: the worked cases, an obvious evaluator beside ours, and what cannot be built."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamproof.properties import (
    FormulaError,
    Progress,
    Verdict,
    always,
    consume,
    evaluate,
    eventually,
    implies,
    now,
    release,
    safe_length,
    until,
)
from streamproof.properties import next as next_
from streamproof.properties.formula import FALSE, TRUE
from tests.properties.cases import CASES, formula

T, F, U, E = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED, Verdict.ERROR
a, b = now(lambda step: step["a"], "a"), now(lambda step: step["b"], "b")
STEPS = [{"a": x, "b": y} for x in (False, True) for y in (False, True)]


@pytest.mark.parametrize("case", CASES["formula_cases"], ids=lambda case: case["id"])
def test_the_verdict_after_every_prefix(case: Any) -> None:
    progress = Progress(formula(case["formula"]))
    assert [progress.verdict.value, *(progress.feed(step).value for step in case["word"])] == case["expected_by_prefix"]


@pytest.mark.parametrize("case", CASES["error_cases"], ids=lambda case: case["id"])
def test_formulas_that_cannot_be_built(case: Any) -> None:
    with pytest.raises(ValueError, match=r"at least 1 step|not negative"):
        formula(case["formula"])


@pytest.mark.parametrize("case", CASES["equivalences"], ids=lambda case: case["id"])
def test_equivalent_formulas_agree_on_every_word(case: Any) -> None:
    left, right = formula(case["lhs"]), formula(case["rhs"])
    for length in range(4):
        for word in itertools.product(STEPS, repeat=length):
            assert evaluate(left, word) is evaluate(right, word), word


# An obvious evaluator: the value of a formula at a place of a word, straight from the definitions.
ORDER = {F: 0, U: 1, T: 2}
Tree = tuple[Any, ...]
atoms = st.sampled_from([("atom", "a"), ("atom", "b")])
bounds = st.integers(1, 4)
trees: st.SearchStrategy[Tree] = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner),
        st.tuples(st.sampled_from(["and", "or", "implies"]), inner, inner),
        st.tuples(st.just("next"), st.integers(0, 3), inner),
        st.tuples(st.sampled_from(["always", "eventually"]), inner, bounds),
        st.tuples(st.sampled_from(["until", "release", "strict"]), inner, inner, bounds),
    ),
    max_leaves=8,
)


def least(values: Any) -> Verdict:
    return min(values, key=lambda value: ORDER[value], default=T)


def most(values: Any) -> Verdict:
    return max(values, key=lambda value: ORDER[value], default=F)


def opposite(value: Verdict) -> Verdict:
    return {T: F, F: T, U: U}[value]


def meaning(tree: Tree, word: list[dict[str, bool]], at: int) -> Verdict:
    def here(part: Tree, shift: int = 0) -> Verdict:
        return meaning(part, word, at + shift)

    match tree:
        case ("atom", name):
            return U if at >= len(word) else (T if word[at][name] else F)
        case ("not", f):
            return opposite(here(f))
        case ("and", f, g):
            return least([here(f), here(g)])
        case ("or", f, g):
            return most([here(f), here(g)])
        case ("implies", f, g):
            return most([opposite(here(f)), here(g)])
        case ("next", n, f):
            return here(f, n)
        case ("always", f, n):
            return least(here(f, k) for k in range(n))
        case ("eventually", f, n):
            return most(here(f, k) for k in range(n))
        case ("until", f, g, n):
            return most(least([here(g, k), *(here(f, j) for j in range(k))]) for k in range(n))
        case ("strict", f, g, n):
            return most(least([here(f, k), *(here(g, j) for j in range(k + 1))]) for k in range(n))
        case _:
            _, f, g, n = tree
            return opposite(meaning(("until", ("not", f), ("not", g), n), word, at))


def built(tree: Tree) -> Any:
    match tree:
        case ("atom", name):
            return a if name == "a" else b
        case ("not", f):
            return ~built(f)
        case ("and", f, g):
            return built(f) & built(g)
        case ("or", f, g):
            return built(f) | built(g)
        case ("implies", f, g):
            return implies(built(f), built(g))
        case ("next", n, f):
            return next_(n, built(f))
        case ("always", f, n):
            return always(built(f)).during(n)
        case ("eventually", f, n):
            return eventually(built(f)).within(n)
        case ("until", f, g, n):
            return until(built(f), built(g)).within(n)
        case _:
            kind, f, g, n = tree
            return release(built(f), built(g), strict=kind == "strict").within(n)


@example(("not", ("implies", ("atom", "a"), ("atom", "b"))), [STEPS[3]])
@given(trees, st.lists(st.sampled_from(STEPS), max_size=6))
def test_progress_gives_what_the_definitions_say(tree: Tree, word: list[dict[str, bool]]) -> None:
    progress = Progress(built(tree))
    assert progress.verdict is meaning(tree, [], 0)
    for length, step in enumerate(word, 1):
        assert progress.feed(step) is meaning(tree, word[:length], 0)


@example(("until", ("next", 5, ("atom", "a")), ("atom", "b"), 3), [STEPS[0], *[STEPS[2]] * 29])
@given(trees, st.lists(st.sampled_from(STEPS), min_size=30, max_size=30))
def test_the_safe_length_decides(tree: Tree, word: list[dict[str, bool]]) -> None:
    length = safe_length(built(tree))
    assert length is not None
    if length <= len(word):
        assert evaluate(built(tree), word[:length]).solved


@given(trees)
def test_equal_formulas_are_one_and_twice_not_is_nothing(tree: Tree) -> None:
    assert built(tree) is built(tree)
    assert evaluate(~~built(tree), STEPS) is evaluate(built(tree), STEPS)


def test_the_safe_length_counts_the_left_side_of_until() -> None:
    assert safe_length(until(next_(5, a), b).within(3)) == 7
    assert safe_length(until(next_(5, a), b).within(1)) == 1


def test_release_is_weak_unless_strict() -> None:
    word = [{"a": False, "b": True}] * 3
    assert evaluate(a.release(b).within(3), word) is T
    assert evaluate(a.release(b, strict=True).within(3), word) is F


def test_an_error_ends_it_and_is_kept() -> None:
    progress = Progress(always(a | now(lambda step: step["c"])).during(3))
    assert progress.feed({"a": True}) is E
    assert isinstance(progress.error, KeyError)
    assert progress.feed({"a": True, "c": True}) is E


def test_a_solved_formula_does_not_look_at_steps() -> None:
    progress = Progress(eventually(a).within(3))
    assert progress.feed({"a": True}) is T
    assert progress.feed({}) is T


def test_long_bounds_build_nothing_at_once() -> None:
    progress = Progress(always(eventually(a).within(100_000)).during(100_000))
    for _ in range(500):
        progress.feed({"a": False})
    assert repr(progress.residual) == "eventually(a).within(99500) & always(eventually(a).within(100000)).during(99500)"


def test_deep_formulas_need_no_recursion() -> None:
    deep = a
    for _ in range(3000):
        deep = ~(deep & next_(b)) | b
    assert evaluate(deep, STEPS * 2).solved
    assert safe_length(deep) == 2
    assert "…" in repr(deep)


def test_values_that_are_known_fold() -> None:
    assert (a & False) is FALSE
    assert (True | a) is TRUE
    assert always(True).during(3) is TRUE
    assert implies(False, a) is TRUE
    assert until(True, a).within(3) is eventually(a).within(3)


def test_residuals_are_readable() -> None:
    progress = Progress(always(implies(a, eventually(b).within(4))).during(6))
    progress.feed({"a": True, "b": False})
    assert repr(progress.residual) == "eventually(b).within(3) & always(a → eventually(b).within(4)).during(5)"
    assert repr(always(now(lambda i, o: len(o) > 0)).during(2)) == "always(len(o) > 0).during(2)"
    assert repr(consume(meaning_of_step)) == "consume(meaning_of_step)"


def meaning_of_step(step: Any) -> bool:
    return bool(step)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: always(a).during(0), "a temporal formula needs at least 1 step, got 0\n  at: always(a)"),
        (lambda: always(a, 3), "write always(f).during(3)"),
        (lambda: bool(a), "combine formulas with &, |, ~ and implies"),
        (lambda: now(lambda a, b, c, d: True), "not 4 arguments"),
        (lambda: next_(-1, a), "not negative"),
    ],
)
def test_errors_say_what_to_do(build: Any, text: str) -> None:
    with pytest.raises(FormulaError) as error:
        build()
    assert text in str(error.value)


def test_a_predicate_without_a_boolean_is_an_error() -> None:
    progress = Progress(now(lambda step: None))
    assert progress.feed({}) is E
    assert "a predicate gives a Boolean" in str(progress.error)


def test_predicates_take_the_step_in_three_ways() -> None:
    step = ([1], [2], 7)
    assert evaluate(now(lambda whole: whole == step), [step]) is T
    assert evaluate(now(lambda i, o: i + o == [1, 2]), [step]) is T
    assert evaluate(now(lambda i, o, t: t == 7), [step]) is T


def test_antecedents_that_never_held_are_known() -> None:
    quiet = Progress(always(implies(a, b)).during(2))
    quiet.over([{"a": False, "b": False}] * 2)
    assert (quiet.verdict, quiet.antecedents.seen, quiet.antecedents.fired) == (T, 2, 0)
    inside = Progress(always(consume(lambda step: implies(bool(step["a"]), b))).during(2))
    inside.over([{"a": False, "b": False}, {"a": True, "b": False}, {"a": False, "b": True}])
    assert (inside.verdict, inside.antecedents.fired) == (T, 1)
