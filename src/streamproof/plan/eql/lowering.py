"""From an event-driven query to the algebra. The check does it, when the schemas of the streams are known.

Each model is one `During` over the query's data: when it is evaluated, and what each trigger sees.

| model | evaluated at | sees |
| --- | --- | --- |
| AEC | the data itself | ``(t − window, t]`` |
| TEC | hopping windows | ``(t − window, t]`` |
| IES | instants | ``(t − window, t]``, or the latest tuple |
| LES | lasting events, at their end | ``[begin, end)`` |
| LEC | lasting events, at every hop or arrival | ``[max(begin, t − window), t]`` |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from streamproof.errors import PlanError, StreamproofError, did_you_mean
from streamproof.events.schema import BOOL, Schema
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.eql import clocks
from streamproof.plan.eql.clocks import pick
from streamproof.plan.eql.events import BEGIN, END, EventPlans, Key
from streamproof.plan.eql.query import (
    At,
    Cron,
    EachHop,
    EqlQuery,
    Event,
    Every,
    Item,
    Meanwhile,
    Nested,
    OnArrival,
    Once,
)
from streamproof.plan.event_nodes import During, EventQuery
from streamproof.plan.expr import Call, Col
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.plan.source_location import at_place
from streamproof.plan.typing import Scope, require, type_of
from streamproof.plan.windows import Hopping


def lowered(node: EventQuery, schemas: Mapping[str, Schema], registry: Registry | None = None) -> Plan:
    """The same query as a plan of other nodes."""
    return nodes.Let(node.bind, _Model.of(node.query, dict(schemas), registry).plan())


@dataclass(frozen=True, slots=True)
class _Model:
    """One query with the schemas of its streams."""

    query: EqlQuery
    schema: Schema  # of the data
    data: Plan  # as points, filtered
    events: EventPlans

    @staticmethod
    def of(query: EqlQuery, schemas: dict[str, Schema], registry: Registry | None) -> _Model:
        units = {schema.unit for schema in schemas.values()}
        if len(units) > 1:
            shown = " and ".join(sorted(str(unit or "none") for unit in units))
            raise PlanError(f"the streams count time in different units: {shown}", fix="read all in one unit")
        data: Plan = nodes.ToPoint(nodes.Ref(query.stream))
        if query.where is not None:
            data = nodes.Where(data, query.where)
        events = EventPlans(query, schemas, units.pop(), pick(data, ()), registry)
        model = _Model(query, events.schema(query.stream, query.at), data, events)
        if isinstance(query.when, At):  # what happens a window after the data still sees them
            seen = nodes.AlterDuration(pick(data, ()), model._window())
            model = replace(model, events=replace(events, alive=seen))
        model.check_expressions()
        return model

    # --- what is wrong before anything is built -----------------------------------------------------------------------

    def check_expressions(self) -> None:
        query, events = self.query, self.events
        scope = Scope.one(self.schema, registry=events.registry)
        events.check_columns(query.stream, query.where, query.where_at)
        if query.where is not None:
            with events.placed(query.where_at):
                require(query.where, scope, BOOL, "the condition of WHERE")
        taken = {BEGIN, END} if isinstance(query.when, Meanwhile) else set()
        for item in query.items:
            if item.name in taken:
                raise self._duplicate(item)
            taken.add(item.name)
            events.check_columns(query.stream, item.aggregate.arg, item.at)
            with events.placed(item.at):
                arg = item.aggregate.arg
                kind = type_of(arg, scope) if arg is not None else None
                if kind is not None:
                    AGGREGATES[item.aggregate.fn].result(kind, item.aggregate.params)
        if isinstance(query.when, At | Meanwhile):
            events.check_cycles(query.when.event)

    def _refuse(self, what: str, fix: str, at: int | None = None) -> StreamproofError:
        return self.events.refuse(what, self.query.at if at is None else at, fix=fix)

    def _at(self, clause: str) -> int | None:
        """Where a clause of the query stands in its text."""
        text, at = self.query.text, self.query.at
        found = None if text is None or at is None else re.compile(rf"(?i)\b{clause}\b").search(text, at)
        return at if found is None else found.start()

    def _clauses(self, *, window: bool, hop: bool = False, empty: bool = False, model: str) -> None:
        """Refuse clauses that mean nothing here."""
        if self.query.window is not None and not window:
            raise self._refuse(
                f"WINDOW means nothing with {model}", "add CONTINUOUS, or leave WINDOW out", self._at("WINDOW")
            )
        if self.query.hop is not None and not hop:
            fix = "HOP belongs to DURING … CONTINUOUS; leave it out"
            raise self._refuse(f"HOP means nothing with {model}", fix, self._at("HOP"))
        if self.query.empty and not empty:
            raise self._refuse(f"EMIT EMPTY means nothing with {model}", "leave EMIT EMPTY out", self._at("EMIT"))

    def _group(self, by: Key) -> Key:
        """The columns of the data to group by; those of the observing event are told apart anyhow."""
        known = self.schema.names
        for n, name in enumerate(self.query.group):
            if name not in known and name not in by:
                at = self.query.group_at[n] if n < len(self.query.group_at) else None
                what = f'{self.query.stream} has no column "{name}" to group by'
                raise self.events.refuse(what, at, fix=did_you_mean(name, (*known, *by)), name="unknown_column")
        return tuple(name for name in self.query.group if name in known)

    # --- the models ---------------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        match self.query.when:
            case OnArrival():
                return self._arrivals()
            case EachHop() as hop:
                return self._hops(hop)
            case At() as at:
                return self._instants(at)
            case Meanwhile(event, continuous):
                return self._continuous(event) if continuous else self._once(event)

    def _window(self) -> int | None:
        window = self.query.window
        return None if window is None else self.events.ticks(window, self._at("WINDOW"), "WINDOW")

    def _aggs(self) -> tuple[tuple[str, Aggregate], ...]:
        return tuple((item.name, item.aggregate) for item in self.query.items)

    def _arrivals(self) -> Plan:
        self._clauses(window=True, model="ON ARRIVAL")
        group = self._group(())
        arrivals = pick(self.data, group)
        plan = During(arrivals, self.data, self._aggs(), "start", group, (), self._window())
        return self._result(plan, group)

    def _hops(self, when: EachHop) -> Plan:
        self._clauses(window=True, model="EVERY")
        hop, window = self.events.ticks(when.span, when.at, "EVERY"), self._window()
        if window is None:
            raise self._refuse("EVERY needs a WINDOW: how far back it looks", f"add WINDOW {when.span}", when.at)
        group = self._group(())
        moved = nodes.Shift(self.data, -1)  # (t − w, t] becomes [t − w, t)
        inner: Plan = nodes.GroupInput() if group else moved
        plan: Plan = nodes.Aggregation(inner, Hopping(window, hop, -window % hop), self._aggs(), "point_end")
        return self._result(nodes.GroupApply(moved, group, plan) if group else plan, group)

    def _instants(self, when: At) -> Plan:
        event = self.events.resolved(when.event)
        if self.events.lasts(event):
            raise self._refuse(
                "AT takes an instant, and this event lasts", "use DURING for lasting events", when.event.at
            )
        window = self._window()
        self._clauses(window=True, empty=window is not None and not self.query.group, model="AT without WINDOW")
        key = tuple(name for name in when.by if name in self.schema.names)
        self._refuse_endless(event, window)
        if isinstance(event, Once | Every | Cron):
            points = self._clock(event, when)
        else:
            self._check_by(when)
            points = self.events.instants(event, when.by)
        group = self._group(when.by)
        plan = During(
            points, self.data, self._aggs(), "start", key, _besides(group, key), window,
            latest=window is None, empty=self.query.empty,
        )  # fmt: skip
        return self._result(plan, group, when.by)

    def _check_by(self, when: At) -> None:
        columns = self.events.columns(when.event) or ()
        for n, name in enumerate(when.by):
            if name not in columns:
                at = when.by_at[n] if n < len(when.by_at) else None
                what, fix = f'the event has no column "{name}"', did_you_mean(name, columns)
                raise self.events.refuse(what, at, fix=fix, name="unknown_column")

    def _clock(self, clock: Once | Every | Cron, when: At) -> Plan:
        if when.by:
            raise self._refuse("a time has no columns to tell it apart by", "leave BY out")
        if self.query.empty:
            raise self._refuse("EMIT EMPTY with a clock never stops", "leave EMIT EMPTY out", clock.at)
        return clocks.ticks(self.events.clock(clock), self.events.alive, (), self.events.unit)

    def _refuse_endless(self, event: Event, window: int | None) -> None:
        """Refuse what would never stop to give results."""
        at = getattr(event, "at", None)
        if self.events.endless(event) and self.query.empty:
            raise self._refuse("EMIT EMPTY with a clock never stops", "leave EMIT EMPTY out", at)
        if self.events.endless(event) and window is None and isinstance(self.query.when, At):
            raise self._refuse("a clock without WINDOW never stops", "add WINDOW: how far back it looks", at)

    def _once(self, event: Event) -> Plan:
        found = self._lasting(event)
        self._clauses(window=False, empty=True, model="DURING without CONTINUOUS")
        self._refuse_endless(found, None)
        by = self.events.by(found)
        key, group = self._key(by), self._group(by)
        if self.query.empty and set(group) - set(key):
            raise self._refuse("EMIT EMPTY cannot know groups without data", "leave GROUP BY or EMIT EMPTY out")
        closed = isinstance(found, Nested) and not found.open
        spans = self.events.inner_spans(found) if closed and isinstance(found, Nested) else self.events.spans(found)
        plan: Plan = During(
            spans, self.data, self._aggs(), "end", key, _besides(group, key), begin=BEGIN, end=END,
            empty=self.query.empty,
        )  # fmt: skip
        if closed and isinstance(found, Nested):
            plan = self._only_within(plan, found, by, group)
        return self._result(plan, group, by, (BEGIN, END))

    def _only_within(self, plan: Plan, event: Nested, by: Key, group: Key) -> Plan:
        """The results of events that lie within an outer one, which is known at their end."""
        columns = tuple(dict.fromkeys((*group, *by, BEGIN, END, *(item.name for item in self.query.items))))
        select = tuple((name, Col(name, "l")) for name in columns)
        return nodes.Join(plan, self.events.within_marks(event), clocks.same((*by, BEGIN)), select)

    def _continuous(self, event: Event) -> Plan:
        found = self._lasting(event)
        self._clauses(window=True, hop=True, model="DURING … CONTINUOUS")
        by, window = self.events.by(found), self._window()
        key, group = self._key(by), self._group(by)
        hop = None if self.query.hop is None else self.events.ticks(self.query.hop, self._at("HOP"), "HOP")
        length = self.events.length(found)
        plan: Plan = During(
            self.events.spans(found), self.data, self._aggs(), "arrival" if hop is None else "hop", key,
            _besides(group, key), None if window is None else window + 1, hop, begin=BEGIN,
            end=END if length is None else None,
        )  # fmt: skip
        if length is not None:  # an end that is known from the begin on needs no correction
            ended = Call("add", (Col(BEGIN), clocks.whole(length)))
            names = tuple(dict.fromkeys((*group, *by, BEGIN, *(item.name for item in self.query.items))))
            plan = nodes.Select(plan, (*((name, Col(name)) for name in names), (END, ended)))
        return self._result(plan, group, by, (BEGIN, END))

    def _lasting(self, event: Event) -> Event:
        found = self.events.resolved(event)
        if not self.events.lasts(found):
            fix = "use AT for instants, or LASTING(begin, end)"
            raise self._refuse("DURING takes a lasting event, and this is an instant", fix, event.at)
        return found

    def _key(self, by: Key) -> Key:
        """The columns that the data has too: they join on equality."""
        return tuple(name for name in by if name in self.schema.names)

    def _result(self, plan: Plan, group: Key, by: Key = (), times: Key = ()) -> Plan:
        """The columns in their order."""
        query = self.query
        names = (*dict.fromkeys((*query.group, *by)), *times)
        for n, name in enumerate(query.shown):
            if name not in names:
                at = query.shown_at[n] if n < len(query.shown_at) else None
                what = f'"{name}" is no aggregate and not in GROUP BY'
                raise self.events.refuse(what, at, fix=f"write last({name}), or add GROUP BY {name}")
        items = tuple(item.name for item in query.items)
        clash = [item for item in query.items if item.name in names]
        if clash:
            raise self._duplicate(clash[0])
        return nodes.Select(plan, tuple((name, Col(name)) for name in (*names, *items)))

    def _duplicate(self, item: Item) -> StreamproofError:
        fix = f"name it: … AS {item.name}_2"
        error = PlanError(f'two columns are called "{item.name}"', fix=fix, name="duplicate_column")
        return at_place(error, self.query.text, item.at)


def _besides(group: Key, key: Key) -> Key:
    """The columns to group by that the key does not fix already."""
    return tuple(name for name in group if name not in key)
