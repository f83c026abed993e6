"""Agreement: the columnar evaluation and the reference say the same about random expressions on random columns."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamproof.workbench.draw.choices import RandomChoices
from tests.kernels.expressions.judge import difference, random_case
from tests.reference.drawn import DrawnChoices


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.integers(1, 4), st.integers(0, 2))
def test_random_expressions(data: st.DataObject, depth: int, skip: int) -> None:
    case = random_case(DrawnChoices(data.draw), depth=depth)
    if case is not None:
        assert difference(*case, skip=skip) is None


@pytest.mark.parametrize("block", range(4))
def test_seeded_expressions(block: int) -> None:
    _agree(range(block * 250, (block + 1) * 250))


@pytest.mark.slow
def test_many_seeded_expressions() -> None:
    _agree(range(10_000, 20_000))


def _agree(seeds: range | list[int]) -> None:
    for seed in seeds:
        case = random_case(RandomChoices(seed), depth=1 + seed % 5)
        if case is not None:
            assert difference(*case, skip=seed % 3) is None, seed
