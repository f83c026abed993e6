"""What the arena measures, with real processes."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest
from engine.arena import Contestant, Failed, Stopped, cpu_of
from engine.protocol import Task

BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY!r}])\nprint('done', flush=True)\ninput()"


def test_the_work_of_a_child_that_has_ended_counts():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        assert 0.25 < cpu_of(psutil.Process(parent.pid)) < 3
        parent.communicate("\n")


def test_a_contestant_that_takes_too_long_is_stopped(tmp_path):
    with pytest.raises(Stopped, match="stopped after 0 s"), local(tmp_path) as contestant:
        contestant.ready(0)
    assert not psutil.pid_exists(contestant._process.pid)


def test_an_error_is_told_and_the_process_goes_on(tmp_path):
    with local(tmp_path) as contestant:
        contestant.ready(60)
        for _ in range(2):
            with pytest.raises(Failed, match="FileNotFoundError"):
                contestant.run(Task("Q2", str(tmp_path / "nowhere")), 60)
    assert "Traceback" in (tmp_path / "log").read_text()


def local(folder) -> Contestant:
    return Contestant("local", sys.executable, folder / "log")
