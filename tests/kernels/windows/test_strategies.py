"""The fast paths give what the general path gives, bit for bit and batch for batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamproof.errors import StreamproofError
from streamproof.events.event import Insert, Retract
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.workbench.draw.choices import Choices
from tests.kernels.windows.running import EMISSIONS, Case, bag, deltas, summed_case
from tests.reference.drawn import DrawnChoices


@st.composite
def cases(draw: Callable[[Any], int]) -> tuple[Case, Choices]:
    choices = DrawnChoices(draw)
    return summed_case(choices), choices


laws = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@laws
@given(cases())
def test_fast_is_general(made: tuple[Case, Choices]) -> None:
    case, choices = made
    emission = choices.pick(EMISSIONS)
    fast, general = case.kernel(emission), case.kernel(emission, fast=False)
    for batch in deltas(case, iter(lambda: choices.integer(1, 6), 0)):
        try:
            wanted = general.on_batch(0, batch)
        except StreamproofError as error:
            with pytest.raises(type(error), match=error.what.split(";")[0].split("(")[0][:20]):
                fast.on_batch(0, batch)
            return
        found = fast.on_batch(0, batch)
        assert bag([found]) == bag([wanted])
        assert found.frontier == wanted.frontier
        assert set(fast.live_groups().tolist()) <= set(general.live_groups().tolist())


@laws
@given(cases())
def test_a_restored_fast_kernel_goes_on_as_the_first(made: tuple[Case, Choices]) -> None:
    case, choices = made
    context = case.context(choices.pick(EMISSIONS))
    kernel = WindowKernel(case.typed, context)
    for batch in deltas(case, iter(lambda: choices.integer(1, 6), 0)):
        other = WindowKernel(case.typed, context)
        state = kernel.save()
        assert all(isinstance(value, int) or value.dtype == np.int64 for value in state.values())
        other.restore({name: v.copy() if isinstance(v, np.ndarray) else v for name, v in state.items()})
        try:
            found = kernel.on_batch(0, batch)
        except StreamproofError as error:
            with pytest.raises(type(error)):
                other.on_batch(0, batch)
            return
        again = other.on_batch(0, batch)
        assert bag([found]) == bag([again])
        assert found.frontier == again.frontier
        kernel = other


@laws
@given(cases())
def test_both_show_the_same_windows(made: tuple[Case, Choices]) -> None:
    """Open windows and their sizes, and what a change would do to them."""
    case, choices = made
    if any(isinstance(event, Insert | Retract) and "inf" in str(event) for event in case.stream.events):
        return  # how far windows of events without an end are listed is up to each
    fast, general = case.kernel(), case.kernel(fast=False)
    for batch in deltas(case, iter(lambda: choices.integer(1, 6), 0))[:-1]:
        try:
            wanted, found = general.inspect(batch).affected, fast.inspect(batch).affected
            general.on_batch(0, batch)
            fast.on_batch(0, batch)
        except StreamproofError:
            return
        assert found == wanted
        sizes = {view[:4] for view in general.inspect().open}
        assert {view[:4] for view in fast.inspect().open} <= sizes
