"""Exactly once: a driver that is killed anywhere and started again leaves the same result.

Five plans, one of them in two stages, thirteen kills each: at every step of the sink, before Spark's own note of a
micro-batch, and at random. Then as many kills with something changed before the driver goes on: a setting, a file, the
output or the checkpoint. Each change is refused in words, or harmless.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import streamproof as sp
from streamproof.engines.spark.output import read_output, read_state
from tests.spark.stream.kill_target import CHANGED, DAMAGED, PLANS
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


FREE = {"dead letters", "files: one", "files: three", "not compact", "not in memory"} | {
    name for name in CHANGED if name.startswith("Spark")
}
PERHAPS = {"nothing", "output of an earlier moment", "checkpoint of an earlier moment"}  # the moment may be this one
SAME = {  # changes that are none for a plan
    "keyed": {"cht", "stages"},
    "global": {"rows", "stages", "buckets"},
    "pairs": {"events", "stages", "buckets"},
    "stages": {"cht"},
    "best": {"events", "stages"},
}
KILLS = 13


def lay_more(folder: Path, chunks: list[sp.PhysicalStream], there: int, more: int) -> int:
    write_files(folder / "in", [events_table(chunk) for chunk in chunks[there : there + more]], first=there)
    shutil.copytree(folder / "in", folder / "copy", dirs_exist_ok=True)
    return min(there + more, len(chunks))


def at_a_step(folder: Path, draw: random.Random) -> list[tuple[str, str]]:
    """A step of the next micro-batch."""
    state = read_state(folder / "out")
    number = 0 if state is None else state.batch + 1
    return [(step, str(number)) for step in ("written", "renamed", "recorded", "committing")]


def remember(folder: Path) -> None:
    """What is there now is what an older copy holds."""
    for name in ("out", "cp"):
        shutil.rmtree(folder / f"{name}-before", ignore_errors=True)
        shutil.copytree(folder / name, folder / f"{name}-before")


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_killed_and_gone_on_with_something_changed(folder: Path, plan: str) -> None:
    draw, chunks = random.Random(f"changed {plan}"), sales(count=500, files=60)
    wanted = local(PLANS[plan][0], {"S": sp.PhysicalStream.concat(chunks)})
    there = lay_more(folder, chunks, 0, 2)
    assert drive(folder, plan, "", "-1", "nothing") == 0
    remember(folder)
    ends: list[int] = []
    names, left = sorted({*CHANGED, *DAMAGED}), []
    while ends.count(KILLED) < KILLS:
        there = lay_more(folder, chunks, there, draw.randint(1, 2))
        assert there < len(chunks) or ends.count(KILLED) >= KILLS - 3, ends
        left = left or draw.sample(names, len(names))
        changes, left = left[:2], left[2:]
        point = draw.choice([("millis", str(draw.randint(0, 1_500))), *at_a_step(folder, draw)])
        ends.append(drive(folder, plan, *point, *changes))
        if draw.random() < 0.3:
            remember(folder)
    lay_more(folder, chunks, there, len(chunks))
    assert drive(folder, plan, "", "-1", "nothing") == 0
    assert set(ends) <= {0, KILLED}, ends
    assert read_output(folder / "out") == wanted
    lines = [json.loads(line) for line in (folder / "told.jsonl").read_text().splitlines()]
    for (change, word, *_), (answered, answer, *text) in pairwise([*lines, ["", ""]]):
        if word != "tried" or change in FREE | SAME[plan] | PERHAPS:
            continue
        assert (answered, answer) == (change, "refused")  # nor was it killed: nothing is killed before it has begun
        assert "fix:" in text[0]
        assert "STREAM_FAILED" not in text[0], text
