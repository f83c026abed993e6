"""Streams: the fluent way to write a plan. Nothing here runs; every method gives a new stream.

>>> source("S").where("v > 1").tumbling(10).aggregate(n=count())
source(S) → where(v > 1) → agg(tumbling(size=10), n=count())
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any

from streamproof import extensions
from streamproof.arguments import Knows, check_call, door, doors
from streamproof.errors import PlanError
from streamproof.events.schema import Schema, Type
from streamproof.events.time import Unit
from streamproof.plan import nodes
from streamproof.plan.nodes import Plan
from streamproof.plan.windows import Window
from streamproof.query.calls import names_the_call
from streamproof.query.eql import EventDriven
from streamproof.query.showing import Shown
from streamproof.query.windowed import Windowed, WindowOperators


@doors
@dataclass(frozen=True, slots=True, repr=False)
class Stream(Shown, WindowOperators, EventDriven):
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
        make = extensions.job_maker()  # a job's type has no name here: engines lie above this room
        check_call(make, (self.plan, engine), options)
        return make(self.plan, engine, **options)


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


@dataclass(frozen=True, slots=True)
class Grouped(WindowOperators, Knows):
    """The groups of a stream. Everything computed on them is per group; null is a key of its own."""

    stream: Stream
    key: tuple[str, ...]

    @names_the_call
    def apply(self, apply: Callable[[Stream], Stream]) -> Stream:
        """What ``apply`` makes of each group's events, with the key in front.

        >>> source("S").group_by("k").apply(lambda group: group.where("v > 1").coalesce())
        source(S) → group_apply(k)

        A key that ``apply`` passes on is simply there; it may not compute another column of its name.
        Law: the result is the union over all keys.
        """
        branch = apply(type(self.stream)(nodes.GroupInput()))
        if not isinstance(branch, type(self.stream)):
            raise PlanError(f"apply must give a stream, got {branch!r}", fix="return the stream that the lambda makes")
        return self._around(branch.plan)

    @property
    def results(self) -> Plan:
        """The events of all groups."""
        return self.stream.plan

    def in_windows(self, window: Window) -> Windowed:
        """Each group in windows of its own."""
        return Windowed(nodes.GroupInput(), window, self._around)

    def _around(self, branch: Plan) -> Stream:
        return type(self.stream)(nodes.GroupApply(self.stream.plan, self.key, branch))


_in_use: ContextVar[tuple[str, ...]] = ContextVar("names of the multicasts around this call", default=())


@contextmanager
def bound_name(wanted: str | None) -> Iterator[str]:
    """A name for a shared stream that no enclosing multicast uses, so that an inner one never hides an outer one."""
    used = _in_use.get()
    if wanted in used:
        raise PlanError(f'an enclosing multicast is called "{wanted}" already', fix="give this one another name")
    name = wanted or next(name for n in count(1) if (name := f"shared{n}") not in used)
    token = _in_use.set((*used, name))
    try:
        yield name
    finally:
        _in_use.reset(token)


@doors
@dataclass(frozen=True, slots=True)
class Bindings(Knows):
    """What `let` gives: named streams, waiting for the stream that reads them."""

    streams: tuple[tuple[str, Stream], ...]

    def in_(self, body: Stream) -> Stream:
        """The stream ``body``, which reads the bound ones with `ref`."""
        return type(body)(nodes.Let(tuple((name, stream.plan) for name, stream in self.streams), body.plan))


def bind(streams: Mapping[str, Stream]) -> Bindings:
    """Bindings, in their order: a later one may read an earlier one."""
    return Bindings(tuple(streams.items()))
