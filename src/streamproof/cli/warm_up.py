"""``streamproof warm-up``: compile the kernels now, so that no later run waits for it."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated

import typer

from streamproof.cli.screen import note, progress
from streamproof.disorder import warming as disorder
from streamproof.engines.local import warming as kernels


def warm_up(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Compile what the local engine and the tools for disorder run. Once per installation; later runs start at once."""
    started = perf_counter()
    with progress("warming up") as advance:
        for number in kernels.warm_up():
            advance(number)
        disorder.warm_up()
    if not quiet:
        note(f"ready after {perf_counter() - started:.0f} s")
