"""When each event of a stream arrives: the delays of the chosen ones, the repair of others, and the order they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.config import Experiment, Outage, skew_ticks
from streamproof.disorder.distributions import Distribution
from streamproof.disorder.exact_delay import Undelayed, chosen_in, least_delays
from streamproof.disorder.hashing import draws, hash_slices, uniforms
from streamproof.disorder.records import Records
from streamproof.disorder.rows import LIMIT
from streamproof.disorder.scanning import GOOD, times_of
from streamproof.disorder.units import TICKS, TimeUnit
from streamproof.errors import InputError
from streamproof.events.order import Flags, Ints

Mode: TypeAlias = Literal["as it is", "delay", "anchors", "repair", "highest reachable", "lowest reachable"]


@dataclass(frozen=True, kw_only=True)
class DelayChoice:
    """Which events change their arrival, and how."""

    mode: Mode
    seed: int
    unit: TimeUnit
    shortest: int
    longest: int
    distribution: Distribution
    per_key: bool = False
    threshold: int = 0  # for records to delay
    repaired_up_to: int | None = None  # the highest draw of the out-of-order events that are put in order
    surveys: Sequence[Undelayed] = ()


def repair_draws(ids: Ints, seed: int) -> Ints:
    """A number for each row, in an order that signed numbers keep."""
    return (draws(seed, "repair", ids) ^ np.uint64(1 << 63)).view(np.int64)


def repair_piece(store: ArrayStore, piece: int, seed: int) -> None:
    """The draws of a piece's out-of-order events, sorted."""
    late = np.asarray(store.get(f"late/{piece}"))
    store.put(f"repairs/{piece}", np.sort(repair_draws(np.asarray(store.get(f"id/{piece}"))[late], seed)))


def arrivals_in(records: Records, piece: int, choice: DelayChoice) -> tuple[Ints, Flags]:
    """When each event of a piece arrives, and whether it was delayed; the delays drawn go into the store, sorted."""
    store = records.store
    times: Ints = np.asarray(store.get(f"t/{piece}"))
    late: Flags = np.asarray(store.get(f"late/{piece}"))
    if store.has(f"g/{piece}"):
        arrivals = np.array(store.get(f"g/{piece}"))
    else:
        arrivals = np.maximum(np.maximum.accumulate(times), records.carries[piece]) if len(times) else times.copy()
    delayed = np.zeros(len(times), np.bool_)
    if choice.repaired_up_to is not None:
        repaired = late & (repair_draws(np.asarray(store.get(f"id/{piece}")), choice.seed) <= choice.repaired_up_to)
        arrivals[repaired] = times[repaired]
    if choice.threshold:
        places, delays = _delays(records, piece, choice, late)
        arrivals[places] = times[places] + delays
        delayed[places] = True
        store.put(f"drawn/{piece}", np.sort(delays))
    else:
        store.put(f"drawn/{piece}", np.zeros(0, np.int64))
    return arrivals, delayed


def _delays(records: Records, piece: int, choice: DelayChoice, late: Flags) -> tuple[Ints, Ints]:
    """The places of the chosen events among all of the piece, and their delays."""
    store = records.store
    chosen = chosen_in(store, piece, choice.threshold)
    needed = least_delays(records, piece, chosen, choice.surveys)[chosen]
    places = np.flatnonzero(~late)[chosen]
    least = np.maximum(needed, choice.shortest)
    per_ms = TICKS[choice.unit] / 1000
    if not choice.per_key:
        chances = uniforms(draws(choice.seed, "delay", np.asarray(store.get(f"id/{piece}"))[places]))
        return places, choice.distribution.draw(chances, least, choice.longest, per_ms)
    keys = np.asarray(store.get(f"key/{piece}"))[places].view(np.int64)
    chances = uniforms(draws(choice.seed, "delay", keys))
    whole = choice.distribution.draw(chances, np.full(len(places), choice.shortest), choice.longest, per_ms)
    return places, np.maximum(whole, least)  # the device's own delay, or the shortest that lets it be overtaken


def text_hash(text: str) -> int:
    """The hash of a key's text."""
    data = np.frombuffer(text.encode() + b" ", np.uint8)
    return int(hash_slices(data, np.zeros(1, np.int64), np.array([len(data) - 1]))[0])


def moment(value: int | str, unit: TimeUnit, at: str) -> int:
    """A moment of a configuration in ticks: a number in the source's unit, or an ISO instant."""
    data = np.frombuffer(str(value).encode() + b" ", np.uint8)
    status = np.zeros(1, np.uint8)
    ticks, _ = times_of(data, status, np.zeros(1, np.int64), np.array([len(data) - 1]), TICKS[unit])
    if status[0] != GOOD or abs(int(ticks[0])) > LIMIT:
        raise InputError(
            f"{value!r} is not a time", at=at, fix=f"a whole number of {unit}, or an instant like 2024-05-01T12:00:00Z"
        )
    return int(ticks[0])


def move_piece(  # noqa: PLR0917
    store: ArrayStore, piece: int, carry: int, outages: Sequence[tuple[int, int, Sequence[int]]], skews: Any, seed: int
) -> None:
    """When the events of a piece arrive: at the running maximum, moved by clocks, then held up by outages."""
    times: Ints = np.asarray(store.get(f"t/{piece}"))
    arrivals = np.maximum(np.maximum.accumulate(times), carry) if len(times) else times
    keys = np.asarray(store.get(f"key/{piece}")) if store.has(f"key/{piece}") else None
    if skews is not None and keys is not None:
        arrivals = arrivals + _skew(keys, skews, seed)
    for start, end, wanted in outages:
        down: Flags = (times >= start) & (times < end)
        if wanted and keys is not None:
            down &= np.isin(keys, np.array(wanted, np.uint64))
        arrivals = np.where(down, np.maximum(arrivals, end), arrivals)
    store.put(f"g/{piece}", arrivals)


def _skew(keys: Any, skews: Mapping[int, int] | int, seed: int) -> Ints:
    """How many ticks each event arrives later than its clock says; a clock that is ahead gives a negative number."""
    if isinstance(skews, int):
        drawn = draws(seed, "skew", keys.astype(np.int64))
        return (drawn % np.uint64(2 * skews + 1)).astype(np.int64) - skews
    found = np.zeros(len(keys), np.int64)
    for key, ticks in skews.items():
        found[keys == np.uint64(key)] = ticks
    return found


def moves_of(experiment: Experiment, unit: TimeUnit, at: str) -> tuple[list[tuple[int, int, list[int]]], Any]:
    """Outages and clocks of an experiment in ticks, keys by their hash."""
    outages = [_outage(outage, unit, at) for outage in experiment.outages]
    skews: Any = experiment.skews
    if isinstance(skews, Mapping):
        return outages, {text_hash(name): skew_ticks(ms, unit, at) for name, ms in skews.items()}
    return outages, None if skews is None else skew_ticks(skews, unit, at)


def _outage(outage: Outage, unit: TimeUnit, at: str) -> tuple[int, int, list[int]]:
    start, end = moment(outage.start, unit, at), moment(outage.end, unit, at)
    if end < start:
        raise InputError(f"an outage ends at {outage.end}, before it starts", at=at, fix="give from <= to")
    return start, end, [text_hash(name) for name in outage.keys]
