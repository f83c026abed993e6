"""Every case also the other way: written where it ran rewritten, and rewritten where it ran as it is written.

Both are held against what SQL says of the plan as it is *written*, so a wrong rewrite that all engines share shows. The
database that judges runs the rewritten plan as well: what it says of the two plans must agree, whatever engines do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from streamproof.plan.check import check
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.plan.rewrites import rewrite
from streamproof.plan.rewrites.normal_form import to_plan
from streamproof.workbench.case import Case
from streamproof.workbench.schedule import Schedule
from streamproof.workbench.subjects import OracleSubject
from streamproof.workbench.verdict import Outcome, Verdict

if TYPE_CHECKING:
    from streamproof.workbench.judge import Judge

ENGINES: Final = ("local",)


class Difference(NamedTuple):
    """A case that differs the other way, and by which judge."""

    judge: Judge
    case: Case
    verdict: Verdict


def differing(judge: Judge, cases: Sequence[Case], verdicts: Sequence[Verdict]) -> Iterator[Difference]:
    """Cases that hold as they ran, and do not the other way."""
    if judge.subject.name not in ENGINES:
        return
    known = _Rewritten(judge.registry)
    held = [(c, v.expected) for c, v in zip(cases, verdicts, strict=True) if not v.is_found and v.expected is not None]
    changed = [(case, expected, plan) for case, expected in held if (plan := known.plan(case)) is not None]
    if not changed:
        return
    others, wanted = [_other_way(case) for case, _, _ in changed], [expected for _, expected, _ in changed]
    for other, verdict in zip(others, judge.verdicts(others, wanted), strict=True):
        if verdict.is_found:
            yield Difference(judge, other, verdict)
    yield from _in_sql(judge, changed)


def _other_way(case: Case) -> Case:
    """The same rewritten if it was not, and as plain as its operators allow: the run itself was judged already."""
    before = case.schedule
    return replace(
        case,
        schedule=Schedule(
            seed=before.seed, optimise=not before.optimise, live=before.live, cuts=before.cuts if before.live else 0,
            reorder=before.reorder and before.live, interleave=before.interleave and before.live,
            thresholds=before.thresholds,
        ),
    )  # fmt: skip


def _in_sql(judge: Judge, changed: Sequence[tuple[Case, Outcome, Plan]]) -> Iterator[Difference]:
    """The rewritten plans in the database of the oracle."""
    from streamproof.workbench.judge import Judge  # noqa: PLC0415  # it loads this

    sql = Judge(OracleSubject(judge.oracle), judge.oracle)
    judged = [judge.judged_as(replace(case, plan=plan)) for case, _, plan in changed]
    for (case, expected, _), actual in zip(changed, judge.oracle.outcomes(judged), strict=True):
        alone = replace(judge.judged_as(case), schedule=Schedule(optimise=True))
        verdict = sql.compared(alone, expected, actual)
        if verdict.is_found:
            yield Difference(sql, alone, verdict)


class _Rewritten:
    """The plans of cases rewritten, each once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[int, tuple[Plan, Plan | None]] = {}

    def plan(self, case: Case) -> Plan | None:
        """The plan rewritten; None if that is the plan."""
        if id(case.plan) not in self._known:
            self._known[id(case.plan)] = case.plan, self._rewritten(case)
        return self._known[id(case.plan)][1]

    def _rewritten(self, case: Case) -> Plan | None:
        try:
            better = rewrite(case.plan, case.schemas, registry=self._registry)
        except Exception:  # a run of the plan rewritten says so
            return case.plan
        return None if better == to_plan(check(case.plan, case.schemas, registry=self._registry)) else better
