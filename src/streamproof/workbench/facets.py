"""The facets of a scenario's data: words, or holes, and the small streams that are made from them.

Words stand for smaller numbers here than in `streamproof.generate`: a case has a handful of events, so that an event
is long when it outlasts the others, and a CTI is lazy when it comes after four of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from streamproof.errors import PlanError, did_you_mean
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.generate import Facets, contradiction, generated
from streamproof.workbench.case import CaseStream, Row
from streamproof.workbench.draw.choices import Choices
from streamproof.workbench.draw.dense import HABITS, random_stream
from streamproof.workbench.holes import any as anything
from streamproof.workbench.holes import options_of

WORDS: Final[dict[str, tuple[Any, ...]]] = {
    "shape": ("interval", "point", "edge"),
    "duration": ("short", "point", "long", "infinite"),
    "overlap": ("medium", "low", "high"),
    "pattern": ("random", "disjoint", "staggered", "back_to_back", "duplicates", *HABITS),
    "liveliness": ("steady", "never", "final", "lazy", "eager"),
    "disorder": ("in_order", "slightly", "out_of_order", "highly"),
    "speculation": ("none", "shrink", "extend", "full", "chains", "mixed"),
    "duplicates": ("none", "some", "all"),
    "keys": ("few", "some", "unique"),
    "skew": ("uniform", "zipf"),
    "nulls": ("none", "some", "many"),
    "boundary": ("none", "some", "many"),
    "start": ("zero", "negative"),
    "fragment": ("none", "speculative", "duplicates", "both"),
}
"""Every facet with its words, the usual one first. Patterns from ``dense`` on pack all into a few ticks."""

MANY: Final = 10_000
"""A stream of so many events takes the ways of code for many."""

LIVES: Final = ("shape", "duration", "pattern", "speculation")
_SMALL: Final[dict[str, dict[Any, Any]]] = {
    "duration": {"short": (2, 6), "long": (12, 30)},
    "liveliness": {"lazy": 4, "steady": 2},
    "disorder": {"slightly": (0.2, 1), "out_of_order": (0.3, 3), "highly": (0.6, 8)},
    "overlap": {"low": 0.5, "medium": 2, "high": 8},
    "keys": {"few": 2, "some": 3},
    "start": {"zero": 0, "negative": -9},
    "speculation": {word: (word, 0.5) for word in ("shrink", "extend", "full", "chains", "mixed")},
    "duplicates": {"some": 0.3},
    "nulls": {"some": 0.2},
    "boundary": {"some": 0.2},
}


@dataclass(frozen=True)
class EventFacets:
    """What the streams of a scenario are like: per facet a word, a hole, or several words."""

    given: tuple[tuple[str, Any], ...] = ()
    pattern: Any = None  # a generator of lifetimes of the user's own
    most: int = 8  # events per stream
    least: int = 2

    @property
    def is_large(self) -> bool:
        """Whether streams have more events than any threshold: none needs to be lower, and rows have to stay few."""
        return self.least >= MANY

    def factors(self) -> dict[str, tuple[Any, ...]]:
        """Per facet the words to choose from."""
        said = dict(self.given)
        return {name: options_of(said.get(name, anything), words) for name, words in WORDS.items()}


def events(
    *, pattern: Any = None, speculative: Any = None, least: int = 2, most: int = 8, **facets: Any
) -> EventFacets:
    """What streams are like: ``events(disorder="highly", duration=I.any, overlap="high", speculative=True)``.

    A facet that is left out is a hole. ``speculative=True`` puts a top-k fragment above every source; ``pattern`` may
    be a function that yields lifetimes. Streams have from ``least`` to ``most`` events.
    """
    if not 0 < least <= most:
        raise PlanError(f"a stream cannot have from {least} to {most} events", fix="give 0 < least <= most")
    own = pattern if callable(pattern) else None
    if pattern is not None and own is None:
        facets["pattern"] = pattern
    if speculative is not None and speculative is not anything:
        if not isinstance(speculative, bool):
            fix = 'give True or False; for other fragments give fragment, e.g. fragment="both"'
            raise PlanError(f"speculative must be true or false, got {speculative!r}", fix=fix)
        facets["fragment"] = "speculative" if speculative else "none"
    for name, value in facets.items():
        if name not in WORDS:
            raise PlanError(f'there is no facet "{name}"', fix=did_you_mean(name, sorted([*WORDS, "speculative"])))
        for word in options_of(value, ()):
            if isinstance(word, str) and word not in WORDS[name]:
                raise PlanError(f'{name} is never "{word}"', fix=did_you_mean(word, WORDS[name]))
    return EventFacets(tuple(facets.items()), own, most, least)


def is_possible(words: Mapping[str, Any]) -> bool:
    """Whether a stream can be like that."""
    if any(name not in words for name in LIVES):
        return True
    return words["pattern"] in HABITS or _possible(*(words[name] for name in LIVES))


@lru_cache(maxsize=4096)
def _possible(*words: Any) -> bool:
    return contradiction(**dict(zip(LIVES, words, strict=True))) is None


def small_stream(
    choices: Choices, schema: Schema, words: Mapping[str, Any], data: EventFacets, *, like: Sequence[Row] = ()
) -> CaseStream:
    """A stream of a handful of events with these facets; a dense one has times and payloads in common with ``like``."""
    count = choices.integer(data.least, data.most)
    if words["pattern"] in HABITS and data.pattern is None:
        habit = words["pattern"]
        return random_stream(choices, schema, most=data.most + 4, far=False, like=like, habit=habit)
    return CaseStream.of(_generated(schema, count, choices.integer(0, 2**31), _facets(words, data)))


def _generated(schema: Schema, count: int, seed: int, facets: Facets) -> PhysicalStream:
    return generated(schema, count, seed, facets)


def _facets(words: Mapping[str, Any], data: EventFacets) -> Facets:
    chosen = {name: _SMALL.get(name, {}).get(words[name], words[name]) for name in WORDS if name in words}
    del chosen["fragment"]
    if data.pattern is not None:
        chosen["pattern"] = data.pattern
        del chosen["duration"], chosen["overlap"]
        return Facets(**chosen)
    if chosen["pattern"] not in ("random", "duplicates"):
        del chosen["overlap"]  # the pattern decides it
    if chosen["shape"] == "point":
        del chosen["duration"]
    if chosen["keys"] == "unique":
        chosen["skew"] = "uniform"
    return Facets(**chosen)


def usual(names: Sequence[str] = tuple(WORDS)) -> dict[str, Any]:
    """The usual word of each facet."""
    return {name: WORDS[name][0] for name in names}
