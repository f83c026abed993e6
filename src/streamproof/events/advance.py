"""advance_time: CTIs for a stream that has none, and a rule for what comes too late for them.

It is the one operator whose effect depends on the order of arrival, so it works on physical events.

>>> from streamproof.events.event import Insert
>>> stream = PhysicalStream.from_events([Insert("a", 1, 2, {}), Insert("b", 5, 6, {}), Insert("c", 3, 4, {})])
>>> advance = Advance(every=1)
>>> [event["kind"] for event in advance.apply(stream).to_dicts()], advance.dropped
(['insert', 'cti', 'insert', 'cti'], 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamproof.events.encode import cti as one_cti
from streamproof.events.order import Ints, ints
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI, INSERT, RETRACT, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.thresholds import LATE_IDS

Late: TypeAlias = Literal["drop", "adjust"]
Delivered: TypeAlias = "tuple[int, int] | Literal['as it came'] | None"
"""What was delivered of an event: from where to where, or nothing, or the event itself."""
AS_IT_CAME: Final = "as it came"


class _Known(NamedTuple):
    """What is to be known of an id whose event was not delivered as it came."""

    end: int  # where the event ends, as its source has it: a change that is in time cannot be before the CTI
    delivered: Delivered
    name: str  # the id under which it is delivered
    until: int = BEGINNING  # up to where earlier events of this id, taken back too late, live on

    def has_passed(self, cti: int) -> bool:
        """Whether the CTI has left all of it behind: what comes now is late, and dropped, even for an unknown id."""
        return max(self.end, self.until, self.lives_until) < cti

    @property
    def lives_until(self) -> int:
        """Where what was delivered of it ends, if it is not as it came."""
        return self.delivered[1] if isinstance(self.delivered, tuple) else BEGINNING


class Advance:
    """Puts a CTI after every N events, or whenever time has moved by a duration, at the greatest start minus a delay.

    An event that comes after the CTI has passed its sync time is late: it is dropped and counted, or adjusted to the
    CTI. A straddling lifetime then starts at the CTI, one wholly in the past is dropped, and retractions of an event
    that was adjusted or missed are rewritten to what was delivered of it.

    It remembers ids only as long as a change of them can be in time, or what was delivered of them can still change.

    Law: how a stream is cut into chunks does not matter.
    """

    def __init__(
        self,
        *,
        every: int | None = None,
        every_duration: int | None = None,
        delay: int = 0,
        late: Late = "drop",
        keep_dropped: bool = False,
    ) -> None:
        """``keep_dropped`` collects the events that were dropped, until `take_dropped` is called."""
        self.every, self.every_duration, self.delay, self.late = every, every_duration, delay, late
        self.cti = BEGINNING  # the last CTI
        self.dropped = 0  # how many events did not get through
        self.adjusted = 0  # how many got through changed
        self._seen = 0  # events so far
        self._latest = BEGINNING  # the greatest start so far
        self._known: dict[str, _Known] = {}  # ids of which something is to be known, and some of which nothing is
        self._forget_at = LATE_IDS.now  # how many there may be before those are looked for
        self._keep_dropped = keep_dropped
        self._dropped: list[PhysicalStream] = []

    def apply(self, chunk: PhysicalStream) -> PhysicalStream:
        """The chunk with CTIs in it, and without what came too late."""
        if not len(chunk):
            return chunk
        kinds = chunk.kinds
        before, after = self._move(kinds, ints(chunk.rows["le"]))
        events = self._let_through(chunk, kinds, before)
        return _interleave(events, np.flatnonzero(after > before), after[after > before])

    def apply_share(self, share: PhysicalStream, places: Ints, kinds: npt.NDArray[np.int8], le: Ints) -> PhysicalStream:
        """A share of a chunk: its events at these places. CTIs come from all rows, of which kinds and starts are known.

        Law: the shares of a chunk give together what `apply` gives for the chunk, but CTIs at the end only.
        """
        if not len(kinds):
            return share
        old = self.cti
        before, _ = self._move(kinds, le)
        events = self._let_through(share, share.kinds, before[places])
        last = np.full(1 if self.cti > old else 0, len(share))
        return _interleave(events, last, np.full(len(last), self.cti))

    def _move(self, kinds: npt.NDArray[np.int8], le: Ints) -> tuple[Ints, Ints]:
        """Go on over these rows; per row the CTI that holds before it, and the one that holds after it."""
        latest, after = self._schedule(kinds, le)
        before = np.concatenate([[self.cti], after[:-1]])
        self._latest, self._seen, self.cti = int(latest[-1]), self._seen + len(kinds), int(after[-1])
        return before, after

    def _let_through(self, chunk: PhysicalStream, kinds: npt.NDArray[np.int8], before: Ints) -> _Events:
        events = self._in_time(chunk, kinds, before)
        lost = ~events.kept & (kinds != CTI)
        if self._keep_dropped and lost.any():
            self._dropped.append(chunk.filter(lost))
        return events

    def finish(self, schema: Schema) -> PhysicalStream:
        """The last CTI, ∞: nothing more will come."""
        self.cti = FOREVER
        return one_cti(schema, FOREVER)

    def take_dropped(self) -> list[PhysicalStream]:
        """The events that were dropped since the last call, as they came."""
        taken, self._dropped = self._dropped, []
        return taken

    def not_taken(self, schema: Schema) -> PhysicalStream:
        """What `take_dropped` would give, as one stream; it can still be taken."""
        return PhysicalStream.concat(self._dropped, schema=schema)

    def save(self) -> dict[str, object]:
        """All that a new one with the same settings needs to continue, beside what is `not_taken`: fit for JSON."""
        self._forget()
        return {
            "cti": self.cti, "dropped": self.dropped, "adjusted": self.adjusted, "seen": self._seen,
            "latest": self._latest, "delivered": {name: list(known) for name, known in self._known.items()},
        }  # fmt: skip

    def restore(self, state: Mapping[str, Any], dropped: PhysicalStream | None = None) -> None:
        """The inverse of `save` and `not_taken`."""
        self.cti, self.dropped, self.adjusted = state["cti"], state["dropped"], state["adjusted"]
        self._seen, self._latest = state["seen"], state["latest"]
        self._known = {name: _known(*kept) for name, kept in state["delivered"].items()}
        if dropped is not None:
            self._dropped = [dropped] if len(dropped) else []

    def _schedule(self, kinds: npt.NDArray[np.int8], le: Ints) -> tuple[Ints, Ints]:
        """Per row the greatest start so far, and the CTI that holds after it."""
        starts = np.where(kinds == INSERT, le, BEGINNING)
        latest = np.maximum.accumulate(np.maximum(starts, self._latest))
        due = np.where(latest > BEGINNING, latest - self.delay, BEGINNING)
        own = np.where(kinds == CTI, le, BEGINNING)  # a CTI that is there already counts too
        if self.every is not None:
            on_time = (self._seen + np.arange(1, len(le) + 1)) % self.every == 0
            due = np.where(on_time, due, BEGINNING)
        else:
            due = self._spaced(due, np.maximum.accumulate(own))
        return latest, np.maximum.accumulate(np.maximum(np.maximum(due, own), self.cti))

    def _spaced(self, due: Ints, own: Ints) -> Ints:
        """Only the times at which the duration has passed since the last CTI, of ours or of the stream's own."""
        assert self.every_duration is not None
        kept = np.full(len(due), BEGINNING)
        last = self.cti
        while True:
            target = BEGINNING + 1 if last == BEGINNING else last + self.every_duration
            at, given = int(np.searchsorted(due, target)), int(np.searchsorted(own, last, side="right"))
            if given < at:
                last = int(own[given])
            elif at < len(due):
                kept[at] = last = int(due[at])
            else:
                return kept

    def _in_time(self, chunk: PhysicalStream, kinds: npt.NDArray[np.int8], cti: Ints) -> _Events:
        """The events that get through, as they get through."""
        events = _Events(chunk, kinds)
        late = (kinds != CTI) & (events.sync() < cti)
        touched = set(np.unique(events.ids[late].astype(str)).tolist()) if late.any() else set()
        if not touched and not self._known:
            return events
        known = touched | self._known.keys()
        for row in np.flatnonzero((kinds != CTI) & np.isin(events.ids.astype(str), list(known))).tolist():
            self._deliver(events, row, int(cti[row]), bool(late[row]))
        if len(self._known) >= self._forget_at:
            self._forget()
            self._forget_at = max(LATE_IDS.now, 2 * len(self._known))
        return events

    def _forget(self) -> None:
        """Let go of ids of which whatever comes is dropped, known or not."""
        self._known = {name: known for name, known in self._known.items() if not known.has_passed(self.cti)}

    def _deliver(self, events: _Events, row: int, cti: int, is_late: bool) -> None:
        """One event of an id that is or was late."""
        name = str(events.ids[row])
        known = self._known.pop(name, None)
        if known is not None and known.has_passed(cti):
            known = None
        if events.kinds[row] == INSERT:
            known = self._deliver_insert(events, row, known or _Known(BEGINNING, AS_IT_CAME, name), cti, is_late)
        elif is_late or (known is not None and known.delivered != AS_IT_CAME):
            known = self._deliver_change(events, row, known, cti)
        elif known is not None:
            known = known._replace(end=events.end_after(row))
        if known is None:
            return
        if known.name != name:
            events.rename(row, known.name)
        if (known.delivered != AS_IT_CAME or known.name != name) and not known.has_passed(cti):
            self._known[name] = known

    def _deliver_insert(self, events: _Events, row: int, known: _Known, cti: int, is_late: bool) -> _Known:
        name, until = known.name, known.until
        if isinstance(known.delivered, tuple) and known.lives_until >= cti:  # taken back too late: it lives on
            name, until = f"{name}~", max(until, known.lives_until)
        delivered: Delivered = AS_IT_CAME
        if is_late and self.late == "adjust" and events.re[row] > cti:
            events.le[row] = cti
            delivered = (cti, int(events.re[row]))
            self.adjusted += 1
        elif is_late:
            delivered = None
            self._drop(events, row)
        return _Known(int(events.re[row]), delivered, name, until)

    def _deliver_change(self, events: _Events, row: int, known: _Known | None, cti: int) -> _Known:
        came = int(events.le[row]), int(events.re[row])
        known = known or _Known(0, AS_IT_CAME, str(events.ids[row]))
        delivered = came if known.delivered == AS_IT_CAME else known.delivered
        known = known._replace(end=events.end_after(row), delivered=delivered)
        if delivered is None:
            self._drop(events, row)
            return known
        start, end = delivered
        wanted = max(int(events.re_new[row]), start)
        if wanted < cti and self.late == "adjust":
            wanted = cti
        if min(end, wanted) < cti or wanted == end:  # what was delivered stays, so later changes must start from it
            self._drop(events, row)
            return known
        self.adjusted += (start, end, wanted) != (*came, events.re_new[row])
        events.le[row], events.re[row], events.re_new[row] = start, end, wanted
        return known._replace(delivered=None if wanted <= start else (start, wanted))

    def _drop(self, events: _Events, row: int) -> None:
        events.kept[row] = False
        self.dropped += 1


def _known(end: int, delivered: Any, name: str, until: int) -> _Known:
    """As it was, after JSON."""
    return _Known(end, (delivered[0], delivered[1]) if isinstance(delivered, list) else delivered, name, until)


class _Events:
    """The columns of a chunk that change on the way."""

    def __init__(self, chunk: PhysicalStream, kinds: npt.NDArray[np.int8]) -> None:
        self.chunk, self.kinds = chunk, kinds
        self.ids = chunk.rows["id"].to_numpy(zero_copy_only=False)
        self.le, self.re = ints(chunk.rows["le"]).copy(), ints(chunk.rows["re"].fill_null(0)).copy()
        self.re_new = ints(chunk.rows["re_new"].fill_null(0)).copy()
        self.kept = kinds != CTI
        self.renamed = False

    def end_after(self, row: int) -> int:
        """Where the event of a retraction ends from then on, as its source has it."""
        return max(int(self.re_new[row]), int(self.le[row]))

    def rename(self, row: int, name: str) -> None:
        """Another id for one event."""
        if not self.renamed:
            self.ids, self.renamed = self.ids.copy(), True
        self.ids[row] = name

    @property
    def id_column(self) -> pa.Array:
        return pa.array(self.ids, pa.string()) if self.renamed else self.chunk.rows["id"].combine_chunks()

    def sync(self) -> Ints:
        """The earliest instant each event changes."""
        changed = np.minimum(self.re, np.maximum(self.re_new, self.le))
        return np.where(self.kinds == RETRACT, changed, self.le)


def _interleave(events: _Events, places: Ints, times: Ints) -> PhysicalStream:
    """The kept events, with CTIs after the rows at ``places``."""
    chunk = events.chunk
    changed = PhysicalStream.of(
        chunk.schema,
        kind=events.kinds,
        id=events.id_column,
        le=pa.array(events.le),
        re=pa.array(events.re, mask=events.kinds == CTI),
        re_new=pa.array(events.re_new, mask=events.kinds != RETRACT),
        payload=chunk.payload,
    ).filter(events.kept)
    if not len(places):
        return changed
    template = one_cti(chunk.schema, 0).rows.take(pa.array(np.zeros(len(places), np.int64)))
    marks = template.set_column(template.schema.get_field_index("le"), template.schema.field("le"), pa.array(times))
    order = np.argsort(np.concatenate([2 * np.flatnonzero(events.kept), 2 * places + 1]), kind="stable")
    return PhysicalStream(chunk.schema, pa.concat_tables([changed.rows, marks]).take(pa.array(order)))
