"""Exactly once: a driver that is killed anywhere and started again leaves the same result.

Five plans, one of them in two stages, thirteen kills each: at every step of the sink, before Spark's own note of a
micro-batch, and at random.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

import streamproof as sp
from streamproof.engines.spark.sinks import read_output
from tests.spark.stream.kill_target import PLANS
from tests.spark.stream.tables import events_table, write_files
from tests.spark.stream.test_tables import local, sales

KILLED = -9
CHOSEN = [("written", "1"), ("renamed", "2"), ("recorded", "3"), ("committing", "4")]


def drive(folder: Path, plan: str, *point: str) -> int:
    """Run the driver in a process group of its own; its exit code."""
    command = [sys.executable, "-m", "tests.spark.stream.kill_target", str(folder), plan, *point]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], start_new_session=True, check=False, timeout=600)
    return done.returncode


def prepared(folder: Path, plan: str, files: int) -> sp.History:
    """Input files, and what must come out."""
    chunks = sales(files=files)
    write_files(folder / "in", [events_table(chunk) for chunk in chunks])
    return local(PLANS[plan][0], {"S": sp.PhysicalStream.concat(chunks)})


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_killed_around_the_renaming_and_before_the_commit(folder: Path, plan: str) -> None:
    wanted = prepared(folder, plan, files=6)
    assert [drive(folder, plan, *point) for point in CHOSEN] == [KILLED] * len(CHOSEN)
    assert drive(folder, plan) == 0
    assert read_output(folder / "out") == wanted


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_killed_at_random_moments(folder: Path, plan: str) -> None:
    wanted = prepared(folder, plan, files=24)
    choices = random.Random(plan)
    ends = [drive(folder, plan, "millis", str(choices.randint(500, 6_000))) for _ in range(9)]
    assert set(ends) <= {0, KILLED}
    assert KILLED in ends
    assert drive(folder, plan) == 0
    assert read_output(folder / "out") == wanted
