"""Streams: the fluent way to write a plan. Nothing here runs; every method gives a new stream.

>>> source("S").where("v > 1").tumbling(10).aggregate(n=count())
source(S) → where(v > 1) → agg(tumbling(size=10), n=count())
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streamproof.arguments import check_call, door, doors
from streamproof.errors import PlanError
from streamproof.events.schema import Schema, Type
from streamproof.events.time import Unit
from streamproof.plan import nodes
from streamproof.plan.windows import Window
from streamproof.query.calls import names_the_call
from streamproof.query.eql import EventDriven
from streamproof.query.grouped import Grouped
from streamproof.query.multicast import Bindings, bind, bound_name
from streamproof.query.showing import Shown
from streamproof.query.windowed import Windowed, Windows


@doors
@dataclass(frozen=True, slots=True, repr=False)
class Stream(Shown, Windows, EventDriven):
    """A stream of events and the plan that computes it. Streams with equal plans are equal."""

    @property
    def results(self) -> nodes.Plan:
        """The events that a window divides."""
        return self.plan

    def in_windows(self, window: Window) -> Windowed:
        """This stream in windows of any kind."""
        return Windowed(self.plan, window, Stream)

    @names_the_call
    def group_by(self, *key: str) -> Grouped:
        """The groups of equal key, to `apply` something to, or to divide into windows.

        >>> source("S").group_by("k").snapshot().aggregate(n=count()).to_python()
        'source("S").group_by("k").snapshot().aggregate(n=count())'

        Law: everything inside is per group: snapshot boundaries, count windows, state.
        """
        if not key:
            raise PlanError("group_by needs at least one key column", fix='give it, e.g. group_by("k")')
        return Grouped(self, key)

    @names_the_call
    def group_apply(self, *key: str, apply: Callable[[Stream], Stream]) -> Stream:
        """The same as ``group_by(*key).apply(apply)``.

        >>> source("S").group_apply("k", apply=lambda group: group.snapshot().aggregate(n=count()))
        source(S) → group_apply(k)

        Law: the result is the union over all keys, null being a key of its own.
        """
        return self.group_by(*key).apply(apply)

    @names_the_call
    def multicast(self, use: Callable[[Stream], Stream], *, name: str | None = None) -> Stream:
        """The stream that ``use`` makes of this one, computed once however often ``use`` reads it.

        >>> readings = source("S").where("v > 1")
        >>> readings.multicast(lambda m: m.clip(m, "l.k = r.k"))
        ref(shared1) → clip(on=l.k = r.k) → let(shared1)

        Law: ``s.multicast(use) == use(s)`` but for the work done.
        """
        with bound_name(name) as shared:
            body = use(ref(shared))
        if not isinstance(body, Stream):
            raise PlanError(f"multicast must give a stream, got {body!r}", fix="return what the lambda makes")
        return Stream(nodes.Let(((shared, self.plan),), body.plan))

    def on(self, engine: str, **options: object) -> Any:
        """A job on an engine: ``stream.on("duckdb").run({"S": events})``.

        The options are those of `streamproof.engines.on`.
        """
        # engines lie above this room, so they are found when asked for, and a job's type has no name here
        made = importlib.import_module("streamproof.engines.job").on
        check_call(made, (self.plan, engine), options)
        return made(self.plan, engine, **options)


@door
def source(name: str, schema: Schema | Mapping[str, str | Type] | None = None, *, unit: Unit | None = None) -> Stream:
    """A named input stream. The schema and the unit of its ticks come from the data unless given.

    >>> source("S", {"k": "string", "v": "int64"}, unit="ms").plan.schema.names
    ('k', 'v')

    Law: two mentions of one name are one stream.
    """
    columns = schema if isinstance(schema, Schema | None) else Schema.of(schema, unit=unit)
    return Stream(nodes.Source(name, columns, unit))


@door
def let(**streams: Stream) -> Bindings:
    """Streams to be computed once and read by name, in ``let(…).in_(body)``.

    >>> let(M=source("S").where("v > 1")).in_(ref("M").clip(ref("M")))
    ref(M) → clip(on=true) → let(M)
    """
    return bind(streams)


@door
def ref(name: str) -> Stream:
    """A stream that an enclosing `let` binds."""
    return Stream(nodes.Ref(name))


@door
def group_input() -> Stream:
    """The events of one group: the leaf of what `Grouped.apply` makes."""
    return Stream(nodes.GroupInput())
