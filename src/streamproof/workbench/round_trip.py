"""The doors through which a plan comes in as text: printed in a language and read back.

>>> from streamproof.plan.nodes import Source, ToPoint
>>> through(ToPoint(Source("S")), "python") == ToPoint(Source("S"))
True
>>> printed(ToPoint(Source("S")), "python")
'source("S").to_point()'
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, Final

import streamproof
from streamproof import extensions
from streamproof.plan.nodes import Plan
from streamproof.query.stream import Stream

PYTHON_NAMES: Final[dict[str, Any]] = {
    "UTC": UTC, "date": date, "datetime": datetime, "timedelta": timedelta, "Decimal": Decimal,
}  # fmt: skip


@cache
def _names() -> dict[str, Any]:
    """The names that printed Python uses, and nothing else."""
    public = {name: getattr(streamproof, name) for name in streamproof.__all__}
    return {**PYTHON_NAMES, **public, "__builtins__": {}}


@cache
def _language(name: str) -> Any:
    return extensions.load("languages", name)


def printed(plan: Plan, language: str) -> str:
    """The plan as text in a language."""
    text: str = _language(language).dumps(plan)
    return text


def through(plan: Plan, language: str) -> Plan:
    """The plan that is read from the plan's own text. Law: it is the plan."""
    return plan if language == "plan" else _read(printed(plan, language), language)


@lru_cache(maxsize=16)
def _read(text: str, language: str) -> Plan:
    """The plan of a text: of the same text the same plan, which need not be prepared again."""
    if language == "python":
        return plan_of_python(text)
    read: Plan = _language(language).loads(text)
    return read


def plan_of_python(text: str) -> Plan:
    """The plan that printed Python stands for. The text must be our own: it is run as code."""
    stream = eval(text, dict(_names()))  # noqa: S307  # printed by ourselves
    return stream.plan if isinstance(stream, Stream) else stream
