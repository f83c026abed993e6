"""Judging a formula step by step: what is left of it after each step, until its value is known.

>>> from streamproof.properties.operators import always, now
>>> judged = Progress(always(now(lambda step: step > 0)).during(3))
>>> [judged.feed(step).value for step in (5, 2)], judged.residual
(['?', '?'], always(step > 0).during(1))
>>> judged.feed(7)
Verdict.HOLDS

Law: the verdict after a word is the verdict of the whole formula over it; once solved, it never changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamproof.arguments import told
from streamproof.properties import formula as formulas
from streamproof.properties.automaton import State, Way, automaton_of, closed, open_bounds, parts_now
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
    Verdict,
    both,
    constant,
    either,
    formula,
    make,
)

_UNDECIDED = Verdict.UNDECIDED
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
    """Tell whoever judges a step right now that an implication was made with this left side."""
    if _watching:
        _watching[-1].note(left)


class Progress:
    """A formula on its way along a word."""

    def __init__(self, what: object) -> None:
        self.formula = formula(what)
        self.error: Exception | None = None  # what a predicate raised
        self.steps = 0  # fed so far
        self.decided_at: int | None = None  # the step that decided it, from 0
        self.antecedents = Antecedents()
        self._automaton = automaton_of(self.formula)
        self._verdict = Verdict.UNDECIDED
        self._open(self.formula)

    def _open(self, residual: Formula) -> None:
        """Go on from here, with outer bounds left open until the first of them ends."""
        self._left, self._bounds = open_bounds(residual)
        self._opened_at = self.steps
        self._close_at = self.steps + min(self._bounds.values()) - 1 if self._bounds else -1
        self._settle(self._automaton.state(self._left))

    def _settle(self, state: State | None) -> None:
        self._state = state
        if isinstance(self._left, Constant):
            self._verdict = self._left.verdict

    @property
    def residual(self) -> Formula:
        """What must hold of the steps to come."""
        return closed(self._left, self._bounds, self.steps - self._opened_at)

    @property
    def verdict(self) -> Verdict:
        """What is known now."""
        return self._verdict

    def feed(self, step: Any) -> Verdict:
        """Judge one more step. A solved formula does not look at it."""
        if self._verdict is _UNDECIDED:
            if self.steps == self._close_at:
                self._open(self.residual)
            self._step(step)
            if self._verdict is not _UNDECIDED:
                self.decided_at = self.steps
        self.steps += 1
        return self._verdict

    def _step(self, step: Any) -> None:
        _watching.append(self.antecedents)
        state = self._state
        try:
            if state is None:
                self._left = progressed(self._left, step, self.antecedents)
                self._settle(self._automaton.states.get(self._left))
            else:
                self._follow(state, *state.ask(step))
        except EndedError as ended:
            self.error, self._verdict = ended.cause, Verdict.ERROR
        except Exception as error:  # what a predicate raised
            self.error, self._verdict = error, Verdict.ERROR
        finally:
            _watching.pop()

    def _follow(self, state: State, key: int, answers: list[Any]) -> None:
        """From a known state, go where the answers lead: looked up, or worked out."""
        way = state.ways.get(key)
        if way is None:
            way = self._way(state, key, answers)
        self._left, self._state, self._verdict = way.left, way.to, way.verdict
        if way.seen:
            self.antecedents.seen += way.seen
            self.antecedents.fired += way.fired

    def _way(self, state: State, key: int, answers: list[Any]) -> Way:
        plain = key >= 1 << len(answers)
        noted = Antecedents()
        known = {leaf: formula(answer) for leaf, answer in zip(state.leaves, answers, strict=True)}
        left = progressed(state.residual, None, noted, known)
        to = self._automaton.state(left) if plain else self._automaton.states.get(left)
        way = Way(left, to, noted.seen, noted.fired)
        if plain:
            state.ways[key] = way
        return way

    def over(self, word: Iterable[Any]) -> Verdict:
        """Judge a whole word, as far as needed."""
        for step in word:
            if self.feed(step).solved:
                break
        return self.verdict


@told
def evaluate(what: object, word: Iterable[Any]) -> Verdict:
    """The verdict of a formula over a word."""
    return Progress(what).over(word)


def progressed(
    f: Formula, step: Any, antecedents: Antecedents | None = None, known: dict[Formula, Formula] | None = None
) -> Formula:
    """What must hold from the next step on. Every predicate is asked at most once; errors end it.

    ``known`` are predicates that were asked already, with their answers.
    """
    done = {} if known is None else known
    stack = [f]
    while stack:
        current = stack[-1]
        waiting = len(stack)
        for part in parts_now(current):
            if part not in done:
                if type(part) is Now:  # most parts are: no need to wait for it
                    done[part] = _asked(part.operands[0], part.operands[2], step, constant)
                else:
                    stack.append(part)
        if len(stack) == waiting:
            stack.pop()
            if current not in done:
                done[current] = _rule(current, step, done, antecedents)
    return done[f]


def _rule(f: Formula, step: Any, done: dict[Formula, Formula], antecedents: Antecedents | None) -> Formula:
    kind, operands = type(f), f.operands
    if kind is Always or kind is Eventually:
        return _repeated(f, done[operands[0]])
    if kind is Now:
        return _asked(operands[0], operands[2], step, constant)
    if kind is Consume:
        return _asked(operands[0], operands[1], step, formula)
    if kind is Next:
        return formulas.later(operands[0] - 1, operands[1])
    if kind is Until or kind is Release:
        return _two_sided(f, done)
    return _connective(f, done, antecedents)


def _repeated(f: Formula, first: Formula) -> Formula:
    """``always`` or ``eventually`` after a step of which the inner formula left ``first``."""
    kind, (inner, n) = type(f), f.operands
    passing, ending = (TRUE, FALSE) if kind is Always else (FALSE, TRUE)
    if first is ending or n == 1:
        return first
    rest = make(kind, inner, n - 1) if n else f  # a bound that is open, or none, stays
    if first is passing:
        return rest
    return both((first, rest)) if kind is Always else either((first, rest))


def _two_sided(f: Formula, done: dict[Formula, Formula]) -> Formula:
    left, right, n = f.operands
    if n == 1:
        return done[right]
    rest = make(type(f), left, right, n - 1) if n else f  # as above
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


def _asked(function: Any, call: Any, step: Any, read: Any) -> Formula:
    try:
        return read(call(function, step))  # type: ignore[no-any-return]  # constant and formula give formulas
    except EndedError:
        raise
    except Exception as error:
        raise EndedError(error) from error


@told
def safe_length(f: Formula) -> int | None:
    """How many steps surely decide a formula; None under ``consume`` and without a bound.

    >>> from streamproof.properties.operators import always, eventually, now
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
        left = known[:-1] if f.bound > 1 else []  # at the last step, only the right side counts
        return max(known[-1] + f.bound - 1, *(length + f.bound - 2 for length in left), 0)
    return max(known)
