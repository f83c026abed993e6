"""The stages of a query: which fragments each hosts, the doors through which they are fed, and who reads whom.

Fragments of one layer share a stage. Rows for a later stage pass by those before it, so that Spark sees one chain, and
no stage is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from streamproof.engines.base import Settings
from streamproof.engines.local.seal import is_settled
from streamproof.engines.spark.stream.arrivals import advanced_sources
from streamproof.engines.spark.stream.checkpoint import digest_of
from streamproof.engines.spark.stream.doors import Door
from streamproof.engines.spark.stream.fragments import Fragment, cut, described, whole
from streamproof.engines.spark.stream.keys import bucket_count
from streamproof.engines.spark.stream.ship import Link, Stage
from streamproof.engines.spark.stream.wire import Emit
from streamproof.kernels.base import Emission
from streamproof.plan.check import Typed
from streamproof.thresholds import CHAINED

Stages: TypeAlias = Literal["auto", "fused", "chained"]


def chaining_pays(buckets: int, cores: int) -> bool:
    """Whether a plan whose key changes is cut, unless the user says.

    A further stage costs about as much again as a micro-batch costs in any case, and frees the plan from running on one
    core: measured, both ways take equally long on 2 cores for a heavy plan and on 15 for a light one. See decision 22.

    >>> chaining_pays(buckets=16, cores=4), chaining_pays(buckets=16, cores=16)
    (False, True)
    """
    return min(buckets, cores) >= CHAINED.now


@dataclass(frozen=True, slots=True)
class Chain:
    """A plan in fragments, each with its doors; numbers of fragments are those of queries on the way."""

    typed: Typed
    fragments: tuple[Fragment, ...]
    doors: tuple[tuple[Door, ...], ...]

    @staticmethod
    def of(typed: Typed, sources: Mapping[str, Door], buckets: int, *, chained: bool, first: int = 0) -> Chain:
        """The chain of a plan. ``sources`` says how each source comes in; ``first`` numbers its first query."""
        advances = advanced_sources(typed)
        judged = {name for name, door in sources.items() if door.keeps_events and name not in advances}
        fragments = cut(typed, judged) if chained else whole(typed)
        unread = [name for name in sources if not any(name in fragment.sources for fragment in fragments)]
        counted: set[str] = set()
        doors: list[tuple[Door, ...]] = []
        for fragment in fragments:
            count = bucket_count(fragment.splitting, buckets)
            own: list[Door] = []
            names = [*fragment.sources, *([] if fragment.number else unread)]
            if len(fragments) == 1:
                names = list(sources)  # in the order in which journals of older checkpoints number them
            for number, name in enumerate(names):
                door = _door(fragment, number, name, sources, _feed(fragment, name, fragments, buckets))
                door = replace(door, buckets=count, query=first + fragment.number, counts=name not in counted)
                door = replace(door, advance=advances.get(name))
                own.append(replace(door, keys=None) if len(fragments) == 1 else door)  # Spark's own hash is faster
                counted.add(name)
            doors.append(tuple(own))
        return Chain(typed, fragments, tuple(doors))

    @property
    def last(self) -> int:
        """The query that gives the output."""
        return self.doors[-1][0].query if self.doors[-1] else 0

    @property
    def layers(self) -> int:
        """How many stages there are."""
        return max(fragment.layer for fragment in self.fragments)

    def buckets(self, number: int) -> int:
        """How many buckets a fragment has."""
        return self.doors[number][0].buckets if self.doors[number] else 1

    def sources(self) -> dict[str, tuple[Door, ...]]:
        """The doors of each source of the plan."""
        found: dict[str, tuple[Door, ...]] = {}
        for door in (door for doors in self.doors for door in doors if not door.upstream):
            found[door.name] = (*found.get(door.name, ()), door)
        return found

    def layer_of(self, source: str) -> int:
        """The stage at which a source comes in: the first that reads it."""
        pairs = zip(self.fragments, self.doors, strict=True)
        return min(fragment.layer for fragment, doors in pairs if any(door.name == source for door in doors))

    def stages(self, settings: Settings, emission: Emission, emit: Emit, claim: str = "") -> list[dict[int, Stage]]:
        """What the buckets of each stage get to know, by the number of their query."""
        found: list[dict[int, Stage]] = [{} for _ in range(self.layers)]
        for fragment, doors in zip(self.fragments, self.doors, strict=True):
            links = tuple(self._links(fragment))
            stage = Stage(fragment.typed, doors, settings.registry, settings.limits, emission, settings.horizon)
            seals = not links and not is_settled(self.typed)
            stage = replace(stage, emit="rows" if links else emit, links=links, seals=seals, claim=claim)
            found[fragment.layer - 1][doors[0].query if doors else 0] = stage
        return found

    def _links(self, fragment: Fragment) -> Iterator[Link]:
        for reader, doors in zip(self.fragments, self.doors, strict=True):
            for door in doors:
                if reader.feeds.get(door.name) == fragment.number:
                    yield Link(door.query, door.number, door.keys or (), door.buckets)

    def claims(self) -> tuple[tuple[int, str, int], ...]:
        """What a checkpoint holds on to: the stage of each fragment, which plan it runs, and its buckets."""
        return tuple((part.layer, digest_of(part.typed), self.buckets(part.number)) for part in self.fragments)

    def explain(self) -> list[str]:
        """A line per fragment: its stage, what it reads by which columns, how many buckets it has."""
        return described(self.fragments, max(self.buckets(fragment.number) for fragment in self.fragments))


def _door(fragment: Fragment, number: int, name: str, sources: Mapping[str, Door], feed: Door | None) -> Door:
    """How something comes in: a source, which has a door even if nobody reads it in the end, or another fragment."""
    keys = (fragment.splitting or {}).get(name, ())
    return replace(sources[name] if feed is None else feed, number=number, keys=keys)


def _feed(fragment: Fragment, name: str, fragments: Sequence[Fragment], buckets: int) -> Door | None:
    """What comes from another fragment: signed rows, from each of its buckets."""
    if name not in fragment.feeds:
        return None
    origin = fragments[fragment.feeds[name]]
    return Door(name, 0, origin.typed.schema, "signed", upstream=bucket_count(origin.splitting, buckets))
