"""A contestant in its own process: requests go in, answers and the CPU time of its whole process tree come out."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from engine.protocol import MARK, Answer, Task

BENCHMARKS = Path(__file__).parent.parent
WALL = 5  # a contestant that waits more than it works is stopped as well, after so many times the patience
TICKS = os.sysconf("SC_CLK_TCK")


class Stopped(Exception):
    """The contestant took longer than it may, and was ended."""


class Failed(Exception):
    """The contestant said that it failed, or went away."""


@dataclass(frozen=True)
class Measured:
    """One run: the answer, CPU seconds of all its processes, and seconds by the clock."""

    answer: Answer
    cpu: float
    clock: float


def cpu_of(process: psutil.Process) -> float:
    """CPU seconds of a process and its descendants so far, those that ended included.

    A living process is asked for its own clock, which is exact to microseconds and counts threads that have ended;
    what it inherited from children that ended comes in the kernel's ticks.
    """
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        try:
            total += time.clock_gettime((~each.pid << 3) | 2)  # CPUCLOCK_SCHED of that process, see clock_gettime(3)
            stat = Path(f"/proc/{each.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            total += (int(stat[13]) + int(stat[14])) / TICKS
        except OSError:
            continue  # it ended in between: its parent has inherited its time
    return total


@dataclass
class Contestant:
    """A running contestant; a context, so that its processes end whatever happens."""

    name: str
    python: str
    log: Path  # what it writes on stderr
    environment: dict[str, str] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self._answers: queue.Queue[str | None] = queue.Queue()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.python, "-m", f"engine.contestants.{self.name}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=BENCHMARKS,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        self._tree = psutil.Process(self._process.pid)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        """Let it end by itself; end what is left of its own session."""
        assert self._process.stdin is not None
        with suppress(subprocess.TimeoutExpired, BrokenPipeError):
            self._process.stdin.close()
            if kind is None:
                self._process.wait(20)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._listener.join()

    def ready(self, patience: float) -> list[str]:
        """The queries it can express, once it has started."""
        return list(self._wait(patience)["ready"])

    def run(self, task: Task, patience: float) -> Measured:
        """One run, measured."""
        assert self._process.stdin is not None
        cpu, clock = self.cpu(), time.perf_counter()
        self._process.stdin.write(json.dumps(asdict(task)) + "\n")
        self._process.stdin.flush()
        answer = Answer(**self._wait(patience))
        return Measured(answer, self.cpu() - cpu, time.perf_counter() - clock)

    def cpu(self) -> float:
        return cpu_of(self._tree)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith(MARK):
                    self._answers.put(line.removeprefix(MARK))
        self._answers.put(None)

    def _wait(self, patience: float) -> dict[str, object]:
        """The next answer. Patience is in seconds of its CPU time: others may keep the machine busy."""
        limit, clock = self.cpu() + patience, time.monotonic() + WALL * patience
        while True:
            try:
                line = self._answers.get(timeout=0.5)
                break
            except queue.Empty:
                if self.cpu() > limit or time.monotonic() > clock:
                    raise Stopped(f"stopped after {patience:.0f} s") from None
        if line is None:
            raise Failed(f"its process ended; the end of {self.log}:\n{tail(self.log)}")
        answer: dict[str, object] = json.loads(line)
        if "error" in answer:
            raise Failed(str(answer["error"]))
        return answer


def tail(log: Path, *, lines: int = 15) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def best(run: Callable[[], Measured], *, times: int, enough: float) -> Measured:
    """The cheapest of several runs; no further one once they have taken ``enough`` seconds of CPU."""
    found = [run()]
    while len(found) < times and sum(each.cpu for each in found) < enough:
        found.append(run())
    return min(found, key=lambda each: each.cpu)
