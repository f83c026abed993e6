"""Covering arrays: rows of choices in which every pair of values occurs that can occur together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from itertools import combinations, product
from typing import Any, TypeAlias

from streamproof.workbench.facets import is_possible

Factors: TypeAlias = tuple[tuple[str, tuple[Any, ...]], ...]
"""Names, and the values that each may have."""

Group: TypeAlias = tuple[dict[str, Any], ...]
"""Rows with one choice of the plan."""


@lru_cache(maxsize=256)
def covering_array(factors: Factors, seed: int) -> tuple[dict[str, Any], ...]:
    """Rows in which every pair of values occurs that can occur together.

    The library makes the array without looking at contradictions, which is fast; rows that no stream can be like are
    left out, and rows are added for the pairs that are then missing.
    """
    from covertable import criteria, make  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types

    if len(factors) < 2:
        return tuple({name: value} for name, values in factors for value in values) or ({},)
    rows = [row for row in make(dict(factors), criterion=criteria.simple, salt=str(seed)) if is_possible(row)]
    chance = random.Random(seed)  # noqa: S311  # test data, not secrets
    seen = set().union(*(_pairs(row, [row]) for row in rows)) if rows else set()
    for (a, xs), (b, ys) in combinations(factors, 2):
        for x, y in product(xs, ys):
            if (a, x, b, y) not in seen:
                row = _row_with({a: x, b: y}, dict(factors), chance)
                rows += [row] if row else []
                seen |= _pairs(row, [row])
    return tuple(rows)


def _row_with(fixed: dict[str, Any], factors: Mapping[str, tuple[Any, ...]], chance: random.Random) -> dict[str, Any]:
    """A row with two given values that a stream can be like; nothing if there is none."""
    for _ in range(200):
        row = {**{name: chance.choice(values) for name, values in factors.items()}, **fixed}
        if is_possible(row):
            return row
    return {}


@dataclass(frozen=True)
class CoveringGroups:
    """Rows in groups: one choice of the plan, several of data and run. Every pair of values is in some row.

    Pairs within the plan and within the data come from covering arrays; between the two, data rows are dealt out over
    the plans, and groups are added for the pairs that are still missing.
    """

    groups: tuple[tuple[dict[str, Any], ...], ...]

    @staticmethod
    @lru_cache(maxsize=64)
    def of(plan: Factors, data: Factors, seed: int, size: int) -> CoveringGroups:
        plans, rows = list(covering_array(plan, seed)), list(covering_array(data, seed))
        dealt = [[rows[(n * size + k) % len(rows)] for k in range(size)] for n in range(len(plans))]
        missing = _Missing(plan, rows)
        for chosen, given in zip(plans, dealt, strict=True):
            missing.cross_off(chosen, given)
        for name, value in missing.first():
            chosen = next(row for row in plans if row[name] == value)
            given = []
            for _ in range(size):
                given.append(max(rows, key=lambda row: missing.gain(chosen, row)))
                missing.cross_off(chosen, given[-1:])
            plans.append(chosen)
            dealt.append(given)
        groups = [tuple({**chosen, **row} for row in given) for chosen, given in zip(plans, dealt, strict=True)]
        random.Random(seed).shuffle(groups)  # noqa: S311  # test data, not secrets
        return CoveringGroups(tuple(_newest_first(groups, [name for name, _ in plan])))


class _Missing:
    """The pairs of a choice of the plan and a choice of the data that no row has yet."""

    def __init__(self, plan: Factors, rows: Sequence[Mapping[str, Any]]) -> None:
        self._items = {id(row): frozenset(row.items()) for row in rows}
        possible = frozenset().union(*self._items.values())
        self._left = {(name, value): set(possible) for name, values in plan for value in values}

    def gain(self, chosen: Mapping[str, Any], row: Mapping[str, Any]) -> int:
        """How many missing pairs a row would have."""
        items = self._items[id(row)]
        return sum(len(self._left[choice] & items) for choice in chosen.items())

    def cross_off(self, chosen: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
        for choice in chosen.items():
            for row in rows:
                self._left[choice] -= self._items[id(row)]

    def first(self) -> Iterator[tuple[str, Any]]:
        """Choices of the plan that miss something, in a fixed order, each until it misses nothing."""
        for choice in sorted(self._left, key=repr):
            while self._left[choice]:
                yield choice


def _newest_first(groups: list[Group], names: list[str]) -> list[Group]:
    """Groups in an order in which those that come first have some of everything: new values, then new pairs of them.

    What a group brings that is new only shrinks while others are taken, so a heap of old counts finds the best.
    """
    values = [frozenset((name, group[0][name]) for name in names) for group in groups]
    pairs = [frozenset(combinations(sorted(known, key=repr), 2)) for known in values]
    heap = [(-100 * len(v) - len(p), n) for n, (v, p) in enumerate(zip(values, pairs, strict=True))]
    heapify(heap)
    ordered, old_values, old_pairs = [], set[Any](), set[Any]()
    while heap:
        known, n = heap[0]
        new = -100 * len(values[n] - old_values) - len(pairs[n] - old_pairs)
        if new != known:
            heapreplace(heap, (new, n))
            continue
        heappop(heap)
        ordered.append(groups[n])
        old_values |= values[n]
        old_pairs |= pairs[n]
    return ordered


def _pairs(plan: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> set[tuple[str, Any, str, Any]]:
    return {(p, v, d, w) for p, v in plan.items() for row in rows for d, w in row.items()}
