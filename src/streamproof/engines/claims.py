"""What saved state claims: everything that the output of whoever goes on from it depends on, as plain data.

State fits only the run that it was taken from. So whatever is saved says what it was made with, and whoever goes on
says what they have now; where the two differ, the restart is refused, with the difference in words.

>>> before, now = {"emission": "final", "limits": {"windows": 10}}, {"emission": "eager", "limits": {"windows": 10}}
>>> [str(difference) for difference in differences(before, now)]
['emission="final" → emission="eager"']
>>> refuse_other(before, now, saved="the savepoint", running="this query")
Traceback (most recent call last):
    ...
streamproof.errors.InputError: the savepoint was taken with emission="final", this query has emission="eager"
  fix: go on with what it was taken with, or start anew without it
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, Final, TypeAlias

from streamproof.engines.base import Settings
from streamproof.errors import InputError
from streamproof.events.schema import Schema
from streamproof.language import json as plan_json
from streamproof.plan.code import description
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan

Claim: TypeAlias = dict[str, Any]
"""Plain data: words, numbers, and lists and mappings of them."""

MAY_CHANGE: Final[Mapping[str, str]] = {
    "on_module_error": "what happens to calls that fail from now on; failures are errors, or counted and kept",
}
"""The settings of a run that a restart may change, and why that changes no result without a word."""

MOST_SHOWN: Final = 3  # differences in a message
LONGEST: Final = 100  # characters of a value in a message
MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One fact that is not what it was."""

    path: tuple[str, ...]
    before: object  # `MISSING` where it was not there
    now: object

    @property
    def was(self) -> str:
        return _shown(self.path, self.before)

    @property
    def has(self) -> str:
        return _shown(self.path, self.now)

    def __str__(self) -> str:
        return f"{self.was} → {self.has}"


def settings_claim(settings: Settings) -> Claim:
    """The settings of a run: all that `MAY_CHANGE` does not list, and modules, which `module_claim` knows."""
    wanted = [field.name for field in fields(settings) if field.name not in MAY_CHANGE and field.name != "registry"]
    return {name: plain(getattr(settings, name)) for name in wanted}


def plan_claim(plan: Plan) -> Claim:
    """The plan, as it is written in JSON."""
    found: Claim = json.loads(plan_json.dumps(plan))["plan"]
    return found


def module_claim(plan: Plan, registry: Registry) -> Claim:
    """The modules that the plan speaks of, with all that their results depend on.

    Every module whose name is a word of the plan counts, as the version that the name finds: one too many does no harm.
    """
    text = plan_json.dumps(plan)
    found: Claim = {}
    for name, kind in sorted({(module.name, module.kind) for module in registry}):
        versions = {"", *(f"@{module.version}" for module in registry if (module.name, module.kind) == (name, kind))}
        for version in sorted(
            versions.intersection(re.findall(rf"(?<!\w){re.escape(name)}((?:@[\w.+-]+)?)(?!\w)", text))
        ):
            found[f"{kind} {name}{version}"] = description(registry.find(name + version, kind))
    return found


def schema_claim(schema: Schema) -> Claim:
    """The columns of a source, in their order, and the unit of its ticks."""
    return {"columns": [[name, str(kind)] for name, kind in schema], "unit": schema.unit}


def plain(value: object) -> Any:
    """A setting as plain data."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    return json.loads(json.dumps(value, default=str))


def differences(before: object, now: object, path: tuple[str, ...] = ()) -> Iterator[Difference]:
    """Where two claims differ, outer facts before inner ones. 1 is not 1.0, nor true."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        if before.get("op") != now.get("op"):  # what is below two different operators need not be compared
            yield Difference((*path, "op"), before.get("op", MISSING), now.get("op", MISSING))
            return
        names = [*before, *(name for name in now if name not in before)]
        pairs = [(name, before.get(name, MISSING), now.get(name, MISSING)) for name in names]
    elif isinstance(before, list) and isinstance(now, list):
        longest = max(len(before), len(now))
        sides = [[*side, *[MISSING] * (longest - len(side))] for side in (before, now)]
        pairs = [(str(n), one, other) for n, (one, other) in enumerate(zip(*sides, strict=True))]
    else:
        if type(before) is not type(now) or before != now:
            yield Difference(path, before, now)
        return
    for name, one, other in pairs:
        yield from differences(one, other, (*path, str(name)))


def refuse_other(
    before: Mapping[str, Any], now: Mapping[str, Any], *, saved: str, running: str, at: str | None = None,
    fix: str = "go on with what it was taken with, or start anew without it",
) -> None:  # fmt: skip
    """Refuse to go on from state whose claim is another one: ``saved`` and ``running`` name the two sides."""
    found = list(differences(before, now))
    if found:
        raise InputError(in_words(found, saved=saved, running=running), at=at, fix=fix)


def in_words(found: Iterable[Difference], *, saved: str, running: str) -> str:
    """Differences as one sentence.

    >>> other = differences({"plan": {"op": "where"}}, {"plan": {"op": "shift"}})
    >>> in_words(other, saved="the file", running="this run")
    'the file belongs to another plan: it was taken with plan.op="where", this run has plan.op="shift"'
    """
    every = list(found)
    shown = every[:MOST_SHOWN]
    is_plan = any("plan" in difference.path for difference in shown)
    opening = f"{saved} belongs to another plan: it" if is_plan else saved
    was, has = (", ".join(part) for part in zip(*((one.was, one.has) for one in shown), strict=True))
    more = f" (and {len(every) - len(shown)} more differences)" if len(every) > len(shown) else ""
    return f"{opening} was taken with {was}, {running} has {has}{more}"


def _shown(path: tuple[str, ...], value: object) -> str:
    name = ".".join(path)
    if value is MISSING:
        return f"no {name}"
    text = json.dumps(value, ensure_ascii=False)
    return f"{name}={text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}"
