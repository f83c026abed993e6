"""Event-driven queries as EQL. Law: the parser gives back what was printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from streamproof.events.time import Span
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.durations import write_span
from streamproof.plan.eql.query import (
    OTHER,
    Arrive,
    At,
    Becomes,
    Cron,
    EachHop,
    EqlQuery,
    Event,
    Every,
    Item,
    Lasting,
    Meanwhile,
    Named,
    Nested,
    OnArrival,
    Once,
    Periodic,
    ValueChanges,
)
from streamproof.plan.expr import Expr
from streamproof.plan.text import quote, to_text


def print_query(query: EqlQuery) -> str:
    """A query with the events it defines, one clause per line."""
    definitions = [f"EVENT {named(name)} = {event_text(event)};" for name, event in query.events]
    return "\n".join([*definitions, "\n".join(_clauses(query)) + ";"])


def _clauses(query: EqlQuery) -> Iterator[str]:
    items = [*map(named, query.shown), *map(_item, query.items)]
    yield f"SELECT {', '.join(items)}"
    yield f"FROM {named(query.stream)}"
    if query.where is not None:
        yield f"WHERE {_condition(query.where)}"
    yield _when(query)
    if query.window is not None:
        yield f"WINDOW {span_text(query.window)}"
    if query.hop is not None:
        yield f"HOP {span_text(query.hop)}"
    if query.group:
        yield f"GROUP BY {_names(query.group)}"
    if query.empty:
        yield "EMIT EMPTY"
    if query.qos is not None:
        backlog = "" if query.qos.backlog is None else f" BACKLOG {query.qos.backlog}"
        yield f"QOS LATENCY {span_text(query.qos.latency)}{backlog}"


def _condition(where: Expr) -> str:
    """A condition outside of parentheses: words that begin a clause need some."""
    return f"({expression_text(where)})"


def _item(item: Item) -> str:
    text = aggregate_text(item.aggregate)
    return text if item.name == default_name(item.aggregate) else f"{text} AS {named(item.name)}"


def aggregate_text(agg: Aggregate) -> str:
    """An aggregate as it stands in SELECT."""
    fn, arg = agg.written
    return f"{fn}({', '.join(['*' if arg is None else expression_text(arg), *map(str, agg.params)])})"


def expression_text(expr: Expr) -> str:
    """An expression, with the values of other streams as ``Stream.column``."""
    text = to_text(expr)
    while OTHER in text:
        start = text.rfind('"', 0, text.index(OTHER))
        end = text.index('"', text.index(OTHER))
        stream, column = text[start + 1 : end].split(OTHER)
        text = f"{text[:start]}{quote(stream)}.{quote(column)}{text[end + 1 :]}"
    return text


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(named, names))


def _when(query: EqlQuery) -> str:
    match query.when:
        case OnArrival():
            return "ON ARRIVAL"
        case EachHop(span):
            return f"EVERY {span_text(span)}"
        case At(event, by):
            return f"AT {event_text(event)}" + (f" BY {_names(by)}" if by else "")
        case Meanwhile(event, continuous):
            return f"DURING {event_text(event)}" + (" CONTINUOUS" if continuous else "")


def event_text(event: Event) -> str:
    """An event as EQL."""
    match event:
        case Named(name):
            return named(name)
        case Once(moment):
            return f"TIME('{moment}')"
        case Every(span):
            return f"TIME(EVERY {span_text(span)})"
        case Cron(pattern):
            return f"TIME(CRON '{pattern}')"
        case Arrive(stream, where):
            return f"ARRIVE({named(stream)}{'' if where is None else f': {expression_text(where)}'})"
        case Becomes(stream, where):
            return f"BECOMES({named(stream)}: {expression_text(where)})"
        case ValueChanges():
            return _changes(event)
        case Nested():
            return _sequence(event)
        case Periodic(inside, span):
            shown = event_text(inside)
            shown = f"({shown})" if isinstance(inside, Nested | Periodic) else shown
            return f"{shown} EVERY {span_text(span)}"
        case Lasting():
            return _lasting(event)


def _changes(event: ValueChanges) -> str:
    way = "" if event.way == "any" else f" {event.way.upper()}"
    within = "" if event.within is None else f" WITHIN {span_text(event.within)}"
    return f"CHANGES({named(event.stream)}.{named(event.column)}{way} BY {event.step}{within})"


def _sequence(event: Nested) -> str:
    outer, inner = event_text(event.outer), event_text(event.inner)
    if isinstance(event.outer, Nested | Periodic):
        outer = f"({outer})"
    if isinstance(event.inner, Nested | Periodic):
        inner = f"({inner})"
    within = "" if event.within is None else f" WITHIN {span_text(event.within)}"
    return f"{outer} @ {inner}{within}{' OPEN' if event.open else ''}"


def _lasting(event: Lasting) -> str:
    parts = [event_text(event.begin) + ", " + _end(event.end)]
    if event.by:
        parts.append(f"BY {_names(event.by)}")
    if event.pair != "each":
        parts.append(f"PAIR {event.pair.upper()}")
    if event.max is not None:
        parts.append(f"MAX {span_text(event.max)}")
    return f"LASTING({' '.join(parts)})"


def _end(end: Event | Span) -> str:
    return f"+{span_text(end)}" if isinstance(end, int | str | timedelta) else event_text(end)


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
