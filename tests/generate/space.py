"""The whole space of facets: draws from it, and a covering array that holds every possible pair of values."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.generate.facets import (
    CHANGES,
    DISORDERS,
    DUPLICATES,
    DURATIONS,
    KEYS,
    LIVELINESS,
    OVERLAPS,
    PATTERNS,
    SHAPES,
    SHARES,
    SKEWS,
    Facets,
    contradiction,
)

Words = dict[str, Any]
Case = tuple[tuple[str, int], ...]

EVERY_TYPE = Schema.of(
    {
        "k": "string", "v": "int64", "f": "float64", "d": "decimal(10, 2)", "wide": "decimal(38, 5)", "b": "bool",
        "day": "date", "at": "timestamp", "n": "null", "id": "int64",
    },
    unit="ms",
)  # fmt: skip


def own_pattern() -> Iterator[tuple[int, int]]:
    """Lifetimes of every sort, not in order of time, with ties and both infinities."""
    yield BEGINNING, FOREVER
    yield BEGINNING, 4
    for n in range(10_000):
        yield 50 - n % 40, 51 + n % 7
        yield n, n + 1
        yield n // 3, FOREVER


SPACE: dict[str, list[Any]] = {
    "shape": list(SHAPES),
    "duration": [None, *DURATIONS, 7, (1, 3)],
    "overlap": [None, *OVERLAPS, 2.5],
    "pattern": [*PATTERNS, own_pattern],
    "liveliness": [*LIVELINESS, 3],
    "disorder": [*DISORDERS, 0.3, (0.9, 5)],
    "speculation": [*CHANGES, ("mixed", 1.0), ("chains", 0.6), ("full", 1.0)],
    "duplicates": [*DUPLICATES, 0.4],
    "keys": [*KEYS, 1],
    "skew": [*SKEWS, 1.5],
    "nulls": [*SHARES, 0.25],
    "boundary": [*SHARES, 1.0],
    "start": [0, -1000, 2**50],
}
NAMES = list(SPACE)


def possible(words: Words) -> bool:
    """Whether some stream is like this; the pattern above has more than points."""
    return contradiction(**words) is None and (words.get("shape"), words.get("pattern")) != ("point", own_pattern)


def facet_words() -> st.SearchStrategy[Words]:
    """Words that some stream has."""
    drawn = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in SPACE.items()})
    return drawn.map(_repaired)


def _repaired(words: Words) -> Words:
    """The same words with the fewest put back to their defaults, so that they do not contradict each other."""
    words = dict(words)
    for name in ("overlap", "duration", "speculation", "skew", "pattern"):
        if possible(words):
            break
        words[name] = getattr(Facets(), name)
    assert possible(words), words
    return words


@cache
def covering() -> list[Words]:
    """Cases that hold every pair of values that can stand together: greedily few."""
    chance = random.Random(7)
    missing = {pair for pair in _pairs() if possible(_words(pair))}
    cases = []
    while missing:
        first = min(missing)
        best = max((_completed(first, chance) for _ in range(6)), key=lambda case: _gain(case, missing))
        cases.append(_words(best))
        missing -= set(combinations(best, 2))
    return cases


def _pairs() -> Iterator[Case]:
    for a, b in combinations(NAMES, 2):
        for i in range(len(SPACE[a])):
            yield from (((a, i), (b, j)) for j in range(len(SPACE[b])))


def _words(case: Case) -> Words:
    return {name: SPACE[name][index] for name, index in case}


def _gain(case: Case, missing: set[Case]) -> int:
    return len(missing & set(combinations(case, 2)))


def _completed(pair: Case, chance: random.Random) -> Case:
    """The pair with values for all other facets, as long as they do not contradict it."""
    chosen = dict(pair)
    others = [name for name in NAMES if name not in chosen]
    chance.shuffle(others)
    for name in others:
        places = list(range(len(SPACE[name])))
        chance.shuffle(places)
        chosen[name] = next(n for n in places if possible(_words(tuple({**chosen, name: n}.items()))))
    return tuple((name, chosen[name]) for name in NAMES)
