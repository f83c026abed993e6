"""The meaning of event-driven queries, straight from their definition: loops over tuples, without any plan.

Tuples are ``(t, payload)`` in the order of time and payload. Instants are ``(t, payload)`` too, lasting events
``(begin, end, payload)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cronsim import CronSim

from streamproof.events.schema import INT64, Schema
from streamproof.events.time import FOREVER, TICKS_PER_SECOND, duration, to_tick
from streamproof.plan.aggregates import AGGREGATES
from streamproof.plan.eql import query as eql
from streamproof.plan.eql.query import OTHER, EqlQuery, Event
from streamproof.plan.expr import Expr
from streamproof.plan.typing import Scope, type_of
from streamproof.workbench.evaluator.aggregates import aggregate
from streamproof.workbench.evaluator.expressions import meaning
from streamproof.workbench.evaluator.values import Row, identity, order

Payload = dict[str, Any]
Instant = tuple[int, Payload]
Span = tuple[int, int, Payload]
CLOCKS = (eql.Once, eql.Every, eql.Cron)


@dataclass(frozen=True)
class World:
    """Histories of the streams, and the query that looks at them."""

    query: EqlQuery
    schemas: Mapping[str, Schema]
    histories: Mapping[str, Sequence[Row]]

    @property
    def unit(self) -> Any:
        return next(iter(self.schemas.values())).unit

    def ticks(self, span: Any) -> int:
        return duration(span, self.unit)

    def tuples(self, stream: str) -> list[Instant]:
        rows = [(le, payload) for le, _, payload in self.histories[stream]]
        return sorted(rows, key=lambda row: (row[0], *(order(value) for value in row[1].values())))

    def resolved(self, event: Event) -> Event:
        return self.resolved(dict(self.query.events)[event.name]) if isinstance(event, eql.Named) else event

    def lasts(self, event: Event) -> bool:
        found = self.resolved(event)
        return isinstance(found, eql.Lasting) or (isinstance(found, eql.Nested) and self.lasts(found.inner))

    def bounds(self) -> tuple[int, int]:
        """Beyond these times no clock matters."""
        times = [row[0] for rows in self.histories.values() for row in rows] or [0]
        return min(times) - 2000, max(times) + 2000

    # --- instants -----------------------------------------------------------------------------------------------------

    def holds(self, where: Expr | None, stream: str, row: Instant, by: tuple[str, ...]) -> bool:
        if where is None:
            return True
        schema = dict(self.schemas[stream].columns)
        values = {"le": row[0], **row[1]}
        for other, name in eql.latest_values(where):
            shared = [key for key in by if key in self.schemas[other].names]
            earlier = [r for r in self.tuples(other) if r[0] <= row[0] and _same(r[1], row[1], shared)]
            last = [r for r in earlier if r[0] == max(x[0] for x in earlier)]
            known = [r[1][name] for r in last if r[1][name] is not None]
            values[f"{other}{OTHER}{name}"] = known[-1] if known else None
            schema[f"{other}{OTHER}{name}"] = self.schemas[other][name]
        scope = Scope.one(Schema(tuple(schema.items()), self.unit))
        return meaning(where, scope)(lambda column: values[column.name]) is True

    def clock(self, event: Any) -> list[int]:
        low, high = self.bounds()
        if isinstance(event, eql.Once):
            moment = to_tick(datetime.fromisoformat(event.moment), self.unit)
            return [moment]
        if isinstance(event, eql.Every):
            step = self.ticks(event.span)
            return list(range(low - low % step, high, step))
        per_second = TICKS_PER_SECOND[self.unit]
        start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=low // per_second - 1)
        found = []
        for moment in CronSim(event.pattern, start):
            found.append(to_tick(moment, self.unit))
            if found[-1] > high:
                return found
        return found

    def instants(self, event: Event, by: tuple[str, ...]) -> list[Instant]:
        found = self.resolved(event)
        match found:
            case eql.Arrive(stream, where):
                return [row for row in self.tuples(stream) if self.holds(where, stream, row, by)]
            case eql.Becomes(stream, where):
                return self._becomes(stream, where, by)
            case eql.ValueChanges():
                return self._changes(found, by)
            case eql.Nested(outer, inner, within):
                inside = self.instants(inner, by)
                return [y for y in inside if self._during(outer, y, within, by)]
        if isinstance(found, eql.Periodic):
            step = self.ticks(found.span)
            return [(t, p) for b, e, p in self.spans(found.event) for t in range(b, e, step)]
        return [(t, {}) for t in self.clock(found)]

    def _during(self, outer: Event, y: Instant, within: Any, by: tuple[str, ...]) -> bool:
        if self.lasts(outer):
            return any(b <= y[0] < e and _same(p, y[1], by) for b, e, p in self.spans(outer))
        reach = FOREVER if within is None else self.ticks(within)
        return any(0 <= y[0] - t <= reach and _same(p, y[1], by) for t, p in self.instants(outer, by))

    def _becomes(self, stream: str, where: Expr, by: tuple[str, ...]) -> list[Instant]:
        before: dict[Any, bool] = {}
        fired = []
        for row in self.tuples(stream):
            now = self.holds(where, stream, row, by)
            if now and not before.get(_key(row[1], by), False):
                fired.append(row)
            before[_key(row[1], by)] = now
        return fired

    def _changes(self, event: eql.ValueChanges, by: tuple[str, ...]) -> list[Instant]:
        rows = self.tuples(event.stream)
        known = [
            row for row in rows if row[1][event.column] is not None and row[1][event.column] == row[1][event.column]
        ]
        fired = []
        reference: dict[Any, Any] = {}
        for row in known:
            value, key = row[1][event.column], _key(row[1], by)
            if event.within is not None:
                reach = self.ticks(event.within)
                near = [r[1][event.column] for r in known if row[0] - reach < r[0] <= row[0] and _key(r[1], by) == key]
                up, down = value - min(near), max(near) - value
                moved = {"up": up, "down": down, "any": max(up, down)}[event.way]
                fired += [row] if moved >= event.step else []
                continue
            then = reference.setdefault(key, value)
            moved = {"up": value - then, "down": then - value, "any": abs(value - then)}[event.way]
            if moved >= event.step:
                fired.append(row)
                reference[key] = value
        return fired

    # --- lasting events -----------------------------------------------------------------------------------------------

    def spans(self, event: Event) -> list[Span]:
        found = self.resolved(event)
        if isinstance(found, eql.Nested):
            return [y for y in self.spans(found.inner) if self._within(found, y)]
        assert isinstance(found, eql.Lasting)
        return self._lasting(found)

    def _within(self, event: eql.Nested, y: Span) -> bool:
        for b, e, payload in self.spans(event.outer):
            if _same(payload, y[2], tuple(payload)) and b <= y[0] and (y[0] < e if event.open else y[1] <= e):
                return True
        return False

    def _lasting(self, event: eql.Lasting) -> list[Span]:
        begins = [
            (t, {name: p[name] for name in event.by if name in p}) for t, p in self.instants(event.begin, event.by)
        ]
        limit = 2 * FOREVER if event.max is None else self.ticks(event.max)
        if isinstance(event.end, int | str):
            length = min(limit, self.ticks(event.end))
            return [(t, t + length, p) for t, p in begins]
        ends = self.instants(event.end, event.by)
        if event.pair == "each":
            return [(b, min([b + limit, FOREVER, *(t for t, p in ends if t > b and _same(p, q, event.by))]), q)
                    for b, q in begins]  # fmt: skip
        return self._paired(event, begins, ends, limit)

    def _paired(self, event: eql.Lasting, begins: list[Instant], ends: list[Instant], limit: int) -> list[Span]:
        waiting = list(begins)
        found: list[Span] = []
        for t, p in ends:
            able = [b for b in waiting if b[0] < t < b[0] + limit and _same(b[1], p, event.by)]
            if able:
                chosen = able[0 if event.pair == "fifo" else -1]
                waiting.remove(chosen)
                found.append((chosen[0], t, chosen[1]))
        return found + [(b, min(b + limit, FOREVER), p) for b, p in waiting]

    # --- models -------------------------------------------------------------------------------------------------------

    def data(self) -> list[Instant]:
        query = self.query
        return [row for row in self.tuples(query.stream) if self.holds(query.where, query.stream, row, ())]

    def results(self) -> list[Row]:
        query = self.query
        window = None if query.window is None else self.ticks(query.window)
        match query.when:
            case eql.OnArrival():
                return self._each([(t, {n: p[n] for n in query.group}) for t, p in self.data()], query.group, window)
            case eql.EachHop(span):
                assert window is not None
                clock = self.clock(eql.Every(span))
                return self._each([(t, {}) for t in clock], (), window)
            case eql.At(event, by):
                points = [(t, {n: p[n] for n in by if n in p}) for t, p in self.instants(event, by)]
                return self._each(points, by, window, latest=window is None, empty=query.empty)
            case eql.Meanwhile(event, continuous):
                return self._continuous(event, window) if continuous else self._once(event)

    def _shared(self, by: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in by if name in self.schemas[self.query.stream].names)

    def _each(
        self, points: list[Instant], by: Sequence[str], window: int | None, *, latest: bool = False, empty: bool = False
    ) -> list[Row]:
        found: list[Row] = []
        for t, p in points:
            seen = [r for r in self.data() if r[0] <= t and (window is None or r[0] > t - window)]
            seen = [r for r in seen if _same(r[1], p, self._shared(by))]
            found += self._rows(t, p, seen, latest=latest, empty=empty)
        return found

    def _once(self, event: Event) -> list[Row]:
        found: list[Row] = []
        for b, e, p in self.spans(event):
            if e < FOREVER:
                seen = [r for r in self.data() if b <= r[0] < e and _same(r[1], p, self._shared(tuple(p)))]
                found += self._rows(e, {**p, "begin": b, "end": e}, seen, empty=self.query.empty)
        return found

    def _continuous(self, event: Event, window: int | None) -> list[Row]:
        found: list[Row] = []
        hop = None if self.query.hop is None else self.ticks(self.query.hop)
        high = max((t for t, _ in self.data()), default=0) + (window or 0) + 1
        for b, e, p in self.spans(event):
            mine = [r for r in self.data() if b <= r[0] < e and _same(r[1], p, self._shared(tuple(p)))]
            triggers: list[tuple[int, Any]] = [(t, _key(q, self.query.group)) for t, q in mine]
            if hop is not None:
                triggers = [(t, None) for t in range(b, min(e, high), hop)]
            for t, group in triggers:
                seen = [r for r in mine if r[0] <= t and (window is None or r[0] >= t - window)]
                if group is not None:
                    seen = [r for r in seen if _key(r[1], self.query.group) == group]
                found += self._rows(t, {**p, "begin": b, "end": None if e >= FOREVER else e}, seen)
        return found

    def _rows(
        self, t: int, head: Payload, seen: list[Instant], *, latest: bool = False, empty: bool = False
    ) -> list[Row]:
        query = self.query
        columns = [name for name in query.group if name in self.schemas[query.stream].names]
        groups: dict[Any, list[Instant]] = {}
        for row in seen:
            groups.setdefault(_key(row[1], tuple(columns)), []).append(row)
        if not seen and empty:
            groups[()] = []
        found: list[Row] = []
        for rows in groups.values():
            chosen = rows[-1:] if latest else rows
            payload = {name: chosen[0][1][name] for name in columns} if chosen else {}
            found.append((t, t + 1, {**payload, **head, **self._items(chosen)}))
        return found

    def _items(self, rows: list[Instant]) -> Payload:
        scope = Scope.one(self.schemas[self.query.stream])
        result: Payload = {}
        for item in self.query.items:
            agg = item.aggregate
            kind = None if agg.arg is None else type_of(agg.arg, scope)
            values = [None if agg.reads is None else meaning(agg.reads, scope)(_reader(row)) for row in rows]
            made = AGGREGATES[agg.fn].result(kind or INT64, agg.params)
            result[item.name] = aggregate(agg.fn, agg.params, values, made)
        return result


def _reader(row: Instant) -> Any:
    return lambda column: row[1].get(column.name, row[0]) if column.name == "le" else row[1][column.name]


def _key(payload: Payload, names: Sequence[str]) -> Any:
    return tuple(identity(payload[name]) for name in names if name in payload)


def _same(one: Payload, other: Payload, names: Sequence[str]) -> bool:
    """Equal in the columns that both have; null equals null."""
    return all(identity(one[name]) == identity(other[name]) for name in names if name in one and name in other)


def ordered_rows(query: EqlQuery, rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    """Results with their columns in the order of the schema."""
    return [(le, re, {name: payload[name] for name in names}) for le, re, payload in rows]
