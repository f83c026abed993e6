"""PLAN arguments: a file in a registered language, or ``module:object`` in Python."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from streamproof import extensions
from streamproof.documents import read_text
from streamproof.errors import PlanError, did_you_mean
from streamproof.events.time import read_tick
from streamproof.plan.modules import Module, Registry
from streamproof.plan.nodes import Node, Plan

MAX_BYTES = 20_000_000
_TICK = re.compile(r"[+-]?[0-9]{1,40}")


def load_plan(reference: str, *, modules: Collection[str] | None = None) -> Plan:
    """The plan that an argument names; one from a configuration may name only the Python modules in ``modules``."""
    name, _, query = reference.partition("#")  # FILE.eql#2 is the second query of a file
    path = Path(name)
    if path.suffix in _languages():
        return _from_file(path, query or None)
    if ":" in reference:
        if modules is not None:
            extensions.refuse_unnamed(reference, what="plan", named=modules)
        return _from_python(reference)
    known = ", ".join(sorted(_languages()))
    raise PlanError(
        f'cannot tell the language of "{reference}"',
        at=reference,
        fix=f"give a file ending in {known}, or module:object",
    )


def look_here() -> None:
    """Let a Python module that the user named be found in the current folder, after all that is installed."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def _languages() -> dict[str, str]:
    """File suffixes of the languages that can be read, with the language's name."""
    return {f".{name}": name for name in extensions.names("languages") if name != "python"}


def _from_file(path: Path, query: str | None) -> Plan:
    text = read_text(path, most=MAX_BYTES)
    language = extensions.load("languages", _languages()[path.suffix])
    try:
        plan: Plan = language.loads(text) if query is None else _one_of(language, text, query)
    except PlanError as error:
        for one in (error, *error.others):
            one.fix = one.fix or "mend the plan there"
        raise error.within(str(path)) from None
    return plan


def _one_of(language: Any, text: str, query: str) -> Plan:
    """One query of a file that has several."""
    if not hasattr(language, "loads_all"):
        raise PlanError(f'this file holds one plan, so there is no query "{query}"', fix="leave out what follows #")
    plans: dict[str, Plan] = language.loads_all(text)
    if query not in plans:
        raise PlanError(f'there is no query "{query}"', fix=did_you_mean(query, plans))
    return plans[query]


def _from_python(reference: str) -> Plan:
    module_name, name = extensions.module_of(reference), reference.partition(":")[2]
    look_here()
    module = extensions.imported(module_name)
    plans = {key: plan for key, value in vars(module).items() if (plan := _plan(value)) is not None}
    if name not in plans:
        what = f"{reference} is not a stream or a plan" if hasattr(module, name) else f"{module_name} has no {name!r}"
        known = did_you_mean(name, plans) if plans else "assign a stream to a name in the module"
        raise PlanError(what, at=reference, fix=known)
    return plans[name]


def _plan(value: object) -> Plan | None:
    """A plan, or that of a stream."""
    plan = getattr(value, "plan", value)
    return plan if isinstance(plan, Node) else None


def registry_of(references: list[str] | None, known: Iterable[Module] = ()) -> Registry:
    """The modules that ``--modules`` names, and those that are known without it."""
    registry = Registry(known)
    for reference in references or []:
        look_here()
        registry.load(reference)
    return registry


def read_horizon(text: str | None) -> int | None:
    """The tick that ``--horizon`` gives."""
    if text is None:
        return None
    return read_tick(int(text) if _TICK.fullmatch(text) else text)
