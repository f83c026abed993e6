"""Cutting a plan where its key changes: fragments, each of which is split by a key of its own.

What shares a key stays together. A part whose rows no key of the sources below it keeps together is cut from those of
its inputs that do work of their own, and reads them like sources. A part that needs all rows in one place is cut from
what can be spread before it; what follows it stays with it.

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

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from streamproof.engines.spark.stream.keys import split_by
from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.check import Typed, walk
from streamproof.plan.labels import label
from streamproof.plan.rewrites.normal_form import inputs_in_scope, parts_in_scope


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

    ``judged`` are sources of which events may be let go, by what came before them in their bucket: where several
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


def holds_state(typed: Typed) -> bool:
    """Whether anything in a plan remembers rows."""
    return any(part.node.meets != "none" for part in walk(typed))


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
