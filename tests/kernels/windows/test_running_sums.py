"""Sums that are kept from window to window: the same results as from the panes, however batches are cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamproof.events.time import FOREVER
from streamproof.kernels.delta import Delta, concat
from streamproof.kernels.windows.hopping_sums.pane_store import RunningSums
from streamproof.kernels.windows.hopping_sums.strategy import HoppingSums
from streamproof.plan.windows import Hopping
from tests.kernels.windows.running import bag
from tests.kernels.windows.test_hopping_sums import SCHEMA, kernel

WINDOW = Hopping(100, 5)  # twenty panes in each: worth keeping


def stream(seed: int, *, pushes: int, longest: int, groups: int = 40) -> list[Delta]:
    """Pushes of few events, some late, some taken back, some with larger values; CTIs 60 behind."""
    rng, made, now = np.random.default_rng(seed), [], 1_000
    for number in range(pushes):
        now += int(rng.integers(1, 40)) if number % 17 else 500
        le = now - np.where(rng.random(30) < 0.2, rng.integers(0, 50, 30), 0)
        values = rng.integers(-40, 40, 30) / 8 * 10.0 ** rng.integers(0, 9 if number == 25 else 1, 30)
        re = le + rng.integers(1, longest + 1, 30)
        payload = pa.array(values), pa.array(rng.integers(0, 9, 30))
        fresh = Delta(rng.integers(0, groups, 30), le, re, np.ones(30, np.int64), payload)
        gone = fresh.take(rng.random(30) < 0.1)
        made.append(fresh.at(now - 60))
        made.append(Delta(gone.group, gone.le, gone.re, -gone.w, gone.columns, now - 60))
    return made


@pytest.mark.parametrize("longest", [1, 30])
@pytest.mark.parametrize("emission", ["speculative", "final"])
def test_push_by_push_as_from_the_members(emission: str, longest: int) -> None:
    fast, general = kernel(WINDOW, emission), kernel(WINDOW, emission, fast=False)  # type: ignore[arg-type]
    for batch in stream(longest, pushes=40, longest=longest):
        found, wanted = fast.on_batch(0, batch), general.on_batch(0, batch)
        assert bag([found]) == bag([wanted])
        assert found.frontier == wanted.frontier
    end = Delta.empty(SCHEMA, frontier=FOREVER)
    assert bag([fast.on_batch(0, end)]) == bag([general.on_batch(0, end)])


def test_cut_differently_and_restored_in_between() -> None:
    batches = [*stream(7, pushes=30, longest=20), Delta.empty(SCHEMA, frontier=FOREVER)]
    whole, other = kernel(WINDOW, "speculative"), kernel(WINDOW, "speculative")
    once = [
        whole.on_batch(0, concat(batches[n : n + 6], frontier=batches[n : n + 6][-1].frontier)) for n in range(0, 61, 6)
    ]
    apart = []
    for number, batch in enumerate(batches):
        apart.append(other.on_batch(0, batch))
        if number % 9 == 0:
            state = other.save()
            other = kernel(WINDOW, "speculative")
            other.restore(state)
    assert bag(once) == bag(apart)


def test_sums_go_on_and_are_forgotten_with_their_panes() -> None:
    running = kernel(WINDOW, "speculative")
    for batch in stream(3, pushes=30, longest=1):
        running.on_batch(0, batch)
    panes = running.strategy
    assert isinstance(panes, HoppingSums)
    reached = panes.running.at[:, 0]
    assert (reached < FOREVER).any()
    panes.settle()
    held = panes.running.at[:, 0]
    assert (held[held < FOREVER] >= panes._first_open(panes.frontier)).all()


def test_nothing_is_kept_of_windows_that_share_little() -> None:
    running = RunningSums(3, worth=False)
    running.admit(1_000)
    assert len(running.at) == 0
