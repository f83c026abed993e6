"""The one place that knows how Hypothesis works inside: everything else uses what its manual promises.

A property runs a test that ``given`` made several times over, with other settings, one seed and other bodies, and has
to know when Hypothesis shows its smallest failing case. There is no public way to either. What is relied on is stated
in tests/properties/test_hypothesis_internals.py, which names what a version of Hypothesis has changed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hypothesis import control, core
from hypothesis import settings as hypothesis_settings


class EndBody(BaseException):
    """Ends the body of a test early, as if it had passed. No error, so that no ``except Exception`` stops it."""


class EndPass(BaseException):
    """Ends a whole pass over a test: Hypothesis lets through what is no `Exception`, and does not shrink it."""


class GivenTest:
    """A test that ``given`` made: for a while it can have other settings, another seed and another body."""

    def __init__(self, function: Any, instance: object = None) -> None:
        """``instance`` is that of the class whose method the test is."""
        self._function, self._instance = function, instance

    @staticmethod
    def made(function: object) -> bool:
        """Returns whether ``given`` made a function."""
        return bool(getattr(function, "is_hypothesis_test", False))

    def __call__(self, arguments: Mapping[str, Any]) -> None:
        """Draw examples and run the body over each; raises what the smallest failing one does."""
        __tracebackhide__ = True
        if self._instance is None:
            self._function(**arguments)
        else:
            self._function(self._instance, **arguments)

    @property
    def settings(self) -> hypothesis_settings:
        """The settings that it runs with."""
        found: hypothesis_settings = self._function._hypothesis_internal_use_settings
        return found

    @property
    def seed(self) -> int | None:
        """The seed that its ``@seed`` gives."""
        found: int | None = self._function._hypothesis_internal_use_seed
        return found

    @property
    def repeats_one_failure(self) -> bool:
        """Whether ``@reproduce_failure`` stands on it."""
        return getattr(self._function, "_hypothesis_internal_use_reproduce_failure", None) is not None

    @property
    def body(self) -> Callable[..., Any]:
        """The function that was given to ``given``."""
        found: Callable[..., Any] = self._function.hypothesis.inner_test
        return found

    @contextmanager
    def with_settings(self, **changes: Any) -> Iterator[None]:
        """For a while, other settings."""
        before = self.settings
        self._function._hypothesis_internal_use_settings = hypothesis_settings(before, **changes)
        try:
            yield
        finally:
            self._function._hypothesis_internal_use_settings = before

    @contextmanager
    def with_seed(self, seed: int | None) -> Iterator[None]:
        """For a while, another seed: passes of one seed draw the same examples in the same order."""
        before = self.seed
        self._function._hypothesis_internal_use_seed = seed
        try:
            yield
        finally:
            self._function._hypothesis_internal_use_seed = before

    @contextmanager
    def with_body(self, body: Callable[..., Any]) -> Iterator[None]:
        """For a while, another body; it should be wrapped like the first, whose name reports show."""
        before = self.body
        self._function.hypothesis.inner_test = body
        try:
            yield
        finally:
            self._function.hypothesis.inner_test = before


def some_seed() -> int:
    """Returns the seed that pytest's ``--hypothesis-seed`` gives, else a new one."""
    forced: int | None = vars(core)["global_force_seed"]  # declared as None, and set by Hypothesis's plugin
    return random.SystemRandom().getrandbits(32) if forced is None else forced


def shows_smallest_case() -> bool:
    """Returns whether Hypothesis runs its smallest failing case right now, to show it."""
    context = control._current_build_context.value
    return context is not None and bool(context.is_final)


def unwrapped(strategy: Any) -> Any:
    """Returns the strategy that Hypothesis's lazy wrappers stand for."""
    while hasattr(strategy, "wrapped_strategy"):
        strategy = strategy.wrapped_strategy
    return strategy
