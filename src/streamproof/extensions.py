"""Extension points: engines, module libraries, languages, sources and sinks, found by entry point.

A package that wants to be found declares, e.g. in its pyproject.toml::

    [project.entry-points."streamproof.modules"]
    geo = "acme.geo"

Nothing is imported before it is asked for.

>>> "duckdb" in names("engines")
True
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeAlias

from streamproof.errors import PlanError, did_you_mean

Point: TypeAlias = Literal["engines", "modules", "languages", "sources", "sinks"]


def _found(point: Point) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"streamproof.{point}")}


_known = cache(_found)  # reading what is installed takes some ten milliseconds


def names(point: Point) -> list[str]:
    """The names registered at an extension point."""
    return sorted(_found(point))


def load(point: Point, name: str) -> Any:
    """The object registered under ``name``."""
    found = _known(point)
    if name not in found:  # it may have been installed since
        _known.cache_clear()
        found = _known(point)
    if name not in found:
        kind = point.removesuffix("s")
        raise PlanError(f'unknown {kind} "{name}"', fix=did_you_mean(name, sorted(found)))
    return found[name].load()
