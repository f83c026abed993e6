"""Two passes over Hypothesis: a property's cases are collected first, run together, then judged and shrunk.

Both passes draw the same cases because they have the same seed; see `streamproof.properties.rounds` for what runs when.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from typing import Any

from streamproof.errors import InputError
from streamproof.properties.rounds import Assumed, Collected, Recollect, Rounds, Summary, entered


def prove(
    test: Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    *,
    cases: int | None = None,
    seed: int | None = None,
    multiplex: bool = True,
    workers: int = 1,
    repeat: str = "",
    summary: Callable[[Summary], None] | None = None,
) -> Summary:
    """Run a test that Hypothesis's ``given`` made, in two passes. Raises what the test raises.

    ``cases`` overrides the number of examples; ``seed`` makes it repeatable; ``repeat`` is the line that reports name.
    ``multiplex=False`` gives every case a query of its own, ``workers`` of them at once. ``summary`` is told how it
    went also where the test fails.
    """
    if not getattr(test, "is_hypothesis_test", False):
        raise InputError(f"prove runs a test that given made, not {test!r}", fix="@given(stream=windows(…))")
    started = perf_counter()
    rounds = Rounds(workers=workers, multiplex=multiplex)
    try:
        with entered(rounds), _prepared(test, cases, seed) as chosen:
            rounds.summary.seed = chosen
            seeded = "" if chosen is None else f" --streamproof-seed={chosen}"
            rounds.repeat = f"{repeat}{seeded}" if repeat else f"prove(…, seed={chosen})"
            _passes(test, dict(arguments or {}), rounds)
    finally:
        rounds.summary.seconds = perf_counter() - started
        if summary is not None:
            summary(rounds.summary)
    return rounds.summary


@contextmanager
def _prepared(test: Any, cases: int | None, seed: int | None) -> Iterator[int | None]:
    """For a while, settings that fit Spark: no deadline, one seed for both passes."""
    from hypothesis import Phase  # noqa: PLC0415
    from hypothesis import settings as hypothesis_settings  # noqa: PLC0415

    before, own_seed = test._hypothesis_internal_use_settings, test._hypothesis_internal_use_seed
    changes: dict[str, Any] = {"deadline": None, "phases": [p for p in before.phases if p is not Phase.explain]}
    if cases is not None:
        changes["max_examples"] = cases
    chosen = own_seed if seed is None else seed
    if seed is not None:
        changes["derandomize"] = False
    elif chosen is None and not before.derandomize:
        chosen = _global_seed()
    test._hypothesis_internal_use_settings = hypothesis_settings(before, **changes)
    test._hypothesis_internal_use_seed = chosen
    try:
        yield chosen
    finally:
        test._hypothesis_internal_use_settings, test._hypothesis_internal_use_seed = before, own_seed


def _global_seed() -> int:
    from hypothesis import core  # noqa: PLC0415

    forced = getattr(core, "global_force_seed", None)
    return int(forced) if forced is not None else random.SystemRandom().getrandbits(32)


def _passes(test: Any, arguments: dict[str, Any], rounds: Rounds) -> None:
    from hypothesis.errors import Flaky  # noqa: PLC0415

    inner = test.hypothesis.inner_test
    # Hypothesis does not shrink what its database knows to fail, and starting again would find it there half shrunk
    rounds.guessing = test._hypothesis_internal_use_settings.database is None
    collect = rounds.multiplex and getattr(test, "_hypothesis_internal_use_reproduce_failure", None) is None
    try:
        while True:
            if collect:
                _collect(test, inner, arguments, rounds)
                rounds.run_collected()
            test.hypothesis.inner_test = _judging(inner, rounds)
            rounds.begin()
            try:
                test(**arguments)
                return
            except Recollect:
                collect = not rounds.guesses
                rounds.recollected += collect
                rounds.run_guesses()
            except Flaky:  # the smallest case, alone in streaming, does not fail
                collect = False
                if not rounds.forget_batches():
                    raise
    finally:
        test.hypothesis.inner_test = inner


def _judging(inner: Callable[..., Any], rounds: Rounds) -> Callable[..., Any]:
    from hypothesis.errors import HypothesisException  # noqa: PLC0415

    @wraps(inner)
    def body(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        rounds.calls = 0
        try:
            return inner(*args, **kwargs)
        except Assumed:
            return None
        except HypothesisException:
            raise
        except Exception:
            rounds.failed = True
            raise

    return body


def _collect(test: Any, inner: Callable[..., Any], arguments: dict[str, Any], rounds: Rounds) -> None:
    """The first pass: every body runs until it asks for a run that is not known."""
    from hypothesis import HealthCheck, Phase  # noqa: PLC0415
    from hypothesis import settings as hypothesis_settings  # noqa: PLC0415
    from hypothesis.errors import HypothesisException  # noqa: PLC0415

    @wraps(inner)
    def body(*args: Any, **kwargs: Any) -> None:
        if rounds.nothing_to_collect:
            return
        rounds.calls = 0
        try:
            inner(*args, **kwargs)
            rounds.nothing_to_collect = rounds.calls == 0  # a subject that does not run on Spark
        except Collected:
            return
        except HypothesisException:
            raise
        except Exception:  # what fails here fails again in the second pass, where it counts
            return

    kept = test._hypothesis_internal_use_settings
    test._hypothesis_internal_use_settings = hypothesis_settings(
        kept, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck)
    )
    test.hypothesis.inner_test = body
    rounds.collecting = True
    try:
        test(**arguments)
    finally:
        rounds.collecting = False
        test._hypothesis_internal_use_settings = kept
