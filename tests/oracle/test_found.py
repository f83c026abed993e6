"""Every case that a run of the fuzz ever found, replayed: what was a difference must stay an agreement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamproof.workbench.bench import Workbench, open_bench
from streamproof.workbench.judge import Judge
from tests.reference.judging import FOUND, found_case, run_anyhow


@pytest.fixture(scope="module")
def streaming() -> Iterator[Workbench]:
    with open_bench(["local", "spark-buckets"], oracle="evaluator") as bench:
        yield bench


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_found_case(path: Path, name: str, request: pytest.FixtureRequest) -> None:
    judge: Judge = request.getfixturevalue(f"{name}_judge")
    verdict = judge.verdict(found_case(path))
    assert verdict.word == "holds", verdict.text


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
@pytest.mark.parametrize("name", ["local", "spark-buckets"])
def test_found_case_however_it_runs(path: Path, name: str, streaming: Workbench) -> None:
    for seed in range(6):
        verdict = streaming.judges[name].verdict(run_anyhow(found_case(path), seed))
        assert verdict.word == "holds", f"run {seed}: {verdict.text}"
