"""The command line as a process of its own: started in a session, so that whatever it leaves behind is found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPT = [str(Path(sys.executable).with_name("streamproof"))]
MODULE = [sys.executable, "-m", "streamproof"]
PLAIN = {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "STREAMPROOF_ENGINE": "duckdb"}


@dataclass(frozen=True)
class Ended:
    """How a process ended, and which of those that it started are still there after a while."""

    code: int
    out: str
    err: str
    seconds: float = 0.0
    orphans: tuple[str, ...] = ()


def start(
    arguments: list[str], folder: Path, *, env: Mapping[str, str] = PLAIN, **more: object
) -> subprocess.Popen[str]:
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        arguments, cwd=folder, env={**PLAIN, **env}, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True, **more,
    )  # fmt: skip


def stopped(
    arguments: list[str], folder: Path, *, after: float, number: int = signal.SIGINT, group: bool = False
) -> Ended:
    """Start, wait, send a signal to the process or, as a terminal does, to its whole group."""
    process = start(arguments, folder)
    time.sleep(after)
    began = time.monotonic()
    if process.poll() is None:
        (os.killpg if group else os.kill)(process.pid, number)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    seconds = time.monotonic() - began
    return Ended(process.returncode, out, err, seconds, left_behind(process.pid))


def left_behind(session: int, patience: float = 5.0) -> tuple[str, ...]:
    """The processes of a session that are still there after some seconds; they are ended."""
    until = time.monotonic() + patience
    while (found := _of_session(session)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return tuple(found.values())


def _of_session(session: int) -> dict[int, str]:
    found = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found[int(place.parent.name)] = (place.parent / "cmdline").read_text().replace("\0", " ")[:200]
        except OSError:
            continue
    return found
