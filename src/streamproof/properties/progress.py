"""Judging a formula letter by letter: what is left of it after each letter, until its value is known.

>>> from streamproof.properties.words import always, now
>>> judged = Progress(always(now(lambda letter: letter > 0)).during(3))
>>> [judged.feed(letter).value for letter in (5, 2)], judged.residual
(['?', '?'], always(letter > 0).during(1))
>>> judged.feed(7)
Verdict.HOLDS

Law: the verdict after a word is the verdict of the whole formula over it; once solved, it never changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamproof.properties import formula as formulas
from streamproof.properties.formula import (
    FALSE,
    TRUE,
    Always,
    And,
    Bounded,
    Constant,
    Consume,
    EndedError,
    Eventually,
    Formula,
    Implies,
    Next,
    Not,
    Now,
    Or,
    Release,
    Until,
    both,
    constant,
    either,
    formula,
)
from streamproof.properties.verdict import Verdict

_watching: list[Antecedents] = []  # those that `implies` tells whether its left side held, inside ``consume``


class Antecedents:
    """Whether the left side of an ``implies`` ever held; a property whose never did has said nothing."""

    def __init__(self) -> None:
        self.seen = 0  # left sides that were decided
        self.fired = 0  # and those that held

    def note(self, left: Formula) -> None:
        """Take down a left side, if it is decided."""
        if left is TRUE or left is FALSE:
            self.seen += 1
            self.fired += left is TRUE


def note_antecedent(left: Formula) -> None:
    """Tell whoever judges a letter right now that an implication was made with this left side."""
    if _watching:
        _watching[-1].note(left)


class Progress:
    """A formula on its way along a word."""

    def __init__(self, what: object) -> None:
        self.formula = formula(what)
        self.residual: Formula = self.formula  # what must hold of the letters to come
        self.error: Exception | None = None  # what a predicate raised
        self.letters = 0  # fed so far
        self.decided_at: int | None = None  # the letter that decided it, from 0
        self.antecedents = Antecedents()

    @property
    def verdict(self) -> Verdict:
        """What is known now."""
        if self.error is not None:
            return Verdict.ERROR
        return self.residual.verdict if isinstance(self.residual, Constant) else Verdict.UNDECIDED

    def feed(self, letter: Any) -> Verdict:
        """Judge one more letter. A solved formula does not look at it."""
        residual = self.residual
        if self.error is None and residual is not TRUE and residual is not FALSE:
            self._step(letter)
            if self.verdict.solved:
                self.decided_at = self.letters
        self.letters += 1
        return self.verdict

    def _step(self, letter: Any) -> None:
        _watching.append(self.antecedents)
        try:
            self.residual = progressed(self.residual, letter, self.antecedents)
        except EndedError as ended:
            self.error = ended.cause
        finally:
            _watching.pop()

    def over(self, word: Iterable[Any]) -> Verdict:
        """Judge a whole word, as far as needed."""
        for letter in word:
            if self.feed(letter).solved:
                break
        return self.verdict


def evaluate(what: object, word: Iterable[Any]) -> Verdict:
    """The verdict of a formula over a word."""
    return Progress(what).over(word)


def progressed(f: Formula, letter: Any, antecedents: Antecedents | None = None) -> Formula:
    """What must hold from the next letter on. Every predicate is asked at most once; errors end it."""
    done: dict[Formula, Formula] = {}
    stack = [f]
    while stack:
        current = stack[-1]
        parts = _parts(current)
        waiting = len(stack)
        for part in parts:
            if part not in done:
                stack.append(part)
        if len(stack) == waiting:
            stack.pop()
            if current not in done:
                done[current] = _rule(current, letter, done, antecedents)
    return done[f]


def _parts(f: Formula) -> tuple[Formula, ...]:
    """The parts that look at this letter."""
    kind = type(f)
    if kind is Always or kind is Eventually:
        return f.operands[:1]
    if kind in _LEAVES:
        return ()
    if kind is Until or kind is Release:
        return f.operands[1:2] if f.operands[2] == 1 else f.operands[:2]
    return f.operands


_LEAVES = frozenset({Now, Consume, Constant, Next})


def _rule(f: Formula, letter: Any, done: dict[Formula, Formula], antecedents: Antecedents | None) -> Formula:
    kind, operands = type(f), f.operands
    if kind is Now:
        return _asked(operands[0], operands[2], letter, constant)
    if kind is Always or kind is Eventually:
        return _repeated(f, done[operands[0]])
    if kind is Consume:
        return _asked(operands[0], operands[1], letter, formula)
    if kind is Next:
        return formulas.later(operands[0] - 1, operands[1])
    if kind is Until or kind is Release:
        return _two_sided(f, done)
    return _connective(f, done, antecedents)


def _repeated(f: Formula, first: Formula) -> Formula:
    """``always`` or ``eventually`` after a letter of which the inner formula left ``first``."""
    passing, ending = (TRUE, FALSE) if type(f) is Always else (FALSE, TRUE)
    if first is ending:
        return ending
    rest = _rest(f)
    if first is passing and rest:
        return rest[0]
    return both((first, *rest)) if type(f) is Always else either((first, *rest))


def _rest(f: Formula) -> tuple[Formula, ...]:
    """The same operator over one letter less, if any is left."""
    assert isinstance(f, Bounded)
    n = f.bound
    if n is None:
        return (f,)
    return (f.with_bound(n - 1),) if n > 1 else ()


def _two_sided(f: Formula, done: dict[Formula, Formula]) -> Formula:
    left, right, n = f.operands
    if n == 1:
        return done[right]
    (rest,) = _rest(f)
    if type(f) is Until:
        return either((done[right], both((done[left], rest))))
    return both((done[right], either((done[left], rest))))


def _connective(f: Formula, done: dict[Formula, Formula], antecedents: Antecedents | None) -> Formula:
    kind = type(f)
    if kind is And:
        return both([done[part] for part in f.operands])
    if kind is Or:
        return either([done[part] for part in f.operands])
    if kind is Not:
        return formulas.negation(done[f.operands[0]])
    if kind is Implies:
        left, right = (done[part] for part in f.operands)
        if antecedents is not None:
            antecedents.note(left)
        return formulas.implication(left, right)
    return f  # a constant


def _asked(function: Any, call: Any, letter: Any, read: Any) -> Formula:
    try:
        return read(call(function, letter))  # type: ignore[no-any-return]  # constant and formula give formulas
    except EndedError:
        raise
    except Exception as error:
        raise EndedError(error) from error


def safe_length(f: Formula) -> int | None:
    """How many letters surely decide a formula; None under ``consume`` and without a bound.

    >>> from streamproof.properties.words import always, eventually, now
    >>> safe_length(always(eventually(now(bool)).within(4)).during(5))
    8
    """
    found: dict[Formula, int | None] = {}
    stack = [f]
    while stack:
        current = stack[-1]
        missing = [p for p in current.operands if isinstance(p, Formula) and p not in found]
        if missing and not isinstance(current, Now | Consume):
            stack.extend(missing)
            continue
        stack.pop()
        found[current] = _length(current, found)
    return found[f]


def _length(f: Formula, found: dict[Formula, int | None]) -> int | None:
    if isinstance(f, Constant):
        return 0
    if isinstance(f, Now | Consume):
        return 1 if isinstance(f, Now) else None
    lengths = [found[part] for part in f.operands if isinstance(part, Formula)]
    known = [length for length in lengths if length is not None]
    if len(known) < len(lengths):
        return None
    if isinstance(f, Next):
        return known[0] + int(f.operands[0])
    if isinstance(f, Bounded):
        if f.bound is None:
            return None
        left = known[:-1] if f.bound > 1 else []  # at the last letter, only the right side counts
        return max(known[-1] + f.bound - 1, *(length + f.bound - 2 for length in left), 0)
    return max(known)
