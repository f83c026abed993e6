"""Where a source enters: whatever is pushed becomes legal changes for the graph.

A source may enter in several ways at once: as it is, and under each advance_time that a plan puts above it. Every way
has its own CTIs, so each has its own idea of what is late.

Events are known by their ids. Rows of batches have none: as long as a source gives nothing but batches and is read as
it is, its rows are known by what they say, and get ids only where somebody asks for events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa

from streamproof.engines.local.graph import GraphStep
from streamproof.errors import InputError, StreamproofError
from streamproof.events.advance import Advance
from streamproof.events.batch import Batch
from streamproof.events.encode import Encoder
from streamproof.events.event import Cti, Event, Insert, Retract, read_event, typed
from streamproof.events.history import History
from streamproof.events.order import ints
from streamproof.events.physical import to_batches
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.events.validate import Validator
from streamproof.kernels.delta import Delta
from streamproof.kernels.inventory import Inventory
from streamproof.language.notation import from_document, to_document
from streamproof.plan import nodes
from streamproof.plan.labels import label

Content: TypeAlias = "Batch | PhysicalStream | History | pa.Table | Event | Iterable[Event | Mapping[str, object]]"
"""What may be pushed into a source."""

C = TypeVar("C", bound=PhysicalStream | History | Batch)
AS_IT_IS = "as it is"


class Entry:
    """One way of a source into the graph."""

    def __init__(self, node: nodes.AdvanceTime | None, validator: Validator | None, *, keep_late: bool) -> None:
        self.node = node
        self.validator = validator
        self.advance = None if node is None else advance_for(node, keep_late=keep_late)
        self.roots: list[GraphStep] = []  # the steps that it feeds, one for each start offset
        self.frontier = BEGINNING
        self.sealing = False  # whether a CTI came before the end

    def admit(self, chunk: PhysicalStream) -> Delta:
        """The chunk as one change: advanced, checked, and with its last CTI."""
        if self.advance is not None:
            chunk = self.advance.apply(_without_end(chunk) if not self._may_end else chunk)
        if self.validator is not None:
            chunk = self._checked(chunk)
        return self.change(Delta.from_batch(one_batch(chunk)))

    def _checked(self, chunk: PhysicalStream) -> PhysicalStream:
        assert self.validator is not None
        try:
            return self.validator.check(chunk)
        except InputError as error:
            if self.node is not None:
                error.at = f"after {label(self.node)}, {error.at}"
            raise

    def change(self, delta: Delta) -> Delta:
        """A legal change, with the frontier that holds after it."""
        self.frontier = max(self.frontier, delta.frontier)
        self.sealing |= BEGINNING < self.frontier < FOREVER
        return delta.at(self.frontier)

    @property
    def _may_end(self) -> bool:
        return self.node is None or self.node.final

    @property
    def needs_no_ids(self) -> bool:
        """Whether nothing that it checks is about events: rows and CTIs tell it all."""
        new = self.validator
        plain = new is not None and new.shape in (None, "interval") and new.order != "by_le"
        return plain and self.advance is None and new is not None and not new.forgetful and not new.rows_seen

    @property
    def left_out(self) -> bool:
        """Whether some events were illegal and not let through."""
        return self.validator is not None and bool(self.validator.counts)

    def know(self, events: PhysicalStream, cti: int, *, seen: int) -> None:
        """Go on as if ``seen`` events had come, of which these may still change."""
        if self.validator is not None:
            self.validator.restore({**self.validator.save(), "cti": cti, "rows_seen": seen}, events)

    def save(self, schema: Schema) -> tuple[dict[str, object], dict[str, PhysicalStream]]:
        """Plain data, and streams by name: what may still change, and what was left out and nobody has taken yet."""
        state: dict[str, object] = {"frontier": self.frontier, "sealing": self.sealing, "node": _document(self.node)}
        streams: dict[str, PhysicalStream] = {}
        if self.advance is not None:
            state["advance"], streams["late"] = self.advance.save(), self.advance.not_taken(schema)
        if self.validator is not None:
            state["validator"] = self.validator.save()
            letters = self.validator.dead_letters
            streams["dead"] = letters if len(letters) else PhysicalStream.empty(schema)
            if self.validator.remembered is not None:
                streams["live"] = self.validator.remembered
        return state, streams

    def restore(self, state: Mapping[str, Any], streams: Mapping[str, PhysicalStream]) -> None:
        """The inverse of `save`."""
        self.frontier, self.sealing = state["frontier"], state["sealing"]
        if self.advance is not None:
            self.advance.restore(state["advance"], streams["late"])
        if self.validator is not None:
            self.validator.restore(state["validator"], streams.get("live"), dead=streams["dead"])

    def end(self, schema: Schema) -> Delta:
        """What the end of the source brings: everything is complete, unless advance_time says otherwise."""
        if not self._may_end:
            return Delta.empty(schema, frontier=self.frontier)
        self.frontier = FOREVER
        if self.advance is not None:
            self.advance.cti = FOREVER
        return Delta.empty(schema, frontier=FOREVER)

    def live(self, schema: Schema) -> Delta | None:
        """The events that may still change, for one who comes later; None where they are not known."""
        if self.validator is None or self.validator.forgetful:
            return None
        events = self.validator.remembered
        if events is None:
            return Delta.empty(schema, frontier=self.frontier)
        return Delta.from_batch(one_batch(events)).at(self.frontier)


class Inlet:
    """One source of running queries."""

    def __init__(self, name: str, schema: Schema, *, validator: Validator | None, keep_late: bool = False) -> None:
        self.name, self.schema = name, schema
        self.entries: dict[str, Entry] = {}
        self.pushes = 0  # how often something was pushed: the start offset of a query that starts now
        self.events = 0
        self.latest = BEGINNING  # the greatest start
        self.ended = False
        self.complete = False  # it came as a whole
        self._validator, self._keep_late = validator, keep_late
        self._encoder: Encoder | None = None  # gives ids to the rows of batches
        self._inventory: Inventory | None = None  # knows the rows of batches without ids

    @property
    def frontier(self) -> int:
        """How far all ways in have come."""
        return min((entry.frontier for entry in self.entries.values()), default=FOREVER)

    @property
    def remembered(self) -> int:
        """How many events the checks at the door hold, because they may still be retracted."""
        if self._inventory is not None:
            return self._inventory.events()
        return sum(entry.validator.live for entry in self.entries.values() if entry.validator is not None)

    @property
    def is_plain(self) -> bool:
        """Whether it is fed by rows of a file that can hold no CTIs."""
        return self._validator is not None and self._validator.forgetful

    @property
    def policy(self) -> dict[str, object] | None:
        """The settings of its validator, if it has one."""
        own = self._validator
        return None if own is None else {"policy": own.policy, **own.claim}

    @property
    def claim(self) -> dict[str, object]:
        """What its checks make the output depend on; what happens to illegal events may change."""
        return {"checked": False} if self._validator is None else {"checked": True, **self._validator.claim}

    def entry(self, node: nodes.AdvanceTime | None) -> Entry:
        """The way in for a source under this advance_time, or under none."""
        key = self.key(node)
        if key not in self.entries:
            self.entries[key] = Entry(node, self._next_validator(), keep_late=self._keep_late)
        return self.entries[key]

    @staticmethod
    def key(node: nodes.AdvanceTime | None) -> str:
        """A way in, in words."""
        return AS_IT_IS if node is None else f"under {label(node)}" + ("" if node.final else " without end")

    def _next_validator(self) -> Validator | None:
        """The first way in gets the source's own validator, the others one of the same settings."""
        own = self._validator
        if own is None or not self.entries:
            return own
        other = Validator(policy=own.policy, shape=own.shape, order=own.order)
        other.forgetful = own.forgetful
        return other

    def admit(self, content: Content) -> Iterator[tuple[Entry, Delta]]:
        """What a push makes of every way in. Nothing has changed if the first step of this fails."""
        if self.ended:
            text = f'the source "{self.name}" has ended'
            raise InputError(text, fix="push before finish(), or start the query again")
        found = self._found(content)
        if isinstance(found, History):  # complete: nothing of it is late
            self.complete = self.ended = True
            change = Delta.from_batch(found.to_batch())
            yield from ((entry, entry.change(change)) for entry in self.entries.values())
            self._count(len(change), change)
        elif isinstance(found, Batch):
            yield from self._admit_rows(found)
        else:
            self._give_ids()
            self._inventory = None
            yield from self._admit_events(found)
        self.pushes += 1

    def _admit_events(self, chunk: PhysicalStream) -> Iterator[tuple[Entry, Delta]]:
        for entry in self.entries.values():
            yield entry, entry.admit(chunk)
        of_events = chunk.kinds != CTI
        self.events += int(of_events.sum())
        self.latest = max(self.latest, int(ints(chunk.rows["le"])[of_events].max(initial=BEGINNING)))

    def _admit_rows(self, batch: Batch) -> Iterator[tuple[Entry, Delta]]:
        """Rows without ids where that is enough; the others become events, and so do those that may be illegal."""
        if not self.pushes and self._needs_no_ids:
            self._inventory = Inventory(self.schema)
        inventory, entry = self._inventory, self.entries.get(AS_IT_IS)
        posted = None if inventory is None else inventory.post(Delta.from_batch(batch))
        if posted is not None and entry is not None:
            self._count(posted.events, posted.delta)
            yield entry, entry.change(posted.delta)
            return
        self._give_ids()
        for entry, delta in self._admit_events(self._encoded(batch)):
            self._inventory = None if entry.left_out else inventory
            if self._inventory is not None:
                self._inventory.put(delta)
            yield entry, delta

    @property
    def _needs_no_ids(self) -> bool:
        """Whether the rows of batches can be checked by what they say."""
        alone = self.entries.get(AS_IT_IS) if len(self.entries) == 1 else None
        return alone is not None and alone.needs_no_ids and Inventory.can_hold(self.schema)

    def _give_ids(self) -> None:
        """Let the checks at the door know the rows that may still change as events."""
        if self._inventory is None:
            return
        live = self._inventory.live()
        self._encoder = Encoder(self.schema, prefix="row ")
        events = self._encoder.encode(live.to_batch(self.schema))
        self.entries[AS_IT_IS].know(events.filter(events.kinds != CTI), live.frontier, seen=self.events)

    def _count(self, events: int, change: Delta) -> None:
        self.events += events
        self.latest = max(self.latest, change.extent.greatest_le) if len(change) else self.latest

    def live(self, key: str) -> Delta | None:
        """The events that may still change on one way in, for one who comes later; None where they are not known."""
        self._give_ids()
        return self.entries[key].live(self.schema) if key in self.entries else None

    def end(self) -> Iterator[tuple[Entry, Delta]]:
        """What the end of the source makes of every way in."""
        if not self.ended:
            self.ended = True
            yield from ((entry, entry.end(self.schema)) for entry in self.entries.values())

    # --- whatever a user has ------------------------------------------------------------------------------------------

    def _found(self, content: Content) -> PhysicalStream | Batch | History:
        """Physical events, signed rows, or a history, which is complete and has no order of arrival."""
        try:
            return self._read(content)
        except StreamproofError as error:
            raise error.located(f"input {self.name}") from None

    def _read(self, content: Content) -> PhysicalStream | Batch | History:
        match content:
            case Batch():
                return self._of_schema(content).lawful()
            case PhysicalStream() | History():
                return self._of_schema(content)
            case Insert() | Retract() | Cti():
                return self._events([content])
            case Mapping():
                return self._events([content])
        if hasattr(content, "__arrow_c_stream__"):
            return self._table(pa.table(content))
        return self._events(content)

    def _of_schema(self, content: C) -> C:
        if content.schema != self.schema:
            raise InputError(
                f"the content has the columns {_shown(content.schema)}, the source {_shown(self.schema)}",
                fix="push what has the schema that the query was started with",
                name="type_mismatch",
            )
        return content

    def _table(self, table: pa.Table) -> PhysicalStream | Batch:
        if table.schema.names == PhysicalStream.arrow_schema(self.schema).names:
            return PhysicalStream(self.schema, table.cast(PhysicalStream.arrow_schema(self.schema)))
        history = History.from_table(self.schema, table, allow_negative=True)
        return history.to_batch(frontier=BEGINNING)

    def _encoded(self, batch: Batch) -> PhysicalStream:
        if self._encoder is None:
            self._encoder = Encoder(self.schema, prefix="row ")
        try:
            return self._encoder.encode(batch)
        except StreamproofError as error:
            raise error.located(f"input {self.name}") from None

    def _events(self, content: object) -> PhysicalStream:
        if isinstance(content, str | bytes) or not isinstance(content, Iterable):
            fix = "push a Batch, a PhysicalStream, a History, an Arrow table, events or dicts"
            raise InputError(f"cannot push {type(content).__name__}", fix=fix)
        events = []
        for number, item in enumerate(content):
            event = read_event(item, self.events + number) if isinstance(item, Mapping) else item
            if not isinstance(event, Insert | Retract | Cti):
                raise InputError(f"cannot push {item!r}", at=f"item {number}", fix="events are Insert, Retract or Cti")
            events.append(typed(event, self.schema))
        return PhysicalStream.from_events(events, schema=self.schema)

    # --- state --------------------------------------------------------------------------------------------------------

    def save(self) -> tuple[dict[str, object], dict[str, pa.Table]]:
        """Plain data, and tables by name."""
        self._give_ids()
        tables: dict[str, pa.Table] = {}
        about: dict[str, object] = {
            "pushes": self.pushes, "events": self.events, "latest": self.latest, "ended": self.ended,
            "complete": self.complete, "without_ids": self._inventory is not None,
        }  # fmt: skip
        if self._encoder is not None:
            about["encoder"], tables["encoder"] = self._encoder.save()
        entries: dict[str, object] = {}
        for key, entry in self.entries.items():
            state, kept = entry.save(self.schema)
            entries[key] = state
            tables |= {f"{name} {key}": stream.rows for name, stream in kept.items()}
        return {**about, "entries": entries}, tables

    def restore(self, about: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
        """The inverse of `save`, once the entries are there."""
        self.pushes, self.events, self.latest = about["pushes"], about["events"], about["latest"]
        self.ended, self.complete = about["ended"], about["complete"]
        self._encoder = Encoder(self.schema, prefix="row ") if "encoder" in about else None
        if self._encoder is not None:
            self._encoder.restore(about["encoder"], tables["encoder"])
        for key, state in about["entries"].items():
            kept = {n.removesuffix(f" {key}"): table for n, table in tables.items() if n.endswith(f" {key}")}
            streams = {name: PhysicalStream(self.schema, table) for name, table in kept.items()}
            self.entry(_node_of(state["node"])).restore(state, streams)
        self._inventory = Inventory(self.schema) if about.get("without_ids") else None
        known = self.entries[AS_IT_IS].live(self.schema) if self._inventory is not None else None
        if self._inventory is not None and known is not None:
            self._inventory.put(known)


def advance_for(node: nodes.AdvanceTime, *, keep_late: bool) -> Advance:
    """What does the work of an advance_time."""
    assert isinstance(node.every_duration, int | None), "a typed plan holds ticks"
    assert isinstance(node.delay, int), "a typed plan holds ticks"
    return Advance(
        every=node.every, every_duration=node.every_duration, delay=node.delay, late=node.late, keep_dropped=keep_late
    )


def _document(node: nodes.AdvanceTime | None) -> Any:
    """An advance_time as plain data."""
    return None if node is None else to_document(node)


def _node_of(document: Any) -> nodes.AdvanceTime | None:
    """The inverse of `_document`."""
    node = None if document is None else from_document(document)
    assert node is None or isinstance(node, nodes.AdvanceTime), "it was one"
    return node


def _without_end(chunk: PhysicalStream) -> PhysicalStream:
    """Without the CTI ∞, which advance_time was told not to give."""
    return chunk.filter((chunk.kinds != CTI) | (ints(chunk.rows["le"]) < FOREVER))


def one_batch(chunk: PhysicalStream) -> Batch:
    """The chunk as one batch, with its last CTI: a CTI less is a promise less, never a wrong one."""
    kinds = chunk.kinds
    last = ints(chunk.rows["le"])[kinds == CTI].max(initial=BEGINNING)
    rows = next(to_batches(chunk.filter(kinds != CTI)), Batch.empty(chunk.schema))
    return Batch(chunk.schema, rows.rows, int(last))


def _shown(schema: Schema) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in schema) or "none"
