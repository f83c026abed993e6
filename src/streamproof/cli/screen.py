"""What the command line shows: results on standard output, everything else on standard error.

Text from data is made harmless first: control characters never reach the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from streamproof.errors import StreamproofError, printable
from streamproof.events.history import History
from streamproof.events.time import show_moment

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def safe_text(text: str) -> str:
    """Text from data, with control characters written out so that none can steer the terminal.

    >>> safe_text("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return printable(text)


def print_line(text: str) -> None:
    """One line of results, untouched."""
    sys.stdout.write(text + "\n")


def print_blocks(blocks: Iterable[str]) -> None:
    """Many lines of results, untouched."""
    sys.stdout.writelines(blocks)


def counted(count: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "row"), counted(2500, "row")
    ('1 row', '2,500 rows')
    """
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def note(text: str) -> None:
    """A remark beside the results, after all of them that came before it."""
    sys.stdout.flush()
    err.print(escape(safe_text(text)), style="dim")


def show_error(error: StreamproofError, *, as_json: bool) -> None:
    """An error as one JSON object on standard output, or as text on standard error."""
    if as_json:
        print_line(json.dumps(error.as_dict(), ensure_ascii=False))
        return
    sys.stdout.flush()
    for name, what, at, fix in error.told():
        err.print(f"[bold red]{name}[/]: {escape(safe_text(what))}")
        if at:
            err.print(f"  [dim]at:[/] {escape(safe_text(at))}")
        if fix:
            err.print(f"  [dim]fix:[/] {escape(safe_text(fix))}")
    if error.omitted:
        err.print(f"and {error.omitted} more errors")


def show_history(history: History, *, most: int) -> None:
    """The first rows of a history as a table, and how many there are."""
    show_head(history, len(history), most=most)


def show_head(head: History, rows: int, *, most: int) -> None:
    """The first rows of a history of so many rows as a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("from", "to", *head.schema.names):
        table.add_column(escape(safe_text(name)), no_wrap=True)
    for row in History(head.schema, head.rows.slice(0, min(most, head.rows.num_rows))).to_rows()[:most]:
        cells = (_cell(row.payload[name]) for name in head.schema.names)
        table.add_row(*(show_moment(tick, head.schema.unit) for tick in (row.le, row.re)), *cells)
    _print_whole(table)
    more = f"; the first {most} are shown, --out FILE or --json gives all" if rows > most else ""
    note(counted(rows, "row") + more)


def _cell(value: object) -> str:
    return "·" if value is None else escape(safe_text(str(value)))


def show_pairs(rows: Iterable[tuple[str, ...]], *, header: tuple[str, ...]) -> None:
    """A plain table of text."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in header:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*(escape(safe_text(cell)) for cell in row))
    _print_whole(table)


def _print_whole(table: Table) -> None:
    """A table at its own width: values are never cut, a long line wraps instead."""
    width = table.__rich_measure__(out, out.options.update(max_width=10_000)).maximum
    table.width = width  # rich caps the width of a print at the console's, but not a table's own
    out.print(table, crop=False)


class Doing:
    """What a long job does at the moment, and how many rows it has come to."""

    def __init__(self, what: str, show: Callable[[str], None]) -> None:
        self._what, self._show = what, show

    def __call__(self, rows: int) -> None:
        self._show(f"{self._what}, {counted(rows, 'row')}")

    def now(self, what: str) -> None:
        """From here on it does something else."""
        self._what = what
        self._show(what)


@contextmanager
def progress(what: str) -> Iterator[Doing]:
    """Says what a long job does, and counts its rows; shows nothing where standard error is not a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield Doing(what, lambda text: bar.update(task, description=text))
