"""Runs side by side: when two of them say the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamproof.properties.multiplex import same_outputs
from streamproof.properties.runs import SubjectOutput, SubjectRun


def run(*outputs: list[tuple[int, float]]) -> SubjectRun:
    tables = [pa.table({"k": [k for k, _ in rows], "v": [v for _, v in rows]}) for rows in outputs]
    return SubjectRun((), tuple(SubjectOutput(table, np.zeros(len(table), np.int64)) for table in tables))


ONE = [(1, 0.1), (2, 0.2), (2, 0.2)]


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (run(ONE), True),
        (run(ONE[::-1]), True),  # in any order
        (run([(1, 0.1 + 1e-14), *ONE[1:]]), True),  # but for the last digits
        (run([(1, 0.1001), *ONE[1:]]), False),
        (run(ONE[:2]), False),  # as often
        (run([]), False),
        (run(), False),
        (run(ONE, []), False),  # as many outputs
        (run(ONE, ONE), False),
    ],
)
def test_runs_say_the_same_with_the_same_rows_for_each_output(other: SubjectRun, same: bool) -> None:
    assert same_outputs(run(ONE), other) is same
    assert same_outputs(other, run(ONE)) is same
