"""``streamproof warm-up``: compile the kernels now, so that no later run waits for it."""

from __future__ import annotations

import importlib
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from streamproof.cli.screen import note, progress


def warm_up(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False,
) -> None:
    """Compile what the local engine and the tools for disorder run. Once per installation; later runs start at once."""
    started = perf_counter()
    with progress("warming up") as advance:
        for number in importlib.import_module("streamproof.engines.local.warming").warm_up():
            advance(number)
        importlib.import_module("streamproof.disorder.warming").warm_up()
    if not quiet:
        note(f"ready after {perf_counter() - started:.0f} s")


def is_cold() -> bool:
    """Whether no kernel has been compiled here yet."""
    folders = [Path(__file__).parents[1] / "kernels"]
    cache = importlib.import_module("numba").config.CACHE_DIR
    if cache:
        folders.append(Path(cache))
    return not any(folder.is_dir() and next(folder.rglob("*.nbi"), None) for folder in folders)
