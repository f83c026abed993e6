"""Events as streams: instants become points, lasting events lifetimes. Everything is made of other nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeAlias

from streamproof.errors import StreamproofError, did_you_mean
from streamproof.events.schema import BOOL, OWN_PREFIX, Schema
from streamproof.events.time import Span, Unit, duration
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.eql import clocks
from streamproof.plan.eql.clocks import pick, same, semi_join
from streamproof.plan.eql.query import (
    OTHER,
    Arrive,
    At,
    Becomes,
    Cron,
    EqlQuery,
    Event,
    Every,
    Lasting,
    Named,
    Nested,
    Once,
    Periodic,
    ValueChanges,
    latest_values,
    parts_of,
)
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition
from streamproof.plan.expr import LIFE_START, Call, Col, Expr, all_of, columns_of, literal
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.plan.source_location import at_place, refuse, with_sign, word_offset
from streamproof.plan.typing import Scope, require
from streamproof.plan.windows import Snapshot

Key: TypeAlias = "tuple[str, ...]"
BEGIN, END = "begin", "end"
Instant: TypeAlias = "Once | Every | Cron | Arrive | Becomes | ValueChanges | Nested"
_CLOCKS = (Once, Every, Cron)


@dataclass(frozen=True, slots=True)
class EventPlans:
    """The events of one query over streams whose schemas are known."""

    query: EqlQuery
    schemas: dict[str, Schema]
    unit: Unit | None
    alive: Plan  # lifetimes at whose instants the query has something to look at: clocks that never stop tick there
    registry: Registry | None = None

    # --- what the text says -------------------------------------------------------------------------------------------

    def refuse(self, what: str, at: int | None, *, fix: str, name: str = "bad_plan") -> StreamproofError:
        return refuse(what, self.query.text, at, fix=fix, name=name)

    @contextmanager
    def placed(self, at: int | None) -> Iterator[None]:
        """Errors inside get this place in the text."""
        try:
            yield
        except StreamproofError as error:
            raise at_place(with_sign(error), self.query.text, at) if error.at is None else error from None

    def ticks(self, span: Span, at: int | None, what: str) -> int:
        """A length of time in ticks; one of nothing is an error."""
        with self.placed(at):
            found = duration(span, self.unit)
        if found < 1:
            raise self.refuse(f"{what} must be positive, got {span}", at, fix="give at least one tick")
        return found

    def resolved(self, event: Event, seen: tuple[str, ...] = ()) -> Event:
        """The event that a name stands for."""
        if not isinstance(event, Named):
            return event
        known = dict(self.query.events)
        if event.name not in known:
            fix = did_you_mean(event.name, known) if known else f"define it: EVENT {event.name} = …;"
            raise self.refuse(f'there is no event "{event.name}"', event.at, fix=fix)
        if event.name in seen:
            raise self.refuse(f'the event "{event.name}" is made of itself', event.at, fix="define it by other events")
        return self.resolved(known[event.name], (*seen, event.name))

    def check_cycles(self, event: Event, seen: tuple[str, ...] = ()) -> None:
        """Refuse events that are made of themselves."""
        if isinstance(event, Named):
            self.resolved(event, seen)
            if event.name in seen:
                raise self.refuse(f'the event "{event.name}" is made of itself', event.at, fix="define it otherwise")
            self.check_cycles(dict(self.query.events)[event.name], (*seen, event.name))
            return
        for part in parts_of(event):
            self.check_cycles(part, seen)
        if isinstance(event, Nested) and event.within is not None and self.lasts(event.inner):
            raise self.refuse("WITHIN is about two instants", event.at, fix="leave WITHIN out")

    def lasts(self, event: Event) -> bool:
        """Whether it has a begin and an end."""
        found = self.resolved(event)
        return isinstance(found, Lasting) or (isinstance(found, Nested) and self.lasts(found.inner))

    def endless(self, event: Event) -> bool:
        """Whether it happens again and again, whatever the streams bring."""
        match self.resolved(event):
            case Every() | Cron():
                return True
            case Periodic(inside):
                return self.endless(inside)
            case Lasting(begin=begin):
                return self.endless(begin)
            case Nested(outer=outer, inner=inner):
                return self.endless(outer) and self.endless(inner)
        return False

    def columns(self, event: Event) -> Key | None:
        """The columns that tell events apart; None for times, which have none."""
        match self.resolved(event):
            case Arrive(stream, at=at) | Becomes(stream, at=at) | ValueChanges(stream, at=at):
                return self.schema(stream, at).names
            case Nested(inner=inner):
                return self.columns(inner)
            case Periodic(inside):
                return self.columns(inside)
            case Lasting(by=by):
                return by
        return None

    def by(self, event: Event) -> Key:
        """The columns by which lasting events are told apart."""
        match self.resolved(event):
            case Lasting(by=by):
                return by
            case Nested(inner=inner):
                return self.by(inner)
        return ()

    def schema(self, stream: str, at: int | None) -> Schema:
        if stream not in self.schemas:
            raise self.refuse(f'there is no stream "{stream}"', at, fix=did_you_mean(stream, self.schemas))
        return self.schemas[stream]

    def check_columns(self, stream: str, expr: Expr | None, at: int | None) -> None:
        """Refuse columns that a stream does not have."""
        for column in sorted(columns_of(expr) if expr is not None else (), key=lambda c: c.name):
            if (
                column.side is None
                and column.name not in ("le", OWN_PREFIX + "le", LIFE_START)
                and OTHER not in column.name
            ):
                self.check_column(stream, column.name, word_offset(self.query.text, column.name, at))

    def check_column(self, stream: str, name: str, at: int | None) -> None:
        schema = self.schema(stream, at)
        if name not in schema.names:
            what, fix = f'{stream} has no column "{name}"', did_you_mean(name, schema.names)
            if self.query.text and at and self.query.text[at - 1] == '"':
                fix = f"double quotes are for names; text stands in single quotes: '{name}'"
            elif fix.startswith("known"):
                fix += f"; text stands in single quotes: '{name}'"
            raise self.refuse(what, at, fix=fix, name="unknown_column")

    # --- instants -----------------------------------------------------------------------------------------------------

    def instants(self, event: Event, key: Key, near: Plan | None = None) -> Plan:
        """The points at which an event happens, with the columns of the key.

        Of an endless event, those that lie in a lifetime of ``near``, or where the query looks at something.
        """
        found = self.resolved(event)
        match found:
            case Arrive():
                plan, condition = self._seen(found, key)
                return pick(plan if condition is None else nodes.Where(plan, condition), key)
            case Becomes():
                plan, condition = self._seen(found, key)
                assert condition is not None
                return pick(Transition(plan, condition, key), key)
            case ValueChanges():
                return pick(self._changes(found, key), key)
            case Nested():
                return self._sequence(found, key, near)
            case Periodic():
                return self._periodic(found, key, near)
            case Lasting():
                raise self.refuse("a lasting event stands where an instant is needed", found.at, fix=_INSTANT)
        raise self.refuse("a time cannot stand here alone", found.at, fix="use it with AT, in LASTING or after @")

    def _seen(self, event: Arrive | Becomes, key: Key) -> tuple[Plan, Expr | None]:
        """The tuples of a stream as points, with the latest values of other streams that the condition reads."""
        plan: Plan = nodes.ToPoint(nodes.Ref(event.stream))
        schema = self.schema(event.stream, event.at)
        where = event.where
        self.check_columns(event.stream, where, event.where_at)
        if where is None:
            return plan, None
        columns = dict(schema.columns)
        wanted: dict[str, list[str]] = {}
        for stream, name in latest_values(where):
            at = word_offset(self.query.text, stream, event.where_at)
            self.check_column(stream, name, at)
            columns[f"{stream}{OTHER}{name}"] = self.schema(stream, at)[name]
            wanted.setdefault(stream, []).append(name)
        for stream, names in wanted.items():
            shared = tuple(name for name in key if name in self.schemas[stream].names)
            plan = self._with_latest(plan, schema.names, stream, names, shared)
        with self.placed(event.where_at):
            scope = Scope.one(Schema(tuple(columns.items()), self.unit), registry=self.registry)
            require(where, scope, BOOL, "the condition")
        return plan, where

    def _with_latest(self, plan: Plan, names: Key, stream: str, wanted: list[str], key: Key) -> Plan:
        points: Plan = nodes.ToPoint(nodes.Ref(stream))
        state = nodes.Clip(nodes.AlterDuration(points, None), points, same(key))
        aggs = tuple((name, Aggregate("last", Col(name))) for name in wanted if name not in key)
        latest: Plan = state
        if aggs:
            latest = nodes.Aggregation(nodes.GroupInput() if key else state, Snapshot(), aggs)
            latest = nodes.GroupApply(state, key, latest) if key else latest
        else:
            latest = nodes.Coalesce(pick(state, key))
        mine = tuple(name for name in names)
        select = tuple((name, Col(name, "l")) for name in mine)
        others = tuple((f"{stream}{OTHER}{name}", Col(name, "r")) for name in wanted)
        before = tuple((c, Col(c, "l")) for c in _carried(plan) if c not in mine)
        return nodes.LeftOuter(plan, latest, same(key), (*select, *before, *others))

    def _changes(self, event: ValueChanges, key: Key) -> Plan:
        self.check_column(event.stream, event.column, event.column_at)
        kind = self.schema(event.stream, event.at)[event.column]
        if not kind.is_numeric:
            what = f"{event.stream}.{event.column} is {kind}, and only numbers change by an amount"
            raise self.refuse(what, event.column_at, fix="use BECOMES for other values", name="type_mismatch")
        if isinstance(event.step, bool) or not isinstance(event.step, int | float) or event.step <= 0:
            raise self.refuse(f"a change must be positive, got {event.step}", event.at, fix="use UP or DOWN for a sign")
        points = nodes.ToPoint(nodes.Ref(event.stream))
        if event.within is None:
            return Drift(points, Col(event.column), literal(event.step), event.way, key)
        return self._moves(event, points, self.ticks(event.within, event.at, "WITHIN"), key)

    def _moves(self, event: ValueChanges, points: Plan, reach: int, key: Key) -> Plan:
        """Where a value is far enough from the least (or greatest) value of late, itself included."""
        alive = nodes.AlterDuration(points, reach)
        low, high = f"low{OTHER}", f"high{OTHER}"
        aggs = ((low, Aggregate("min", Col(event.column))), (high, Aggregate("max", Col(event.column))))
        extremes: Plan = nodes.Aggregation(nodes.GroupInput() if key else alive, Snapshot(), aggs)
        extremes = nodes.GroupApply(alive, key, extremes) if key else extremes
        value, step = Col(event.column, "l"), literal(event.step)
        up = Call("gte", (Call("sub", (value, Col(low, "r"))), step))
        down = Call("gte", (Call("sub", (Col(high, "r"), value)), step))
        moved = {"up": up, "down": down, "any": Call("or", (up, down))}[event.way]
        select = tuple((name, Col(name, "l")) for name in self.schemas[event.stream].names)
        return nodes.Join(points, extremes, _both(same(key), moved), select)

    def _periodic(self, event: Periodic, key: Key, near: Plan | None) -> Plan:
        """From each begin on, every so often, until the end: a lasting event that looks at its own begin."""
        if not self.lasts(event.event):
            fix = "write LASTING(begin, end) EVERY 10s"
            raise self.refuse("EVERY repeats between two events, and this is one instant", event.at, fix=fix)
        hop = self.ticks(event.span, event.at, "EVERY")
        spans = self.spans(event.event, near)
        by = self._known(key, event.event)
        begins = nodes.ToPoint(pick(spans, by))
        seen = f"seen{OTHER}"
        beats = During(pick(spans, by), begins, ((seen, Aggregate("count")),), "hop", by, hop=hop)
        return pick(beats, by)

    def _sequence(self, event: Nested, key: Key, near: Plan | None) -> Plan:
        """The inner instants during the outer event: at most ``within`` after an instant, or inside a lasting one."""
        outer, inner = self.resolved(event.outer), self.resolved(event.inner)
        if self.lasts(inner):
            raise self.refuse("a lasting event stands where an instant is needed", event.at, fix=_INSTANT)
        if event.open:
            raise self.refuse("OPEN is about two lasting events", event.at, fix="leave OPEN out")
        reach = None if event.within is None else self.ticks(event.within, event.at, "WITHIN")
        if isinstance(inner, _CLOCKS):
            return self._clock_during(inner, outer, reach, key)
        shared = tuple(name for name in key if name in (self.columns(outer) or ()))
        if self.endless(inner) and not self.endless(outer):
            if reach is None and not self.lasts(outer):
                raise self.refuse("a clock after an instant never stops", event.at, fix="say how long: @ … WITHIN 5s")
            near = near or self._everywhere(self._covered(outer, reach, shared, self.alive, event))
        points = self.instants(inner, key, near)
        if isinstance(outer, Once) and reach is None:
            return self._since(outer, points)
        return semi_join(points, self._covered(outer, reach, shared, points, event), shared, key)

    def _covered(self, outer: Event, reach: int | None, key: Key, points: Plan, event: Nested) -> Plan:
        """Lifetimes during which an inner instant counts."""
        if self.lasts(outer):
            if reach is not None:
                raise self.refuse("WITHIN is about two instants", event.at, fix="leave WITHIN out")
            return self.spans(outer, points)
        if isinstance(outer, _CLOCKS):
            if reach is None:
                fix = "say how long after it: @ … WITHIN 5s"
                raise self.refuse("every instant comes after some time of a clock", event.at, fix=fix)
            begun = clocks.ticks(self.clock(outer), self._before(points, reach + 1), (), self.unit)
        else:
            begun = self.instants(outer, key, points)
        return nodes.AlterDuration(begun, None if reach is None else reach + 1)

    def _since(self, moment: Once, points: Plan) -> Plan:
        """The points at or after a moment."""
        return nodes.Where(points, Call("gte", (clocks.LE, clocks.whole(self.moment(moment)))))

    @staticmethod
    def _before(alive: Plan, reach: int) -> Plan:
        """Lifetimes over the instants that lie less than ``reach`` before one of these, or in it."""
        return nodes.Extend(nodes.Shift(pick(alive, ()), 1 - reach), reach - 1)

    def _clock_during(self, clock: Once | Every | Cron, outer: Event, reach: int | None, key: Key) -> Plan:
        if isinstance(outer, _CLOCKS):
            raise self.refuse("two times cannot follow each other", clock.at, fix="name a stream on one side of @")
        clock = self.clock(clock)
        if self.lasts(outer):
            return clocks.ticks(clock, self.spans(outer), self._known(key, outer), self.unit)
        begun = self.instants(outer, self._known(key, outer))
        if reach is None and not isinstance(clock, Once):
            raise self.refuse("a clock after an instant never stops", clock.at, fix="say how long: @ … WITHIN 5s")
        alive = nodes.AlterDuration(begun, None if reach is None else reach + 1)
        return clocks.ticks(clock, alive, self._known(key, outer), self.unit)

    def _known(self, key: Key, event: Event) -> Key:
        """The key, all of which an event must have."""
        columns = self.columns(event) or ()
        for name in key:
            if name not in columns:
                what = f'the event has no column "{name}" to tell events apart by'
                raise self.refuse(what, getattr(event, "at", None), fix=did_you_mean(name, columns))
        return key

    def clock(self, clock: Once | Every | Cron) -> Once | Every | Cron:
        """The clock with its length of time in ticks; a wrong one is an error with its place."""
        if isinstance(clock, Every):
            return replace(clock, span=self.ticks(clock.span, clock.at, "EVERY"))
        if isinstance(clock, Once):
            self.moment(clock)
            return clock
        with self.placed(clock.at):
            clocks.longest_gap(clock, self.unit) if self.unit else clocks.ticks(clock, self.alive, (), self.unit)
        return clock

    def moment(self, clock: Once) -> int:
        """The tick of one instant; a wrong one is an error with its place."""
        with self.placed(clock.at):
            return clocks.moment_of(clock, self.unit)

    # --- lasting events -----------------------------------------------------------------------------------------------

    def spans(self, event: Event, near: Plan | None = None) -> Plan:
        """The lifetimes of lasting events, with their BY columns; of endless ones, those that overlap ``near``."""
        found = self.resolved(event)
        match found:
            case Lasting():
                return self._lasting(found, near)
            case Nested() if self.lasts(found):
                return self._open_at_begin(found, near) if found.open else self._within(found, near)
        raise self.refuse("an instant stands where a lasting event is needed", getattr(found, "at", None), fix=_LASTING)

    def _lasting(self, event: Lasting, near: Plan | None) -> Plan:
        longest = None if event.max is None else self.ticks(event.max, event.at, "MAX")
        bounded = isinstance(event.end, int | str | timedelta)
        if isinstance(event.end, int | str | timedelta):
            length = self.ticks(event.end, event.at, "the length")
            longest = length if longest is None else min(longest, length)
        begins = self._begins(event, longest, near)
        if bounded:
            return nodes.AlterDuration(begins, longest)
        assert not isinstance(event.end, int | str | timedelta)
        ends, key = self._ends(event, event.end, begins, longest)
        if event.pair == "each":
            return nodes.Clip(nodes.AlterDuration(begins, longest), ends, same(key))
        return Pairing(begins, ends, key, event.pair, longest)

    def _begins(self, event: Lasting, longest: int | None, near: Plan | None) -> Plan:
        begin = self.resolved(event.begin)
        if not isinstance(begin, _CLOCKS):
            self._check_by(event, begin)
            if not self.endless(begin):
                return self.instants(begin, event.by)
        elif event.by:
            what = "what begins at a time has no columns to tell it apart by"
            raise self.refuse(what, event.by_at[0] if event.by_at else event.at, fix="leave BY out")
        if longest is None:
            fix = "say how long at most: LASTING(TIME(…), … MAX 1h)"
            at = getattr(begin, "at", None)
            raise self.refuse("an event that begins at a time needs a longest duration", at, fix=fix)
        alive = self._before(self.alive if near is None else near, longest)
        if not isinstance(begin, _CLOCKS):
            return self.instants(begin, event.by, alive)
        return clocks.ticks(self.clock(begin), alive, (), self.unit)

    def _ends(self, event: Lasting, given: Event, begins: Plan, longest: int | None) -> tuple[Plan, Key]:
        end = self.resolved(given)
        if not isinstance(end, _CLOCKS):
            self._check_by(event, end)
            near = nodes.AlterDuration(begins, longest) if self.endless(end) else None
            return self.instants(end, event.by, near), event.by
        if event.pair != "each":
            fix = "leave PAIR out: a time ends all that is open"
            raise self.refuse("a time cannot end one event after the other", end.at, fix=fix)
        clock = self.clock(end)
        reach = None if isinstance(clock, Once) else clocks.longest_gap(clock, self.unit) + 1
        alive = nodes.AlterDuration(pick(begins, ()), reach)
        return clocks.ticks(clock, alive, (), self.unit), ()

    def _check_by(self, event: Lasting, part: Event) -> None:
        columns = self.columns(part) or ()
        for n, name in enumerate(event.by):
            if name not in columns:
                at = event.by_at[n] if n < len(event.by_at) else event.at
                what = f'an event of LASTING has no column "{name}"'
                raise self.refuse(what, at, fix=did_you_mean(name, columns), name="unknown_column")

    def _open_at_begin(self, event: Nested, near: Plan | None) -> Plan:
        """The inner events at whose begin an outer one is open."""
        by = self.by(event.inner)
        inner = self.begun(self.inner_spans(event, near), by)
        shared = tuple(name for name in by if name in self.by(event.outer))
        named = (*(by or (clocks.ONE,)), BEGIN)
        begins = nodes.ToPoint(inner)
        inside = nodes.Distinct(semi_join(begins, self.spans(event.outer, begins), shared, named))
        lasting: Plan = nodes.AlterDuration(inside, None)
        if self._ends_alike(event.inner):  # what has ended need not be remembered
            lasting = nodes.Clip(lasting, nodes.PointAtEnd(inner), same(named))
        select = tuple((name, Col(name, "l")) for name in by or (clocks.ONE,))
        return nodes.Join(inner, lasting, same(named), select)

    def inner_spans(self, event: Nested, near: Plan | None = None) -> Plan:
        """The inner ones of two lasting events."""
        if near is None and self.endless(event.inner) and not self.endless(event.outer):
            near = self._everywhere(self.spans(event.outer))
        return self.spans(event.inner, near)

    def _everywhere(self, outer: Plan) -> Plan | None:
        """Where an endless event counts inside of an outer one: all of it, if what sees no data counts too."""
        is_late = isinstance(self.query.when, At) and self.query.window is None
        return outer if self.query.empty or is_late else None

    def _within(self, event: Nested, near: Plan | None) -> Plan:
        """The inner events that lie within an outer one; what is still open lies within what is still open."""
        by = self.by(event.inner)
        shared = tuple(name for name in by if name in self.by(event.outer))
        inner = self._timed(self.inner_spans(event, near), by)
        outer = self._timed(self.spans(event.outer, nodes.ToPoint(inner)), shared)
        earlier = Call("lte", (Col(BEGIN, "r"), Col(BEGIN, "l")))
        later = Call("lte", (Col(END, "l"), Col(END, "r")))
        inside = all_of([earlier, Call("or", (Call("is_null", (Col(END, "r"),)), later))])
        named = (*(by or (clocks.ONE,)), BEGIN, END)
        select = tuple((name, Col(name, "l")) for name in named)
        marks = nodes.Distinct(nodes.Join(inner, outer, _both(same(shared), inside), select))
        return nodes.Join(inner, marks, same(named), select[:-2])

    @staticmethod
    def _timed(spans: Plan, by: Key) -> Plan:
        """Lasting events with the columns ``begin`` and ``end``, which is null while they are open."""
        spans = pick(spans, by)
        seen = ((f"seen{OTHER}", Aggregate("count")),)
        begins = During(spans, nodes.ToPoint(spans), seen, "start", by, reach=1, begin=BEGIN, end=END)
        is_open = Call("is_null", (Col(END),))
        length = Call("sub", (Col(END), Col(BEGIN)))
        closed = nodes.AlterDuration(nodes.Where(begins, Call("not", (is_open,))), length)
        return nodes.Union((closed, nodes.AlterDuration(nodes.Where(begins, is_open), None)))

    def length(self, event: Event) -> int | None:
        """How long lasting events are, where that is known when they begin."""
        match self.resolved(event):
            case Lasting(end=int() | str() | timedelta() as end, max=longest) as found:
                lengths = [self.ticks(end, found.at, "the length")]
                lengths += [] if longest is None else [self.ticks(longest, found.at, "MAX")]
                return min(lengths)
            case Nested(inner=inner, open=True):
                return self.length(inner)
        return None

    def _ends_alike(self, event: Event) -> bool:
        """Whether lasting events of one key and begin have one end."""
        match self.resolved(event):
            case Lasting(pair=pair):
                return pair == "each"
            case Nested(inner=inner):
                return self._ends_alike(inner)
        return False

    @staticmethod
    def begun(spans: Plan, by: Key) -> Plan:
        """Lasting events with the column ``begin``."""
        exprs: nodes.Named = tuple((name, Col(name)) for name in by) or ((clocks.ONE, clocks.whole(1)),)
        return nodes.Select(spans, (*exprs, (BEGIN, clocks.LE)))

    def within_marks(self, event: Nested) -> Plan:
        """At the end of each inner event that lies within an outer one: its BY columns and its begin, once."""
        by = self.by(event.inner)
        shared = tuple(name for name in by if name in self.by(event.outer))
        inner = self.inner_spans(event)
        ends = nodes.Shift(nodes.PointAtEnd(self.begun(inner, by)), -1)
        outer = self.begun(self.spans(event.outer, nodes.ToPoint(inner)), shared)
        earlier = Call("lte", (Col(BEGIN, "r"), Col(BEGIN, "l")))
        select = tuple((name, Col(name, "l")) for name in (*by, BEGIN))
        return nodes.Shift(nodes.Distinct(nodes.Join(ends, outer, _both(same(shared), earlier), select)), 1)


_INSTANT = "use ARRIVE, BECOMES, CHANGES or TIME here; DURING takes lasting events"
_LASTING = "write LASTING(begin, end); AT takes instants"


def _both(first: Expr, second: Expr) -> Expr:
    return second if first == clocks.same(()) else Call("and", (first, second))


def _carried(plan: Plan) -> Key:
    """The columns that a join names."""
    return tuple(name for name, _ in plan.select or ()) if isinstance(plan, nodes.Join) else ()
