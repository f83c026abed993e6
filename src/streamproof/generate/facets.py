"""Facets: what a generated stream is like, in words or in numbers.

>>> Facets(disorder="highly").numbers.places
1024
>>> Facets(disorder=(0.25, 10), liveliness="eager").numbers.late
Fraction(1, 4)
>>> Facets(shape="pont")
Traceback (most recent call last):
    ...
streamproof.errors.PlanError: unknown shape 'pont'
  at: Facets(shape='pont')
  fix: did you mean "point"? Known: "point", "edge", "interval"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeAlias, TypeVar, get_args

from streamproof.arguments import doors
from streamproof.errors import PlanError, did_you_mean
from streamproof.events.validate import Shape

Word = TypeVar("Word", bound=str)


def refuse(what: str, fix: str) -> NoReturn:
    raise PlanError(what, fix=fix)


def choose(facet: str, given: object, known: Iterable[Word], otherwise: str | None = None) -> Word:
    """The known word that is meant; case, hyphens and blanks do not matter.

    >>> choose("disorder", "Out-of-order", ["in_order", "out_of_order"])
    'out_of_order'
    """
    names = list(known)
    word = given.strip().lower().replace("-", "_").replace(" ", "_") if isinstance(given, str) else None
    for name in names:
        if name == word:
            return name
    if not names:
        raise PlanError(f"unknown {facet} {given!r}", fix=f"give {otherwise}")
    hint = did_you_mean(word or str(given), names)
    raise PlanError(f"unknown {facet} {given!r}", fix=f"{hint}; or {otherwise}" if otherwise else hint)


def whole(facet: str, given: object, least: int, most: int) -> int:
    """A whole number within bounds."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise PlanError(f"{facet} must be a whole number, got {given!r}", fix=f"give one from {least:,} to {most:,}")
    if not least <= given <= most:
        raise PlanError(f"{facet} must be from {least:,} to {most:,}, got {given:,}", fix="choose a number between")
    return given


def fraction_of(facet: str, given: Any, known: Mapping[str, Fraction], least: Fraction, most: Fraction) -> Fraction:
    """The number of a word, or the number itself as it is written: 0.1 is one tenth.

    >>> fraction_of("nulls", 0.1, {}, Fraction(0), Fraction(1))
    Fraction(1, 10)
    """
    bounds = f"a number from {_short(least)} to {_short(most)}"
    if isinstance(given, str):
        return known[choose(facet, given, known, bounds)]
    if isinstance(given, bool) or not isinstance(given, int | float | Fraction):
        raise PlanError(f"{facet} must be {bounds}, got {given!r}", fix="give a word or a number")
    try:
        number = given if isinstance(given, Fraction) else Fraction(repr(given))
    except ValueError:  # nan, inf
        number = least - 1
    if not least <= number <= most:
        raise PlanError(f"{facet} must be {bounds}, got {given}", fix="choose a number between")
    return number


def _short(number: Fraction) -> str:
    return f"{float(number):.10g}"


Pattern: TypeAlias = Literal["random", "disjoint", "staggered", "back_to_back", "duplicates"]
Change: TypeAlias = Literal["none", "shrink", "extend", "full", "chains", "mixed"]
Illegal: TypeAlias = Literal[
    "empty_lifetime", "cti_violation", "cti_backwards", "duplicate_id", "unmatched_retraction", "unknown_retraction",
    "shape", "order",
]  # fmt: skip
Lifetime: TypeAlias = tuple[int, int]
Number: TypeAlias = "int | float | Fraction"

SHAPES: Final[tuple[Shape, ...]] = get_args(Shape)
PATTERNS: Final[tuple[Pattern, ...]] = get_args(Pattern)
CHANGES: Final[tuple[Change, ...]] = get_args(Change)
ILLEGAL: Final[tuple[Illegal, ...]] = get_args(Illegal)
DURATIONS: Final = {"point": (1, 1), "short": (2, 20), "long": (200, 2000), "infinite": None}
OVERLAPS: Final = {"low": Fraction(1, 4), "medium": Fraction(4), "high": Fraction(64)}
LIVELINESS: Final = {"never": None, "final": 0, "lazy": 1000, "steady": 10, "eager": 1}
DISORDERS: Final = {
    "in_order": (Fraction(0), 0),
    "slightly": (Fraction(1, 100), 4),
    "out_of_order": (Fraction(1, 10), 64),
    "highly": (Fraction(1, 2), 1024),
}
DUPLICATES: Final = {"none": Fraction(0), "some": Fraction(1, 10), "all": Fraction(1)}
KEYS: Final = {"few": 4, "some": 100, "many": 10_000, "unique": None}
SKEWS: Final = {"uniform": Fraction(0), "zipf": Fraction(1), "heavy": Fraction(2)}
SHARES: Final = {"none": Fraction(0), "some": Fraction(1, 10), "many": Fraction(1, 2)}
SPECULATED: Final = Fraction(1, 4)
LONGEST_TABLE: Final = 1 << 16  # keys whose frequencies are skewed
_MOST: Final = Fraction(9, 10)  # late events and copies leave others between them


class Numbers(NamedTuple):
    """What the words of the facets stand for."""

    duration: Lifetime | None  # least and greatest length in ticks; None is infinite
    overlap: Fraction  # events alive at a time, on average
    every: int | None  # a CTI after so many events; 0 is only one at the end, None not even that
    late: Fraction  # of the events
    places: int  # the most places by which a late event misses its turn, unless it takes more to be late at all
    change: Change
    speculated: Fraction  # of the events
    copies: Fraction  # of the events; 1 is every event twice


class ValueNumbers(NamedTuple):
    """What the words for one column stand for."""

    keys: int | None  # different values; None is as many as events
    skew: Fraction  # the n-th value is as frequent as 1 / n^skew
    nulls: Fraction  # of the values
    boundary: Fraction  # of the values that are not null


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What the values of one column are like; what is left out is as the facets say for all columns."""

    keys: str | int | None = None
    skew: str | Number | None = None
    nulls: str | Number | None = None
    boundary: str | Number | None = None


@doors
@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """What a stream is like. Every word stands for numbers, and numbers may be given instead.

    >>> Facets(shape="point", speculation="shrink")
    Traceback (most recent call last):
        ...
    streamproof.errors.PlanError: a point cannot shrink: it can only be taken back whole
      at: Facets(shape='point', speculation='shrink')
      fix: use speculation="full", or shape="interval"
    """

    shape: str = "interval"
    duration: str | int | Lifetime | None = None  # "short", or "point" where the shape is point
    overlap: str | Number | None = None  # "medium"; patterns that fix it take none
    pattern: str | Callable[[], Iterable[Lifetime]] = "random"
    liveliness: str | int = "steady"
    disorder: str | Number | tuple[Number, int] = "in_order"
    speculation: str | tuple[str, Number] = "none"
    duplicates: str | Number = "none"
    keys: str | int = "some"
    skew: str | Number = "uniform"
    nulls: str | Number = "none"
    boundary: str | Number = "none"
    columns: Mapping[str, Values] = field(default_factory=dict)
    start: int = 0  # the tick of the first start
    illegal: str | None = None
    numbers: Numbers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "shape", choose("shape", self.shape, SHAPES))
            object.__setattr__(self, "numbers", self._numbers())
            if not callable(self.pattern):
                object.__setattr__(self, "pattern", choose("pattern", self.pattern, PATTERNS, "a function"))
            if self.illegal is not None:
                object.__setattr__(self, "illegal", choose("illegal", self.illegal, ILLEGAL))
            whole("start", self.start, -(2**61), 2**61)
            for column in (None, *self.columns):
                self.values(column)
            _refuse_contradictions(self)
        except PlanError as error:
            raise error.located(str(self)) from None

    def _numbers(self) -> Numbers:
        late, places = _disorder(self.disorder)
        change, speculated = _speculation(self.speculation)
        duration = "point" if self.shape == "point" else "short"
        overlap = "medium" if self.overlap is None else self.overlap
        return Numbers(
            duration=_duration(duration if self.duration is None else self.duration),
            overlap=fraction_of("overlap", overlap, OVERLAPS, Fraction(1, 1000), Fraction(1_000_000)),
            every=_every(self.liveliness), late=late, places=places, change=change, speculated=speculated,
            copies=fraction_of("duplicates", self.duplicates, DUPLICATES, Fraction(0), _MOST),
        )  # fmt: skip

    def values(self, column: str | None = None) -> ValueNumbers:
        """What the values of a column are like, in numbers.

        >>> Facets(nulls="some", columns={"k": Values(keys=3)}).values("k")
        ValueNumbers(keys=3, skew=Fraction(0, 1), nulls=Fraction(1, 10), boundary=Fraction(0, 1))
        """
        own = self.columns.get(column or "", Values())
        given: dict[str, Any] = {name: getattr(own, name) for name in ("keys", "skew", "nulls", "boundary")}
        given = {name: getattr(self, name) if word is None else word for name, word in given.items()}
        keys = given["keys"]
        return _consistent(
            ValueNumbers(
                KEYS[choose("keys", keys, KEYS, "a number")]
                if isinstance(keys, str)
                else whole("keys", keys, 1, 2**31),
                _skew(given["skew"]),
                fraction_of("nulls", given["nulls"], SHARES, Fraction(0), Fraction(1)),
                fraction_of("boundary", given["boundary"], SHARES, Fraction(0), Fraction(1)),
            )
        )

    def as_dict(self) -> dict[str, object]:
        """The facets that differ from the defaults, as plain data: ``Facets(**facets.as_dict()) == facets``.

        >>> Facets(disorder="highly").as_dict()
        {'disorder': 'highly'}
        """
        return dict(self._given())

    def __str__(self) -> str:
        shown = (f"{name}={getattr(value, '__name__', None) or repr(value)}" for name, value in self._given())
        return f"Facets({', '.join(shown)})"

    def _given(self) -> list[tuple[str, object]]:
        return [(f.name, value) for f in fields(self) if f.init and (value := getattr(self, f.name)) != _default(f)]


def _default(of: Any) -> object:
    return {} if of.name == "columns" else of.default


def _duration(given: str | int | Lifetime) -> Lifetime | None:
    if isinstance(given, str):
        return DURATIONS[choose("duration", given, DURATIONS, "a number of ticks, or (least, greatest)")]
    least, greatest = given if isinstance(given, tuple) else (given, given)
    whole("duration", least, 1, 2**48)
    return least, whole("duration", greatest, least, 2**48)


def _every(given: str | int) -> int | None:
    if isinstance(given, str):
        return LIVELINESS[choose("liveliness", given, LIVELINESS, "a number: a CTI after so many events")]
    return whole("liveliness", given, 1, 2**31)


def _disorder(given: str | Number | tuple[Number, int]) -> tuple[Fraction, int]:
    if isinstance(given, str):
        hint = "a number: the fraction of late events, or (fraction, places)"
        return DISORDERS[choose("disorder", given, DISORDERS, hint)]
    share, places = given if isinstance(given, tuple) else (given, 64)
    return fraction_of("disorder", share, {}, Fraction(0), _MOST), whole("disorder's places", places, 1, 2**20)


def _speculation(given: str | tuple[str, Number]) -> tuple[Change, Fraction]:
    word, share = given if isinstance(given, tuple) else (given, SPECULATED)
    change = choose("speculation", word, CHANGES, "(word, fraction of the events)")
    share = fraction_of("speculation's fraction", share, {}, Fraction(0), Fraction(1))
    return change, share if change != "none" else Fraction(0)


def _skew(given: str | Number) -> Fraction:
    skew = fraction_of("skew", given, SKEWS, Fraction(0), Fraction(4))
    if skew.denominator > 2:
        raise PlanError(f"skew must be a multiple of 1/2, got {given!r}", fix="frequencies are exact: 0.5, 1, 1.5, 2 …")
    return skew


def _consistent(numbers: ValueNumbers) -> ValueNumbers:
    if numbers.skew and (numbers.keys is None or numbers.keys > LONGEST_TABLE):
        refuse("values that are all different have no skew", f"give at most {LONGEST_TABLE:,} keys, or no skew")
    return numbers


def _refuse_contradictions(facets: Facets) -> None:
    """Facets that no stream has."""
    shape, pattern, numbers = facets.shape, facets.pattern, facets.numbers
    duration, change = numbers.duration, numbers.change
    if shape == "point" and duration != (1, 1):
        refuse("a point lasts one tick", 'leave duration out, or use shape="interval"')
    if shape != "interval" and change not in ("none", "full"):
        verb = "shrink" if shape == "point" else "change"
        why = "it can only be taken back whole" if shape == "point" else "its end edge comes once"
        refuse(
            f"a{'n' * (shape == 'edge')} {shape} cannot {verb}: {why}", 'use speculation="full", or shape="interval"'
        )
    if duration is None and pattern in ("disjoint", "back_to_back"):
        refuse(f"infinite lifetimes overlap, and the pattern is {pattern}", "choose another duration or pattern")
    if facets.overlap is not None and pattern not in ("random", "duplicates"):
        refuse("this pattern decides how much events overlap", 'leave overlap out, or use pattern="random"')
    if callable(pattern) and facets.duration is not None:
        refuse("the pattern's function gives the lifetimes", "leave duration out")
    if not callable(pattern):
        _refuse_changes(duration, change)
    if facets.illegal == "shape" and shape == "interval":
        refuse("intervals may have any lifetime", 'use illegal="shape" with shape="point" or "edge"')
    if facets.illegal == "order" and numbers.late:
        refuse("a stream with late events breaks its order anyway", 'use disorder="in_order"')


def _refuse_changes(duration: Lifetime | None, change: Change) -> None:
    if change == "shrink" and duration is None:
        refuse(
            "an infinite lifetime is not what is left after shrinking", 'use speculation="extend", or a finite duration'
        )
    if change == "extend" and duration == (1, 1):
        refuse("a lifetime of one tick has not been shorter before", 'use speculation="shrink", or a longer duration')


def contradiction(**facets: Any) -> str | None:
    """Why no stream has these facets, or None: for those who try all combinations.

    >>> contradiction(shape="point", duration="long")
    'a point lasts one tick'
    """
    try:
        Facets(**facets)
    except PlanError as error:
        return error.what
    return None
