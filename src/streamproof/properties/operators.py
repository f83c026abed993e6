"""The words of formulas and generators. One name for both: what you put in decides.

========================  =======================================  ==================================
word                      of formulas: a formula                   of generators: a generator
========================  =======================================  ==================================
``next(x)``               the formula holds at the next step     an empty window first
``always(x)``             ``always(f).during(n)``                  ``always(g, t)``
``eventually(x)``         ``eventually(f).within(n)``              ``eventually(g, t)``
``until``                 ``until(f, h).within(n)``, ``f.until``   ``until(g1, g2, t)``
``release``               ``release(f, h).within(n)``              ``release(g1, g2, t)``
``consume(f)``            f(step) holds from the next step on  ``consume(f, t)``
========================  =======================================  ==================================

A generator takes its number of windows in the call; a formula takes its number of steps afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

from streamproof.properties import formula as formulas
from streamproof.properties.formula import (
    Always,
    Consume,
    Eventually,
    Formula,
    FormulaError,
    Now,
    Release,
    Until,
    formula,
    make,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from streamproof.properties.generators import Gen, GeneratorLike

Caller = Callable[[Callable[..., Any], Any], Any]


def _whole(f: Callable[..., Any], step: Any) -> Any:
    return f(step)


def _windows(f: Callable[..., Any], step: Any) -> Any:
    return f(step[0], step[1])


def _windows_and_time(f: Callable[..., Any], step: Any) -> Any:
    return f(step[0], step[1], step[2])


_CALLERS: dict[int, Caller] = {1: _whole, 2: _windows, 3: _windows_and_time}


def _caller(f: Callable[..., Any], word: str) -> Caller:
    """How a function takes a step: whole, as (input, output), or as (input, output, time)."""
    code = getattr(f, "__code__", None)
    if code is not None and f.__class__ is FunctionType and not (f.__defaults__ or code.co_kwonlyargcount):
        found = _CALLERS.get(code.co_argcount)  # the common case, without inspecting
        if found is not None:
            return found
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # some built-in functions do not say
        return _whole
    positional = [
        p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} and p.default is p.empty
    ]
    found = _CALLERS.get(len(positional) or 1)
    if found is None:
        raise FormulaError(
            f"a predicate takes the step, (input, output) or (input, output, time), not {len(positional)} arguments",
            at=f"{word}({getattr(f, '__name__', f)})",
        )
    return found


def now(predicate: Callable[..., Any], label: str | None = None) -> Formula:
    """The predicate holds for the current step. It takes ``(step)``, ``(i, o)`` or ``(i, o, time)``.

    It gives a Boolean, a match or a verdict. ``label`` is what reports call it.
    """
    if not callable(predicate):
        return formula(predicate)
    return make(Now, predicate, label, _caller(predicate, "now"))


def _is_generator(value: object) -> bool:
    """Whether it draws windows. Looks at the class alone, so that formulas need no Hypothesis."""
    return any(base.__name__ == "SearchStrategy" for base in type(value).__mro__)


def _generators() -> Any:
    from streamproof.properties import generators  # noqa: PLC0415  # formulas alone need no Hypothesis

    return generators


def _refuse_length(word: str, end: str, t: object) -> None:
    if t is not None:
        raise FormulaError(
            f"{word} of a formula takes its number of steps afterwards", fix=f"write {word}(f).{end}({t!r})"
        )


@overload
def next(first: int, then: Formula | bool | Callable[..., Any]) -> Formula: ...  # noqa: A001
@overload
def next(first: int, then: GeneratorLike) -> Gen: ...  # noqa: A001
@overload
def next(first: SearchStrategy[Any]) -> Gen: ...  # noqa: A001
@overload
def next(first: Formula | bool | Callable[..., Any]) -> Formula: ...  # noqa: A001
def next(first: Any, then: Any = None) -> Any:  # noqa: A001  # the name it has in temporal logic
    """Of a formula: it holds one step later, with ``next(n, f)`` n steps. Of a generator: empty windows first."""
    n, what = (1, first) if then is None else (first, then)
    if _is_generator(what):
        return _generators().later(n, what)
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise FormulaError(f"next needs a number of steps that is not negative, got {n!r}", fix="next(0, f) is f")
    return formulas.later(n, formula(what))


@overload
def always(what: SearchStrategy[Any], t: int) -> Gen: ...
@overload
def always(what: Formula | bool | Callable[..., Any]) -> Always: ...
def always(what: Any, t: Any = None) -> Any:
    """Of a formula: it holds at every step; give ``.during(n)``. Of a generator: t windows."""
    if _is_generator(what):
        return _generators().always(what, t)
    _refuse_length("always", "during", t)
    return make(Always, formula(what), None)


@overload
def eventually(what: SearchStrategy[Any], t: int) -> Gen: ...
@overload
def eventually(what: Formula | bool | Callable[..., Any]) -> Eventually: ...
def eventually(what: Any, t: Any = None) -> Any:
    """Of a formula: it holds at some step; give ``.within(n)``. Of a generator: 0 to t-1 empty windows before it."""
    if _is_generator(what):
        return _generators().eventually(what, t)
    _refuse_length("eventually", "within", t)
    return make(Eventually, formula(what), None)


@overload
def until(first: SearchStrategy[Any], last: SearchStrategy[Any], t: int) -> Gen: ...
@overload
def until(first: Formula | bool | Callable[..., Any], last: Formula | bool | Callable[..., Any]) -> Until: ...
def until(first: Any, last: Any, t: Any = None) -> Any:
    """The first until the last: of formulas, give ``.within(n)``; of generators, in up to t windows."""
    if _is_generator(first) or _is_generator(last):
        return _generators().until(first, last, t)
    _refuse_length("until", "within", t)
    return formula(first).until(last)


@overload
def release(first: SearchStrategy[Any], last: SearchStrategy[Any], t: int) -> Gen: ...
@overload
def release(
    first: Formula | bool | Callable[..., Any], last: Formula | bool | Callable[..., Any], *, strict: bool = False
) -> Release | Until: ...
def release(first: Any, last: Any, t: Any = None, *, strict: bool = False) -> Any:
    """The last up to and including where the first comes, or throughout. Of formulas, give ``.within(n)``."""
    if _is_generator(first) or _is_generator(last):
        return _generators().release(first, last, t)
    _refuse_length("release", "within", t)
    return formula(first).release(last, strict=strict)


@overload
def consume(f: Callable[..., Any], t: int) -> Gen: ...
@overload
def consume(f: Callable[..., Any]) -> Formula: ...
def consume(f: Callable[..., Any], t: int | None = None) -> Any:
    """Of formulas: ``f(step)`` gives what must hold from the next step on. With ``t``: windows that depend on
    earlier ones, ``f(windows so far)`` gives the generator of the next.
    """
    if t is not None:
        return _generators().consume(f, t)
    if not callable(f):
        raise FormulaError(f"consume needs a function of the step, not {f!r}", fix="consume(lambda i, o: …)")
    return make(Consume, f, _caller(f, "consume"))


def implies(left: Any, right: Any) -> Formula:
    """Where the left side holds, the right side does. Works for Booleans too, inside ``consume``."""
    from streamproof.properties.progress import note_antecedent  # noqa: PLC0415  # progress knows formulas

    first = formula(left)
    note_antecedent(first)
    return formulas.implication(first, formula(right))
