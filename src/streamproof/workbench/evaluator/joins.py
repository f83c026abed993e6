"""Operators over two inputs, pair by pair.

>>> fragments((1, 9), [(3, 5), (5, 6)])
[(1, 3), (6, 9)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from streamproof.workbench.evaluator.values import Row

Span = tuple[int, int]
Match = Callable[[Row, Row], bool]
Found = tuple[Span, Row | None, Row | None]


def overlapping(left: Sequence[Row], right: Sequence[Row], match: Match) -> Iterator[Found]:
    """Matching pairs that live at the same time, with the time they share."""
    for a in left:
        for b in right:
            le, re = max(a[0], b[0]), min(a[1], b[1])
            if le < re and match(a, b):
                yield (le, re), a, b


def following(left: Sequence[Row], right: Sequence[Row], match: Match) -> Iterator[Found]:
    """Matching pairs where the right event starts strictly inside the left one."""
    for a in left:
        for b in right:
            if a[0] < b[0] < a[1] and match(a, b):
                yield (b[0], min(a[1], b[1])), a, b


def uncovered(left: Sequence[Row], right: Sequence[Row], match: Match) -> Iterator[tuple[Span, Row]]:
    """Per left event, the maximal fragments of its lifetime that no matching right event covers."""
    for a in left:
        cover = [(b[0], b[1]) for b in right if max(a[0], b[0]) < min(a[1], b[1]) and match(a, b)]
        yield from ((span, a) for span in fragments((a[0], a[1]), cover))


def fragments(life: Span, cover: Sequence[Span]) -> list[Span]:
    """Cut at every endpoint, keep what nothing covers, put touching pieces together."""
    cuts = {cut for span in cover for cut in span if life[0] < cut < life[1]}
    pieces = pairwise(sorted({*life, *cuts}))
    free = [piece for piece in pieces if not any(b[0] <= piece[0] and piece[1] <= b[1] for b in cover)]
    return merged(free)


def merged(spans: Sequence[Span]) -> list[Span]:
    """Touching or overlapping spans become one."""
    result: list[Span] = []
    for le, re in sorted(spans):
        if result and le <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], re))
        else:
            result.append((le, re))
    return result


def clipped(rows: Sequence[Row], by: Sequence[Row], match: Match) -> list[Row]:
    """Every lifetime cut at the first strictly later start of a matching event."""
    result = []
    for a in rows:
        starts = [b[0] for b in by if a[0] < b[0] < a[1] and match(a, b)]
        result.append((a[0], min([a[1], *starts]), a[2]))
    return result
