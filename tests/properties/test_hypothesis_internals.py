"""What is relied on inside Hypothesis, statement by statement: a version that changes one fails here, by its name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis import Phase, given, reproduce_failure, seed, settings

from streamproof.properties.contents import sampler_of
from streamproof.properties.hypothesis_internals import (
    EndPass,
    GivenTest,
    shows_smallest_case,
    some_seed,
    unwrapped,
)

CHANGED = f"Hypothesis {hypothesis.__version__} changed this: mend streamproof/properties/hypothesis_internals.py"


def given_test(body: Callable[[int], Any]) -> GivenTest:
    """A test of one drawn number that nothing remembers."""

    @settings(max_examples=200, database=None, deadline=None)
    @given(st.integers(0, 1000))
    def test(n: int) -> None:
        body(n)

    return GivenTest(test)


def examples_of(test: GivenTest, number: int) -> list[int]:
    seen: list[int] = []

    def body(n: int) -> None:
        seen.append(n)

    with test.with_seed(number), test.with_body(body):
        test({})
    return seen


def test_passes_of_one_seed_draw_the_same_examples_with_any_body() -> None:
    test = given_test(lambda n: pytest.fail("another body stands in its place"))
    assert examples_of(test, 7) == examples_of(test, 7), CHANGED
    assert examples_of(test, 7) != examples_of(test, 8), CHANGED


def test_settings_seed_and_body_are_what_they_were_afterwards() -> None:
    test = given_test(lambda n: None)
    before = (test.settings, test.seed, test.body)
    with test.with_settings(max_examples=3, phases=[Phase.generate]), test.with_seed(1):
        assert (test.settings.max_examples, test.seed) == (3, 1), CHANGED
        assert len(examples_of(test, 1)) == 3, CHANGED
    assert (test.settings, test.seed, test.body) == before, CHANGED


def test_a_given_test_is_known_and_says_its_seed_and_whether_it_repeats_one_failure() -> None:
    @reproduce_failure(hypothesis.__version__, b"AXicY2BABQAADgAB")
    @seed(5)
    @given(st.booleans())
    def test(b: bool) -> None:
        pass

    assert GivenTest.made(test), CHANGED
    assert not GivenTest.made(lambda: None)
    assert GivenTest(test).seed == 5, CHANGED
    assert GivenTest(test).repeats_one_failure, CHANGED
    assert not given_test(print).repeats_one_failure, CHANGED


def test_the_smallest_failing_case_is_shown_last_and_alone() -> None:
    shown: list[tuple[int, bool]] = []

    def body(n: int) -> None:
        shown.append((n, shows_smallest_case()))
        assert n < 100

    with pytest.raises(AssertionError):
        given_test(body)({})
    assert shown[-1] == (100, True), CHANGED
    assert {n for n, smallest in shown if smallest} == {100}, CHANGED
    assert not shows_smallest_case()


def test_the_end_of_a_pass_goes_through_hypothesis_at_once() -> None:
    seen: list[int] = []

    def body(n: int) -> None:
        seen.append(n)
        raise EndPass

    with pytest.raises(EndPass):
        given_test(body)({})
    assert len(seen) == 1, CHANGED


def test_a_seed_for_all_tests_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hypothesis.core.global_force_seed", 77)
    assert some_seed() == 77, CHANGED


def test_a_method_gets_its_instance() -> None:
    class Tests:
        seen: list[object]

        @settings(max_examples=2, database=None)
        @given(st.integers())
        def method(self, n: int) -> None:
            self.seen.append(self)

    one = Tests()
    one.seen = []
    GivenTest(Tests.method, one)({})
    assert set(map(id, one.seen)) == {id(one)}, CHANGED


@pytest.mark.parametrize(
    "column",
    [
        st.integers(0, 9), st.floats(0, 1), st.booleans(), st.sampled_from(["a", "b"]), st.dates(),
        st.datetimes(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)),
        st.integers(0, 9).map(str), st.integers(0, 9) | st.integers(20, 29),
    ],
    ids=["integers", "floats", "booleans", "sampled_from", "dates", "datetimes", "map", "one_of"],
)  # fmt: skip
def test_the_inside_of_strategies_is_known(column: st.SearchStrategy[object]) -> None:
    rows = st.fixed_dictionaries({"v": column})
    assert sampler_of(rows) is not None, f"rows are picked from a few that were drawn, not made by column. {CHANGED}"
    assert not hasattr(unwrapped(rows), "wrapped_strategy")
