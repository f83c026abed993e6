"""Functions tried on random arguments: they raise nothing, give what they declare, and the same when called again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeAlias

from streamproof.errors import RunError
from streamproof.events.schema import Type
from streamproof.kernels.modulecheck.laws import same
from streamproof.kernels.modulecheck.samples import simpler_values, value_of
from streamproof.kernels.windows.recompute.module_output import declared
from streamproof.plan.failures import raised_at, shown_call
from streamproof.plan.modules import Module

Args: TypeAlias = "tuple[Any, ...]"
Broken: TypeAlias = "tuple[str, str, str, str, str]"
"""Law, title, what, at, fix."""


def broken_laws(
    module: Module, takes: Sequence[Type], result: Type, *, plain: bool, seed: int, calls: int
) -> Iterator[Broken]:
    """What a function does not keep to, each with the simplest arguments found."""
    random = Random(seed)  # noqa: S311  # repeatable, not secret
    tried = [tuple(value_of(random, kind, plain=plain) for kind in takes) for _ in range(calls)]

    def raises(args: Args) -> str | None:
        try:
            module.apply(args)
        except RunError as error:
            cause = error.__cause__
            line = raised_at(cause, module) if isinstance(cause, Exception) else ""
            return f"{error.what.removeprefix(f'{module} failed: ')}{line and f', raised at {line}'}"
        return None

    def type_of_answer(args: Args) -> str | None:
        try:
            declared(module, module.apply(args), result)
        except RunError as error:
            return error.what.removeprefix(f"{module} ")
        return None

    def twice(args: Args) -> str | None:
        first, second = module.apply(args), module.apply(args)
        return None if same(first, second) else f"gave {first!r}, and {second!r} when it was called again"

    found = _first(module, raises, tried)
    if found is not None:
        yield "no_exceptions", "raises", *found, "handle such arguments; it must not raise"
        tried = [args for args in tried if raises(args) is None]
    found = _first(module, _calm(type_of_answer, raises), tried)
    if found is not None:
        yield "type", "gives what it does not declare", *found, "return what it declares"
    found = _first(module, _calm(twice, raises), tried) if module.properties.deterministic else None
    if found is not None:
        fix = "make the answer depend on the arguments alone, or declare deterministic=False"
        yield "deterministic", "is not deterministic", *found, fix


def _calm(law: Callable[[Args], str | None], raises: Callable[[Args], str | None]) -> Callable[[Args], str | None]:
    """A law that says nothing about arguments on which the function raises."""
    return lambda args: None if raises(args) is not None else law(args)


def _first(module: Module, law: Callable[[Args], str | None], tried: Sequence[Args]) -> tuple[str, str] | None:
    """What is wrong with the first arguments that break a law, made simpler as long as they do; and the call."""
    for args in tried:
        what = law(args)
        if what is not None:
            simplest, what = _simplest(law, args, what)
            return what, shown_call(module, simplest)
    return None


def _simplest(law: Callable[[Args], str | None], args: Args, what: str) -> tuple[Args, str]:
    for n in range(len(args)):
        for value in simpler_values(args[n]):
            simpler = (*args[:n], value, *args[n + 1 :])
            found = law(simpler)
            if found is not None:
                args, what = simpler, found
                break
    return args, what
