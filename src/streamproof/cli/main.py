"""The command ``streamproof``: how it begins, and the one way in which every command ends.

Exit codes: 0 holds, 1 found something, 2 usage or bad input, 3 something failed, 128 + n a signal.

What a command needs is loaded only when signals are heard and modules are looked for in the right places.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from typing import TextIO

from streamproof.errors import PlanWarning

NOT_HERE = "PYTHONSAFEPATH"  # for processes that are started: no modules from the current folder
READER_GONE = 141  # 128 + SIGPIPE, as other programs end whose reader, e.g. head, has seen enough


def main() -> None:
    """Run the command line in a process of its own."""
    _end_at_once_if_told()
    _look_in_installed_places()
    _open_what_is_closed()
    _write_everything()
    code = command(sys.argv[1:], alone=True)
    from streamproof.cli import stopping  # noqa: PLC0415  # loaded by the command

    if stopping.told() is not None:
        stopping.leave(stopping.exit_code())
    stopping.finish(code)


def command(arguments: list[str], *, alone: bool = False) -> int:
    """Run one command; whatever happens becomes a message and an exit code. ``alone``: signals are the command's."""
    from streamproof.cli.failures import ending  # noqa: PLC0415  # loading takes a second in which signals may come

    with ending(as_json="--json" in arguments) as end:
        from streamproof.cli.commands import app  # noqa: PLC0415
        from streamproof.cli.stopping import listen  # noqa: PLC0415

        if alone:
            listen()
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            end.run(app, arguments)
    return end.code


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning of ours is a remark; one of a library looks as everywhere."""
    from streamproof.cli.screen import note  # noqa: PLC0415  # loaded by commands that show more than help

    ours = issubclass(category, PlanWarning)
    note(f"warning: {message}" if ours else warnings.formatwarning(message, category, filename, lineno).rstrip())


def _end_at_once_if_told() -> None:
    """As long as only modules are loaded, nothing has to be tidied up."""
    import _signal as signal  # type: ignore[import-not-found]  # noqa: PLC0415  # what `signal` is made of: loads nothing

    def end(number: int, frame: object) -> None:
        os.write(2, b"interrupted\n")
        os._exit(128 + number)

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


def _open_what_is_closed() -> None:
    """Let no file that is opened later take the place of a standard stream; and speak UTF-8 whatever the locale is.

    Results that nobody can get are an error: standard output that was closed can only be read.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            flags = os.O_WRONLY if name == "stderr" else os.O_RDONLY
            os.dup2(os.open(os.devnull, flags), number)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if stream.encoding.lower().replace("-", "") != "utf8" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _write_everything() -> None:
    """Put a buffer before output that has none: Python drops the rest of a write that the system takes in part."""
    stream = sys.stdout
    if stream is not None and isinstance(stream.buffer, io.RawIOBase):
        whole = io.BufferedWriter(stream.detach())
        sys.stdout = io.TextIOWrapper(whole, stream.encoding, stream.errors, line_buffering=True)


def _look_in_installed_places() -> None:
    """Import nothing from where the program was started, nor from beside its script; neither do its workers."""
    if not sys.flags.safe_path:
        del sys.path[0]
    os.environ[NOT_HERE] = "1"
    for setting in ("NUMBA_CACHE_DIR", "NUMBA_CACHE_LOCATOR_CLASSES"):  # else a file in the current folder may say them
        os.environ.setdefault(setting, "")
