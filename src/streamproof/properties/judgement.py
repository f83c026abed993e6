"""Judging a run: the formula over the run's steps. Undecided is not good enough, and saying nothing is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from streamproof.arguments import door, told
from streamproof.properties.formula import Bounded, Formula, FormulaError, Verdict, formula
from streamproof.properties.progress import Progress, safe_length
from streamproof.properties.runs import BatchSteps, Steps, SubjectRun, TimeSteps, WordStep


@dataclass(frozen=True, eq=False)
class Judgement:
    """A verdict and where it comes from."""

    verdict: Verdict
    formula: Formula
    run: SubjectRun
    word: list[WordStep]
    residual: Formula
    decided_at: int | None  # the step that decided, from 0
    error: Exception | None
    vacuous: str | None  # why a pass says nothing, or None
    by_batch: bool = False  # whether the steps are micro-batches

    @cached_property
    def reason(self) -> str:
        """One line: why it is not a pass."""
        if self.verdict is Verdict.ERROR:
            return f"a predicate raised {type(self.error).__name__}: {self.error}"
        if self.verdict is Verdict.FAILS:
            return f"fails at window {self.decided_at} of {len(self.word)}"
        if self.verdict is Verdict.HOLDS:
            return "holds"
        needed = safe_length(self.formula)
        if needed is not None and needed > len(self.word):
            return f"undecided: the run has {len(self.word)} windows, the formula needs {needed}"
        return f"undecided after {len(self.word)} windows; still to show: {self.residual!r}"

    def __bool__(self) -> bool:
        return self.verdict is Verdict.HOLDS

    def __str__(self) -> str:
        from streamproof.properties.report import text_report  # noqa: PLC0415  # reports know judgements

        return text_report(self)

    def _repr_html_(self) -> str:
        from streamproof.properties.report import html_fragment  # noqa: PLC0415

        return html_fragment(self)

    def __repr__(self) -> str:
        return f"Judgement({self.verdict.name.lower()}: {self.reason})"


class PropertyFailed(AssertionError):
    """A property does not hold of a run. Its text is the report; in a notebook it is drawn."""

    def __init__(self, judgement: Judgement) -> None:
        super().__init__(str(judgement))
        self.judgement = judgement

    def _repr_html_(self) -> str:
        return self.judgement._repr_html_()


Observer = Callable[[Judgement], None]
observers: list[Observer] = []  # told of every judgement: the pytest plugin counts them


@told
def judge(what: object, run: SubjectRun, *, steps: Steps | None = None) -> Judgement:
    """The verdict of a formula over a run. ``steps`` are the generator's windows if not given."""
    checked = formula(what)
    _refuse_unbounded(checked)
    layout = run.inputs[0].layout
    if steps is not None and not hasattr(steps, "word"):
        raise FormulaError(f"steps is a way to cut a run, not {steps!r}", fix=f"steps=tumbling({steps!r})")
    word = (steps or TimeSteps(layout.every, layout.every)).word(run)
    progress = Progress(checked)
    verdict = progress.over(word)
    found = Judgement(
        verdict, checked, run, word, progress.residual, progress.decided_at, progress.error, _vacuous(run, progress),
        by_batch=isinstance(steps, BatchSteps),
    )  # fmt: skip
    for observer in observers:
        observer(found)
    return found


def _refuse_unbounded(f: Formula) -> None:
    stack, seen = [f], set()
    while stack:
        current = stack.pop()
        if isinstance(current, Bounded) and current.bound is None:
            raise FormulaError(
                "a formula without a bound is never decided by a finite run",
                at=repr(current),
                fix=f"write .{current.word}(n); to watch a stream that goes on, use monitor",
            )
        inner = [part for part in current.operands if isinstance(part, Formula) and part not in seen]
        seen.update(inner)
        stack.extend(inner)


def _vacuous(run: SubjectRun, progress: Progress) -> str | None:
    if not any(output.table.num_rows for output in run.outputs):
        return "the subject emitted no row"
    if progress.antecedents.seen and not progress.antecedents.fired:
        return "no left side of implies ever held"
    return None


@door
def assert_holds(
    what: object,
    run: SubjectRun,
    *,
    steps: Steps | None = None,
    undecided: Literal["fail", "pass"] = "fail",
    vacuous: Literal["report", "fail"] = "report",
) -> Judgement:
    """Raise `PropertyFailed` unless the formula holds of the run.

    ``undecided="pass"`` accepts runs that are too short to tell; ``vacuous="fail"`` refuses passes that say nothing.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    found = judge(what, run, steps=steps)
    accepted = found.verdict is Verdict.HOLDS or (undecided == "pass" and found.verdict is Verdict.UNDECIDED)
    if not accepted or (vacuous == "fail" and found.vacuous):
        raise PropertyFailed(found)
    return found


def states(judgement: Judgement) -> list[tuple[Verdict, Formula, list[Any]]]:
    """The formula's way along the word, step by step: verdict, residual, and what the predicates said."""
    from streamproof.properties.text import said  # noqa: PLC0415

    progress = Progress(judgement.formula)
    found = []
    for step in judgement.word:
        before = progress.residual
        solved = progress.verdict.solved
        verdict = progress.feed(step)
        reasons = said(before, step) if verdict in {Verdict.FAILS, Verdict.ERROR} and not solved else []
        found.append((verdict, progress.residual, reasons))
    return found
