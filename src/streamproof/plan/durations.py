"""Lengths of time as plans hold them: whole ticks, text with a unit, or an expression where a node admits one.

>>> read_span("10"), read_span("5s"), read_span(timedelta(minutes=2))
(10, '5s', '120s')
>>> read_duration("5s"), read_duration("inf"), read_duration("v").name
('5s', None, 'v')
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from streamproof.errors import PlanError
from streamproof.events.time import FOREVER
from streamproof.plan.expr import Expr
from streamproof.plan.parse import parse
from streamproof.plan.text import to_text

_WHOLE: Final = re.compile(r"\s*[+-]?\d{1,40}\s*", re.ASCII)
_WITH_UNIT: Final = re.compile(r"\s*[+-]?(\d+(\.\d+)?\s*[a-zµ]+[\s,]*)+", re.IGNORECASE | re.ASCII)


def read_span(value: object) -> int | str:
    """A length of time in its one form: whole numbers are ticks, everything else is text with a unit."""
    if isinstance(value, timedelta):
        return _in_words(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise PlanError(f"{value!r} is not a duration", fix='write ticks (5) or text with a unit ("5s")')
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value


def _in_words(span: timedelta) -> str:
    micros = (span.days * 86400 + span.seconds) * 10**6 + span.microseconds
    for size, unit in ((10**6, "s"), (10**3, "ms")):
        if micros % size == 0:
            return f"{micros // size}{unit}"
    return f"{micros}us"


def read_duration(value: object) -> Expr | int | str | None:
    """A new lifetime's length: a span, an expression as text, or None for ``"inf"``."""
    if value == "inf" or (isinstance(value, int) and value == FOREVER):
        return None
    if isinstance(value, str) and not _WITH_UNIT.fullmatch(value):
        return parse(value)
    return read_span(value)


def write_span(value: int | str | timedelta) -> int | str:
    """A span as plan files hold it."""
    return _in_words(value) if isinstance(value, timedelta) else value


def write_duration(value: Expr | int | str | timedelta | None) -> int | str:
    """The inverse of `read_duration`."""
    if value is None:
        return "inf"
    if isinstance(value, int | str | timedelta):
        return write_span(value)
    text = to_text(value)
    return '"inf"' if text == "inf" else text  # a column of that name
