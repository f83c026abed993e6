"""What a bucket knows of a source's events: CTIs that are made here, rules of an event's whole life, and lateness.

- `Arrivals`: events in order of arrival. advance_time makes the CTIs of sources that have none; the rules of a stream
  follow events by their ids.
- `LateRows`: rows that would change history before the CTI that an earlier micro-batch brought. Ports hold rows against
  the CTIs before them in their partition; what is known of partitions is in `Bucket`. For a source of inserts alone the
  time that counts is their start. Where rows are also taken back, a change of an end shows as a −row and a +row of
  equal start and payload, and only the ends must lie at or after the CTI.
- `LiveRows`: rows with signs have no ids and are known by what they say. A retraction of what is not there is refused
  before it reaches a window that hides it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.engines.local.graph_state import read_table, table_bytes
from streamproof.engines.local.inlet import advance_for
from streamproof.engines.spark.stream.ports import WITH_KINDS, SourcePort, late_error, plain_value
from streamproof.engines.spark.stream.wire import ARRIVALS, BucketInput, from_blobs
from streamproof.errors import InputError
from streamproof.events.advance import Advance
from streamproof.events.bag import python_rows
from streamproof.events.batch import Batch
from streamproof.events.notation import show_payload, write_json
from streamproof.events.order import Flags, Ints, group_numbers, int_piece, ints, pack, pieces_of, sort_rows
from streamproof.events.schema import LE, RE, W
from streamproof.events.stream import CTI, PhysicalStream
from streamproof.events.time import BEGINNING, show_tick
from streamproof.events.validate import Validator
from streamproof.kernels.cells import Layout, Strings
from streamproof.kernels.delta import Delta, concat, consolidate
from streamproof.kernels.inventory import Inventory


class Arrivals:
    """The events of one source in order of arrival, remembered from micro-batch to micro-batch."""

    def __init__(self, port: SourcePort, bucket: int) -> None:
        self.port, self._bucket = port, bucket
        keep_late = port.policy == "dead_letter"
        self._advance = None if port.advance is None else advance_for(port.advance, keep_late=keep_late)
        lenient = port.policy != "fail" and port.form in WITH_KINDS and port.advance is None
        self._validator = Validator(policy=port.policy) if lenient or port.form == "physical" else None
        if self._validator is not None:
            self._validator.forgetful = port.form == "marked"

    def take(self, inputs: list[BucketInput]) -> tuple[PhysicalStream, LateRows]:
        """The events that get through, with CTIs among them, and what did not."""
        nothing = self.port.schema.arrow_rows.empty_table()
        if self._advance is not None:
            through, dropped, lost = self._advanced(self._advance, inputs)
            dead = _dead_letters(self.port, "late for advance_time", lost)
        else:
            through, dropped, dead = self._events(inputs), 0, b""
        if self._validator is not None:
            before = sum(self._validator.counts.values())
            through = self._checked(self._validator, through)
            illegal = sum(self._validator.counts.values()) - before
            if illegal and self.port.policy == "dead_letter":
                dead += _dead_letters(self.port, "it breaks a rule of the stream", [self._validator.dead_letters])
                self._forget_dead_letters()
            dropped += illegal
        return through, LateRows(nothing, dropped, dead or None)

    def _checked(self, validator: Validator, events: PhysicalStream) -> PhysicalStream:
        """The legal ones. Where partitions have no order, CTIs come after all events of a micro-batch: ports have held
        rows against those before them.
        """
        try:
            if self.port.in_order or self.port.tells_all:
                return validator.check(events)
            is_cti = events.kinds == CTI
            ctis = events.filter(is_cti)
            order = np.argsort(ints(ctis.rows["le"]), kind="stable")
            together = [events.filter(~is_cti), PhysicalStream(ctis.schema, ctis.rows.take(pa.array(order)))]
            return validator.check(PhysicalStream.concat(together, schema=events.schema))
        except InputError as error:
            error.at = f"source {self.port.name}, bucket {self._bucket}, {error.at}"
            raise

    def _events(self, inputs: list[BucketInput]) -> PhysicalStream:
        blobs = [one.rows for one in inputs if one.rows is not None]
        return PhysicalStream(self.port.schema, from_blobs(blobs, self.port.arrow))

    def _advanced(
        self, advance: Advance, inputs: list[BucketInput]
    ) -> tuple[PhysicalStream, int, list[PhysicalStream]]:
        before = advance.dropped
        through = [self._share(advance, one) for one in inputs]
        if self.port.form in ("inserts", "marked"):  # nobody will ever speak of these again
            advance.restore({**advance.save(), "delivered": {}})
        together = PhysicalStream.concat(through, schema=self.port.schema)
        return together, advance.dropped - before, advance.take_dropped()

    def _share(self, advance: Advance, one: BucketInput) -> PhysicalStream:
        """This bucket's events of one Arrow batch; the CTIs are made of all that it had."""
        if one.arrivals is None:  # a CTI alone
            kinds, le = np.array([CTI], np.int8), np.array([one.cti])
            return advance.apply_share(self._events([one]), np.empty(0, np.int64), kinds, le)
        everything = from_blobs([one.arrivals], ARRIVALS)
        kinds = ints(everything["kind"]).astype(np.int8)
        places = np.flatnonzero((ints(everything["bucket"]) == self._bucket) & (kinds != CTI))
        events = self._events([one])
        events = events.filter(events.kinds != CTI)
        if self.port.form == "inserts":
            events = _with_ids(events, places)
        return advance.apply_share(events, places, kinds, ints(everything["le"]))

    def _forget_dead_letters(self) -> None:
        """Continue with a validator that is without the dead letters that were handed over."""
        assert self._validator is not None
        state, remembered = self._validator.save(), self._validator.remembered
        self._validator = Validator(policy=self.port.policy)
        self._validator.restore(state, remembered)

    def save(self) -> tuple[dict[str, Any], bytes]:
        """Plain data, and a table of the events that may still change."""
        state = {
            "advance": None if self._advance is None else self._advance.save(),
            "validator": None if self._validator is None else self._validator.save(),
        }
        remembered = None if self._validator is None else self._validator.remembered
        return state, b"" if remembered is None else table_bytes(remembered.rows)

    def restore(self, state: dict[str, Any], remembered: bytes) -> None:
        if self._advance is not None:
            self._advance.restore(state["advance"])
        if self._validator is not None:
            rows = PhysicalStream(self.port.schema, read_table(remembered)) if remembered else None
            self._validator.restore(state["validator"], rows)


def _with_ids(events: PhysicalStream, places: Ints) -> PhysicalStream:
    """Events without an id get one, by their place in the order of arrival."""
    ids = pc.binary_join_element_wise(pa.scalar("#"), pa.array(places).cast(pa.string()), "")
    return PhysicalStream(events.schema, events.rows.set_column(1, events.rows.schema.field(1), ids))


def _dead_letters(port: SourcePort, why: str, lost: list[PhysicalStream]) -> bytes:
    lines = [
        write_json({"source": port.name, "why": why, "event": event}) + "\n"
        for stream in lost
        for event in stream.to_dicts()
    ]
    return "".join(lines).encode()


@dataclass(frozen=True, slots=True)
class LateRows:
    """The rows in time, and what is known of the others."""

    in_time: pa.Table
    count: int = 0
    dead: bytes | None = None

    @staticmethod
    def of(port: SourcePort, table: pa.Table, cti: int) -> LateRows:
        """Split signed rows by the CTI that held before them; late ones are an error, or dropped and counted."""
        if cti == BEGINNING or not table.num_rows:
            return LateRows(table)
        late = _is_late(port, table, cti)
        if not late.any():
            return LateRows(table)
        if port.policy == "fail":
            raise _late_row_error(port, table, int(np.argmax(late)), cti)
        gone = table.filter(pa.array(late))
        dead = _late_letters(port, gone, cti) if port.policy == "dead_letter" else None
        return LateRows(table.filter(pa.array(~late)), int(late.sum()), dead)

    @staticmethod
    def concat(found: list[LateRows]) -> LateRows:
        """What was judged apart, together."""
        dead = b"".join(late.dead for late in found if late.dead)
        return LateRows(
            pa.concat_tables([late.in_time for late in found]), sum(late.count for late in found), dead or None
        )


def _is_late(port: SourcePort, table: pa.Table, cti: int) -> Flags:
    early: Flags = ints(table[LE]) < cti
    if port.form == "inserts" or not early.any():
        return early
    places = np.flatnonzero(early)
    rows = table.take(pa.array(places))
    groups = _alike(rows)
    moved = np.zeros(groups.max() + 1, np.int64)
    np.add.at(moved, groups, ints(rows[W]))
    ends = np.full(len(moved), np.iinfo(np.int64).max)
    np.minimum.at(ends, groups, ints(rows[RE]))
    legal = (moved == 0) & (ends >= cti)
    early[places] = ~legal[groups]
    return early


def _alike(rows: pa.Table) -> Ints:
    """A number per row: equal where start and payload are."""
    payload = pieces_of(rows.select(range(3, rows.num_columns)))
    return group_numbers(*sort_rows(pack([int_piece(ints(rows[LE])), *payload]), rows.num_rows))


def _late_row_error(port: SourcePort, table: pa.Table, index: int, cti: int) -> InputError:
    le, re, w, payload = next(python_rows(table.slice(index, 1)))
    sign = "+" if w > 0 else "−"
    return late_error(port, le, cti, f"{sign}[{show_tick(le)}, {show_tick(re)}) {show_payload(payload)}")


def _late_letters(port: SourcePort, rows: pa.Table, cti: int) -> bytes:
    lines = []
    for le, re, w, payload in python_rows(rows):
        plain = {name: plain_value(value) for name, value in payload.items()}
        event = {"le": le, "re": re, "w": w, "payload": plain}
        why = f"late: the CTI is {show_tick(cti)}"
        lines.append(json.dumps({"source": port.name, "why": why, "event": event}) + "\n")
    return "".join(lines).encode()


class LiveRows:
    """The rows of a source of signed rows that may still change, by what they say."""

    def __init__(self, port: SourcePort) -> None:
        self.port, self._rows = port, Inventory(port.schema)

    @staticmethod
    def can_hold(port: SourcePort) -> bool:
        """Whether the rows of a source can be looked up: there is a most of columns."""
        return Inventory.can_hold(port.schema)

    def post(self, table: pa.Table, cti: int) -> None:
        """Take rows in, and go on to a CTI; a row that is taken back and is not there is an error."""
        delta = Delta.from_batch(Batch(self.port.schema, table, max(cti, self._rows.frontier)))
        if self._rows.post(delta) is None:
            both = concat([self._rows.live(), delta], frontier=delta.frontier)
            both = consolidate(both, Layout.of(self.port.schema), Strings())
            if len(both) and both.w.min() < 0:
                raise self._error(both.take(np.flatnonzero(both.w < 0)[:1]))
            self._rows.put(delta)

    def _error(self, row: Delta) -> InputError:
        le, re, _, payload = next(python_rows(row.to_batch(self.port.schema).rows))
        return InputError(
            "a row is taken back that is not there",
            at=f"source {self.port.name}, −[{show_tick(le)}, {show_tick(re)}) {show_payload(payload)}",
            fix="take back each row as it was inserted, in the same or a later micro-batch",
            name="unmatched_retraction",
        )

    def save(self) -> bytes:
        """The rows as a table."""
        return table_bytes(self._rows.live().to_batch(self.port.schema).rows)

    def restore(self, state: bytes, cti: int) -> None:
        """The inverse of `save`."""
        self._rows = Inventory(self.port.schema)
        self._rows.put(Delta.from_batch(Batch(self.port.schema, read_table(state), cti)))
