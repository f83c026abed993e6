"""Engines held against the evaluator, as `verify --oracle evaluator` does it, case by case."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from streamproof.engines.base import Engine
from streamproof.events.history import History
from streamproof.workbench import repro
from streamproof.workbench.bench import open_bench
from streamproof.workbench.case import Case
from streamproof.workbench.evaluator.values import Row
from streamproof.workbench.judge import Judge
from streamproof.workbench.modules import all_modules
from streamproof.workbench.oracle import EvaluatorOracle
from streamproof.workbench.schedule import Schedule
from streamproof.workbench.subjects import EngineSubject
from streamproof.workbench.verdict import Outcome

FOUND: Final = sorted((Path(__file__).parents[1] / "data" / "found").glob("*.json"))
"""Every case that a run of the fuzz ever found, as repro files: what was a difference must stay an agreement."""


def found_case(path: Path) -> Case:
    """The case of a repro file, as a plain run."""
    return replace(repro.read(json.loads(path.read_text(encoding="utf-8"))).case, schedule=Schedule())


@contextmanager
def evaluator_judges(name: str, dsn: str | None = None) -> Iterator[Judge]:
    """A judge of the engine of that name."""
    with open_bench([name], oracle="evaluator", dsn=dsn) as bench:
        yield bench.judges[name]


def judge_of(engine: Engine) -> Judge:
    """A judge of an engine that is open already; one that leaves out what nobody needs."""
    return Judge(EngineSubject(engine), EvaluatorOracle(all_modules()))


def run_anyhow(case: Case, seed: int) -> Case:
    """The case in pieces, under some policy, now and then stopped and gone on with."""
    chance = random.Random(seed)
    emission = chance.choice(("speculative", "speculative", "speculative", "eager", "final"))
    restart, live = chance.random() < 0.3, chance.random() < 0.2
    schedule = Schedule(seed=seed, cuts=chance.randint(0, 4), emission=emission, restart=restart, live=live)
    return replace(case, schedule=schedule)


def rewritten(case: Case) -> Case:
    """The case with its plan rewritten before it runs."""
    return replace(case, schedule=replace(case.schedule, optimise=True))


def rows_in(outcome: Outcome | None) -> list[Row]:
    """The rows of a result; anything else is a failure."""
    assert isinstance(outcome, History), outcome
    return [(row.le, row.re, dict(row.payload)) for row in outcome.to_rows()]
