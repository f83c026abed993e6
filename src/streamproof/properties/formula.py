"""Formulas over words of steps: immutable, shared, and folded as soon as their value is known.

A step is ``(input window, output window, time)``. Equal formulas are one object, so that what is left of a formula
stays small however long the word is. Negation is pushed down to the predicates, where it is exact in three values.

>>> from streamproof.properties.operators import always, eventually, now
>>> hot = now(lambda step: step["hot"])
>>> always(hot).during(3)
always(step["hot"]).during(3)
>>> ~always(hot).during(3)
eventually(~step["hot"]).within(3)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from functools import partial
from typing import Any, ClassVar, TypeVar
from weakref import ref

from streamproof.errors import InputError

Predicate = Callable[..., Any]
F = TypeVar("F", bound="Formula")
OPEN = 0  # a bound that is counted elsewhere while a formula is judged
_known: dict[tuple[object, ...], ref[Formula]] = {}  # a formula leaves it when nobody holds it any more


class FormulaError(InputError, ValueError):
    """A formula or a generator that cannot be built: found where it is written, before anything runs."""


class Verdict(Enum):
    """The four values of a formula. A solved one never changes."""

    HOLDS = "T"
    FAILS = "F"
    UNDECIDED = "?"
    ERROR = "E"

    @property
    def solved(self) -> bool:
        """Whether no later step can change it."""
        return self is not Verdict.UNDECIDED

    @classmethod
    def of(cls, value: object) -> Verdict:
        """The verdict that a value stands for: a Boolean, a verdict, its step, or anything with a verdict's truth."""
        if isinstance(value, cls):
            return value
        if isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}:  # NumPy's Booleans too
            return cls.HOLDS if value else cls.FAILS
        if isinstance(value, str) and value in {"T", "F", "?", "E"}:
            return cls(value)
        matched = getattr(value, "holds", None)  # a match, which also says why
        if isinstance(matched, bool):
            return cls.HOLDS if matched else cls.FAILS
        raise FormulaError(
            f"a predicate gives a Boolean, a match or a verdict, not {type(value).__name__}: {value!r}",
            fix="compare explicitly, e.g. len(o) > 0; for a formula use consume(f)",
        )

    def __repr__(self) -> str:
        return f"Verdict.{self.name}"


class Formula:
    """A formula. Write it with the words of `streamproof.properties.operators`, never with these classes."""

    __slots__ = ("__weakref__", "automaton", "operands", "opposite")
    operands: tuple[Any, ...]
    opposite: Formula | None  # its negation, once somebody asked for it
    automaton: Any  # what was worked out about judging it, once somebody did

    def __and__(self, other: object) -> Formula:
        return both([self, formula(other)])

    def __or__(self, other: object) -> Formula:
        return either([self, formula(other)])

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Formula:
        return negation(self)

    def implies(self, other: object) -> Formula:
        """Where this holds, the other does: ``~self | other``."""
        return implication(self, formula(other))

    def until(self, other: object) -> Until:
        """This at every step before one where the other holds. Strong: the other must come. Give ``.within(n)``."""
        return make(Until, self, formula(other), None)

    def release(self, other: object, *, strict: bool = False) -> Release | Until:
        """The other holds up to and including the step where this does, or throughout.

        ``strict``: the step where both hold must come.
        """
        right = formula(other)
        return make(Until, right, both([self, right]), None) if strict else make(Release, self, right, None)

    def __bool__(self) -> bool:
        raise FormulaError(
            "a formula has no truth value of its own", fix="combine formulas with &, |, ~ and implies, not and, or, not"
        )

    def __repr__(self) -> str:
        from streamproof.properties.text import show  # noqa: PLC0415  # printing knows all formulas

        return show(self)

    @property
    def safe_length(self) -> int | None:
        """How many steps surely decide it; None where that depends on the steps, or has no bound."""
        from streamproof.properties.progress import safe_length  # noqa: PLC0415  # walks over all formulas

        return safe_length(self)


class Constant(Formula):
    """A formula whose value is known: it holds, it fails, or it will never be known."""

    __slots__ = ()

    @property
    def verdict(self) -> Verdict:
        """Its value."""
        value: Verdict = self.operands[0]
        return value


class Now(Formula):
    """A predicate of the current step: ``(predicate, label, how to call it)``."""

    __slots__ = ()


class Consume(Formula):
    """A function of the current step that gives what must hold from the next step on."""

    __slots__ = ()


class Not(Formula):
    """Negation of a predicate; elsewhere it is pushed down."""

    __slots__ = ()


class And(Formula):
    """All of them."""

    __slots__ = ()


class Or(Formula):
    """One of them."""

    __slots__ = ()


class Implies(Formula):
    """``~left | right``, kept apart so that one can tell whether the left side ever held."""

    __slots__ = ()


class Next(Formula):
    """``(n, f)``: f, n steps later."""

    __slots__ = ()


class Bounded(Formula):
    """An operator over the next n steps, the last operand; None means for as long as the word goes on."""

    __slots__ = ()
    word: ClassVar[str]  # how its bound is written
    stronger_if_longer: ClassVar[bool]

    @property
    def bound(self) -> int | None:
        """The number of steps, or None."""
        n: int | None = self.operands[-1]
        return n

    def with_bound(self: F, n: int | None) -> F:
        """The same formula over n steps."""
        return make(type(self), *self.operands[:-1], n)

    def within(self, n: Any) -> Formula:
        """The same formula over the next n steps, n >= 1."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise FormulaError(
                f"a temporal formula needs at least 1 step, got {n!r}", at=repr(self), fix=f".{self.word}(1) is now"
            )
        return folded(self.with_bound(n))

    def during(self, n: int) -> Formula:
        """The same formula over the next n steps, n >= 1."""
        return self.within(n)


class Always(Bounded):
    __slots__ = ()
    word, stronger_if_longer = "during", True


class Eventually(Bounded):
    __slots__ = ()
    word, stronger_if_longer = "within", False


class Until(Bounded):
    __slots__ = ()
    word, stronger_if_longer = "within", False


class Release(Bounded):
    __slots__ = ()
    word, stronger_if_longer = "within", True


def make(kind: type[F], *operands: object) -> F:
    """The one formula of this kind with these operands."""
    key = (kind, *operands)
    try:
        held = _known.get(key)
    except TypeError:  # a predicate that cannot be hashed is shared with nobody
        return _made(kind, operands)
    found = None if held is None else held()
    if found is None:
        found = _made(kind, operands)
        _known[key] = ref(found, partial(_known.pop, key))  # WeakValueDictionary takes three times as long
    return found  # type: ignore[return-value]  # the key names the kind


def _made(kind: type[F], operands: tuple[object, ...]) -> F:
    found = kind()
    found.operands, found.opposite, found.automaton = operands, None, None
    return found


TRUE = make(Constant, Verdict.HOLDS)
FALSE = make(Constant, Verdict.FAILS)
UNKNOWN = make(Constant, Verdict.UNDECIDED)
TRUE.opposite, FALSE.opposite, UNKNOWN.opposite = FALSE, TRUE, UNKNOWN
_CONSTANTS = {Verdict.HOLDS: TRUE, Verdict.FAILS: FALSE, Verdict.UNDECIDED: UNKNOWN}


class EndedError(Exception):
    """A step raised an error: the formula has ended with it."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def constant(value: object) -> Constant:
    """The constant that a predicate's value stands for; an error ends the formula."""
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    verdict = Verdict.of(value)
    if verdict is Verdict.ERROR:
        raise EndedError(ValueError("the predicate gave the verdict ERROR"))
    return _CONSTANTS[verdict]


def formula(value: object) -> Formula:
    """A formula from what may stand for one: itself, a Boolean, a verdict, a match, or a function of the step."""
    if isinstance(value, Formula):
        return value
    if callable(value) and not isinstance(getattr(value, "holds", None), bool):
        from streamproof.properties.operators import now  # noqa: PLC0415  # a function stands for now(function)

        return now(value)
    return constant(value)


def negation(f: Formula) -> Formula:
    """The opposite of a formula, with ``~`` at predicates only. Iterative: formulas may be deep."""
    stack = [f]
    while stack:
        current = stack[-1]
        missing = [] if current.opposite is not None else [p for p in _turned(current) if p.opposite is None]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if current.opposite is None:
            current.opposite = _negated(current)
            current.opposite.opposite = current
    assert f.opposite is not None
    return f.opposite


def _turned(f: Formula) -> tuple[Formula, ...]:
    """The parts that are negated with a formula."""
    if isinstance(f, Now | Consume | Not | Constant):
        return ()
    if isinstance(f, Implies):
        return (f.operands[1],)
    return tuple(part for part in f.operands if isinstance(part, Formula))


class _Opposites:
    """The opposites of formulas that have theirs."""

    def __getitem__(self, part: Formula) -> Formula:
        assert part.opposite is not None
        return part.opposite


def _negated(f: Formula) -> Formula:
    done = _Opposites()
    match f:
        case Not(operands=(inner,)):
            return inner  # type: ignore[no-any-return]  # operands are as the class says
        case And() | Or():
            parts = [done[part] for part in f.operands]
            return either(parts) if isinstance(f, And) else both(parts)
        case Implies(operands=(left, right)):
            return both([left, done[right]])
        case Next(operands=(n, inner)):
            return later(n, done[inner])
        case Always(operands=(inner, n)):
            return folded(make(Eventually, done[inner], n))
        case Eventually(operands=(inner, n)):
            return folded(make(Always, done[inner], n))
        case Until(operands=(left, right, n)):
            return folded(make(Release, done[left], done[right], n))
        case Release(operands=(left, right, n)):
            return folded(make(Until, done[left], done[right], n))
        case _:
            return make(Not, f)


def both(parts: Iterable[Formula]) -> Formula:
    """Their conjunction: flat, without repetition, false as soon as one part is."""
    return _joined(And, parts, nothing=TRUE, everything=FALSE)


def either(parts: Iterable[Formula]) -> Formula:
    """Their disjunction: flat, without repetition, true as soon as one part is."""
    return _joined(Or, parts, nothing=FALSE, everything=TRUE)


def _joined(kind: type[Formula], parts: Iterable[Formula], *, nothing: Formula, everything: Formula) -> Formula:
    kept: dict[Formula, None] = {}
    inside: set[object] = set()  # what temporal operators stand over
    bounded = 0
    for part in parts:
        if part is everything:
            return everything
        for piece in part.operands if type(part) is kind else (part,):
            if piece is not nothing and piece not in kept:
                kept[piece] = None
                if isinstance(piece, Bounded):
                    bounded += 1
                    inside.add(piece.operands[0])
    if bounded > len(inside):
        kept = _absorbed(kept, longest=kind is And)
    if not kept:
        return nothing
    return next(iter(kept)) if len(kept) == 1 else make(kind, *kept)


def _absorbed(parts: dict[Formula, None], *, longest: bool) -> dict[Formula, None]:
    """Of the same operator over different numbers of steps, the one that decides.

    Law: ``x & (x | y) == x`` also in three values, so ``eventually`` within 3 and within 5 is ``eventually`` within 3.
    """
    chosen: dict[object, Formula] = {}
    for part in parts:
        comparable = isinstance(part, Bounded) and part.bound != OPEN
        key: object = (type(part), *part.operands[:-1]) if comparable else part
        other = chosen.get(key)
        if other is None or _decides(part, other, longest=longest):
            chosen[key] = part
    return dict.fromkeys(chosen.values())


def _decides(part: Formula, other: Formula, *, longest: bool) -> bool:
    assert isinstance(part, Bounded)
    assert isinstance(other, Bounded)
    lengths = [float("inf") if f.bound is None else f.bound for f in (part, other)]
    return lengths[0] > lengths[1] if part.stronger_if_longer == longest else lengths[0] < lengths[1]


def implication(left: Formula, right: Formula) -> Formula:
    """``~left | right``."""
    if left is TRUE or right is TRUE:
        return right
    if left is FALSE:
        return TRUE
    if right is FALSE or right is UNKNOWN or left is UNKNOWN:
        return either([negation(left), right])
    return make(Implies, left, right)


def later(n: int, f: Formula) -> Formula:
    """f, n steps later."""
    if n == 0 or isinstance(f, Constant):
        return f
    if isinstance(f, Next):
        return make(Next, n + f.operands[0], f.operands[1])
    return make(Next, n, f)


def folded(f: Bounded) -> Formula:
    """The formula, or its value or a smaller one where that is plain."""
    first, last, n = f.operands[0], f.operands[-2], f.bound
    if isinstance(last, Constant):
        return last  # it decides at the first step, and is the same at every other
    if isinstance(f, Always | Eventually):
        return later(last.operands[0], f_over(f, last.operands[1])) if isinstance(last, Next) else f
    passing, blocking = (TRUE, FALSE) if isinstance(f, Until) else (FALSE, TRUE)
    if first is blocking or n == 1:
        return last  # type: ignore[no-any-return]  # operands are as the class says
    if first is passing:
        return folded(make(Eventually if isinstance(f, Until) else Always, last, n))
    return f


def f_over(f: Bounded, inner: Formula) -> Formula:
    """The same operator over another formula: ``always`` of ``next`` is ``next`` of ``always``."""
    return folded(make(type(f), inner, f.bound))
