"""A plan as a chain of stages: cut where its key changes, each fragment split by a key of its own.

What shares a key stays together. A part whose rows no key of the sources below it keeps together is cut from those of
its inputs that do work of their own, and reads them like sources. A part that needs all rows in one place is cut from
what can be spread before it; what follows it stays with it.

    S ──by k──► fragment 1: group_apply(k) ──┐
                                             ├─by j──► fragment 3: join ──all──► fragment 4: top(10)
    R ──by j──► fragment 2: group_apply(j) ──┘
               └──────── stage 1 ─────────┘          └─── stage 2 ───┘         └──── stage 3 ────┘

Fragments of one layer share a stage. Rows for a later stage pass by those before it, so that Spark sees one chain, and
no stage is computed twice.

>>> from streamproof.plan.aggregates import Aggregate
>>> from streamproof.plan.check import check
>>> from streamproof.plan.windows import Tumbling
>>> count = (("n", Aggregate("count")),)
>>> keyed = nodes.GroupApply(nodes.Source("S"), ("k",), nodes.Aggregation(nodes.GroupInput(), Tumbling(10), count))
>>> plan = nodes.Aggregation(keyed, Tumbling(20), count)
>>> for fragment in cut(check(plan, {"S": Schema.of({"k": "string"})})):
...     print(fragment.layer, fragment.splitting, fragment.feeds)
1 {'S': ('k',)} {}
2 None {'#1': 0}
>>> print("\\n".join(described(cut(check(plan, {"S": Schema.of({"k": "string"})})), buckets=4)))
stage 1: S by k, in 4 buckets: group_apply(k)
stage 2: stage 1, in one bucket: agg(tumbling(size=20), n=count())
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, count
from typing import Literal, TypeAlias

from streamproof.engines.base import Settings
from streamproof.engines.local.rules import is_settled
from streamproof.engines.spark.stream.checkpoint import digest_of
from streamproof.engines.spark.stream.keys import bucket_count, holds_state, split_by
from streamproof.engines.spark.stream.ports import SourcePort
from streamproof.engines.spark.stream.stage import StageEdge, StageSpec
from streamproof.engines.spark.stream.wire import Emit
from streamproof.events.schema import Schema
from streamproof.kernels.base import Emission
from streamproof.plan import nodes
from streamproof.plan.check import Typed, walk
from streamproof.plan.labels import label
from streamproof.plan.nodes import Plan
from streamproof.plan.rewrites.normal_form import inputs_in_scope, parts_in_scope
from streamproof.thresholds import CHAINED

Stages: TypeAlias = Literal["auto", "fused", "chained"]

# --- fragments ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a plan that runs in buckets of its own. What other fragments feed it stands in it as a source."""

    number: int
    typed: Typed
    splitting: dict[str, tuple[str, ...]] | None  # None: all rows in one bucket
    layer: int = 1  # the first stage is 1; a fragment comes after those that feed it
    feeds: dict[str, int] = field(default_factory=dict)  # by name of the source, the fragment behind it

    @property
    def sources(self) -> list[str]:
        """Everything that it reads, in order: sources of the plan and other fragments."""
        return [part.node.name for part in walk(self.typed) if isinstance(part.node, nodes.Source)]


def whole(typed: Typed) -> tuple[Fragment, ...]:
    """The plan in one piece."""
    return (Fragment(0, typed, split_by(typed)),)


def cut(typed: Typed, judged: Collection[str] = ()) -> tuple[Fragment, ...]:
    """The fragments of a plan, those that feed others first; the last one gives the plan's output.

    ``judged`` are sources of which events may be dropped, by what came before them in their bucket: where several
    fragments read such a source, a fragment of its own judges it, so that all get the same rows.

    Law: run one after the other, each over what the others put out, they give what the plan gives.
    """
    cutter = _Cutter(typed)
    while cutter.cut_once():
        pass
    fragments = tuple(cutter.fragments())
    several = {name for name in judged if sum(name in fragment.sources for fragment in fragments) > 1}
    return tuple(cutter.fragments(several)) if several else fragments


def described(fragments: Sequence[Fragment], buckets: int | None = None) -> list[str]:
    """A line per fragment: its stage, what it reads by which columns, its buckets, and its last operator."""
    names = _stage_names(fragments)
    lines = []
    for fragment in fragments:
        keys = fragment.splitting or {}
        read = [
            (names[fragment.feeds[name]] if name in fragment.feeds else name)
            + (f" by {', '.join(keys[name])}" if keys.get(name) else "")
            for name in fragment.sources
        ]
        single = fragment.splitting is None or buckets == 1
        where = "one bucket" if single else "buckets" if buckets is None else f"{buckets} buckets"
        lines.append(f"{names[fragment.number]}: {' and '.join(read)}, in {where}: {_work(fragment.typed)}")
    return lines


def _work(typed: Typed) -> str:
    """The last operator that remembers anything."""
    kept = [part for part in parts_in_scope(typed) if part.node.meets != "none"]
    return label(kept[-1].node if kept else typed.node)


def _stage_names(fragments: Sequence[Fragment]) -> dict[int, str]:
    """Stage 1, or where several fragments share a stage, 1a, 1b and so on."""
    names: dict[int, str] = {}
    for layer in {fragment.layer for fragment in fragments}:
        here = [fragment.number for fragment in fragments if fragment.layer == layer]
        for place, number in enumerate(here):
            names[number] = f"stage {layer}" + (_letters(place) if len(here) > 1 else "")
    return names


def _letters(place: int) -> str:
    return ("" if place < 26 else _letters(place // 26 - 1)) + chr(ord("a") + place % 26)


class _Cutter:
    """A plan, and the parts at which it is cut so far."""

    def __init__(self, root: Typed) -> None:
        self.root = root
        self.parts = parts_in_scope(root)
        self.cuts: set[int] = set()  # of parts, by identity
        self._names = _names(self.parts)

    def cut_once(self) -> bool:
        """Cut below the first part that needs it; whether there was one.

        A part that is cut for one reader is cut for all, so that it is computed once; that is why all begins anew.
        """
        for part in self.parts:
            chosen = self._below(part)
            if chosen:
                self.cuts |= {id(one) for one in chosen}
                return True
        return False

    def _below(self, part: Typed) -> list[Typed]:
        """The inputs of a part from which it has to be cut."""
        inputs = list({id(one): one for one in inputs_in_scope(part)}.values())
        here = [one for one in inputs if not self._is_leaf(one)]
        if not here or self._splits(part):
            return []
        spread = [one for one in here if self._splits(one)]
        if not spread and len(here) == len(inputs):
            return []  # it reads what is in one place already
        busy = [one for one in here if holds_state(one)]
        for chosen in _choices(here, busy):
            if self._splits(part, chosen):
                return chosen
        return [one for one in spread if holds_state(self._rebuilt(one))]

    def _is_leaf(self, part: Typed) -> bool:
        return isinstance(part.node, nodes.Source) or id(part) in self.cuts

    def _splits(self, part: Typed, also: Iterable[Typed] = ()) -> bool:
        return split_by(self._rebuilt(part, also)) is not None

    def _rebuilt(self, part: Typed, also: Iterable[Typed] = ()) -> Typed:
        """The plan of a part down to its leaves: sources, and sources in the place of parts that are cut."""
        leaves = self.cuts | {id(one) for one in also}
        done: dict[int, Typed] = {}
        for one in parts_in_scope(part):
            if id(one) in leaves and one is not part:
                done[id(one)] = _leaf(self._names[id(one)], one.schema)
                continue
            inputs = tuple(done.get(id(child), child) for child in one.inputs)
            same = all(new is old for new, old in zip(inputs, one.inputs, strict=True))
            done[id(one)] = one if same else replace(one, inputs=inputs)
        return done[id(part)]

    def fragments(self, apart: Collection[str] = ()) -> Iterator[Fragment]:
        """What the plan is cut into; sources that are to stand ``apart`` are fragments too."""
        alone = (part for part in self.parts if isinstance(part.node, nodes.Source) and part.node.name in apart)
        self.cuts |= {id(part) for part in alone}
        layers: list[int] = []
        numbers: dict[str, int] = {}
        for part in self.parts:
            if id(part) in self.cuts or part is self.root:
                typed = self._rebuilt(part)
                fragment = Fragment(len(layers), typed, split_by(typed))
                feeds = {name: numbers[name] for name in fragment.sources if name in numbers}
                layers.append(1 + max((layers[n] for n in feeds.values()), default=0))
                numbers[self._names[id(part)]] = fragment.number
                yield replace(fragment, layer=layers[-1], feeds=feeds)


def _choices(inputs: list[Typed], busy: list[Typed]) -> Iterator[list[Typed]]:
    """What may be cut: all that does work of its own, or else as little as possible."""
    if busy:
        yield busy
    most = len(inputs) if len(inputs) <= 3 else 1
    for size in range(1, most + 1):
        yield from (list(chosen) for chosen in combinations(inputs, size))
    yield inputs


def _names(parts: list[Typed]) -> dict[int, str]:
    """A name for each part, that no source has."""
    taken = {part.node.name for part in parts if isinstance(part.node, nodes.Source)}
    mark = "#"
    while any(name.startswith(mark) for name in taken):
        mark += "#"
    return {id(part): f"{mark}{n}" for n, part in enumerate(parts)}


def _leaf(name: str, schema: Schema) -> Typed:
    return Typed(nodes.Source(name, schema=schema, unit=schema.unit), schema)


# --- stages ---------------------------------------------------------------------------------------------------------


def chaining_pays(buckets: int, cores: int) -> bool:
    """Whether a plan whose key changes is cut, unless the user says.

    A further stage costs about as much again as a micro-batch costs in any case, and frees the plan from running on one
    core: measured, both ways take equally long on 2 cores for a heavy plan and on 15 for a light one. See decision 16.

    >>> chaining_pays(buckets=16, cores=4), chaining_pays(buckets=16, cores=16)
    (False, True)
    """
    return min(buckets, cores) >= CHAINED.now


@dataclass(frozen=True, slots=True)
class StageChain:
    """A plan in fragments, each with its ports; numbers of fragments are those of queries on the way."""

    typed: Typed
    fragments: tuple[Fragment, ...]
    ports: tuple[tuple[SourcePort, ...], ...]

    @staticmethod
    def of(
        typed: Typed, sources: Mapping[str, SourcePort], buckets: int, *, chained: bool, first: int = 0
    ) -> StageChain:
        """The chain of a plan. ``sources`` says how each source comes in; ``first`` numbers its first query."""
        advances = advanced_sources(typed)
        judged = {name for name, port in sources.items() if port.keeps_events and name not in advances}
        fragments = cut(typed, judged) if chained else whole(typed)
        unread = [name for name in sources if not any(name in fragment.sources for fragment in fragments)]
        counted: set[str] = set()
        ports: list[tuple[SourcePort, ...]] = []
        for fragment in fragments:
            count = bucket_count(fragment.splitting, buckets)
            own: list[SourcePort] = []
            names = [*fragment.sources, *([] if fragment.number else unread)]
            if len(fragments) == 1:
                names = list(sources)  # in the order in which journals of older checkpoints number them
            for number, name in enumerate(names):
                port = _port(fragment, number, name, sources, _feed(fragment, name, fragments, buckets))
                port = replace(port, buckets=count, query=first + fragment.number, counts=name not in counted)
                port = replace(port, advance=advances.get(name))
                own.append(replace(port, keys=None) if len(fragments) == 1 else port)  # Spark's own hash is faster
                counted.add(name)
            ports.append(tuple(own))
        return StageChain(typed, fragments, tuple(ports))

    @property
    def last(self) -> int:
        """The query that gives the output."""
        return self.ports[-1][0].query if self.ports[-1] else 0

    @property
    def layers(self) -> int:
        """How many stages there are."""
        return max(fragment.layer for fragment in self.fragments)

    def buckets(self, number: int) -> int:
        """How many buckets a fragment has."""
        return self.ports[number][0].buckets if self.ports[number] else 1

    def sources(self) -> dict[str, tuple[SourcePort, ...]]:
        """The ports of each source of the plan."""
        found: dict[str, tuple[SourcePort, ...]] = {}
        for port in (port for ports in self.ports for port in ports if not port.upstream):
            found[port.name] = (*found.get(port.name, ()), port)
        return found

    def layer_of(self, source: str) -> int:
        """The stage at which a source comes in: the first that reads it."""
        pairs = zip(self.fragments, self.ports, strict=True)
        return min(fragment.layer for fragment, ports in pairs if any(port.name == source for port in ports))

    def stages(self, settings: Settings, emission: Emission, emit: Emit, claim: str = "") -> list[dict[int, StageSpec]]:
        """What the buckets of each stage get to know, by the number of their query."""
        found: list[dict[int, StageSpec]] = [{} for _ in range(self.layers)]
        for fragment, ports in zip(self.fragments, self.ports, strict=True):
            edges = tuple(self._edges(fragment))
            stage = StageSpec(fragment.typed, ports, settings.registry, settings.limits, emission, settings.horizon)
            seals = not edges and not is_settled(self.typed)
            stage = replace(stage, emit="rows" if edges else emit, edges=edges, seals=seals, claim=claim)
            found[fragment.layer - 1][ports[0].query if ports else 0] = stage
        return found

    def _edges(self, fragment: Fragment) -> Iterator[StageEdge]:
        for reader, ports in zip(self.fragments, self.ports, strict=True):
            for port in ports:
                if reader.feeds.get(port.name) == fragment.number:
                    yield StageEdge(port.query, port.number, port.keys or (), port.buckets)

    def claims(self) -> tuple[tuple[int, str, int], ...]:
        """What a checkpoint holds on to: the stage of each fragment, which plan it runs, and its buckets."""
        return tuple((part.layer, digest_of(part.typed), self.buckets(part.number)) for part in self.fragments)

    def explain(self) -> list[str]:
        """A line per fragment: its stage, what it reads by which columns, how many buckets it has."""
        return described(self.fragments, max(self.buckets(fragment.number) for fragment in self.fragments))


def _port(
    fragment: Fragment, number: int, name: str, sources: Mapping[str, SourcePort], feed: SourcePort | None
) -> SourcePort:
    """How something comes in: a source, which has a port even if nobody reads it in the end, or another fragment."""
    keys = (fragment.splitting or {}).get(name, ())
    return replace(sources[name] if feed is None else feed, number=number, keys=keys)


def _feed(fragment: Fragment, name: str, fragments: Sequence[Fragment], buckets: int) -> SourcePort | None:
    """What comes from another fragment: signed rows, from each of its buckets."""
    if name not in fragment.feeds:
        return None
    origin = fragments[fragment.feeds[name]]
    return SourcePort(name, 0, origin.typed.schema, "signed", upstream=bucket_count(origin.splitting, buckets))


# --- sources --------------------------------------------------------------------------------------------------------


def advanced_sources(typed: Typed) -> dict[str, nodes.AdvanceTime]:
    """The sources with an advance_time above them."""
    found: dict[str, nodes.AdvanceTime] = {}
    for part in walk(typed):
        if isinstance(part.node, nodes.AdvanceTime):
            source = part.inputs[0].node
            assert isinstance(source, nodes.Source), "advance_time stands directly above a source"
            found[source.name] = part.node
    return found


def read_apart(plan: Plan) -> tuple[Plan, dict[str, str]]:
    """A plan that reads each source in one way, with or without an advance_time, and which source each of its own is.

    A source that is read in several ways is so many sources: what is late for one is not for the others.

    >>> s = nodes.Source("S")
    >>> plan, given = read_apart(nodes.Union((s, nodes.AdvanceTime(s, every=1), nodes.Shift(s, 1))))
    >>> given
    {'S': 'S', 'S_1': 'S'}
    >>> [node.input.name for node in nodes.walk(plan) if isinstance(node, nodes.AdvanceTime | nodes.Shift)]
    ['S_1', 'S']
    """
    ways: dict[str, list[nodes.AdvanceTime | None]] = {name: [] for name in nodes.sources(plan)}
    for parent in (None, *nodes.walk(plan)):
        for node in (plan,) if parent is None else parent.inputs:
            if isinstance(node, nodes.Source):
                ways[node.name].append(parent if isinstance(parent, nodes.AdvanceTime) else None)
    names: dict[nodes.AdvanceTime, str] = {}
    given = {name: name for name in ways}
    for name, found in ways.items():
        _, *more = sorted(dict.fromkeys(found), key=lambda way: way is not None)  # a way without one keeps the name
        for way in more:
            assert way is not None, "there is one way without"
            names[way] = next(new for n in count(1) if (new := f"{name}_{n}") not in given)
            given[names[way]] = name

    def renamed(node: Plan) -> Plan:
        if not isinstance(node, nodes.AdvanceTime) or node not in names:
            return node
        assert isinstance(node.input, nodes.Source)
        return replace(node, input=replace(node.input, name=names[node]))

    return nodes.transform(plan, renamed), given
