"""Names, lengths of time and columns as EQL writes them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from streamproof.events.time import Span
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.durations import write_span
from streamproof.plan.text import to_text

KEYWORDS: Final = frozenset(
    (
        "event", "select", "from", "where", "as", "on", "arrival", "every", "at", "during", "continuous", "window",
        "hop", "group", "by", "emit", "empty", "qos", "latency", "backlog", "time", "cron", "arrive", "becomes",
        "changes", "lasting", "up", "down", "within", "since", "last", "pair", "each", "fifo", "lifo", "max", "open",
        "tick", "ticks",
    )
)  # fmt: skip
_SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def named(name: str) -> str:
    """A name, in double quotes where it would read as something else.

    >>> named("Room"), named("two words"), named("window")
    ('Room', '"two words"', '"window"')
    """
    if _SIMPLE.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def span_text(span: Span) -> str:
    """A length of time: with its unit, or in ticks.

    >>> span_text("5s"), span_text(7), span_text(timedelta(minutes=2))
    ('5s', '7 ticks', '120s')
    """
    written = write_span(span) if isinstance(span, timedelta) else span
    return f"{written} ticks" if isinstance(written, int) else written


def default_name(agg: Aggregate) -> str:
    """The column of an aggregate that is not given a name.

    >>> from streamproof.plan.parse import parse
    >>> default_name(Aggregate("count")), default_name(Aggregate("avg", parse("temp"))), default_name(
    ...     Aggregate("percentile", parse("v * 2"), (0.9,)))
    ('count', 'avg_temp', 'percentile_v_2_0_9')
    """
    fn, arg = agg.written
    parts = [fn, *([] if arg is None else [to_text(arg)]), *map(str, agg.params)]
    return "_".join(filter(None, (re.sub(r"\W+", "_", part).strip("_") for part in parts)))
