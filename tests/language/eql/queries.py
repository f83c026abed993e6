"""Random event-driven queries over three streams, and cases for them."""

from __future__ import annotations

from typing import Any

from streamproof.events.schema import Schema
from streamproof.language.eql import as_plan
from streamproof.language.eql.printer import default_name
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.eql import query as eql
from streamproof.plan.eql.query import EqlQuery, Event, Item
from streamproof.plan.parse import parse
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.draw.choices import Choices
from streamproof.workbench.draw.dense import random_stream

SCHEMAS = {
    "A": Schema.of({"k": "string", "v": "int64", "f": "float64"}, unit="s"),
    "B": Schema.of({"k": "string", "v": "int64", "b": "bool"}, unit="s"),
    "C": Schema.of({"v": "int64", "g": "float64"}, unit="s"),
}
CONDITIONS = ("v > 1", "v % 2 = 0", "v between 0 and 3", "not v = 2", "v is null or v < 0")
AGGREGATES = (
    Aggregate("count"), Aggregate("sum", parse("v")), Aggregate("avg", parse("v")), Aggregate("min", parse("v")),
    Aggregate("max", parse("v * 2")), Aggregate("last", parse("v")), Aggregate("first", parse("v")),
    Aggregate("median", parse("v")), Aggregate("count_distinct", parse("v")),
    Aggregate("percentile", parse("v"), (0.9,)),
)  # fmt: skip


class QueryMaker:
    """Queries of random shape; durations are short, because streams are dense."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices

    def span(self, low: int, high: int) -> str | int:
        length = self.choices.integer(low, high)
        return self.choices.pick((f"{length}s", f"{length} seconds", length))

    def stream(self) -> str:
        return self.choices.pick(("A", "B", "C"))

    def condition(self, stream: str, *, others: bool = True) -> Any:
        if others and self.choices.chance(15):
            other = self.choices.pick([name for name in SCHEMAS if name != stream])
            return eql_condition(f'v > "{other}{eql.OTHER}v"')
        return parse(self.choices.pick(CONDITIONS))

    def instant(self, by: tuple[str, ...], depth: int = 2, *, clocks: bool = True) -> Event:
        kinds = ["arrive", "arrive", "becomes", "becomes", "changes"]
        if depth > 0:
            kinds += ["sequence", "inside"]
        if clocks and not by:
            kinds.append("clock")
        if clocks:
            kinds.append("periodic")
        stream = self.choices.pick(("A", "B")) if by else self.stream()
        match self.choices.pick(kinds):
            case "arrive":
                return eql.Arrive(stream, self.condition(stream) if self.choices.chance(70) else None)
            case "becomes":
                return eql.Becomes(stream, self.condition(stream))
            case "changes":
                way = self.choices.pick(("any", "up", "down"))
                within = self.span(1, 6) if self.choices.chance(50) else None
                return eql.ValueChanges(stream, "v", self.choices.pick((1, 2, 3)), way, within)
            case "sequence":
                return self.sequence(by, depth)
            case "periodic":
                begin = self.clock() if not by and self.choices.chance(25) else self.instant(by, 0, clocks=False)
                return eql.Periodic(eql.Lasting(begin, self.span(3, 9), by), self.span(1, 4))
            case "inside":
                return eql.Nested(
                    self.lasting(by, 2 if self.choices.chance(30) else depth - 1),
                    self.instant(by, depth - 1, clocks=False),
                )
        return self.clock()

    def sequence(self, by: tuple[str, ...], depth: int) -> Event:
        """Two instants, one of which may be a time."""
        within = self.span(1, 6) if self.choices.chance(70) else None
        outer, inner = (self.instant(by, depth - 1, clocks=False) for _ in range(2))
        if not self.choices.chance(30):
            return eql.Nested(outer, inner, within)
        clock = self.clock()
        if not isinstance(clock, eql.Once):
            within = within or self.span(1, 6)
        return (
            eql.Nested(outer, clock, within) if not by and self.choices.chance(40) else eql.Nested(clock, inner, within)
        )

    def clock(self) -> Event:
        match self.choices.pick(("every", "cron", "once")):
            case "every":
                return eql.Every(self.span(2, 9))
            case "cron":
                return eql.Cron(self.choices.pick(("* * * * * *", "*/5 * * * * *", "3,7 0 0 * * *")))
        return eql.Once(f"1970-01-01T00:00:{self.choices.integer(0, 15):02d}Z")

    def lasting(self, by: tuple[str, ...] | None = None, depth: int = 2) -> Event:
        if by is None:
            by = ("k",) if self.choices.chance(60) else ()
        if depth > 1 and self.choices.chance(25):
            nested = 2 if self.choices.chance(15) else 0
            other = by if self.choices.chance(60) else self.choices.pick(((), ("k",)))
            inner, outer = self.lasting(by, nested), self.lasting(other, nested)
            return eql.Nested(outer, inner, None, self.choices.chance(60))
        begin = self.instant(by, depth - 1, clocks=False)
        longest = self.span(2, 12) if self.choices.chance(40) else None
        if self.choices.chance(30):
            return eql.Lasting(begin, self.span(1, 8), by)
        if self.choices.chance(15):
            end: Event = self.clock()
            return eql.Lasting(begin, end, by, "each", longest)
        if self.choices.chance(8) and not by:
            return eql.Lasting(self.clock(), self.span(1, 6))
        pair = self.choices.pick(("each", "each", "fifo", "lifo"))
        return eql.Lasting(begin, self.instant(by, depth - 1, clocks=False), by, pair, longest)

    def items(self) -> tuple[Item, ...]:
        chosen = dict.fromkeys(self.choices.pick(AGGREGATES) for _ in range(self.choices.integer(1, 3)))
        return tuple(Item(default_name(agg), agg) for agg in chosen)

    def query(self) -> EqlQuery:
        stream = self.stream()
        window = self.span(1, 9) if self.choices.chance(70) else None
        groups = [name for name in SCHEMAS[stream].names if name in ("k", "b")]
        group = (self.choices.pick(groups),) if groups and self.choices.chance(40) else ()
        where = parse(self.choices.pick(CONDITIONS)) if self.choices.chance(30) else None
        kind = self.choices.pick(
            ("arrival", "hop", "at", "at", "during", "during", "during", "continuous", "continuous")
        )
        shared = {"where": where, "group": group}
        match kind:
            case "arrival":
                return EqlQuery(self.items(), stream, eql.OnArrival(), window=window, **shared)
            case "hop":
                return EqlQuery(self.items(), stream, eql.EachHop(self.span(1, 7)), window=window or 5, **shared)
            case "at":
                return self._at(stream, window, shared)
            case "during":
                event = self.lasting()
                empty = not group and not ticks_forever(event) and self.choices.chance(30)
                return EqlQuery(self.items(), stream, eql.Meanwhile(event), empty=empty, **shared)
        hop = self.span(1, 5) if self.choices.chance(60) else None
        event = self.lasting()
        window = window or (5 if hop is not None else None)
        return EqlQuery(self.items(), stream, eql.Meanwhile(event, True), window=window, hop=hop, **shared)

    def _at(self, stream: str, window: Any, shared: dict[str, Any]) -> EqlQuery:
        by = ("k",) if self.choices.chance(40) else ()
        event = self.instant(by)
        clock = isinstance(event, eql.Once) or ticks_forever(event)
        if ticks_forever(event) and window is None:
            window = 4
        empty = window is not None and not shared["group"] and not clock and self.choices.chance(30)
        return EqlQuery(self.items(), stream, eql.At(event, by), window=window, empty=empty, **shared)


def ticks_forever(event: Event) -> bool:
    """Whether an event comes again and again without any tuple."""
    match event:
        case eql.Every() | eql.Cron():
            return True
        case eql.Periodic(part) | eql.Lasting(begin=part):
            return ticks_forever(part)
        case eql.Nested(outer, inner):
            return ticks_forever(outer) and ticks_forever(inner)
    return False


def eql_condition(text: str) -> Any:
    """A condition that reads another stream."""
    return parse(text)


def random_query_case(choices: Choices) -> Case:
    """A query, and streams for all it reads."""
    query = QueryMaker(choices).query()
    streams = {name: near(choices, SCHEMAS[name]) for name in query.streams()}
    return Case(as_plan(query), streams)


def near(choices: Choices, schema: Schema) -> CaseStream:
    """A stream whose events all have a start: the evaluator walks along the clock."""
    while True:
        stream = random_stream(choices, schema, far=False)
        if all(getattr(event, "le", 0) > -1000 for event in stream.events):
            return stream
