"""Event-driven queries as EQL. Law: the parser gives back what was printed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from streamproof.events.time import Span
from streamproof.language.eql.words import default_name, named, span_text
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.eql.query import (
    OTHER,
    Arrive,
    At,
    Becomes,
    Changes,
    Cron,
    EachHop,
    Event,
    Every,
    Item,
    Lasting,
    Meanwhile,
    Named,
    OnArrival,
    Once,
    Periodic,
    Query,
    Sequence,
)
from streamproof.plan.expr import Expr
from streamproof.plan.text import quote, to_text


def print_query(query: Query) -> str:
    """A query with the events it defines, one clause per line."""
    definitions = [f"EVENT {named(name)} = {event_text(event)};" for name, event in query.events]
    return "\n".join([*definitions, "\n".join(_clauses(query)) + ";"])


def _clauses(query: Query) -> Iterator[str]:
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


def _when(query: Query) -> str:
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
        case Changes():
            return _changes(event)
        case Sequence():
            return _sequence(event)
        case Periodic(inside, span):
            shown = event_text(inside)
            shown = f"({shown})" if isinstance(inside, Sequence | Periodic) else shown
            return f"{shown} EVERY {span_text(span)}"
        case Lasting():
            return _lasting(event)


def _changes(event: Changes) -> str:
    way = "" if event.way == "any" else f" {event.way.upper()}"
    within = "" if event.within is None else f" WITHIN {span_text(event.within)}"
    return f"CHANGES({named(event.stream)}.{named(event.column)}{way} BY {event.step}{within})"


def _sequence(event: Sequence) -> str:
    outer, inner = event_text(event.outer), event_text(event.inner)
    if isinstance(event.outer, Sequence | Periodic):
        outer = f"({outer})"
    if isinstance(event.inner, Sequence | Periodic):
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
