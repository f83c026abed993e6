"""Operators that change lifetimes only.

>>> chopped([(3, 12, {})], 5, 0, WindowBounds())
[(3, 5, {}), (5, 10, {}), (10, 12, {})]
>>> stitched([(1, 3, {"v": 1}), (3, 5, {"v": 1}), (3, 5, {"v": 2})])
[(1, 5, {'v': 1}), (3, 5, {'v': 2})]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.expr import LIFE_END, Expr, columns_of
from streamproof.workbench.evaluator.joins import merged
from streamproof.workbench.evaluator.values import Payload, Row, identity, payload_identity
from streamproof.workbench.evaluator.windows import WindowBounds, finite, spans_over


def moved(tick: int, by: int) -> int:
    """A time moved later; the infinities stay, and a finite time stays finite."""
    return tick if tick in (BEGINNING, FOREVER) else finite(tick + by)


def shifted(rows: Sequence[Row], by: int) -> list[Row]:
    return [(moved(le, by), moved(re, by), payload) for le, re, payload in rows]


def extended(rows: Sequence[Row], by: int) -> list[Row]:
    shortened = [(le, re, payload) for le, re, payload in rows if re == FOREVER or re + by > le]
    return [(le, moved(re, by), payload) for le, re, payload in shortened]


def lasting(rows: Sequence[Row]) -> list[Row]:
    return [(le, FOREVER, payload) for le, _, payload in rows]


def altered(rows: Sequence[Row], expr: Expr, duration: Callable[[Row], int | None]) -> list[Row]:
    """``[le, le + dur)``; an infinite end that the duration reads stays infinite, unread."""
    reads_end = any(column.name in ("re", LIFE_END) for column in columns_of(expr))
    result: list[Row] = []
    for row in rows:
        if reads_end and row[1] >= FOREVER:
            result.append(row)
            continue
        length = duration(row)
        if length is not None and length > 0:
            result.append((row[0], finite(row[0] + length), row[2]))
    return result


def to_points(rows: Sequence[Row]) -> list[Row]:
    return [(le, finite(le + 1), payload) for le, _, payload in rows]


def points_at_end(rows: Sequence[Row]) -> list[Row]:
    return [(re, finite(re + 1), payload) for _, re, payload in rows if re < FOREVER]


def chopped(rows: Sequence[Row], period: int, offset: int, bounds: WindowBounds) -> list[Row]:
    """Each event's share of every beat it lives in."""
    return [
        (max(row[0], beat[0]), min(row[1], beat[1]), row[2])
        for row in rows
        for beat in spans_over(row, period, period, offset, bounds)
    ]


# --- equal payloads together ------------------------------------------------------------------------------------------


def _by_payload(rows: Sequence[Row]) -> list[tuple[Payload, list[tuple[int, int]]]]:
    groups: dict[Any, tuple[Payload, list[tuple[int, int]]]] = {}
    for le, re, payload in rows:
        groups.setdefault(payload_identity(payload, payload), (payload, []))[1].append((le, re))
    return list(groups.values())


def coalesced(rows: Sequence[Row]) -> list[Row]:
    return [(le, re, payload) for payload, spans in _by_payload(rows) for le, re in merged(spans)]


def distinct(rows: Sequence[Row]) -> list[Row]:
    """Per payload, every snapshot that some event covers, once."""
    result: list[Row] = []
    for payload, spans in _by_payload(rows):
        for a, b in pairwise(sorted({end for span in spans for end in span})):
            if any(le <= a and b <= re for le, re in spans):
                result.append((a, b, payload))
    return result


def stitched(rows: Sequence[Row]) -> list[Row]:
    """Per payload, chains of touching events, in the order of start and end; the earliest started goes on first."""
    return [(le, re, payload) for payload, spans in _by_payload(rows) for le, re in _chains(sorted(spans))]


def _chains(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    chains: list[tuple[int, int]] = []
    for le, re in spans:
        touching = [chain for chain in chains if chain[1] == le]
        if touching:
            chains.remove(min(touching))
            chains.append((min(touching)[0], re))
        else:
            chains.append((le, re))
    return sorted(chains)


# --- sessions ---------------------------------------------------------------------------------------------------------


def sessions(rows: Sequence[Row], node: nodes.Session) -> list[Row]:
    """Each event lasts until ``timeout`` after the last start of its session."""
    timeout, longest = int(node.timeout), None if node.max is None else int(node.max)  # type: ignore[arg-type]
    result: list[Row] = []
    for group in _by_key(rows, node.key):
        ends = _session_ends(sorted({le for le, _, _ in group}), timeout, longest)
        result += [(le, ends[le], payload) for le, _, payload in group]
    return result


def _by_key(rows: Sequence[Row], key: tuple[str, ...]) -> list[list[Row]]:
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(identity(row[2][name]) for name in key), []).append(row)
    return list(groups.values())


def _session_ends(starts: list[int], timeout: int, longest: int | None) -> dict[int, int]:
    """From each start to the end of its session."""
    members: list[list[int]] = []
    for start in starts:
        goes_on = bool(members) and start - members[-1][-1] < timeout
        if goes_on and (longest is None or start - members[-1][0] < longest):
            members[-1].append(start)
        else:
            members.append([start])
    ends: dict[int, int] = {}
    for session in members:
        end = session[-1] + timeout
        latest = end if longest is None else min(end, session[0] + longest)
        ends.update(dict.fromkeys(session, finite(latest)))
    return ends
