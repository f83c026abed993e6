"""An engine held against the evaluator: the same rows, or an error of the same name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from streamproof.engines.base import Engine, Settings
from streamproof.errors import StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.physical import PhysicalStream, to_batches
from streamproof.plan.check import Typed, check
from streamproof.plan.rewrite import rewrite
from streamproof.workbench.modules import all_modules
from tests.reference.compare import difference
from tests.reference.evaluator import TooManyRows, evaluate
from tests.reference.random_cases import Case
from tests.reference.streaming import may_fail_so, streamed_outcome
from tests.reference.streams import folded
from tests.reference.values import Row

Outcome = list[Row] | str
"""Rows, or the name of an error."""

Mode = Literal["plain", "rewritten"]
MOST_ROWS = 600


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a case. ``agrees`` None means that it was too large to judge."""

    agrees: bool | None
    kind: str = ""  # what sort of difference: differences of one sort shrink together
    text: str = ""
    expected: Outcome = ""
    actual: Outcome = ""


def expected_outcome(case: Case, typed: Typed) -> Outcome:
    """What the evaluator says."""
    histories = {name: folded(stream) for name, stream in case.streams.items()}
    try:
        return evaluate(
            typed, histories, horizon=case.horizon, limits=case.limits, registry=all_modules(), most_rows=MOST_ROWS
        )
    except StreamproofError as error:
        return error.name


def actual_outcome(case: Case, typed: Typed, engine: Engine) -> tuple[Outcome, str]:
    """What the engine says, and the whole text of an error."""
    inputs = {
        name: list(to_batches(PhysicalStream.from_events(stream.events, schema=stream.schema)))
        for name, stream in case.streams.items()
    }
    settings = Settings(horizon=case.horizon, limits=case.limits, registry=all_modules())
    try:
        return rows_of(engine.run(typed, inputs, settings)), ""
    except StreamproofError as error:
        return error.name, str(error)
    except Exception as error:  # an engine may only fail with errors that have names
        return f"crash: {type(error).__name__}", f"{type(error).__name__}: {error}"


def rows_of(batches: Iterable[Batch]) -> list[Row]:
    """The rows that an output adds up to; what is taken back must have been given."""
    output = list(batches)
    if not output:
        return []
    history = History.from_batches(output[0].schema, output)
    return [(row.le, row.re, row.payload) for row in history.to_rows()]


def judge(case: Case, engine: Engine, *, mode: Mode = "plain") -> Verdict:
    """Whether engine and evaluator agree on a case; ``rewritten`` gives the engine the optimised plan.

    A streaming engine must also keep what it promises on the way; see `tests.reference.streaming`.

    A rewrite may make an error vanish, together with the rows that caused it and that nobody would have seen; so may
    Spark, which rewrites every plan.
    """
    plain = check(case.plan, case.schemas, registry=all_modules())
    try:
        expected = expected_outcome(case, plain)
    except TooManyRows:
        return Verdict(None)
    typed = plain if mode == "plain" else _rewritten(case)
    if typed.schema != plain.schema:
        return Verdict(False, "schema", f"expected the schema {plain.schema}\nfound {typed.schema}", expected)
    streaming = engine.name in ("local", "spark-chain")
    actual, text = streamed_outcome(case, typed, engine) if streaming else actual_outcome(case, typed, engine)
    if streaming and isinstance(actual, str) and may_fail_so(case, plain, actual, expected):
        return Verdict(True, expected=expected, actual=actual)
    lazy = mode == "rewritten" or engine.name == "spark"
    if lazy and isinstance(expected, str) and not isinstance(actual, str):
        return Verdict(True, expected=expected, actual=actual)
    return _verdict(expected, actual, text)


def _rewritten(case: Case) -> Typed:
    better = rewrite(case.plan, case.schemas, registry=all_modules())
    return check(better, case.schemas, registry=all_modules())


def _verdict(expected: Outcome, actual: Outcome, text: str) -> Verdict:
    if isinstance(expected, str) or isinstance(actual, str):
        left, right = (outcome if isinstance(outcome, str) else "rows" for outcome in (expected, actual))
        words = f"expected {left}, found {right}\n{text}"
        return Verdict(left == right, f"{left} → {right}", words, expected, actual)
    found = difference(expected, actual)
    return Verdict(found is None, "rows", found or "", expected, actual)
