"""A plan and data of the user's own, verified: the same input many ways, on engines against the oracle.

Each case is the plan over the given streams in another run: cut into pieces, in another order of arrival, stopped and
gone on with, split into buckets, printed and read back. None of it may change the result.

>>> from streamproof.events.stream import PhysicalStream
>>> plan = nodes.ToPoint(nodes.Source("S"))
>>> events = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 7}}, {"kind": "cti", "t": 9}]
>>> verify_plan(plan, {"S": PhysicalStream.from_dicts(events)}, VerifyOptions(cases=3, engines=("local",))).verdict
'holds'
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from time import monotonic
from typing import Final

from streamproof.engines.inputs import no_input
from streamproof.errors import InputError
from streamproof.events.stream import PhysicalStream
from streamproof.plan import nodes
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.workbench.bench import engine_names, open_bench
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.concretise import RUNS, schedule_of, with_what_it_needs
from streamproof.workbench.modules import all_modules
from streamproof.workbench.results import EngineResult
from streamproof.workbench.runner import Progress, SuiteResult, VerifyOptions, judged
from streamproof.workbench.schedule import Schedule

CASES: Final = 40
AT_ONCE: Final = 10
MOST_EVENTS: Final = 20_000


def verify_plan(
    plan: Plan,
    streams: Mapping[str, PhysicalStream],
    options: VerifyOptions | None = None,
    *,
    name: str = "plan",
    horizon: int | None = None,
    registry: Registry | None = None,
    progress: Progress | None = None,
) -> SuiteResult:
    """Run a plan over streams in many ways on each engine, and hold every result against the oracle."""
    options = options or VerifyOptions()
    known = registry or all_modules()
    made = list(_cases(plan, _read_by(plan, streams), name, horizon, options))
    engines = engine_names(options.engines or ("local",))
    result = SuiteResult(name, options.seed or 1, options.oracle, {engine: EngineResult(engine) for engine in engines})
    result.planned, begun = len(made) * len(engines), monotonic()
    with open_bench(engines, oracle=options.oracle, dsn=options.dsn, registry=known) as bench:
        for engine in engines:
            for first in range(0, len(made), AT_ONCE):
                tally = judged(bench.judges[engine], [made[first : first + AT_ONCE]], name, options)
                result.tallies[engine].merge(tally)
                if progress is not None:
                    progress(result.cases, result.planned, len(result.found))
                if result.tallies[engine].found:
                    result.stopped = "after a difference"
                    break
    result.seconds = monotonic() - begun
    return result


def _read_by(plan: Plan, streams: Mapping[str, PhysicalStream]) -> dict[str, CaseStream]:
    wanted = nodes.sources(plan)
    missing = [name for name in wanted if name not in streams]
    if missing:
        raise no_input(missing[0])
    for name in wanted:
        if len(streams[name]) > MOST_EVENTS:
            raise InputError(
                f"{name} has {len(streams[name]):,} events; every case runs over all of them",
                fix=f"give a part of it, at most {MOST_EVENTS:,} events",
            )
    return {name: CaseStream.of(streams[name]) for name in wanted}


def _cases(
    plan: Plan, streams: Mapping[str, CaseStream], name: str, horizon: int | None, options: VerifyOptions
) -> Iterator[Case]:
    """The plain run first, then drawn ones."""
    chance = random.Random(f"{options.seed or 1}/{name}")  # noqa: S311  # test data, not secrets
    for number in range(options.cases or CASES):
        drawn = {factor: chance.choice(values) for factor, values in RUNS.items()}
        schedule = schedule_of(with_what_it_needs(drawn), chance.getrandbits(30)) if number else Schedule()
        yield Case(plan, streams, horizon, schedule=schedule, seed=number, scenario=name)
