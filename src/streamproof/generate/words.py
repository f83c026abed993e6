"""Reading one facet: a word that is known, or a number within bounds; anything else is refused with a hint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

from streamproof.errors import PlanError, did_you_mean

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
