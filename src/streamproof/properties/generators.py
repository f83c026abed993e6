"""Generators of windows: Hypothesis strategies over sequences of windows, built with temporal operators.

Drawn by themselves they give lists of lists; `windows` turns them into streams with times. They shrink to streams of
the same shape: the number of windows is drawn first, then the windows in order of time, then their rows.

>>> import hypothesis.strategies as st
>>> always(of(st.just("w"), 1), 2) + later(2, of(st.just("d"), 1))
always(of(just('w'), 1), 2) + later(2, of(just('d'), 1))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from streamproof.properties.contents import Bulk, Contents, Explicit, Sampler, elements, pooled, sampler_of, united
from streamproof.properties.formula import FormulaError

if TYPE_CHECKING:
    from hypothesis.internal.conjecture.data import ConjectureData

GeneratorLike: TypeAlias = "SearchStrategy[Any]"
MOST_DRAWN = 250  # rows that are drawn one by one over a whole stream; what is more comes from seeds
MOST_WINDOWS = 1_200  # Hypothesis has room for about 8,000 bytes of choices, and a window takes some
MOST_ROWS = 64  # rows of a large stream that are drawn one by one
ROOM = 4  # rows of a large window that are drawn one by one
POOL = 8  # elements that stand for a large window where the strategy's inside is unknown


FEW = 1000  # ticks that Hypothesis draws evenly
SLOTS, ENDS = 60, 10  # parts of a window, and how much more often a time lies at its start and at its end
SEEDS = st.integers(0, 2**32 - 1)


@lru_cache(maxsize=1024)
def whole(low: int, high: int) -> SearchStrategy[int]:
    """Whole numbers. Building a strategy takes longer than drawing from it, so it is built once."""
    return st.integers(low, high)


def place(data: ConjectureData, ticks: int) -> int:
    """One of so many ticks: near the start, the very last, or anywhere between.

    Hypothesis alone would draw most of them near the start, so that hardly a row were late or long after another.
    """
    if ticks <= FEW:
        return data.draw(whole(0, ticks - 1))
    slot = data.draw(whole(0, SLOTS + 2 * ENDS - 1)) - ENDS
    within = data.draw(whole(0, ticks // SLOTS - 1))  # in every slot, so that each can shrink to another
    return ticks - 1 if slot >= SLOTS else max(0, slot) * ticks // SLOTS + within


@lru_cache(maxsize=1024)
def _lists(item: SearchStrategy[Any], low: int, high: int) -> SearchStrategy[list[Any]]:
    return st.lists(item, min_size=low, max_size=high)


@dataclass(frozen=True)
class Room:
    """How windows are drawn: so many rows of each one by one, each with a place among so many ticks if it has one."""

    rows: int
    ticks: int | None


class Placed(SearchStrategy[tuple[Any, int]]):
    """An element and its place in its window."""

    def __init__(self, item: SearchStrategy[Any], ticks: int) -> None:
        super().__init__()
        self.item, self.ticks = item, ticks

    def do_draw(self, data: ConjectureData) -> tuple[Any, int]:
        return data.draw(self.item), place(data, self.ticks)


@lru_cache(maxsize=1024)
def _placed(item: SearchStrategy[Any], ticks: int) -> SearchStrategy[tuple[Any, int]]:
    return Placed(item, ticks)


class Gen(SearchStrategy[list[list[Any]]]):
    """A generator of windows. ``g1 + g2`` unites two window by window, ``g1.then(g2)`` puts one after the other."""

    longest: int  # windows at most
    most: int  # rows at most, over all windows

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        """Draw the windows; ``room`` says how many rows a window may draw one by one."""
        raise NotImplementedError

    def contents(self, data: ConjectureData, ticks: int | None = None) -> list[Contents]:
        """Draw the windows, row by row where the whole stream is small; with ``ticks``, each row with its place."""
        if self.longest > MOST_WINDOWS:
            raise FormulaError(
                f"{self.longest:,} windows are too many to draw; {MOST_WINDOWS:,} fit",
                at=repr(self),
                fix="draw fewer windows; rows are no problem, a window may have thousands",
            )
        many = self.most if self.most <= MOST_DRAWN else max(1, min(ROOM, MOST_ROWS // max(self.longest, 1)))
        return self.parts(data, Room(many, ticks))

    def do_draw(self, data: ConjectureData) -> list[list[Any]]:
        return [elements(window) for window in self.contents(data)]

    @property
    def element(self) -> SearchStrategy[Any] | None:
        """The strategy of one element, to know the columns of a stream without rows."""
        return None

    def __add__(self, other: GeneratorLike) -> Gen:
        return United(self, generator(other))

    def then(self, other: GeneratorLike) -> Gen:
        """The other after this: concatenation."""
        return Then(self, generator(other))


def generator(what: GeneratorLike) -> Gen:
    """A generator; a plain strategy of lists stands for one window."""
    if isinstance(what, Gen):
        return what
    if isinstance(what, SearchStrategy):
        return Drawn(what)
    raise FormulaError(f"not a generator of windows: {what!r}", fix="use of(element, n), or a strategy of lists")


def _checked(t: object, word: str) -> int:
    if t is None:
        raise FormulaError(f"{word} of a generator takes its number of windows", fix=f"e.g. {word}(g, 4)")
    if isinstance(t, bool) or not isinstance(t, int) or t < 1:
        raise FormulaError(f"{word} needs at least 1 window, got {t!r}", fix=f"write {word}(…, 1) for a single window")
    return t


class Of(Gen):
    """One window of ``low`` to ``high`` elements."""

    def __init__(self, item: SearchStrategy[Any], low: int, high: int) -> None:
        super().__init__()
        self.item, self.low, self.high = item, low, high
        self.longest, self.most = 1, high
        self._sampler: Sampler | str | None = "unknown"

    @property
    def element(self) -> SearchStrategy[Any]:
        return self.item

    @property
    def sampler(self) -> Sampler | None:
        """How to draw rows by column."""
        if isinstance(self._sampler, str):
            self._sampler = sampler_of(self.item)
        return self._sampler

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        if self.high <= room.rows:
            return [(self._rows(data, self.low, self.high, room),)]
        least = 0 if self.sampler is not None else min(1, self.low)
        many = max(room.rows, POOL) if self.sampler is None else room.rows
        rows = self._rows(data, least, min(many, self.high), room)
        drawn = rows.elements
        sampler = self.sampler or (pooled(drawn) if drawn else None)
        more = 0 if sampler is None else data.draw(whole(max(0, self.low - len(drawn)), self.high - len(drawn)))
        if not more or sampler is None:
            return [(rows,)]
        # what counts is more + skip, so that shrinking can lower the one by raising the other: the rows in front go
        skip = data.draw(whole(0, self.high)) if self.low < self.high else 0
        return [(rows, Bulk(sampler, more, data.draw(SEEDS), skip))]

    def _rows(self, data: ConjectureData, low: int, high: int, room: Room) -> Explicit:
        """Rows drawn one by one, each with its place right behind it, so that shrinking takes both away."""
        if room.ticks is None:
            return Explicit(tuple(data.draw(_lists(self.item, low, high))))
        placed = data.draw(_lists(_placed(self.item, room.ticks), low, high))
        return Explicit(tuple(element for element, _ in placed), tuple(place for _, place in placed))

    def __repr__(self) -> str:
        many = f"{self.low}" if self.low == self.high else f"{self.low}, {self.high}"
        return f"of({self.item!r}, {many})"


class Drawn(Gen):
    """One window from a strategy of lists."""

    longest, most = 1, ROOM

    def __init__(self, items: SearchStrategy[Any]) -> None:
        super().__init__()
        self.items = items

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        drawn = data.draw(self.items)
        if isinstance(drawn, Mapping | str) or not isinstance(drawn, Iterable):
            fix = "say how many: of(element, n), or of(element, n, m)"
            raise FormulaError(f"a window is a list of elements, not {type(drawn).__name__}", at=repr(self), fix=fix)
        return [(Explicit(tuple(drawn)),)]

    def __repr__(self) -> str:
        return repr(self.items)


class Exactly(Gen):
    """Windows that are given."""

    def __init__(self, given: Sequence[Sequence[Any]]) -> None:
        super().__init__()
        self.given = [tuple(window) for window in given]
        self.longest, self.most = len(self.given), sum(len(window) for window in self.given)

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        return [(Explicit(window),) for window in self.given]

    def __repr__(self) -> str:
        return f"exactly({[list(window) for window in self.given]!r})"


class Composed(Gen):
    """A generator made of others."""

    def __init__(self, *inner: Gen) -> None:
        super().__init__()
        self.inner = inner

    @property
    def element(self) -> SearchStrategy[Any] | None:
        return next((found for part in self.inner if (found := part.element) is not None), None)


class Later(Composed):
    """n empty windows, then another generator."""

    def __init__(self, n: int, inner: Gen) -> None:
        super().__init__(inner)
        self.n = n
        self.longest, self.most = n + inner.longest, inner.most

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        return (
            [(), *[()] * (self.n - 1), *self.inner[0].parts(data, room)] if self.n else self.inner[0].parts(data, room)
        )

    def __repr__(self) -> str:
        return f"later({self.n}, {self.inner[0]!r})"


class Repeated(Composed):
    """t draws, each shifted by one window more, united."""

    def __init__(self, inner: Gen, t: int) -> None:
        super().__init__(inner)
        self.t = t
        self.longest, self.most = t - 1 + inner.longest, t * inner.most

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        return repeated(self.inner[0], self.t, data, room)

    def __repr__(self) -> str:
        return f"always({self.inner[0]!r}, {self.t})"


def repeated(inner: Gen, t: int, data: ConjectureData, room: Room) -> list[Contents]:
    """t draws, each shifted by one window more, united."""
    result: list[Contents] = []
    for shift in range(t):
        result = united(result, inner.parts(data, room), shift)
    return result


class Delayed(Composed):
    """0 to t-1 empty windows, then another generator."""

    def __init__(self, inner: Gen, t: int) -> None:
        super().__init__(inner)
        self.t = t
        self.longest, self.most = t - 1 + inner.longest, inner.most

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        return [()] * data.draw(st.integers(0, self.t - 1)) + self.inner[0].parts(data, room)

    def __repr__(self) -> str:
        return f"eventually({self.inner[0]!r}, {self.t})"


class UntilGen(Composed):
    """The first for k windows and then the second once, 0 <= k < t."""

    def __init__(self, first: Gen, second: Gen, t: int) -> None:
        super().__init__(first, second)
        self.t = t
        self.longest = t - 1 + max(first.longest, second.longest)
        self.most = (t - 1) * first.most + second.most

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        first, second = self.inner
        k = data.draw(st.integers(0, self.t - 1))
        return united(repeated(first, k, data, room), second.parts(data, room), shift=k)

    def __repr__(self) -> str:
        return f"until({self.inner[0]!r}, {self.inner[1]!r}, {self.t})"


class ReleaseGen(Composed):
    """The second for t windows, or for k and then both at once."""

    def __init__(self, first: Gen, second: Gen, t: int) -> None:
        super().__init__(first, second)
        self.t = t
        self.longest = t - 1 + max(first.longest, second.longest)
        self.most = t * second.most + first.most

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        first, second = self.inner
        k = data.draw(st.integers(0, self.t))  # t stands for: never released
        held = repeated(second, min(k + 1, self.t), data, room)
        return held if k == self.t else united(held, first.parts(data, room), shift=k)

    def __repr__(self) -> str:
        return f"release({self.inner[0]!r}, {self.inner[1]!r}, {self.t})"


class United(Composed):
    """Window-wise union; the shorter is padded with empty windows."""

    def __init__(self, left: Gen, right: Gen) -> None:
        super().__init__(left, right)
        self.longest, self.most = max(left.longest, right.longest), left.most + right.most

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        left, right = self.inner
        return united(left.parts(data, room), right.parts(data, room))

    def __repr__(self) -> str:
        return f"{self.inner[0]!r} + {self.inner[1]!r}"


class Then(Composed):
    """One after the other."""

    def __init__(self, left: Gen, right: Gen) -> None:
        super().__init__(left, right)
        self.longest, self.most = left.longest + right.longest, left.most + right.most

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        left, right = self.inner
        return left.parts(data, room) + right.parts(data, room)

    def __repr__(self) -> str:
        return f"{self.inner[0]!r}.then({self.inner[1]!r})"


class Dependent(Gen):
    """Windows that depend on earlier ones."""

    def __init__(self, f: Callable[[list[list[Any]]], GeneratorLike], t: int) -> None:
        super().__init__()
        self.f, self.t = f, t
        self.longest, self.most = t, t * ROOM

    def parts(self, data: ConjectureData, room: Room) -> list[Contents]:
        result: list[Contents] = []
        for at in range(self.t):
            past = [elements(window) for window in result[:at]]
            past += [[] for _ in range(at - len(past))]
            result = united(
                result, generator(self.f(past)).parts(data, replace(room, rows=max(room.rows, ROOM))), shift=at
            )
        return result + [()] * (self.t - len(result))

    def __repr__(self) -> str:
        return f"consume({getattr(self.f, '__name__', self.f)}, {self.t})"


def of(element: SearchStrategy[Any], n: int, m: int | None = None) -> Gen:
    """One window of n elements, or of n to m."""
    high = n if m is None else m
    if not isinstance(element, SearchStrategy):
        raise FormulaError(f"of needs a strategy for one element, not {element!r}", fix="e.g. of(st.integers(), 3)")
    if not all(isinstance(number, int) for number in (n, high)) or not 0 <= n <= high:
        raise FormulaError(
            f"a window needs 0 <= n <= m elements, got {n!r} and {high!r}", at=f"of({element!r}, {n}, {m})"
        )
    return Of(element, n, high)


def exactly(given: Sequence[Sequence[Any]]) -> Gen:
    """These windows."""
    return Exactly(given)


def later(n: Any, what: GeneratorLike) -> Gen:
    """n empty windows, then the generator."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise FormulaError(f"later needs a number of windows that is not negative, got {n!r}")
    return Later(n, generator(what))


def always(what: GeneratorLike, t: int) -> Gen:
    """t windows: t draws, each shifted by one window more, united."""
    return Repeated(generator(what), _checked(t, "always"))


def eventually(what: GeneratorLike, t: int) -> Gen:
    """0 to t-1 empty windows, then the generator."""
    return Delayed(generator(what), _checked(t, "eventually"))


def until(first: GeneratorLike, second: GeneratorLike, t: int) -> Gen:
    """The first for k windows and then the second once, 0 <= k < t."""
    return UntilGen(generator(first), generator(second), _checked(t, "until"))


def release(first: GeneratorLike, second: GeneratorLike, t: int) -> Gen:
    """The second for t windows, or for k windows and then both at once."""
    return ReleaseGen(generator(first), generator(second), _checked(t, "release"))


def consume(f: Callable[[list[list[Any]]], GeneratorLike], t: int) -> Gen:
    """t windows, each from the generator that f gives for the windows so far."""
    return Dependent(f, _checked(t, "consume"))
