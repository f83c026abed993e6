"""Told to stop: Ctrl-C, SIGTERM and SIGHUP end a command at any moment, without a traceback and without orphans.

    signal ──► handler   raises `Stopped` where the program is, so that results stay whole and temporary files go
         └──► watcher   ends the program all the same: at a second signal, or where it has not ended in time

Every way ends in `leave`: processes that were started are ended first, and the exit code is 128 + the signal's number.
The watcher is a thread that the signal itself wakes, so it works too while the program is deep in compiled code.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NoReturn

PATIENCE: Final = 3.0  # seconds that the program gets to end by itself
GRACE: Final = 2.0  # seconds that processes which it started get to end by themselves
SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # SIGHUP: the terminal was closed


class Stopped(KeyboardInterrupt):
    """The user, or the system, wants the program to end."""


class _State:
    """What is known of signals in this process."""

    told: int | None = None  # the first signal, from then on
    leaving = False  # nothing is left to be kept whole
    instead: Callable[[], None] | None = None  # what the program does at a signal, if it wants to go on for a while


def told() -> int | None:
    """The signal that was sent to this program, if one was."""
    return _State.told


def exit_code() -> int:
    """The exit code of a program that was told to stop."""
    return 128 + (_State.told or signal.SIGINT)


def listen() -> None:
    """From here on signals end the program in its own way. One that is ignored from outside (nohup) stays ignored."""
    heard, wake = socket.socketpair()
    for end in (heard, wake):
        end.setblocking(end is heard)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    threading.Thread(target=_watch, args=(heard, wake), name="streamproof-stopping", daemon=True).start()


def _stop(number: int, frame: Any) -> None:
    if _State.leaving:
        leave(128 + number)
    again, _State.told = _State.told is not None, _State.told or number
    if _State.instead is not None and not again:
        _State.instead()
        return
    sys.unraisablehook = lambda unraisable: None  # where a program is torn down in the middle, much may complain
    threading.excepthook = lambda thread: None
    logging.disable(logging.CRITICAL)
    if (java := sys.modules.get("streamproof.engines.spark.java")) is not None:
        java.HUSHED.set()
    raise Stopped


def _watch(heard: socket.socket, wake: socket.socket) -> None:
    """Wait for signals; the first one may take its time, if the program has said so."""
    first = heard.recv(1)[0]
    if first not in SIGNALS:  # another handler's, e.g. SIGCHLD
        return _watch(heard, wake)
    if _State.instead is None:
        heard.settimeout(PATIENCE)
    with suppress(TimeoutError):
        while heard.recv(1)[0] not in SIGNALS:
            pass
    if _State.instead is not None:  # the second signal ends what the program wanted to finish first
        heard.settimeout(PATIENCE)
        with suppress(TimeoutError):
            heard.recv(1)
    _State.told = _State.told or first
    _end_children()
    os._exit(128 + first)


@contextmanager
def instead(remember: Callable[[], None]) -> Iterator[None]:
    """While this lasts, the first signal is remembered, and the program goes on to where it can stop; a second ends it.

    Where nobody listens for signals, e.g. in a program that calls the command line, Ctrl-C alone is caught.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    mine = before is not _stop
    if mine:
        signal.signal(signal.SIGINT, _stop)
    _State.instead = remember
    try:
        yield
    finally:
        _State.instead = None
        if mine:
            signal.signal(signal.SIGINT, before)
            _State.told = None


def finish(code: int) -> NoReturn:
    """End a program that has done its work: a signal from here on has nothing to interrupt, and ends it at once.

    Python would take its signals away first, and take itself apart afterwards.
    """
    _State.leaving = True
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def leave(code: int) -> NoReturn:
    """End this process now, and what it started; temporary files go, and nobody complains."""
    _State.leaving = True
    logging.disable(logging.CRITICAL)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    _end_children()
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    with suppress(BaseException):
        atexit._run_exitfuncs()
    os._exit(code)


# --- processes that were started --------------------------------------------------------------------------------------


def _end_children() -> None:
    """End all that this process started, and what they started: first politely."""
    left = set(descendants(os.getpid()))
    _send(left, signal.SIGTERM)
    until = time.monotonic() + GRACE
    while (left := {pid for pid in left if _runs(pid)}) and time.monotonic() < until:
        time.sleep(0.02)
    _send(left, getattr(signal, "SIGKILL", signal.SIGTERM))


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def _runs(pid: int) -> bool:
    """Whether a process is there, and not only its exit code that nobody has asked for."""
    with suppress(OSError):
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    with suppress(OSError, IndexError):
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[0] != "Z"
        )
    return True


def descendants(root: int) -> list[int]:
    """The processes that a process started, and that those started."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found, waiting = list[int](), [root]
    while waiting:
        new = children.pop(waiting.pop(), [])
        found += new
        waiting += new
    return found


def _parents() -> Iterator[tuple[int, int]]:
    """Every process with its parent."""
    places = list(Path("/proc").glob("[0-9]*/stat")) if sys.platform == "linux" else []
    for place in places:
        with suppress(OSError, IndexError, ValueError):
            rest = place.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            yield int(place.parent.name), int(rest[1])
    if not places:
        with suppress(OSError, subprocess.SubprocessError):
            told = subprocess.run(
                ["/bin/ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, timeout=1, check=False
            )
            for line in told.stdout.splitlines():
                pid, parent = line.split()
                yield int(pid), int(parent)
