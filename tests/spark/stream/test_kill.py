"""Exactly once: a driver that is killed anywhere and started again leaves the same result."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

import streamproof as sp
from streamproof.engines.spark.sinks import read_output
from tests.spark.stream.tables import events_table, write_files
from tests.spark.stream.test_tables import SALES, local, sales

KILLED = -9


def drive(folder: Path, *point: str) -> int:
    """Run the driver in a process group of its own; its exit code."""
    command = [sys.executable, "-m", "tests.spark.stream.kill_target", str(folder), *point]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], start_new_session=True, check=False, timeout=600)
    return done.returncode


def prepared(folder: Path, files: int) -> sp.History:
    """Input files, and what must come out."""
    chunks = sales(files=files)
    write_files(folder / "in", [events_table(chunk) for chunk in chunks])
    return local(SALES, {"S": sp.PhysicalStream.concat(chunks)})


@pytest.mark.slow
def test_killed_around_the_renaming_and_before_the_commit(folder: Path) -> None:
    wanted = prepared(folder, files=6)
    points = [("written", "1"), ("renamed", "2"), ("recorded", "3"), ("committing", "4")]
    assert [drive(folder, *point) for point in points] == [KILLED] * 4
    assert drive(folder) == 0
    assert read_output(folder / "out") == wanted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_killed_at_random_moments(folder: Path, seed: int) -> None:
    wanted = prepared(folder, files=10)
    choices = random.Random(seed)
    ends = [drive(folder, "seconds", str(choices.randint(9_000, 16_000))) for _ in range(3)]
    assert set(ends) <= {0, KILLED}
    assert drive(folder) == 0
    assert read_output(folder / "out") == wanted
