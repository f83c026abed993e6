"""What is known of a source's events, in a bucket: advance_time, and the rules that look at an event's whole life.

advance_time makes the CTIs of sources that have none. The rules follow events by their ids; rows with signs have none
and are known by what they say. A retraction of what is not there is refused before it reaches a window that hides it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.engines.local.graph_state import read_table, table_bytes
from streamproof.engines.spark.stream.blobs import from_blobs
from streamproof.engines.spark.stream.doors import WITH_KINDS, Door
from streamproof.engines.spark.stream.lateness import LateRows
from streamproof.engines.spark.stream.wire import ALL, Part
from streamproof.errors import InputError
from streamproof.events.advance import Advance
from streamproof.events.bag import python_rows
from streamproof.events.batch import Batch
from streamproof.events.notation import show_payload, write_json
from streamproof.events.order import Ints, ints
from streamproof.events.stream import CTI, PhysicalStream
from streamproof.events.time import show_tick
from streamproof.events.validate import Validator
from streamproof.kernels.cells import Layout, Strings
from streamproof.kernels.delta import Delta, concat, consolidate
from streamproof.kernels.inventory import Inventory
from streamproof.plan import nodes
from streamproof.plan.check import Typed, walk
from streamproof.plan.nodes import Plan


def advanced_sources(typed: Typed) -> dict[str, nodes.AdvanceTime]:
    """The sources with an advance_time above them."""
    found: dict[str, nodes.AdvanceTime] = {}
    for part in walk(typed):
        if isinstance(part.node, nodes.AdvanceTime):
            source = part.inputs[0].node
            assert isinstance(source, nodes.Source), "advance_time stands directly above a source"
            found[source.name] = part.node
    return found


def read_apart(plan: Plan) -> tuple[Plan, dict[str, str]]:
    """A plan that reads each source in one way, with or without an advance_time, and which source each of its own is.

    A source that is read in several ways is so many sources: what is late for one is not for the others.

    >>> s = nodes.Source("S")
    >>> plan, given = read_apart(nodes.Union((s, nodes.AdvanceTime(s, every=1), nodes.Shift(s, 1))))
    >>> given
    {'S': 'S', 'S_1': 'S'}
    >>> [node.input.name for node in nodes.walk(plan) if isinstance(node, nodes.AdvanceTime | nodes.Shift)]
    ['S_1', 'S']
    """
    ways: dict[str, list[nodes.AdvanceTime | None]] = {name: [] for name in nodes.sources(plan)}
    for parent in (None, *nodes.walk(plan)):
        for node in (plan,) if parent is None else parent.inputs:
            if isinstance(node, nodes.Source):
                ways[node.name].append(parent if isinstance(parent, nodes.AdvanceTime) else None)
    names: dict[nodes.AdvanceTime, str] = {}
    given = {name: name for name in ways}
    for name, found in ways.items():
        _, *more = sorted(dict.fromkeys(found), key=lambda way: way is not None)  # a way without one keeps the name
        for way in more:
            assert way is not None, "there is one way without"
            names[way] = next(new for n in count(1) if (new := f"{name}_{n}") not in given)
            given[names[way]] = name

    def renamed(node: Plan) -> Plan:
        if not isinstance(node, nodes.AdvanceTime) or node not in names:
            return node
        assert isinstance(node.input, nodes.Source)
        return replace(node, input=replace(node.input, name=names[node]))

    return nodes.transform(plan, renamed), given


class Arrivals:
    """The events of one source in order of arrival. What it remembers goes on from micro-batch to micro-batch."""

    def __init__(self, door: Door, advance: nodes.AdvanceTime | None, bucket: int) -> None:
        self.door, self._bucket = door, bucket
        self._advance = None if advance is None else _made(advance, keep=door.policy == "dead_letter")
        lenient = door.policy != "fail" and door.form in WITH_KINDS and advance is None
        self._validator = Validator(policy=door.policy) if lenient or door.form == "physical" else None
        if self._validator is not None:
            self._validator.forgetful = door.form == "marked"

    def take(self, parts: list[Part]) -> tuple[PhysicalStream, LateRows]:
        """The events that get through, with CTIs among them, and what did not."""
        nothing = self.door.schema.arrow_rows.empty_table()
        if self._advance is not None:
            through, dropped, lost = self._advanced(self._advance, parts)
            letters = _letters(self.door, "late for advance_time", lost)
        else:
            through, dropped, letters = self._events(parts), 0, b""
        if self._validator is not None:
            before = sum(self._validator.counts.values())
            through = self._checked(self._validator, through)
            illegal = sum(self._validator.counts.values()) - before
            if illegal and self.door.policy == "dead_letter":
                letters += _letters(self.door, "it breaks a rule of the stream", [self._validator.dead_letters])
                self._forget_letters()
            dropped += illegal
        return through, LateRows(nothing, dropped, letters or None)

    def _checked(self, validator: Validator, events: PhysicalStream) -> PhysicalStream:
        """The legal ones. Where partitions have no order, CTIs come after all events of a micro-batch: doors have held
        rows against those before them.
        """
        try:
            if self.door.in_order or self.door.tells_all:
                return validator.check(events)
            is_cti = events.kinds == CTI
            ctis = events.filter(is_cti)
            order = np.argsort(ints(ctis.rows["le"]), kind="stable")
            together = [events.filter(~is_cti), PhysicalStream(ctis.schema, ctis.rows.take(pa.array(order)))]
            return validator.check(PhysicalStream.concat(together, schema=events.schema))
        except InputError as error:
            error.at = f"source {self.door.name}, bucket {self._bucket}, {error.at}"
            raise

    def _events(self, parts: list[Part]) -> PhysicalStream:
        blobs = [part.rows for part in parts if part.rows is not None]
        return PhysicalStream(self.door.schema, from_blobs(blobs, self.door.arrow))

    def _advanced(self, advance: Advance, parts: list[Part]) -> tuple[PhysicalStream, int, list[PhysicalStream]]:
        before = advance.dropped
        through = [self._share(advance, part) for part in parts]
        if self.door.form in ("inserts", "marked"):  # nobody will ever speak of these again
            advance.restore({**advance.snapshot(), "delivered": {}})
        together = PhysicalStream.concat(through, schema=self.door.schema)
        return together, advance.dropped - before, advance.take_dropped()

    def _share(self, advance: Advance, part: Part) -> PhysicalStream:
        """This bucket's events of one Arrow batch; the CTIs are made of all that it had."""
        if part.all is None:  # a CTI alone
            kinds, le = np.array([CTI], np.int8), np.array([part.cti])
            return advance.apply_share(self._events([part]), np.empty(0, np.int64), kinds, le)
        everything = from_blobs([part.all], ALL)
        kinds = ints(everything["kind"]).astype(np.int8)
        places = np.flatnonzero((ints(everything["bucket"]) == self._bucket) & (kinds != CTI))
        events = self._events([part])
        events = events.filter(events.kinds != CTI)
        if self.door.form == "inserts":
            events = _with_ids(events, places)
        return advance.apply_share(events, places, kinds, ints(everything["le"]))

    def _forget_letters(self) -> None:
        """A validator that goes on, without the letters that were handed over."""
        assert self._validator is not None
        state, remembered = self._validator.snapshot(), self._validator.remembered
        self._validator = Validator(policy=self.door.policy)
        self._validator.restore(state, remembered)

    def snapshot(self) -> tuple[dict[str, Any], bytes]:
        """Plain data, and a table of the events that may still change."""
        state = {
            "advance": None if self._advance is None else self._advance.snapshot(),
            "validator": None if self._validator is None else self._validator.snapshot(),
        }
        remembered = None if self._validator is None else self._validator.remembered
        return state, b"" if remembered is None else table_bytes(remembered.rows)

    def restore(self, state: dict[str, Any], remembered: bytes) -> None:
        if self._advance is not None:
            self._advance.restore(state["advance"])
        if self._validator is not None:
            rows = PhysicalStream(self.door.schema, read_table(remembered)) if remembered else None
            self._validator.restore(state["validator"], rows)


def _made(node: nodes.AdvanceTime, *, keep: bool) -> Advance:
    every, delay = node.every_duration, node.delay
    assert every is None or isinstance(every, int), "a checked plan counts in ticks"
    assert isinstance(delay, int), "a checked plan counts in ticks"
    return Advance(every=node.every, every_duration=every, delay=delay, late=node.late, keep_dropped=keep)


def _with_ids(events: PhysicalStream, places: Ints) -> PhysicalStream:
    """Events without an id get one, by their place in the order of arrival."""
    ids = pc.binary_join_element_wise(pa.scalar("#"), pa.array(places).cast(pa.string()), "")
    return PhysicalStream(events.schema, events.rows.set_column(1, events.rows.schema.field(1), ids))


def _letters(door: Door, why: str, lost: list[PhysicalStream]) -> bytes:
    lines = [
        write_json({"source": door.name, "why": why, "event": event}) + "\n"
        for stream in lost
        for event in stream.to_dicts()
    ]
    return "".join(lines).encode()


class Known:
    """The rows of a source of signed rows that may still change, by what they say."""

    def __init__(self, door: Door) -> None:
        self.door, self._rows = door, Inventory(door.schema)

    @staticmethod
    def can_hold(door: Door) -> bool:
        """Whether the rows of a source can be looked up: there is a most of columns."""
        return Inventory.can_hold(door.schema)

    def post(self, table: pa.Table, cti: int) -> None:
        """Take rows in, and go on to a CTI; a row that is taken back and is not there is an error."""
        delta = Delta.from_batch(Batch(self.door.schema, table, max(cti, self._rows.frontier)))
        if self._rows.post(delta) is None:
            both = concat([self._rows.live(), delta], frontier=delta.frontier)
            both = consolidate(both, Layout.of(self.door.schema), Strings())
            if len(both) and both.w.min() < 0:
                raise self._error(both.take(np.flatnonzero(both.w < 0)[:1]))
            self._rows.put(delta)

    def _error(self, row: Delta) -> InputError:
        le, re, _, payload = next(python_rows(row.to_batch(self.door.schema).rows))
        return InputError(
            "a row is taken back that is not there",
            at=f"source {self.door.name}, −[{show_tick(le)}, {show_tick(re)}) {show_payload(payload)}",
            fix="take back each row as it was inserted, in the same or a later micro-batch",
            name="unmatched_retraction",
        )

    def snapshot(self) -> bytes:
        """The rows as a table."""
        return table_bytes(self._rows.live().to_batch(self.door.schema).rows)

    def restore(self, state: bytes, cti: int) -> None:
        """The inverse of `snapshot`."""
        self._rows = Inventory(self.door.schema)
        self._rows.put(Delta.from_batch(Batch(self.door.schema, read_table(state), cti)))
