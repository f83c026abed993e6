"""An engine held against the evaluator: the same rows, or an error of the same name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from streamproof.engines.base import Engine, Settings
from streamproof.errors import StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.physical import PhysicalStream, to_batches
from streamproof.plan.check import Typed, check
from tests.reference.compare import difference
from tests.reference.evaluator import TooManyRows, evaluate
from tests.reference.extra_modules import all_modules
from tests.reference.random_cases import Case
from tests.reference.values import Row

Outcome = list[Row] | str
"""Rows, or the name of an error."""

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
    histories = {name: stream.rows for name, stream in case.streams.items()}
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
    """The rows of an output, each as often as it counts."""
    rows: list[Row] = []
    for batch in batches:
        for row in batch.rows.to_pylist():
            le, re, count = row.pop("le"), row.pop("re"), row.pop("w")
            assert count > 0, "a complete result needs no retraction"
            rows += [(le, re, row)] * count
    return rows


def judge(case: Case, engine: Engine, *, mode: Literal["plain", "rewritten"] = "plain") -> Verdict:
    """Whether engine and evaluator agree on a case; ``rewritten`` gives the engine the optimised plan."""
    modules = all_modules()
    plain = check(case.plan, case.schemas, registry=modules)
    try:
        expected = expected_outcome(case, plain)
    except TooManyRows:
        return Verdict(None)
    typed = plain
    if mode == "rewritten":
        from streamproof.plan.rewrite import rewrite

        better = rewrite(case.plan, case.schemas, registry=modules)
        typed = check(better, case.schemas, registry=modules)
    actual, text = actual_outcome(case, typed, engine)
    return _verdict(expected, actual, text, plain, typed)


def _verdict(expected: Outcome, actual: Outcome, text: str, plain: Typed, typed: Typed) -> Verdict:
    if typed.schema != plain.schema:
        return Verdict(False, "schema", f"expected the schema {plain.schema}\nfound {typed.schema}", expected, actual)
    if isinstance(expected, str) or isinstance(actual, str):
        left, right = (outcome if isinstance(outcome, str) else "rows" for outcome in (expected, actual))
        words = f"expected {left}, found {right}\n{text}"
        return Verdict(left == right, f"{left} → {right}", words, expected, actual)
    found = difference(expected, actual)
    return Verdict(found is None, "rows", found or "", expected, actual)
