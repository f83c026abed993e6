"""What a command ends with: an exit code, and one message where it did not do what it was asked to.

Errors that nobody expected are told in one line as well; their details go to a file, or to standard error where the
variable STREAMPROOF_DEBUG is set.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import typer

from streamproof.cli.main import READER_GONE
from streamproof.cli.stopping import exit_code, told
from streamproof.errors import InfrastructureError, InputError, InternalError, StreamproofError

DEBUG: Final = "STREAMPROOF_DEBUG"
_UsageError: Final = typer.BadParameter.__bases__[0]  # Typer brings its own Click, under no public name


class End:
    """How a command ended."""

    code = 0
    place = "streamproof"  # what was called, for errors that say no place of their own

    def run(self, app: typer.Typer, arguments: list[str]) -> None:
        """Run the command that the arguments name."""
        made = typer.main.get_command(app)
        try:
            with made.make_context("streamproof", arguments) as context:
                self.place = _called(made, arguments)
                made.invoke(context)
        except typer.Exit as end:
            self.code = end.exit_code
        sys.stdout.flush()


@contextmanager
def ending(*, as_json: bool) -> Iterator[End]:
    """Whatever happens within is told, and becomes a code."""
    end = End()
    try:
        yield end
    except SystemExit as error:
        end.code = error.code if isinstance(error.code, int) else 0 if error.code is None else 3
        if isinstance(error.__context__, BrokenPipeError):  # so Rich ends a program whose reader is gone
            end.code = _nobody_listens()
    except BaseException as error:
        end.code = _told_of(error, end.place, as_json=as_json)
    if told() is not None:
        end.code = exit_code()


def _called(made: Any, arguments: list[str]) -> str:
    """The command that is called: ``streamproof modules check``.

    >>> from streamproof.cli.commands import app
    >>> _called(typer.main.get_command(app), ["modules", "check", "median"])
    'streamproof modules check'
    """
    words = ["streamproof"]
    for word in arguments:
        made = getattr(made, "commands", {}).get(word)
        if made is None:
            break
        words.append(word)
    return " ".join(words)


def _told_of(error: BaseException, place: str, *, as_json: bool) -> int:
    """Say what happened, if anyone is there to hear it; the exit code."""
    from streamproof.cli.screen import note, show_error  # noqa: PLC0415  # rich, which may be what cannot be loaded

    try:
        if told() is not None or isinstance(error, KeyboardInterrupt):
            note("interrupted")
            return exit_code()
        if isinstance(error, BrokenPipeError):
            return _nobody_listens()
        if type(error).__name__ == "NoArgsIsHelpError":
            return 2  # the help was printed
        known = in_options(known_error(error).located(place))
        show_error(known, as_json=as_json)
        sys.stdout.flush()
        return known.exit_code
    except (OSError, UnicodeError, SystemExit) as again:  # not even this can be said, e.g. because the disk is full
        if isinstance(again, BrokenPipeError | SystemExit):
            return _nobody_listens()
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        with suppress(OSError, ValueError):
            why = again.strerror if isinstance(again, OSError) else again
            sys.stderr.write(f"infrastructure: standard output cannot be written: {why}\n")
        return InfrastructureError.exit_code


def _nobody_listens() -> int:
    """The reader of the output is gone; what is still held back would be written at the very end, and fail again."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
            continue
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return READER_GONE


def known_error(error: BaseException) -> StreamproofError:
    """Any error as one of ours.

    >>> known_error(PermissionError(13, "Permission denied", "/etc/shadow"))
    InfrastructureError('Permission denied')
    >>> known_error(MemoryError()).name
    'infrastructure'
    """
    if isinstance(error, StreamproofError):
        return error
    if isinstance(error, _UsageError):
        return _usage(error)
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    if isinstance(error, OSError):
        what = error.strerror or str(error) or type(error).__name__
        return InfrastructureError(what, at=_place(error), fix=_details(error))
    if isinstance(error, MemoryError):
        return InfrastructureError("memory ran out", at=_line(error), fix=f"give less data at once; {_details(error)}")
    first = str(error).strip().partition("\n")[0][:300]
    what = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return InternalError(what, at=_line(error), fix=_details(error))


_SPELLINGS: Final = (  # of what the package calls in Python
    (re.compile(r"(?:ColumnMapping|read)\([^()]*\), or (?=--map )"), ""),
    (re.compile(r"ColumnMapping\((?:…, )?(\w+)=[\"']?([^()\"']*)[\"']?\)"), r"--map \1=\2"),
    (re.compile(r"Facets\((.*)\)$"), r"\1"),
)


def in_options(error: StreamproofError) -> StreamproofError:
    """The same error, as those call things who write command lines.

    >>> in_options(InputError("no column", at="ColumnMapping(start='t')")).at
    '--map start=t'
    """
    for one in (error, *error.others):
        for written, said in _SPELLINGS:
            one.at, one.fix = (text and written.sub(said, text) for text in (one.at, one.fix))
    return error


def _usage(error: BaseException) -> StreamproofError:
    """A command line that cannot be read."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "streamproof"
    text = error.format_message()  # type: ignore[attr-defined]  # what every error of Click has
    return InputError(text.rstrip("."), at=path, fix=f"{path} --help lists what there is")


def _place(error: OSError) -> str | None:
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return " → ".join(names) or _line(error)


def _line(error: BaseException) -> str | None:
    """The line of code where an error comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else None


def _details(error: BaseException) -> str:
    """Keep the whole story in a file of the user's own, and say where."""
    if os.environ.get(DEBUG):
        return "the details are above"
    with suppress(OSError):
        handle, name = tempfile.mkstemp(prefix="streamproof-error-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("".join(traceback.format_exception(error)))
        return f"the details are in {name}"
    return f"{DEBUG}=1 shows the details"
