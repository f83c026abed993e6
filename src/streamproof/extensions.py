"""Extension points, and which code may be called by its name.

Engines, module libraries, languages, sources and sinks are found by entry point. A package that wants to be found
declares, e.g. in its pyproject.toml::

    [project.entry-points."streamproof.modules"]
    geo = "acme.geo"

Nothing is imported before it is asked for.

>>> "duckdb" in names("engines")
True

A configuration is data: a Python function that it names is called only if an installed package offers its module, or
if whoever runs the configuration named the module too.

>>> named_object("os:getcwd", what="distribution", named=())
Traceback (most recent call last):
streamproof.errors.InputError: the distribution os:getcwd is code, and nobody named the module os
  fix: if you trust it, name it: --modules os; in Python modules=["os"]
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Literal, TypeAlias, get_args

from streamproof.errors import InputError, PlanError, did_you_mean

Point: TypeAlias = Literal["engines", "modules", "languages", "sources", "sinks"]
EVERYTHING: Final[Collection[str] | None] = None
"""For a reference that was typed on the command line: to type it is to name it."""


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


def refuse_unnamed(reference: str, *, what: str, named: Collection[str]) -> None:
    """Refuse code that a configuration names, unless its module is offered by a package or in ``named``."""
    module = module_of(reference)
    offered = (entry.module for point in get_args(Point) for entry in _found(point).values())
    if module not in named and module not in offered:
        fix = f'if you trust it, name it: --modules {module}; in Python modules=["{module}"]'
        raise InputError(f"the {what} {reference} is code, and nobody named the module {module}", fix=fix)


def module_of(reference: str) -> str:
    """The Python module of ``module:object``; a path means the module in it.

    >>> module_of("plans/daily.py:busy")
    'plans.daily'
    """
    return reference.partition(":")[0].removesuffix(".py").replace("/", ".")


def named_object(reference: str, *, what: str, named: Collection[str] | None) -> Any:
    """The function or class that ``module:object`` names; ``named`` is None where a person typed it."""
    if named is not None:
        refuse_unnamed(reference, what=what, named=named)
    try:
        found = getattr(import_module(module_of(reference)), reference.partition(":")[2])
    except (ImportError, AttributeError, ValueError) as error:
        raise PlanError(
            f"cannot load the {what} {reference}: {error}", fix="give module:function of a module that can be imported"
        ) from None
    if not callable(found):
        raise PlanError(f"{reference} is not a function", fix=f"name a function or a class as the {what}")
    return found
