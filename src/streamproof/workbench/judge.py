"""The judge: cases on an engine against what an oracle says of their histories, and against the rules of streams.

A streaming engine may see on the way what no complete input shows. It cannot know that an event will be taken back; and
windows give their results when time has passed over them, so where a row meets the result of a window, in an anti join,
an outer join or a clip, it is alone for a while, even if both come from one event. What a window reads of an event is
evaluated when it comes, whether or not its window is ever complete: as if it were in a snapshot. An error of any such
moment is no mistake of the engine.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, count
from typing import Final

from streamproof.errors import ERROR_NAMES
from streamproof.events.compare import explain_difference, same_schema
from streamproof.events.history import History
from streamproof.events.schema import BOOL
from streamproof.plan import nodes
from streamproof.plan.expr import Lit
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Node, Plan, transform, walk
from streamproof.plan.windows import Snapshot, Window
from streamproof.workbench.arrivals import arrived
from streamproof.workbench.case import Case
from streamproof.workbench.oracle import CaseOracle
from streamproof.workbench.schedule import DEFAULTS, LAW_OF, Schedule
from streamproof.workbench.shrink import shrink
from streamproof.workbench.subjects import Subject, SubjectRun, prefixes
from streamproof.workbench.verdict import TOO_LARGE, Failure, Outcome, Verdict

OF_STREAMS: Final = ("unmatched_retraction", "duplicate_id", "cti_violation", "cti_backwards")
"""Errors of streams that are not legal. All streams here are, and so is every part of them."""

LISTED: Final = "the limit events_listed"
"""Where one lists events and their pairs, another may only count: beyond what may be listed nothing can be judged."""

SMALL: Final = 5
"""A case of so few events can be read as it is."""


class Judge:
    """Holds an engine against the oracle."""

    def __init__(self, subject: Subject, oracle: CaseOracle) -> None:
        self.subject, self.oracle = subject, oracle

    @property
    def registry(self) -> Registry:
        return self.oracle.registry

    def verdict(self, case: Case) -> Verdict:
        """What comes of one case."""
        return self.verdicts([case])[0]

    def verdicts(self, cases: Sequence[Case], expected: Sequence[Outcome] | None = None) -> list[Verdict]:
        """What comes of cases; ``expected`` where that is known already."""
        wanted = self.oracle.outcomes([self.judged_as(case) for case in cases]) if expected is None else expected
        ran = self.subject.run(cases, self.registry)
        return [self._verdict(*both) for both in zip(cases, wanted, ran, strict=True)]

    def judged_as(self, case: Case) -> Case:
        """The case with its streams as advance_time lets them through, where it works."""
        return arrived(case) if self.subject.advances and case.schedule.live else case

    def compared(self, case: Case, expected: Outcome, actual: Outcome) -> Verdict:
        """What comes of a case if that is what the engine says."""
        return self._verdict(case, expected, SubjectRun(actual))

    def _verdict(self, case: Case, expected: Outcome, ran: SubjectRun) -> Verdict:
        one, other = expected, ran.outcome
        if expected == TOO_LARGE:
            return Verdict("undecided", "", TOO_LARGE.text, expected, other, self.subject.name)
        for failed, found in ((one, other), (other, one)):
            if isinstance(failed, Failure) and LISTED in failed.text and isinstance(found, History):
                return Verdict("undecided", "", failed.text, expected, ran.outcome, self.subject.name)
        kind, text = self._difference(case, expected, ran)
        if not kind:
            return Verdict("holds", expected=expected, actual=ran.outcome, engine=self.subject.name)
        return Verdict("fails", kind, text, expected, ran.outcome, self.subject.name)

    def _difference(self, case: Case, expected: Outcome, ran: SubjectRun) -> tuple[str, str]:
        actual = ran.outcome
        if isinstance(actual, Failure):
            return self._failed(case, expected, actual)
        if isinstance(expected, Failure):
            may_miss = self.subject.lazy or case.schedule.optimise  # what is not needed is not computed
            text = f"expected the error {expected.name}, found {len(actual)} rows\n{expected.text}"
            return ("", "") if may_miss else (f"{expected.name} → rows", text)
        if ran.broken:
            return f"promise {ran.broken.kind}", ran.broken.text
        return _rows_differ(expected, actual)

    def _failed(self, case: Case, expected: Outcome, actual: Failure) -> tuple[str, str]:
        wanted = expected.name if isinstance(expected, Failure) else "rows"
        if wanted == actual.name:
            return "", ""
        known = actual.name in ERROR_NAMES and actual.name not in ("infrastructure", "internal")
        if known and (self._is_another(case, expected) or self._may_fail(case, actual.name)):
            return "", ""
        return f"{wanted} → {actual.name}", f"expected {wanted}, found the error {actual.name}\n{actual.text}"

    def _is_another(self, case: Case, expected: Outcome) -> bool:
        """Whether the engine may say another error of several: which comes first is a matter of the order of work."""
        in_order = not self.subject.streams and not case.schedule.optimise
        return isinstance(expected, Failure) and not in_order

    def _may_fail(self, case: Case, name: str) -> bool:
        """Whether an engine may fail so although the whole has a result.

        A streaming engine cannot know that an event will be taken back, so the error may be one of a prefix; nor that
        the partner of a row is on its way, so it may be that of the row alone. Of an event without an end, which falls
        into infinitely many windows, it may say that they are more than the limit.
        """
        if not self.subject.streams or name in OF_STREAMS:
            return False
        if name == "output_in_past" and any(getattr(n, "restriction", None) == "time_bound" for n in walk(case.plan)):
            return True  # a promise that the module does not keep, which only shows over time
        plans = [case.plan, *with_late_partners(case.plan)]
        for seen in prefixes(case):
            tables = {n: History.from_batches(case.schemas[n], parts).rows for n, parts in seen.items()}
            found = [self.oracle.expected(replace(case, plan=plan), tables) for plan in plans]
            names = {one.name for one in found if isinstance(one, Failure)}
            if name in names or (name == "limit_exceeded" and "unbounded_windows" in names):
                return True
        return False

    # --- what to say of a difference ----------------------------------------------------------------------------------

    def differs_as(self, kind: str) -> _Differs:
        return _Differs(self, kind)

    def explained(self, case: Case, verdict: Verdict) -> Verdict:
        """The verdict with the law that is broken, where there is one; or that two runs differ."""
        again = self.verdict(case)
        if again.kind != verdict.kind or again.text != verdict.text:
            text = f"two runs of the same case differ: {verdict.text or 'holds'} / {again.text or 'holds'}"
            return replace(verdict, word="nondeterministic", text=text)
        if case.schedule.is_plain or self.verdict(replace(case, schedule=Schedule())).is_found:
            return verdict
        for name, law in LAW_OF.items():
            if getattr(case.schedule, name) == DEFAULTS[name]:
                continue
            without = replace(case, schedule=replace(case.schedule, **{name: DEFAULTS[name]}))
            if not self.verdict(without).is_found:
                return replace(verdict, law=law)
        return replace(verdict, law="+".join(case.schedule.laws))

    def shrunk(
        self, case: Case, verdict: Verdict, *, seconds: float = 60.0, beside: Sequence[Case] = ()
    ) -> tuple[Case, Verdict]:
        """The smallest case with a difference of the same sort, and what comes of it; of any sort if it stays large.

        A case that differs only in one run with others may need their events: then all of them are one case. If that
        holds as well, nothing is shrunk: by itself it shows nothing.
        """
        if not self.verdict(case).is_found:
            united = case.together_with(beside)
            found = self.verdict(united)
            if not found.is_found:
                text = f"run alone the case holds; in one run with others: {verdict.text}"
                return case, replace(verdict, word="nondeterministic", text=text)
            case, verdict = united, found
        small = shrink(case, self.differs_as(verdict.kind), seconds=seconds)
        if small.size > SMALL:
            small = shrink(small, lambda smaller: self.verdict(smaller).is_found, seconds=seconds)
        again = self.verdict(small)
        if not again.is_found:  # it comes and goes
            return case, replace(verdict, word="nondeterministic")
        return small, self.explained(small, again)


class _Differs:
    """Whether a case has a difference of one sort."""

    def __init__(self, judge: Judge, kind: str) -> None:
        self.judge, self.kind = judge, kind

    def __call__(self, case: Case) -> bool:
        return self.judge.verdict(case).kind == self.kind


def _rows_differ(expected: History, actual: History) -> tuple[str, str]:
    if not same_schema(expected.schema, actual.schema):
        return "schema", f"expected the columns {expected.schema}, found {actual.schema}"
    found = explain_difference(expected, actual, numeric_types_loose=False)
    return ("", "") if found is None else ("rows", found)


# --- what an engine may see on the way --------------------------------------------------------------------------------


MOST: Final = 4  # operators of which every choice is tried; of more, each alone and all together


def with_late_partners(plan: Plan) -> Iterator[Plan]:
    """The plan as it is while partners are still to come: in one of its operators, or in several.

    >>> from streamproof.plan.parse import parse
    >>> plan = nodes.AntiJoin(nodes.Source("S"), nodes.Source("R"), parse("true"))
    >>> [type(part).__name__ for late in with_late_partners(plan) for part in nodes.walk(late)]
    ['AntiJoin', 'Source', 'Where', 'Source']
    """
    numbers = range(sum(len(_waiting(node)) for node in nodes.walk(plan)))
    sizes = range(1, len(numbers) + 1) if len(numbers) <= MOST else (1, len(numbers))
    for chosen in chain.from_iterable(combinations(numbers, size) for size in sizes):
        yield _without(plan, chosen)


def _waiting(node: Node) -> tuple[str, ...]:
    """The inputs without which an operator goes on, or the window."""
    match node:
        case nodes.Aggregation() | nodes.TopK() | nodes.Uda() | nodes.Udo() if node.window != Snapshot():
            return ("window",)
        case nodes.AntiJoin() | nodes.LeftOuter():
            return ("right",)
        case nodes.FullOuter():
            return ("left", "right")
        case nodes.Clip():
            return ("by",)
    return ()


def _without(plan: Plan, chosen: Container[int]) -> Plan:
    numbers = count()

    def change(node: Node) -> Node:
        late = [name for name in _waiting(node) if next(numbers) in chosen]
        return replace(node, **{name: _early(getattr(node, name)) for name in late})

    return transform(plan, change)


def _early(part: Node | Window) -> Node | Window:
    """An input before its rows come, or a window that is never incomplete."""
    return nodes.Where(part, Lit(False, BOOL)) if isinstance(part, Node) else Snapshot()
