"""Laws of the window kernel, over random legal streams with retractions, CTIs, groups, and batches split at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamproof.errors import StreamproofError
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Emission
from streamproof.kernels.cells import Layout, Strings
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.kernels.windows.shared.members import earliest_change
from streamproof.plan import nodes
from streamproof.plan.windows import Snapshot
from streamproof.workbench.draw.choices import Choices
from tests.kernels.windows.running import (
    EMISSIONS,
    Case,
    bag,
    deltas,
    expected,
    prefix,
    random_case,
    rows_by_group,
)  # fmt: skip
from tests.reference.compare import difference
from tests.reference.drawn import DrawnChoices

INTERIM = ("overflow", "limit_exceeded", "output_in_past", "module_failed")  # what an early result may run into


@st.composite
def cases(draw: Callable[[Any], int], **options: Any) -> tuple[Case, Choices]:
    choices = DrawnChoices(draw)
    return random_case(choices, **options), choices


def sizes(choices: Choices) -> Iterator[int]:
    return iter(lambda: choices.integer(1, 6), 0)


def laws(**options: Any) -> Callable[[Any], Any]:
    quick = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    return lambda test: quick(given(cases(**options))(test))


def run(case: Case, kernel: WindowKernel, batches: list[Delta]) -> list[Delta]:
    """All outputs. No change reaches back behind a frontier that was announced, and frontiers only go forward."""
    outputs, sealed, layout = [], BEGINNING, Layout.of(case.typed.schema)
    for batch in batches:
        made = kernel.on_batch(0, batch)
        cells = layout.encode(made.columns, Strings()) if made.columns else np.zeros((len(made), 1), np.int64)
        assert earliest_change(made.group, made.le, made.re, made.w, cells) >= sealed
        assert made.frontier >= sealed
        sealed = made.frontier
        outputs.append(made)
    return outputs


def outcome(case: Case) -> dict[int, Any] | str:
    try:
        return expected(case)
    except StreamproofError as error:
        return error.name


@pytest.mark.parametrize("emission", EMISSIONS)
def test_the_sum_of_all_output_is_the_definition(emission: Emission) -> None:
    @laws()
    def law(made: tuple[Case, Choices]) -> None:
        case, choices = made
        want = outcome(case)
        kernel = case.kernel(emission)
        try:
            found = rows_by_group(case, run(case, kernel, deltas(case, sizes(choices))))
        except StreamproofError as error:
            assert error.name == want or error.name in INTERIM  # noqa: PT017  # which one decides whether to go on
            return
        assert not isinstance(want, str), f"expected the error {want}"
        for group in want.keys() | found.keys():
            assert difference(want.get(group, []), found.get(group, [])) is None
        assert kernel.live_rows() == 0
        assert not len(kernel.live_groups())
        assert not len(kernel.live_strings())

    law()


@laws(kinds=("aggregation", "topk"))
def test_what_is_out_is_what_is_due(made: tuple[Case, Choices]) -> None:
    """After every batch: the results of all windows that the policy admits, over the history so far."""
    case, _ = made
    node = case.typed.node
    assert isinstance(node, nodes.Aggregation | nodes.TopK)
    if node.output != "window" or case.horizon is not None:
        return
    for emission in EMISSIONS[:2]:
        kernel, outputs, seen, frontier = case.kernel(emission), [], BEGINNING, BEGINNING
        for number, batch in enumerate(deltas(case, repeat(1))[:-1]):
            try:
                outputs.append(kernel.on_batch(0, batch))
                want = expected(prefix(case, number + 1))
            except StreamproofError:
                return
            seen, frontier = max(seen, *batch.le.tolist(), BEGINNING), max(frontier, batch.frontier)
            due = _due(node, emission, max(seen, frontier))
            want = {group: [row for row in rows if due(row)] for group, rows in want.items()}
            found = rows_by_group(case, outputs)
            for group in want.keys() | found.keys():
                assert difference(want.get(group, []), found.get(group, [])) is None, (emission, number)


def _due(node: nodes.WindowNode, emission: Emission, reached: int) -> Callable[[tuple[int, int, Any]], bool]:
    if emission == "eager":
        return lambda row: row[0] <= reached
    if isinstance(node.window, Snapshot):
        return lambda row: row[0] < reached
    return lambda row: row[1] <= reached


@laws()
def test_batches_do_not_show(made: tuple[Case, Choices]) -> None:
    """However the input is split, the sum of all output is the same bit for bit."""
    case, choices = made
    bags = []
    for split in (repeat(1), sizes(choices), repeat(1000)):
        for emission in EMISSIONS:
            try:
                bags.append(bag(run(case, case.kernel(emission), deltas(case, split))))
            except StreamproofError:
                continue
    assert all(found == bags[0] for found in bags)


@laws()
def test_the_final_policy_never_retracts(made: tuple[Case, Choices]) -> None:
    case, choices = made
    try:
        outputs = run(case, case.kernel("final"), deltas(case, sizes(choices)))
    except StreamproofError:
        return
    assert all((output.w > 0).all() for output in outputs)


@laws()
def test_a_restored_kernel_goes_on_as_the_first(made: tuple[Case, Choices]) -> None:
    case, choices = made
    context = case.context(choices.pick(EMISSIONS))
    kernel = WindowKernel(case.typed, context)
    for batch in deltas(case, sizes(choices)):
        state = kernel.save()
        assert all(isinstance(value, int) or value.dtype == np.int64 for value in state.values())
        other = WindowKernel(case.typed, context)  # the numbers of strings and groups are the query's, not the kernel's
        other.restore({name: v.copy() if isinstance(v, np.ndarray) else v for name, v in state.items()})
        try:
            first = kernel.on_batch(0, batch)
        except StreamproofError as error:
            with pytest.raises(type(error)):
                other.on_batch(0, batch)
            return
        again = other.on_batch(0, batch)
        assert bag([first]) == bag([again])
        assert (first.frontier, kernel.live_rows()) == (again.frontier, other.live_rows())
        kernel = other if choices.chance(50) else kernel


@laws()
def test_nothing_is_left_when_nothing_lives(made: tuple[Case, Choices]) -> None:
    """A frontier far behind the last event leaves no state, except the points that later count windows begin with."""
    case, choices = made
    node = case.typed.node
    assert isinstance(node, nodes.Aggregation | nodes.TopK | nodes.Uda | nodes.Udo)
    kernel = case.kernel(choices.pick(EMISSIONS))
    batches = deltas(case, sizes(choices))[:-1]
    far = Delta.empty(case.typed.inputs[0].schema, frontier=2**61)
    try:
        for batch in [*batches, far]:
            kernel.on_batch(0, batch)
    except StreamproofError:
        return
    if node.window.kind.startswith("count"):
        assert kernel.live_rows() <= 2 * len(case.stream.rows)
    elif all(row[1] < FOREVER for row in case.stream.rows):
        assert kernel.live_rows() == 0
