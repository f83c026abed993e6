"""Random plans that give the rewriting passes work, over small dense streams where a wrong move shows at once.

Every operator comes often, under a filter that may or may not move below it, and above chains that may or may not fuse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from streamproof.events.event import Insert
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.plan.check import check
from streamproof.plan.modules import Properties, Registry, udo
from streamproof.plan.nodes import Plan
from streamproof.query import aggregates
from streamproof.query.column import Ordering, asc, col, desc
from streamproof.query.stream import Stream, source
from streamproof.query.windowed import Windowed
from streamproof.workbench.case import Case
from streamproof.workbench.case import CaseStream as Events
from streamproof.workbench.draw.choices import Choices, RandomChoices
from streamproof.workbench.modules import all_modules

SCHEMAS = {
    "S": Schema.of({"k": "string", "v": "int64", "x": "float64"}),
    "R": Schema.of({"k": "string", "v": "int64"}),
}
VALUES = {"k": ("a", "b", None), "v": (0, 1, 2, 3, None), "x": (0.5, 1.0, 2.0)}
TESTS = {
    "string": ("{} = 'a'", "{} <> 'b'", "{} is not null", "{} in ('a', 'c')", "coalesce({}, 'b') = 'b'"),
    "int64": ("{} > 1", "{} <> 2", "{} is not null", "{} <= 2", "{} + 1 > 1", "cast({} as varchar) <> '1.0'"),
    "float64": ("{} >= 1", "{} <> 0.5", "{} is not null", "cast({} as varchar) <> '1.0'"),
}
PAIRS = ("{0} <= {1}", "{0} <> {1}", "coalesce({0}, {1}) is not null", "{0} is null or {1} is not null")
passing = Properties(passes=frozenset({"k", "v", "x"}))
MODULES = Registry([*all_modules(), udo("keep", returns=lambda inputs: inputs, properties=passing)(list)])


def case(seed: int) -> Case:
    """The same case for the same seed."""
    choices = RandomChoices(seed)
    streams = {name: _events(choices, schema) for name, schema in SCHEMAS.items()}
    return Case(_Writer(choices).query().plan, streams)


def _events(choices: Choices, schema: Schema) -> Events:
    events = []
    for n in range(choices.integer(3, 9)):
        le = choices.integer(0, 12)
        re = FOREVER if choices.chance(4) else le + choices.integer(1, 6)
        events.append(Insert(f"e{n}", le, re, {name: choices.pick(VALUES[name]) for name in schema.names}))
    return Events(schema, tuple(events))


@dataclass(frozen=True, slots=True)
class _Writer:
    choices: Choices

    def query(self) -> Stream:
        stream = self.stream(self.choices.pick((1, 1, 1, 2, 2, 3)))
        for _ in range(self.choices.integer(0, 2)):
            stream = self.filtered(stream)
        if self.choices.chance(20):
            stream = stream.union(stream.shift(self.choices.integer(0, 2)))
        return self.narrowed(stream)

    def stream(self, depth: int) -> Stream:
        if depth <= 0:
            return source(self.choices.pick(("S", "S", "R")))
        below = self.stream(depth - 1)
        if self.choices.chance(25):
            below = self.filtered(below)
        return self.choices.pick(self._operators())(below)

    def _operators(self) -> list[Callable[[Stream], Stream]]:
        lifetimes = [self._lifetime] * 6
        pairs = [self._joined] * 8 + [self._cut] * 4 + [self._united] * 2
        windows = [self._aggregated] * 4 + [self._ranked, self._passed, self._grouped, self._grouped, self._sessions]
        return [*lifetimes, *pairs, *windows, *[self._merged] * 3, self._projected, self._projected]

    # --- filters and projections ---

    def columns(self, stream: Stream) -> list[tuple[str, str]]:
        schema = check(stream.plan, SCHEMAS, registry=MODULES).schema
        return [(name, kind.kind) for name, kind in schema if kind.kind in TESTS]

    def filtered(self, stream: Stream) -> Stream:
        parts = [self._test(stream) for _ in range(self.choices.integer(1, 2))]
        return stream.where(f" {self.choices.pick(('and', 'and', 'or'))} ".join(f"({part})" for part in parts))

    def _test(self, stream: Stream) -> str:
        columns = self.columns(stream)
        if not columns or self.choices.chance(25):
            return self.choices.pick(("le > 3", "le <= 6", "le <> 5"))
        name, kind = self.choices.pick(columns)
        others = [other for other, same in columns if same == kind and other != name]
        if others and self.choices.chance(40):
            return self.choices.pick(PAIRS).format(name, self.choices.pick(others))
        return self.choices.pick(TESTS[kind]).format(name)

    def narrowed(self, stream: Stream) -> Stream:
        names = [name for name, _ in self.columns(stream)]
        match self.choices.pick(("all", "some", "count", "first")):
            case "some" if names:
                return stream.select(*[name for name in names if self.choices.chance(40)] or names[-1:])
            case "count":
                return stream.snapshot().aggregate(n=aggregates.count())
            case "first" if names:
                return stream.count_start(1).aggregate(n=aggregates.first(col(names[-1])))
        return stream

    def _projected(self, stream: Stream) -> Stream:
        columns = self.columns(stream)
        names = [name for name, _ in columns]
        kept = [name for name in names if self.choices.chance(60)]
        numbers = [name for name, kind in columns if kind == "int64"]
        new = {"n0": f"{self.choices.pick(numbers)} + 1"} if numbers else {"n0": "le"}
        return stream.select(*(name for name in kept if name != "n0"), new)

    # --- one stream ---

    def _lifetime(self, stream: Stream) -> Stream:
        pick, integer = self.choices.pick, self.choices.integer
        if self.choices.chance(40):
            stream = self._lifetime(stream)  # chains of them
        match pick(("shift", "extend", "extend", "alter", "alter", "point", "end", "chop")):
            case "shift":
                return stream.shift(integer(-2, 2))
            case "extend":
                return stream.extend(integer(-4, 4))
            case "alter":
                lengths: tuple[int | str, ...] = (1, 3, 0, "re - le", "(re - le) * 2 - 3", "le % 3")
                return stream.alter_duration(pick(lengths))
            case "point":
                return stream.to_point()
            case "end":
                return stream.point_at_end()
        return stream.alter_duration(5).chop(3, offset=integer(0, 2))

    def _merged(self, stream: Stream) -> Stream:
        names = [name for name, _ in self.columns(stream)]
        if names and self.choices.chance(50):
            stream = stream.select(self.choices.pick(names))
        return self.choices.pick((Stream.coalesce, Stream.distinct, Stream.stitch))(stream)

    def _sessions(self, stream: Stream) -> Stream:
        names = [name for name, _ in self.columns(stream)]
        return stream.session(3, key=self.choices.pick(names) if names and self.choices.chance(60) else ())

    # --- several streams ---

    def _other(self) -> Stream:
        return self.filtered(source("R")) if self.choices.chance(20) else source("R")

    def _on(self, stream: Stream) -> str:
        names = [name for name, kind in self.columns(stream) if kind == "string"]
        return f"l.{self.choices.pick(names)} = r.k" if names and self.choices.chance(70) else "true"

    def _joined(self, stream: Stream) -> Stream:
        join = self.choices.pick(
            (Stream.join, Stream.left_outer, Stream.left_outer, Stream.full_outer, Stream.followed_by)
        )
        names = [name for name, _ in self.columns(stream)]
        select = {name: f"l.{name}" for name in names if self.choices.chance(70)}
        select |= {name: text for name, text in (("rk", "r.k"), ("rv", "r.v")) if self.choices.chance(70)}
        if self.choices.chance(25):
            select |= {"c": "coalesce(r.v, 2)", "start": "l.le"}
        return join(stream, self._other(), self._on(stream), select=select or {"rv": "r.v"})

    def _cut(self, stream: Stream) -> Stream:
        return self.choices.pick((Stream.clip, Stream.without, Stream.without))(stream, self._other(), self._on(stream))

    def _united(self, stream: Stream) -> Stream:
        columns = self.columns(stream)
        other = {"string": "k", "int64": "v", "float64": "v"}
        return stream.select(*(name for name, _ in columns)).union(
            source("R").select({n: other[k] for n, k in columns})
        )

    # --- windows and groups ---

    def _aggregated(self, stream: Stream) -> Stream:
        names = [name for name, _ in self.columns(stream)]
        numbers = [name for name, kind in self.columns(stream) if kind == "int64"]
        found = {"n": aggregates.count()}
        if names:
            found["f"] = self.choices.pick((aggregates.first, aggregates.last, aggregates.max))(
                col(self.choices.pick(names))
            )
        if numbers:
            found["s"] = aggregates.sum(col(self.choices.pick(numbers)))
        return self._windows(stream).aggregate(found)

    def _windows(self, stream: Stream) -> Windowed:
        match self.choices.pick(("tumbling", "hopping", "snapshot", "count")):
            case "tumbling":
                return stream.tumbling(4)
            case "hopping":
                return stream.hopping(4, hop=2)
            case "snapshot":
                return stream.snapshot()
        return stream.count_start(2)

    def _ranked(self, stream: Stream) -> Stream:
        names = [name for name, _ in self.columns(stream)]
        order: Callable[..., Ordering] = self.choices.pick((asc, desc))
        by = order(col(self.choices.pick(names))) if names else order("le")
        return self._windows(stream).top(1, by=by, rank=None if "rank" in names else "rank")

    def _passed(self, stream: Stream) -> Stream:
        names = [name for name, _ in self.columns(stream)]
        return self._windows(stream).udo("keep", map={name: col(name) for name in names})

    def _grouped(self, stream: Stream) -> Stream:
        names = [name for name, _ in self.columns(stream)]
        if not names:
            return stream
        key = self.choices.pick(names)
        new = "q" if key.startswith("p") else "p"  # the key must not be a column of the branch
        rest = {f"{new}{n}": col(name) for n, name in enumerate(names)}

        def apply(group: Stream) -> Stream:
            match self.choices.pick(("count", "merge", "twice")):
                case "count":
                    return group.snapshot().aggregate({new: aggregates.count()})
                case "merge":
                    return group.select(rest).coalesce()
            return group.select(rest).coalesce().union(group.select(rest).coalesce().shift(1))

        return stream.group_apply(key, apply=apply)


def plan(seed: int) -> Plan:
    return case(seed).plan
