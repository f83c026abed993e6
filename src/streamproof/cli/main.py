"""The command ``streamproof``: how it begins, and the one way in which every command ends.

Exit codes: 0 holds, 1 found something, 2 usage or bad input, 3 something failed, 128 + n a signal.

What a command needs is loaded only when signals are heard and modules are looked for in the right places.
"""

from __future__ import annotations

import os
import sys

NOT_HERE = "PYTHONSAFEPATH"  # for processes that are started: no modules from the current folder
READER_GONE = 141  # 128 + SIGPIPE, as other programs end whose reader, e.g. head, has seen enough


def main() -> None:
    """Run the command line in a process of its own."""
    _end_at_once_if_told()
    _look_in_installed_places()
    from streamproof.cli import stopping  # noqa: PLC0415  # until here a signal ends the process, and nothing is lost

    stopping.listen()
    code = command(sys.argv[1:])
    if stopping.told() is not None:
        stopping.leave(stopping.exit_code())
    stopping.finishing()
    sys.exit(code)


def command(arguments: list[str]) -> int:
    """Run one command; whatever happens becomes a message and an exit code."""
    from streamproof.cli.failures import ending  # noqa: PLC0415

    with ending(as_json="--json" in arguments) as end:
        from streamproof.cli.commands import app  # noqa: PLC0415  # a second in which anything may happen already

        end.run(app, arguments)
    return end.code


def _end_at_once_if_told() -> None:
    """As long as nothing has begun, nothing has to be tidied up."""
    import signal  # noqa: PLC0415

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: os._exit(128 + number))


def _look_in_installed_places() -> None:
    """Import nothing from where the program was started, nor from beside its script; neither do its workers."""
    if not sys.flags.safe_path:
        del sys.path[0]
    os.environ[NOT_HERE] = "1"
