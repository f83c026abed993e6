"""The rules of a physical stream, checked as it arrives.

>>> from streamproof.events.event import Cti, Insert, Retract
>>> stream = PhysicalStream.from_events([Insert("a", 1, 20, {}), Cti(10), Retract("a", 1, 20, 9, {})])
>>> Validator().check(stream)
Traceback (most recent call last):
    ...
streamproof.errors.InputError: a change from 9 on, but the CTI before it promised no change before 10
  at: event 2 (retract a [1, 20) → 9); event a was [1, 20), last CTI 10
  fix: send the event before its CTI, delay CTIs (advance_time), or let it go: policy drop or dead_letter (--on-error)
>>> lenient = Validator(policy="drop")
>>> len(lenient.check(stream)), lenient.counts
(2, {'cti_violation': 1})

Every row is compared with the row before it of the same id, all at once; only ids with a violation are walked in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.arguments import told
from streamproof.errors import ErrorName, InputError
from streamproof.events.event import Cti, Event, Insert
from streamproof.events.ids import IdIndex
from streamproof.events.order import Flags, Ints, Words, ints, one_array, pack, pieces_of
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI, INSERT, RETRACT, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.thresholds import INDEXED_IDS, LIVE_CHUNKS, LIVE_EVENTS

Policy: TypeAlias = Literal["fail", "drop", "dead_letter"]
Shape: TypeAlias = Literal["point", "edge", "interval"]
Order: TypeAlias = Literal["by_le", "insert_first"]
Rule: TypeAlias = Literal[
    "empty_lifetime", "cti_violation", "cti_backwards", "duplicate_id", "unmatched_retraction", "shape", "order"
]
RULES: Final[tuple[Rule, ...]] = Rule.__args__  # type: ignore[attr-defined]  # the words of the Literal, in order of checking
_OK: Final = len(RULES)
_CODE: Final = {rule: code for code, rule in enumerate(RULES)}
Kinds: TypeAlias = npt.NDArray[np.int8]
Verdicts: TypeAlias = npt.NDArray[np.int8]
"""Per row the number of the first rule that it breaks, or `_OK`."""

_ROUTE: Final = ", or let it go: policy drop or dead_letter (--on-error)"
_FIXES: Final[dict[Rule, str]] = {
    "empty_lifetime": "an insert needs re > le; a point event at t is [t, t + 1)",
    "cti_violation": "send the event before its CTI, delay CTIs (advance_time)" + _ROUTE,
    "cti_backwards": "CTIs never decrease; merge sources with union, which takes the least CTI",
    "duplicate_id": "give every event an id of its own; an id is free again after a full retraction" + _ROUTE,
    "unmatched_retraction": "a retraction repeats id, le, payload and the current re of its event" + _ROUTE,
    "shape": "declare shape=None or interval, or change the lifetimes (to_point, alter_duration)",
    "order": "sort the inserts by le, or declare order=None",
}


class Violation(NamedTuple):
    """A rule that an event breaks."""

    name: ErrorName
    rule: Rule
    position: int  # in order of arrival, counted from 0 over all chunks
    event: str

    def __str__(self) -> str:
        return f"{self.name}: event {self.position} ({self.event})"


class _Chunk(NamedTuple):
    """What the rules look at, per row: first the live events as inserts, then the chunk."""

    kind: npt.NDArray[np.int8]
    id: Ints  # the number of the id; −1 for CTIs
    le: Ints
    re: Ints
    after: Ints  # the end once the row is applied; at most le if it is gone
    payload: Sequence[Words]
    cti: Ints  # the last CTI before the row
    old: int  # how many rows are live events of earlier chunks

    @property
    def gone(self) -> Flags:
        return self.after <= self.le


class Validator:
    """Checks chunks one after the other and lets the legal events through.

    ``policy`` says what happens to the others: ``fail`` raises an error for the first, ``drop`` counts them,
    ``dead_letter`` keeps them too. ``shape`` and ``order`` are what the stream's owner declares about it.

    Law: how a stream is cut into chunks does not matter.
    """

    @told
    def __init__(
        self, *, policy: Policy = "fail", shape: Shape | None = None, order: Order | None = None, keep: int = 1000
    ) -> None:
        _refuse_word("policy", policy, ("fail", "drop", "dead_letter"))
        _refuse_word("shape", shape, (None, "point", "edge", "interval"))
        _refuse_word("order", order, (None, "by_le", "insert_first"))
        self.policy, self.shape, self.order = policy, shape, order
        self.counts: dict[ErrorName, int] = {}  # how many events broke a rule, by the error's name
        self.violations: list[Violation] = []  # the first ``keep`` of them
        self.rows_seen = 0
        self.cti = BEGINNING  # the last CTI
        self.forgetful = False  # True: no id comes twice, if there are any, and nothing is retracted or remembered
        self._keep = keep
        self._live: PhysicalStream | None = None  # live events as inserts with their current end, and some that ended
        self._index: IdIndex | None = None  # of their ids, as long as chunks are small beside them
        self._forget_at = LIVE_EVENTS.now  # how many of these there may be before those that ended are looked for
        self._latest = BEGINNING  # the greatest le of an insert
        self._dead: list[PhysicalStream] = []

    @property
    def dead_letters(self) -> PhysicalStream:
        """The events that were not let through, under the policy ``dead_letter``."""
        return PhysicalStream.concat(self._dead, schema=Schema() if self._live is None else self._live.schema)

    def take_dead_letters(self) -> PhysicalStream:
        """The `dead_letters` since the last time; they are forgotten here."""
        taken, self._dead = self.dead_letters, []
        return taken

    @property
    def live(self) -> int:
        """How many events are remembered."""
        return 0 if self.remembered is None else len(self.remembered)

    @property
    def remembered(self) -> PhysicalStream | None:
        """The events that may still change, as inserts with their current end; None before the first chunk."""
        if self._live is not None:
            self._live = self._lasting(self._live)
        return self._live

    def save(self) -> dict[str, object]:
        """What a new one needs to continue, beside what is `remembered`: plain data, fit for JSON."""
        return {"cti": self.cti, "rows_seen": self.rows_seen, "latest": self._latest, "counts": dict(self.counts)}

    @told
    def restore(
        self, state: Mapping[str, Any], remembered: PhysicalStream | None, *, dead: PhysicalStream | None = None
    ) -> None:
        """The inverse of `save` and `remembered`, and of `dead_letters` where they are kept."""
        self.cti, self.rows_seen, self._latest = state["cti"], state["rows_seen"], state["latest"]
        self.counts, self._live, self._index = dict(state["counts"]), remembered, None
        self._dead = [] if dead is None or not len(dead) else [dead]

    @property
    def claim(self) -> dict[str, object]:
        """What is declared about the stream: on this depends what is legal, and what is remembered."""
        return {"shape": self.shape, "order": self.order, "ids_made_on_reading": self.forgetful}

    @told
    def check(self, chunk: PhysicalStream) -> PhysicalStream:
        """The legal part of the next chunk. After an error it is as if the chunk had not come."""
        known = self._live
        before = self._recall(chunk)
        both = PhysicalStream.concat([before, chunk])
        rows = _columns(both, len(before), self.cti)
        verdicts = self._judge(rows)
        bad = verdicts[rows.old :] != _OK
        if bad.any():
            self._live = known if self.policy == "fail" else self._live  # an index that knows more does no harm
            self._report(chunk, rows, verdicts)
        legal = chunk.filter(~bad)
        self._remember(both, rows, verdicts == _OK)
        self.rows_seen += len(chunk)
        return legal

    def _recall(self, chunk: PhysicalStream) -> PhysicalStream:
        """The live events that the chunk speaks of; they leave the state until `_remember`."""
        self._live = live = PhysicalStream.empty(chunk.schema) if self._live is None else self._live
        ids = one_array(chunk.rows["id"])
        if len(live) < INDEXED_IDS.now * len(chunk):
            self._index = None
        else:
            self._index = self._index or IdIndex(one_array(live.rows["id"]))
            ids = self._index.among(ids)
        spoken = pc.is_in(live.rows["id"], value_set=ids).to_numpy() if len(ids) else np.zeros(0, np.bool_)
        if not spoken.any():
            return PhysicalStream.empty(chunk.schema)
        self._live = live.filter(~spoken)
        return self._lasting(live.filter(spoken))

    def _lasting(self, live: PhysicalStream) -> PhysicalStream:
        """Live events without those that ended before the last CTI: they can change no more."""
        lasting = ints(live.rows["re"]) >= self.cti
        return live if lasting.all() else live.filter(lasting)

    def _judge(self, rows: _Chunk) -> Verdicts:
        """What each row is guilty of. The first guilty row is exact at once, the others after a walk."""
        stateless = _timing(rows)
        verdicts = np.minimum(stateless, self._shape(rows))
        followed = rows.id >= 0 if self.forgetful else True  # without ids nothing speaks of an event again
        alive = np.flatnonzero((stateless == _OK) & (rows.kind != CTI) & followed)
        order = alive[np.argsort(rows.id[alive], kind="stable")]
        verdicts[order] = np.minimum(verdicts[order], _matching(rows, order))
        verdicts = np.minimum(verdicts, self._by_le(rows, verdicts))
        guilty = (verdicts != _OK) & (stateless == _OK)
        if guilty.any() and self.policy != "fail":
            walk_all = self.order == "by_le"
            ids = np.unique(rows.id[guilty])
            walked = order if walk_all else order[np.isin(rows.id[order], ids)]
            self._walk(rows, np.sort(walked), verdicts)
        return verdicts

    def _shape(self, rows: _Chunk) -> Verdicts:
        if self.shape == "point":
            bad = ((rows.kind == INSERT) & (rows.re != rows.le + 1)) | ((rows.kind == RETRACT) & ~rows.gone)
        elif self.shape == "edge":
            bad = (rows.kind != CTI) & (rows.re != FOREVER)
        else:
            bad = np.zeros(len(rows.kind), np.bool_)
        bad[: rows.old] = False
        return _verdicts(bad, "shape")

    def _by_le(self, rows: _Chunk, verdicts: Verdicts) -> Verdicts:
        if self.order != "by_le":
            return np.full(len(verdicts), _OK, np.int8)
        counted = (rows.kind == INSERT) & (verdicts == _OK)
        counted[: rows.old] = False
        starts = np.where(counted, rows.le, self._latest)
        latest = np.maximum.accumulate(np.maximum(starts, self._latest))
        return _verdicts(counted & (rows.le < latest), "order")

    def _walk(self, rows: _Chunk, walked: Ints, verdicts: Verdicts) -> None:
        """Judge rows one by one, so that a row that is not let through does not influence the next."""
        live: dict[int, tuple[int, int, tuple[int, ...]]] = {}
        latest = self._latest
        shape = self._shape(rows)
        parts = [part[walked].tolist() for part in (rows.kind, rows.id, rows.le, rows.re, rows.after, rows.cti)]
        payloads = zip(*(word[walked].tolist() for word in rows.payload), strict=True) if rows.payload else iter(())
        for index, kind, number, le, re, after, cti in zip(walked.tolist(), *parts, strict=True):
            payload = next(payloads, ())
            known = live.get(number)
            verdict = _OK
            if kind == INSERT and known is not None and known[1] >= cti:
                verdict = _CODE["duplicate_id"]
            elif kind == RETRACT and known != (le, re, payload):
                verdict = _CODE["unmatched_retraction"]
            elif shape[index] != _OK:
                verdict = _CODE["shape"]
            elif self.order == "by_le" and kind == INSERT and index >= rows.old and le < latest:
                verdict = _CODE["order"]
            verdicts[index] = verdict
            if verdict == _OK:
                latest = max(latest, le) if kind == INSERT and index >= rows.old else latest
                if after > le:
                    live[number] = (le, after, payload)
                else:
                    live.pop(number, None)

    def _remember(self, both: PhysicalStream, rows: _Chunk, legal: Flags) -> None:
        """Keep the last legal row of every id, as an insert with its current end, unless it can change no more."""
        times = rows.le[legal & (rows.kind == CTI)]
        self.cti = max(self.cti, int(times.max(initial=BEGINNING)))
        fresh = legal & (rows.kind == INSERT)
        fresh[: rows.old] = False
        self._latest = max(self._latest, int(rows.le[fresh].max(initial=BEGINNING)))
        if self.forgetful:
            return
        last = np.full(int(rows.id.max(initial=-1)) + 1, -1)
        of_events = np.flatnonzero(legal & (rows.kind != CTI))
        last[rows.id[of_events]] = of_events  # the last assignment wins, and rows are in order of arrival
        last = np.sort(last[last >= 0])
        kept = last[~rows.gone[last] & (rows.after[last] >= self.cti)]
        table = both.rows.take(pa.array(kept))
        table = table.set_column(0, table.schema.field(0), pa.array(np.full(len(kept), INSERT, np.int8)))
        table = table.set_column(3, table.schema.field(3), pa.array(rows.after[kept]))
        table = table.set_column(4, table.schema.field(4), pa.nulls(len(kept), pa.int64()))
        self._live = self._settled(PhysicalStream(both.schema, table))

    def _settled(self, changed: PhysicalStream) -> PhysicalStream:
        """The live events after a chunk. What ended before the CTI goes now and then: small chunks cost little."""
        assert self._live is not None
        live = PhysicalStream.concat([self._live, changed])
        if self._index is not None:
            self._index.add(one_array(changed.rows["id"]))
        if len(live) >= self._forget_at:
            live = self._lasting(live)
            self._forget_at, self._index = max(LIVE_EVENTS.now, 2 * len(live)), None
        many = live.rows.num_columns and live.rows.column(0).num_chunks > LIVE_CHUNKS.now
        return PhysicalStream(live.schema, live.rows.combine_chunks()) if many else live

    def _report(self, chunk: PhysicalStream, rows: _Chunk, verdicts: Verdicts) -> None:
        """Raise for the first violation, or count them all."""
        guilty = np.flatnonzero(verdicts != _OK)
        if self.policy == "fail":
            raise self._error(chunk, rows, int(guilty[0]), RULES[verdicts[guilty[0]]])
        counted = Counter(RULES[code] for code in verdicts[guilty].tolist())
        for rule, count in counted.items():
            self.counts[_name(rule)] = self.counts.get(_name(rule), 0) + count
        for index in guilty[: max(0, self._keep - len(self.violations))].tolist():
            rule, place = RULES[verdicts[index]], index - rows.old
            event = str(chunk.event(place))
            self.violations.append(Violation(_name(rule), rule, self.rows_seen + place, event))
        if self.policy == "dead_letter":
            self._dead.append(chunk.filter(verdicts[rows.old :] != _OK))

    def _error(self, chunk: PhysicalStream, rows: _Chunk, index: int, rule: Rule) -> InputError:
        place = index - rows.old
        event = chunk.event(place)
        at = f"event {self.rows_seen + place} ({event})"
        before = np.flatnonzero((rows.id[:index] == rows.id[index]) & (rows.id[index] >= 0))
        previous = _previous(rows, int(before[-1]), event) if len(before) else None
        last = int(rows.cti[index])
        facts = [previous] if previous else []
        facts += [f"last CTI {show_tick(last)}"] if last > BEGINNING else []
        text = _what(rule, event, last=last, known=previous is not None, shape=self.shape)
        return InputError(
            text, at="; ".join([at, ", ".join(facts)] if facts else [at]), fix=_FIXES[rule], name=_name(rule)
        )


def _refuse_word(setting: str, word: str | None, known: Sequence[str | None]) -> None:
    if word not in known:
        raise InputError(f"unknown {setting} {word!r}", fix=f"use one of {', '.join(map(str, known))}")


def _name(rule: Rule) -> ErrorName:
    return "bad_input" if rule in ("shape", "order") else rule  # type: ignore[return-value]  # the other rules are error names


def _verdicts(bad: Flags, rule: Rule) -> Verdicts:
    return np.where(bad, _CODE[rule], _OK).astype(np.int8)


def _columns(both: PhysicalStream, old: int, cti: int) -> _Chunk:
    kind, le = both.kinds, ints(both.rows["le"])
    re = ints(both.rows["re"])
    after = np.where(kind == RETRACT, ints(both.rows["re_new"]), re)
    before = cti_before(kind, le, cti)
    before[:old] = BEGINNING
    ids = ints(one_array(both.rows["id"]).dictionary_encode().indices, null=-1)
    return _Chunk(kind, ids, le, re, after, pack(pieces_of(both.payload)), before, old)


def cti_before(kind: Kinds, le: Ints, cti: int) -> Ints:
    """The CTI that stands before each row, where ``cti`` stands before the first."""
    marks = np.maximum.accumulate(np.where(kind == CTI, np.maximum(le, cti), cti))
    return np.concatenate([[cti], marks])[:-1]


def sync_times(kind: Kinds, le: Ints, re: Ints, after: Ints) -> Ints:
    """From when on each row changes history; of a CTI, its own time."""
    return np.where(kind == RETRACT, np.minimum(re, np.maximum(after, le)), le)


def _timing(rows: _Chunk) -> Verdicts:
    """The rules that look at one row and the last CTI only."""
    empty = (rows.kind == INSERT) & rows.gone
    early = sync_times(rows.kind, rows.le, rows.re, rows.after) < rows.cti
    verdicts = np.minimum(_verdicts(early & (rows.kind == CTI), "cti_backwards"), _verdicts(empty, "empty_lifetime"))
    return np.minimum(verdicts, _verdicts(early & (rows.kind != CTI), "cti_violation"))


def _matching(rows: _Chunk, order: Ints) -> Verdicts:
    """The rules that look at the row before of the same id; rows are given by id, then in order of arrival."""
    verdicts = np.full(len(order), _OK, np.int8)
    if not len(order):
        return verdicts
    kind, number = rows.kind[order], rows.id[order]
    previous = np.roll(order, 1)
    known = np.concatenate([[False], number[1:] == number[:-1]]) & ~rows.gone[previous]
    same = known & (rows.le[order] == rows.le[previous]) & (rows.re[order] == rows.after[previous])
    for word in rows.payload:
        same &= word[order] == word[previous]
    live = known & (rows.after[previous] >= rows.cti[order])  # what ended before the CTI is forgotten
    verdicts[(kind == INSERT) & live] = _CODE["duplicate_id"]
    verdicts[(kind == RETRACT) & ~same] = _CODE["unmatched_retraction"]
    return verdicts


def _previous(rows: _Chunk, index: int, event: Event) -> str:
    """What the id of the event stood for before it."""
    le, re = show_tick(int(rows.le[index])), show_tick(int(rows.after[index]))
    name = event.id if not isinstance(event, Cti) else ""
    return f"event {name} was retracted" if rows.gone[index] else f"event {name} was [{le}, {re})"


def _what(rule: Rule, event: Event, *, last: int, known: bool, shape: Shape | None) -> str:
    """The violation in words."""
    when = show_tick(last)
    if isinstance(event, Cti):
        return f"the CTI goes back from {when} to {show_tick(event.t)}"
    if rule == "cti_violation":
        sync = event.le if isinstance(event, Insert) else min(event.re, max(event.re_new, event.le))
        return f"a change from {show_tick(sync)} on, but the CTI before it promised no change before {when}"
    texts: dict[Rule, str] = {
        "empty_lifetime": "an insert without a lifetime",
        "duplicate_id": f'the id "{event.id}" belongs to a live event',
        "unmatched_retraction": f'the retraction does not match what "{event.id}" is now'
        if known
        else f'the retraction names "{event.id}", but no such event is live',
        "shape": f"the stream is declared to have {shape} events",
        "order": "the stream is declared to be ordered by le, but the insert starts before an earlier one",
    }
    return texts[rule]
