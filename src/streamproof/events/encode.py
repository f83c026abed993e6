"""Signed rows to physical events: ids, and as few and as small retractions as possible.

>>> from streamproof.events.schema import Schema
>>> from streamproof.events.time import FOREVER
>>> encoder = Encoder(Schema())
>>> for rows in ([(1, FOREVER, 1, {})], [(1, FOREVER, -1, {}), (1, 9, 1, {})], [(1, 9, -1, {})]):
...     for event in encoder.encode(Batch.from_rows(Schema(), rows)).to_events():
...         print(event)
insert e0 [1, inf)
retract e0 [1, inf) → 9
retract e0 [1, 9) → 1
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import InputError
from streamproof.events import weights
from streamproof.events.bag import consolidate, payload_of, take
from streamproof.events.batch import Batch
from streamproof.events.notation import show_payload
from streamproof.events.order import Flags, Ints, group_numbers, int_piece, ints, ordinals, pack, pieces_of, sort_rows
from streamproof.events.schema import LE, RE, Schema, W
from streamproof.events.stream import CTI, INSERT, RETRACT, PhysicalStream
from streamproof.events.time import BEGINNING, show_tick
from streamproof.thresholds import ENCODED_ROWS


class _Rows(NamedTuple):
    """Rows of weight 1, columnar."""

    le: Ints
    re: Ints
    payload: pa.Table

    def take(self, indices: Ints) -> _Rows:
        return _Rows(self.le[indices], self.re[indices], take(self.payload, indices))


class Encoder:
    """Turns batches into physical events, one by one.

    In a batch, −row and +row of equal payload and ``le`` become one retraction ``re → re_new``; a −row finds the id
    under which its row was emitted; what is left is a full retraction or an insert. A CTI follows when the frontier
    moves. Ids count up in canonical row order, so equal batches give equal events.

    Law: every stream that it makes passes the `Validator`, if the batches keep to their frontiers.
    """

    def __init__(self, schema: Schema, *, prefix: str = "e") -> None:
        self.schema = schema
        self.frontier = BEGINNING
        self._prefix = prefix
        self._next = 0  # the number of the next id
        self._live: list[tuple[Ints, _Rows]] = []  # numbers and current rows of events that may still change
        self._forgotten_at = ENCODED_ROWS.now  # live rows at which those behind the frontier are forgotten

    @property
    def live(self) -> int:
        """How many events are remembered."""
        return sum(len(numbers) for numbers, _ in self._live)

    def encode(self, batch: Batch) -> PhysicalStream:
        """The events that take the stream from before the batch to after it."""
        if not batch.rows.num_rows:
            return self._sealed(batch.frontier)
        net = consolidate(batch.rows)
        w = ints(net[W])
        if (count := weights.magnitude(w)) > weights.MOST_LISTED:
            raise weights.too_long(count, weights.MOST_LISTED, at="what is told as single events, each with an id")
        minus = _rows(net, np.repeat(np.arange(len(w)), np.maximum(-w, 0)))
        plus = _rows(net, np.repeat(np.arange(len(w)), np.maximum(w, 0)))
        if len(minus.le):
            numbers = self._find(minus)
            new_end, used = _pair(minus, plus)
        else:
            numbers, new_end, used = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(len(plus.le), np.bool_)
        fresh = plus.take(np.flatnonzero(~used))
        fresh_numbers = np.arange(self._next, self._next + len(fresh.le))
        self._next += len(fresh.le)
        changed = np.flatnonzero(new_end > minus.le)
        moved = minus.take(changed)._replace(re=new_end[changed])
        self._live += [(numbers[changed], moved), (fresh_numbers, fresh)]
        events = self._events(
            minus, fresh, numbers=numbers, new_end=new_end, fresh_numbers=fresh_numbers, frontier=batch.frontier
        )
        self._advance(batch.frontier)
        return events

    def _sealed(self, frontier: int) -> PhysicalStream:
        """A CTI alone, where the frontier moves."""
        events = cti(self.schema, frontier) if frontier > self.frontier else PhysicalStream.empty(self.schema)
        self._advance(frontier)
        return events

    def save(self) -> tuple[dict[str, int], pa.Table]:
        """What a new one needs to continue: numbers, and the live rows with the number of each in the column ``w``."""
        self._forget()
        numbers, rows = _merged(self._live, self.schema)
        columns = [pa.array(rows.le), pa.array(rows.re), pa.array(numbers), *rows.payload.columns]
        table = pa.Table.from_arrays(columns, schema=self.schema.arrow_rows)
        return {"next": self._next, "frontier": self.frontier, "forgotten_at": self._forgotten_at}, table

    def restore(self, state: Mapping[str, int], live: pa.Table) -> None:
        """The inverse of `save`."""
        self._next, self.frontier, self._forgotten_at = state["next"], state["frontier"], state["forgotten_at"]
        self._live = [(ints(live[W]), _Rows(ints(live[LE]), ints(live[RE]), payload_of(live)))]

    def _find(self, minus: _Rows) -> Ints:
        """The ids of live rows equal to the given ones, which stop being live."""
        before = self._live
        numbers, live = self._candidates(minus.le)
        key = _keys(live, minus, with_end=True)
        slots = _match(key[len(numbers) :], key[: len(numbers)])
        if np.any(slots < 0):
            self._live = before
            raise self._unknown(minus, int(np.argmax(slots < 0)))
        rest = np.ones(len(numbers), np.bool_)
        rest[slots] = False
        self._live.append((numbers[rest], live.take(np.flatnonzero(rest))))
        return numbers[slots]

    def _candidates(self, starts: Ints) -> tuple[Ints, _Rows]:
        """Live events with one of the starts, in order of their ids; they leave the state."""
        wanted = np.unique(starts)
        found: list[tuple[Ints, _Rows]] = []
        kept: list[tuple[Ints, _Rows]] = []
        for numbers, rows in self._live:
            near = np.isin(rows.le, wanted)
            for side, flags in ((found, near), (kept, ~near)):
                if flags.any():
                    side.append(_where(numbers, rows, flags))
        self._live = [_merged(kept, self.schema)] if kept else []
        numbers, rows = _merged(found, self.schema)
        order = np.argsort(numbers)
        return numbers[order], rows.take(order)

    def _unknown(self, minus: _Rows, index: int) -> InputError:
        le, re = (show_tick(int(part[index])) for part in (minus.le, minus.re))
        payload = minus.payload.slice(index, 1).to_pylist() if minus.payload.num_columns else [{}]
        return InputError(
            f"a −row matches no live event: [{le}, {re}) {show_payload(payload[0])}",
            at=f"frontier {show_tick(self.frontier)}",
            fix="an operator retracts only what it has emitted, and nothing that ended before the frontier",
            name="unmatched_retraction",
        )

    def _events(
        self, minus: _Rows, fresh: _Rows, *, numbers: Ints, new_end: Ints, fresh_numbers: Ints, frontier: int
    ) -> PhysicalStream:
        kinds = np.concatenate([np.full(len(numbers), RETRACT), np.full(len(fresh_numbers), INSERT)]).astype(np.int8)
        no_change = pa.nulls(len(fresh_numbers), pa.int64())
        stream = PhysicalStream.of(
            self.schema,
            kind=kinds,
            id=self._ids(np.concatenate([numbers, fresh_numbers])),
            le=pa.array(np.concatenate([minus.le, fresh.le])),
            re=pa.array(np.concatenate([minus.re, fresh.re])),
            re_new=pa.concat_arrays([pa.array(new_end), no_change]),
            payload=pa.concat_tables([minus.payload, fresh.payload]),
        )
        return stream if frontier <= self.frontier else PhysicalStream.concat([stream, cti(self.schema, frontier)])

    def _ids(self, numbers: Ints) -> pa.Array:
        texts = pa.array(numbers).cast(pa.string())
        return pc.binary_join_element_wise(self._prefix, texts, "")

    def _advance(self, frontier: int) -> None:
        """Forget, now and then, what can change no more: rows that end before the frontier."""
        self.frontier = max(self.frontier, frontier)
        if self.live >= self._forgotten_at:
            self._forget()
            self._forgotten_at = max(ENCODED_ROWS.now, 2 * self.live)

    def _forget(self) -> None:
        numbers, rows = _merged(self._live, self.schema)
        self._live = [_where(numbers, rows, rows.re >= self.frontier)]


def cti(schema: Schema, t: int) -> PhysicalStream:
    """One CTI as a stream."""
    empty = PhysicalStream.arrow_schema(schema)
    values = [pa.array([CTI], pa.int8()), pa.nulls(1, pa.string()), pa.array([t], pa.int64())]
    return PhysicalStream(
        schema, pa.Table.from_arrays([*values, *(pa.nulls(1, f.type) for f in list(empty)[3:])], schema=empty)
    )


def _rows(net: pa.Table, indices: Ints) -> _Rows:
    rows = take(net, indices)
    return _Rows(ints(rows[LE]), ints(rows[RE]), payload_of(rows))


def _where(numbers: Ints, rows: _Rows, flags: Flags) -> tuple[Ints, _Rows]:
    return numbers[flags], rows.take(np.flatnonzero(flags))


def _merged(parts: list[tuple[Ints, _Rows]], schema: Schema) -> tuple[Ints, _Rows]:
    if not parts:
        none = np.zeros(0, np.int64)
        return none, _Rows(none, none, schema.arrow.empty_table())
    numbers, rows = zip(*parts, strict=True)
    le, re = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
    return np.concatenate(numbers), _Rows(le, re, pa.concat_tables([row.payload for row in rows]))


def _keys(a: _Rows, b: _Rows, *, with_end: bool) -> Ints:
    """One number per row of ``a`` and then of ``b``: equal iff payload and start, and perhaps the end, are equal."""
    times = [int_piece(np.concatenate([a.le, b.le]))]
    if with_end:
        times.append(int_piece(np.concatenate([a.re, b.re])))
    payload = pieces_of(pa.concat_tables([a.payload, b.payload]))
    return group_numbers(*sort_rows(pack([*times, *payload]), len(a.le) + len(b.le)))


def _match(wanted: Ints, offered: Ints) -> Ints:
    """For the k-th wanted row of a key, the place of the k-th offered row of that key, or −1."""
    count = len(wanted) + len(offered) + 1
    want, offer = wanted * count + ordinals(wanted), offered * count + ordinals(offered)
    order = np.argsort(offer)
    place = np.searchsorted(offer[order], want)
    place = np.minimum(place, max(0, len(offer) - 1))
    if not len(offer):
        return np.full(len(want), -1)
    return np.where(offer[order][place] == want, order[place], -1)


def _pair(minus: _Rows, plus: _Rows) -> tuple[Ints, Flags]:
    """The new end of every −row (its start, if it has no partner), and which +rows are such partners."""
    key = _keys(minus, plus, with_end=False)
    partner = _match(key[: len(minus.le)], key[len(minus.le) :])
    used = np.zeros(len(plus.le), np.bool_)
    used[partner[partner >= 0]] = True
    if not len(plus.le):
        return minus.le.copy(), used
    return np.where(partner >= 0, plus.re[partner], minus.le), used
