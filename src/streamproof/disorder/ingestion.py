"""When each event of a stream arrives: the delays of the chosen ones, the repair of others, and the order they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from streamproof.disorder.distributions import Distribution
from streamproof.disorder.hashing import draws, uniforms
from streamproof.disorder.records import Records
from streamproof.disorder.select import Undelayed, chosen_in, least_delays
from streamproof.disorder.shelf import Shelf
from streamproof.disorder.units import TICKS, TimeUnit
from streamproof.events.order import Flags, Ints

Mode: TypeAlias = Literal["as it is", "delay", "anchors", "repair", "highest reachable", "lowest reachable"]


@dataclass(frozen=True, kw_only=True)
class Choice:
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


def repair_piece(shelf: Shelf, piece: int, seed: int) -> None:
    """The draws of a piece's out-of-order events, sorted."""
    late = np.asarray(shelf.get(f"late/{piece}"))
    shelf.put(f"repairs/{piece}", np.sort(repair_draws(np.asarray(shelf.get(f"id/{piece}"))[late], seed)))


def arrivals_in(records: Records, piece: int, choice: Choice) -> tuple[Ints, Flags]:
    """When each event of a piece arrives, and whether it was delayed; the delays drawn go to the shelf, sorted."""
    shelf = records.shelf
    times: Ints = np.asarray(shelf.get(f"t/{piece}"))
    late: Flags = np.asarray(shelf.get(f"late/{piece}"))
    if shelf.has(f"g/{piece}"):
        arrivals = np.array(shelf.get(f"g/{piece}"))
    else:
        arrivals = np.maximum(np.maximum.accumulate(times), records.carries[piece]) if len(times) else times.copy()
    delayed = np.zeros(len(times), np.bool_)
    if choice.repaired_up_to is not None:
        repaired = late & (repair_draws(np.asarray(shelf.get(f"id/{piece}")), choice.seed) <= choice.repaired_up_to)
        arrivals[repaired] = times[repaired]
    if choice.threshold:
        places, delays = _delays(records, piece, choice, late)
        arrivals[places] = times[places] + delays
        delayed[places] = True
        shelf.put(f"drawn/{piece}", np.sort(delays))
    else:
        shelf.put(f"drawn/{piece}", np.zeros(0, np.int64))
    return arrivals, delayed


def _delays(records: Records, piece: int, choice: Choice, late: Flags) -> tuple[Ints, Ints]:
    """The places of the chosen events among all of the piece, and their delays."""
    shelf = records.shelf
    chosen = chosen_in(shelf, piece, choice.threshold)
    needed = least_delays(records, piece, chosen, choice.surveys)[chosen]
    places = np.flatnonzero(~late)[chosen]
    least = np.maximum(needed, choice.shortest)
    per_ms = TICKS[choice.unit] / 1000
    if not choice.per_key:
        chances = uniforms(draws(choice.seed, "delay", np.asarray(shelf.get(f"id/{piece}"))[places]))
        return places, choice.distribution.draw(chances, least, choice.longest, per_ms)
    keys = np.asarray(shelf.get(f"key/{piece}"))[places].view(np.int64)
    chances = uniforms(draws(choice.seed, "delay", keys))
    whole = choice.distribution.draw(chances, np.full(len(places), choice.shortest), choice.longest, per_ms)
    return places, np.maximum(whole, least)  # the device's own delay, or the shortest that lets it be overtaken
