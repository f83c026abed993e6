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

import runpy
from collections.abc import Collection
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from traceback import walk_tb
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias, get_args

from streamproof.errors import InputError, PlanError, StreamproofError, did_you_mean

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


_JOBS: Final = "streamproof.engines.job:on"


def job_maker() -> Any:
    """The function that makes a job of a plan and the name of an engine: what `Stream.on` calls.

    Engines lie above the rooms that write plans, so these know no engine; this is the one place that names them upward.
    """
    module, _, name = _JOBS.partition(":")
    return getattr(import_module(module), name)


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


def imported(module: str) -> ModuleType:
    """A Python module of the user's; whatever its code raises is told with the file and the line of that code."""
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:
        raise not_loaded(module, error) from error


def not_loaded(name: str, error: BaseException) -> PlanError:
    """What to say where code of the user's ends in an error while it is loaded."""
    absent = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
    no_name = isinstance(error, TypeError | ValueError) and _own_line(error) is None  # Python's own, of ".x" and ""
    if absent or no_name:
        fix = "give the name of a module that is installed, or that lies in this folder, without .py"
        return PlanError(f'there is no Python module "{name}"', at=name or '""', fix=fix, name="unknown_module")
    place = _own_line(error) or name
    if isinstance(error, StreamproofError):
        at = f"{place}: {error.at}" if error.at else place
        return PlanError(f"{name} cannot be loaded: {error.what}", at=at, fix=error.fix or "mend that line")
    what = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    return PlanError(f"{name} cannot be loaded: {what}", at=place, fix="mend that line")


_MACHINERY: Final = ("<", __file__.removesuffix("extensions.py"), import_module.__code__.co_filename, runpy.__file__)


def _own_line(error: BaseException) -> str | None:
    """The file and the line of the user's code where an error comes from."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    own = [f"{file}, line {line}" for file, line in frames if not file.startswith(_MACHINERY)]
    return own[-1] if own else None


def named_object(reference: str, *, what: str, named: Collection[str] | None) -> Any:
    """The function or class that ``module:object`` names; ``named`` is None where a person typed it."""
    if named is not None:
        refuse_unnamed(reference, what=what, named=named)
    name = reference.partition(":")[2]
    library = imported(module_of(reference))
    found = vars(library).get(name)
    if not callable(found):
        known = [key for key, value in vars(library).items() if callable(value) and not key.startswith("_")]
        text = f"{reference} is not a function" if found is not None else f'{library.__name__} has no "{name}"'
        fix = did_you_mean(name, known) if known else "define a function there"
        raise PlanError(f"cannot load the {what}: {text}", at=reference, fix=fix)
    return found
