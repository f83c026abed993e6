"""Automata of formulas: they leave what progression leaves, stay small, and ask each predicate once a step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.properties import Progress, Verdict, always, consume, evaluate, eventually, implies, now, until
from streamproof.properties.automaton import MOST_STATES, automaton_of
from streamproof.properties.matchers import every
from streamproof.properties.progress import progressed
from tests.properties.test_formula import STEPS, Tree, a, b, built, trees


@given(trees, trees, st.lists(st.sampled_from(STEPS), max_size=8))
def test_what_is_left_is_what_progression_leaves(one: Tree, other: Tree, word: list[dict[str, bool]]) -> None:
    left = always(built(one)).during(6) & eventually(built(other)).within(4)
    progress = Progress(left)
    for step in word:
        progress.feed(step)
        left = progressed(left, step)
        assert progress.residual is left


def test_a_long_word_needs_few_states() -> None:
    formula = always(eventually(now(lambda n: n % 7 == 0)).within(10)).during(10**6)
    progress = Progress(formula)
    for number in range(10_000):
        assert progress.feed(number) is Verdict.UNDECIDED
    assert len(automaton_of(formula).states) <= 8
    assert repr(progress.residual).endswith(".during(990000)")


def test_formulas_without_end_of_states_are_judged_without_them() -> None:
    asked: list[int] = []

    def answered(number: int) -> Any:
        asked.append(number)
        return eventually(now(lambda later: later == number + 2)).within(3)

    formula = always(consume(answered)).during(3 * MOST_STATES)
    assert evaluate(formula, range(3 * MOST_STATES + 3)) is Verdict.HOLDS
    assert asked == list(range(3 * MOST_STATES))
    assert len(automaton_of(formula).states) <= MOST_STATES


def test_bounds_that_end_at_different_steps() -> None:
    word = [{"a": True, "b": number == 5} for number in range(9)]
    both = always(a).during(9) & eventually(b).within(6) & until(a, b).within(7)
    found = [Progress(both).over(word[:length]).value for length in range(10)]
    assert found == ["?"] * 9 + ["T"]
    assert evaluate(always(a).during(9) & eventually(b).within(5), word) is Verdict.FAILS
    assert evaluate(always(b).during(3) | eventually(b).within(6), word) is Verdict.HOLDS


def test_answers_may_be_matches_and_verdicts() -> None:
    rows = now(lambda step: every(step, bool))
    assert evaluate(always(rows).during(3), [[1], [], [1, 2]]) is Verdict.HOLDS
    assert evaluate(always(rows).during(3), [[1], [0], [1]]) is Verdict.FAILS
    perhaps = now(lambda step: Verdict.UNDECIDED if step else Verdict.HOLDS)
    assert evaluate(always(perhaps).during(2), [0, 1]) is Verdict.UNDECIDED


@pytest.mark.parametrize("steps", [[0, 1, 1, 0, 1], [1, 1, 1, 1, 1]])
def test_left_sides_are_counted_on_known_ways_too(steps: list[int]) -> None:
    progress = Progress(always(implies(now(bool), now(lambda n: n == 1))).during(5))
    progress.over(steps)
    assert (progress.antecedents.seen, progress.antecedents.fired) == (5, sum(steps))


def test_an_error_ends_it_in_a_known_state_too() -> None:
    progress = Progress(always(now(lambda n: 1 / n > 0)).during(9))
    assert [progress.feed(n).value for n in (1, 2, 0, 4)] == ["?", "?", "E", "E"]
    assert isinstance(progress.error, ZeroDivisionError)
    assert progress.decided_at == 2
