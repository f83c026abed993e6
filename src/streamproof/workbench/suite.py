"""Suites: scenarios, how many cases, seeds and engines. Five are shipped, others are files.

>>> load_suite("smoke").name
'smoke'

A file ``*.suite.py`` assigns its suite to ``SUITE``; it is code, and is run: no file of another name ever is. A file
``*.json`` holds data only.
"""

from __future__ import annotations

import os
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamproof import documents
from streamproof.documents import existing
from streamproof.errors import InputError, PlanError, did_you_mean
from streamproof.extensions import not_loaded
from streamproof.plan.modules import Registry
from streamproof.workbench.facets import events
from streamproof.workbench.holes import one_of
from streamproof.workbench.intent import Intent, operator, random_case, random_plan
from streamproof.workbench.modules import all_modules

SHIPPED: Final = ("smoke", "full", "large", "deep", "fuzz")
CODE: Final = ".suite.py"
EVENTS_AT_ONCE: Final = 200_000


@dataclass(frozen=True)
class Suite:
    """What to verify."""

    name: str
    scenarios: tuple[Intent, ...]
    cases: int = 1000  # in all, shared by the scenarios
    slow_cases: int = 200  # on engines that need a server or Spark
    seed: int = 1
    engines: tuple[str, ...] = ("local",)
    streams_per_plan: int = 4
    about: str = ""
    registry: Registry | None = None  # modules of the user's own

    def __post_init__(self) -> None:
        names = [scenario.name for scenario in self.scenarios]
        if not names or len(set(names)) < len(names) or "" in names:
            raise PlanError("every scenario of a suite needs a name of its own", fix='add .called("name")')

    @property
    def at_once(self) -> int:
        """How many cases an engine may be given at once: of long streams few."""
        longest = max([part.data.most for one in self.scenarios for part in one.walk() if part.data] or [1])
        return max(1, EVENTS_AT_ONCE // longest)

    @property
    def modules(self) -> Registry:
        return self.registry or all_modules()


def load_suite(given: str) -> Suite:
    """A shipped suite by its name, or the suite in a file."""
    if given in SHIPPED:
        from streamproof.workbench.shipped_suites import SUITES  # noqa: PLC0415  # which are made of suites

        return SUITES[given]
    path = Path(given)
    if not os.path.exists(path):
        fix = (
            f"{did_you_mean(given, SHIPPED)}, a file that ends in .suite.py or .json, or a plan with --input NAME=FILE"
        )
        raise InputError(f'there is no suite "{given}"', at=given, fix=fix)
    path = existing(path)
    if path.suffix == ".json":
        return _from_json(path)
    if not path.name.endswith(CODE):
        what = f"{path} is neither a suite nor data: only files that end in {CODE} are run as code"
        raise InputError(what, fix=f"rename it to end in {CODE} if you trust it, or give a plan with --input NAME=FILE")
    return _from_python(path)


def _from_python(path: Path) -> Suite:
    try:
        found = runpy.run_path(str(path)).get("SUITE")
    except (Exception, SystemExit) as error:  # whatever the user's own code raises
        found_out = not_loaded(str(path), error)
        fix = "mend the file; modules of this folder are found if you name them with --modules"
        raise InputError(f"the suite {found_out.what}", at=found_out.at, fix=fix) from error
    if not isinstance(found, Suite):
        raise InputError("the file assigns no suite to SUITE", at=str(path), fix='write SUITE = Suite("name", …)')
    return found


_KINDS: Final[Mapping[str, type]] = {
    "name": str, "scenarios": dict, "engines": list, "about": str, "cases": int, "slow_cases": int, "seed": int,
    "streams_per_plan": int,
}  # fmt: skip


def _from_json(path: Path) -> Suite:
    document = documents.load(path)
    fix = 'write {"name": …, "scenarios": {name: intent}}'
    for key, value in document.items() if isinstance(document, dict) else [("scenarios", None)]:
        if key not in _KINDS:
            raise InputError(f'a suite has no "{key}"', at=str(path), fix=did_you_mean(key, _KINDS))
        if type(value) is not _KINDS[key]:
            raise InputError(f'"{key}" of a suite is {value!r}', at=str(path), fix=fix)
    try:
        scenarios = tuple(intent_of(data).called(name) for name, data in document["scenarios"].items())
        given = {key: value for key, value in document.items() if key not in ("name", "scenarios", "engines")}
        engines = tuple(document.get("engines", ("local",)))
        return Suite(document.get("name", path.stem), scenarios, engines=engines, **given)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        text = f"the suite cannot be read: {type(error).__name__} {error}"
        raise InputError(text, at=str(path), fix=fix) from None


def intent_of(data: Any) -> Intent:
    """An intent from plain data: the plan notation, where what is left out is a hole.

    >>> print(intent_of({"op": "join", "left": {"op": "stream"}, "right": {"op": "stream"}, "on": "l.k = r.k"}))
    join(stream, stream, on=l.k = r.k)
    """
    if isinstance(data, str):
        data = {"op": data}
    op, rest = data["op"], {key: _value(value) for key, value in data.items() if key not in ("op", "over", *_INPUTS)}
    inputs = [intent_of(child) for key in _INPUTS if key in data for child in _listed(data[key])]
    intent = _made(op, inputs, rest)
    return intent.over(events(**{k: _value(v) for k, v in data["over"].items()})) if "over" in data else intent


_INPUTS: Final = ("in", "ins", "left", "right", "by_stream", "apply")


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _value(value: Any) -> Any:
    return one_of(*value["one_of"]) if isinstance(value, Mapping) and "one_of" in value else value


def _made(op: str, inputs: Sequence[Intent], said: Mapping[str, Any]) -> Intent:
    if op in ("stream", "group", "group_input"):
        if inputs:
            raise PlanError(f'"{op}" has no input', fix="put the operator above it")
        return Intent("group" if op == "group_input" else op, fixed=said)
    if op == "case":
        if inputs:
            raise PlanError("a random case has streams of its own", fix="leave its inputs out")
        return random_case(**said)
    if op == "operator":
        return operator(*inputs).saying(**said)
    if op == "random":
        return random_plan(*inputs).saying(**said)
    if not inputs:
        raise PlanError(f'the operator "{op}" needs an input', fix='give "in", or "left" and "right"')
    return inputs[0].then(op, *inputs[1:], **said)
