"""Measuring facets back: what a stream is like, whoever made it.

>>> from streamproof.events.stream import Cti, Insert, Retract
>>> stream = PhysicalStream.from_events([
...     Insert("a", 1, 9, {}), Insert("b", 7, 8, {}), Insert("c", 4, 6, {}), Retract("a", 1, 9, 5, {}), Cti(4),
... ])
>>> figures = describe(stream)
>>> figures.late, figures.most_late, figures.shrunk, figures.cti_lag, figures.most_alive
(1, 3, 1, 3, 2)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np

from streamproof.arguments import door
from streamproof.errors import InputError
from streamproof.events.history import History
from streamproof.events.order import Flags, Ints, ints, one_array
from streamproof.events.physical import to_history
from streamproof.events.schema import LE, RE, W
from streamproof.events.stream import CTI, INSERT, RETRACT, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured. Times are in ticks; where nothing finite could be measured, the figure is None."""

    rows: int
    inserts: int
    retractions: int
    ctis: int
    late: int  # inserts that start before an insert that came earlier
    most_late: int | None  # the greatest distance between a late start and the latest start before it
    shrunk: int
    extended: int
    taken_back: int  # full retractions
    longest_chain: int  # the most retractions under one id
    cti_lag: int | None  # the most that a CTI is behind the latest start before it
    mean_alive: float | None  # events alive at a time, on average from the first to the last finite endpoint
    most_alive: int
    copies: int | None  # events of the history that equal another one; None if the stream is not legal
    shortest: int | None  # the least and the greatest length of an event of the history
    longest: int | None
    endless: int | None  # events of the history that never end
    without_start: int | None

    @property
    def late_fraction(self) -> Fraction:
        """The share of late inserts."""
        return Fraction(self.late, self.inserts or 1)

    @property
    def retraction_ratio(self) -> Fraction:
        """Retractions per insert."""
        return Fraction(self.retractions, self.inserts or 1)

    def as_dict(self) -> dict[str, int | float | None]:
        """All figures as plain data."""
        shares = {"late_fraction": float(self.late_fraction), "retraction_ratio": float(self.retraction_ratio)}
        return {**asdict(self), **shares}


@door
def describe(stream: PhysicalStream | Iterable[PhysicalStream], *, history: bool = True) -> Figures:
    """The facets of a stream, or of its chunks one after the other, in figures.

    ``history=False`` leaves out the figures of the history, which take the most time.
    """
    chunks = [stream] if isinstance(stream, PhysicalStream) else list(stream)
    whole = PhysicalStream.concat(chunks)
    kind, le, re = whole.kinds, ints(whole.rows["le"]), ints(whole.rows["re"])
    after = np.maximum(ints(whole.rows["re_new"]), le)
    retract = kind == RETRACT
    late, most_late, lag = _lateness(kind, le)
    mean_alive, most_alive = _alive(kind, le, re, after)
    copies, shortest, longest, endless, without_start = _history(whole) if history else [None] * 5
    return Figures(
        rows=len(whole), inserts=int(np.sum(kind == INSERT)), retractions=int(retract.sum()),
        ctis=int(np.sum(kind == CTI)), late=late, most_late=most_late,
        shrunk=int(np.sum(retract & (after < re) & (after > le))), extended=int(np.sum(retract & (after > re))),
        taken_back=int(np.sum(retract & (after == le))), longest_chain=_longest_chain(whole, retract), cti_lag=lag,
        mean_alive=mean_alive, most_alive=most_alive, copies=copies, shortest=shortest, longest=longest,
        endless=endless, without_start=without_start,
    )  # fmt: skip


def _lateness(kind: np.ndarray[tuple[int], np.dtype[np.int8]], le: Ints) -> tuple[int, int | None, int | None]:
    """How many inserts are late, by how much at most, and how far CTIs are behind at most."""
    latest = np.maximum.accumulate(np.where(kind == INSERT, le, BEGINNING))
    late = (kind == INSERT) & (le < latest)
    measured = late & (le > BEGINNING)
    promised = (kind == CTI) & (le > BEGINNING) & (latest > BEGINNING)
    return int(late.sum()), _most((latest - le)[measured]), _most(np.maximum(latest - le, 0)[promised])


def _most(numbers: Ints) -> int | None:
    return int(numbers.max()) if len(numbers) else None


def _longest_chain(stream: PhysicalStream, retract: Flags) -> int:
    ids = ints(one_array(stream.rows["id"]).dictionary_encode().indices, null=-1)[retract]
    return int(np.bincount(ids).max(initial=0)) if len(ids) else 0


def _alive(
    kind: np.ndarray[tuple[int], np.dtype[np.int8]], le: Ints, re: Ints, after: Ints
) -> tuple[float | None, int]:
    """How many events are alive at a time, on average and at most, once everything has arrived."""
    insert, retract = kind == INSERT, kind == RETRACT
    when = np.concatenate([le[insert], re[insert], re[retract], after[retract]])
    step = np.repeat([1, -1, 1, -1], [insert.sum(), insert.sum(), retract.sum(), retract.sum()])
    order = np.argsort(when, kind="stable")
    when, step = when[order], step[order]
    last = np.append(when[1:] != when[:-1], True)[: len(when)]  # only where all changes of an instant are counted
    when, alive = when[last], np.cumsum(step)[last]
    moved = np.diff(alive, prepend=0) != 0  # not where an end was believed that is none
    when, alive = when[moved], alive[moved]
    if not len(when):
        return None, 0
    finite = (when > BEGINNING) & (when < FOREVER)
    ends = when[finite]
    most = int(alive.max(initial=0))
    if len(ends) < 2:
        return None, most
    area = float(np.sum(alive[finite][:-1].astype(np.float64) * np.diff(ends)))
    return area / float(ends[-1] - ends[0]), most


def _history(stream: PhysicalStream) -> tuple[int | None, int | None, int | None, int | None, int | None]:
    """Copies, shortest and longest length, events without an end and without a start."""
    try:
        history = to_history(stream)
    except InputError:  # not a legal stream: it adds up to nothing
        return None, None, None, None, None
    le, re, weight = (ints(history.rows[place]) for place in (LE, RE, W))
    finite = (re < FOREVER) & (le > BEGINNING)
    length = (re - le)[finite]
    shortest = int(length.min()) if len(length) else None
    endless, without_start = int(weight[re == FOREVER].sum()), int(weight[le == BEGINNING].sum())
    return _copies(history), shortest, _most(length), endless, without_start


def _copies(history: History) -> int:
    return len(history) - int(history.rows.num_rows)
