"""Random streams with ties and disorder, and the slow and obvious way to count."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np

from streamproof.disorder.array_store import MemoryStore
from streamproof.disorder.generate import split_all
from streamproof.disorder.records import LOWEST, Records
from streamproof.disorder.runner import Here
from streamproof.events.order import Ints


def late_events(times: Ints) -> int:
    """How many events are older than one that came before them."""
    count, highest = 0, None
    for time in times.tolist():
        if highest is not None and time < highest:
            count += 1
        else:
            highest = time
    return count


def random_times(draw: random.Random, most: int) -> Ints:
    """Rising times with ties and gaps, some of them moved back."""
    count, span = draw.randint(1, most), draw.choice([1, 3, 10, 50, 1000, 10**6])
    times = sorted(draw.randint(0, span) for _ in range(count))
    for _ in range(draw.choice([0, 0, 1, 5, most // 3])):
        place = draw.randrange(count)
        times[place] -= draw.randint(0, span)
    return np.array(times, np.int64)


def random_arrivals(draw: random.Random, times: Ints) -> tuple[Ints, Ints]:
    """The same events with some arrivals moved, in the order in which they then arrive."""
    arrivals = np.maximum.accumulate(times)
    for _ in range(draw.randint(1, 5)):
        arrivals[draw.randrange(len(times))] += draw.randint(-5, 50)
    order = np.argsort(arrivals, kind="stable")
    return times[order], arrivals[order]


def in_store(draw: random.Random, times: Ints, arrivals: Ints | None = None) -> Records:
    """A stream in pieces, some of them perhaps empty."""
    store, count = MemoryStore(), len(times)
    cuts = [0, *sorted(draw.randint(0, count) for _ in range(draw.randint(0, 4))), count]
    carries, highest = [], LOWEST
    for piece, (start, end) in enumerate(pairwise(cuts)):
        store.put(f"t/{piece}", times[start:end])
        store.put(f"id/{piece}", np.arange(start, end))
        if arrivals is not None:
            store.put(f"g/{piece}", arrivals[start:end])
        carries.append(highest)
        highest = max([highest, *times[start:end].tolist()])
    return split_all(store, Here(), carries)
