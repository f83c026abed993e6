"""Formulas as automata that grow while they are used: what was worked out once for a residual is only looked up again.

A bound that counts down would make a new residual of every step. So the outer bounds are left open while a formula is
judged, and put in again when somebody looks, or when they come to their end.

>>> from streamproof.properties.operators import always, eventually, now
>>> opened, bounds = open_bounds(always(eventually(now(bool, "calm")).within(2)).during(1000))
>>> closed(opened, bounds, passed=3)
always(eventually(calm).within(2)).during(997)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof.properties.formula import (
    FALSE,
    OPEN,
    TRUE,
    Always,
    And,
    Bounded,
    Constant,
    Consume,
    Eventually,
    Formula,
    Next,
    Now,
    Or,
    Release,
    Until,
    Verdict,
    both,
    constant,
    either,
    formula,
)

MOST_STATES = 512  # residuals that are remembered
MOST_ASKED = 8  # predicates of a residual that is remembered: its ways are at most two to the power of these
_LEAVES = frozenset({Now, Consume, Constant, Next})


class State:
    """A residual, the predicates that look at its next step, and where their answers lead."""

    __slots__ = ("_asked", "leaves", "residual", "ways")

    def __init__(self, residual: Formula, leaves: list[Formula]) -> None:
        self.residual, self.leaves = residual, leaves
        self._asked = [(f.operands[0], f.operands[-1], constant if type(f) is Now else formula) for f in leaves]
        self.ways: dict[int, Way] = {}  # by the answers as bits after a leading one

    def ask(self, step: Any) -> tuple[int, list[Any]]:
        """The answers as bits after a leading one, which is missing if one is neither true nor false; and as they are.

        >>> from streamproof.properties.operators import now
        >>> residual = now(lambda n: n > 3) & now(lambda n: n > 5)
        >>> State(residual, leaves_of(residual)).ask(4)
        (5, [False, True])
        """
        key, answers = 1, []
        for function, call, read in self._asked:
            answer = call(function, step)
            if answer is not True and answer is not False:
                answer = read(answer)
            answers.append(answer)
            if answer is True or answer is TRUE:
                key += key + 1
            else:
                key = 2 * key if answer is False or answer is FALSE else 0
        return key, answers


class Way:
    """Where answers lead: what is left, its state if known, and how many left sides of ``implies`` were decided."""

    __slots__ = ("fired", "left", "seen", "to", "verdict")

    def __init__(self, left: Formula, to: State | None, seen: int, fired: int) -> None:
        self.left, self.to, self.seen, self.fired = left, to, seen, fired
        self.verdict = left.verdict if isinstance(left, Constant) else Verdict.UNDECIDED


class Automaton:
    """The states of one formula that are known so far."""

    __slots__ = ("states",)

    def __init__(self) -> None:
        self.states: dict[Formula, State] = {}

    def state(self, residual: Formula) -> State | None:
        """The state of a residual, made if there is room for it."""
        found = self.states.get(residual)
        if found is None and len(self.states) < MOST_STATES and not isinstance(residual, Constant):
            leaves = leaves_of(residual)
            if len(leaves) <= MOST_ASKED:
                found = self.states[residual] = State(residual, leaves)
        return found


def automaton_of(root: Formula) -> Automaton:
    """The automaton of a formula: one for all words that it is judged over."""
    if root.automaton is None:
        root.automaton = Automaton()
    found: Automaton = root.automaton
    return found


def parts_now(f: Formula) -> tuple[Formula, ...]:
    """The parts that look at this step."""
    kind = type(f)
    if kind is Always or kind is Eventually:
        return f.operands[:1]
    if kind in _LEAVES:
        return ()
    if kind is Until or kind is Release:
        return f.operands[1:2] if f.operands[2] == 1 else f.operands[:2]
    return f.operands


def leaves_of(f: Formula) -> list[Formula]:
    """The predicates that look at this step, in the order in which they are asked."""
    found: list[Formula] = []
    seen: set[Formula] = set()
    stack = [f]
    while stack:
        current = stack.pop()
        if current not in seen:
            seen.add(current)
            if isinstance(current, Now | Consume):
                found.append(current)
            stack.extend(parts_now(current))
    return found


def open_bounds(f: Formula) -> tuple[Formula, dict[Formula, int]]:
    """The formula with its long outer bounds left open, and these bounds."""
    bounds: dict[Formula, int] = {}

    def opened(part: Formula) -> Formula:
        if not isinstance(part, Bounded) or part.bound is None or part.bound < 2:
            return part
        made = part.with_bound(OPEN)
        bounds[made] = part.bound
        return made

    if isinstance(f, And | Or):
        parts = [opened(part) for part in f.operands]
        return (both(parts) if isinstance(f, And) else either(parts)), bounds
    return opened(f), bounds


def closed(f: Formula, bounds: Mapping[Formula, int], passed: int) -> Formula:
    """The formula with its bounds put in again, so many steps later. Open bounds lie under & and | alone."""
    if not bounds:
        return f
    done: dict[Formula, Formula] = {
        part: part.with_bound(n - passed) for part, n in bounds.items() if isinstance(part, Bounded)
    }
    stack = [f]
    while stack:
        current = stack[-1]
        if current in done or not isinstance(current, And | Or):
            done.setdefault(stack.pop(), current)
            continue
        missing = [part for part in current.operands if part not in done]
        if missing:
            stack.extend(missing)
            continue
        parts = [done[part] for part in current.operands]
        done[stack.pop()] = both(parts) if isinstance(current, And) else either(parts)
    return done[f]
