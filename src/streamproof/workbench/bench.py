"""The bench: engines by name, an oracle by name, and cases held against each other.

>>> from streamproof.workbench.draw.plans import seeded_case
>>> with open_bench(["local"]) as bench:
...     bench.judges["local"].verdict(seeded_case(3)).word
'holds'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, cast

from streamproof import extensions
from streamproof.engines.base import Engine, engine
from streamproof.errors import PlanError, did_you_mean
from streamproof.plan.modules import Registry
from streamproof.workbench.judge import Judge
from streamproof.workbench.modules import all_modules
from streamproof.workbench.oracle import CaseOracle, EvaluatorOracle, SqlEngine, SqlOracle
from streamproof.workbench.repro import Repro
from streamproof.workbench.subjects import EngineSubject, LocalSubject, OracleSubject, Subject
from streamproof.workbench.verdict import Verdict

SPARK: Final = ("spark-buckets", "spark-chain", "spark-stream", "spark-batch")
ORACLES: Final = ("duckdb", "postgres", "evaluator")


@dataclass(frozen=True)
class Workbench:
    """One judge per engine, all with one oracle."""

    judges: dict[str, Judge]
    oracle: CaseOracle


def engine_names(given: Sequence[str]) -> list[str]:
    """The engines by the names that verdicts carry: spark is all of its modes.

    >>> engine_names(["local", "spark"])
    ['local', 'spark-buckets', 'spark-chain', 'spark-stream', 'spark-batch']
    """
    known = ["spark", *SPARK, "evaluator", *(name for name in extensions.names("engines") if name != "spark")]
    found: list[str] = []
    for name in given:
        if name not in known:
            raise PlanError(f'unknown engine "{name}"', fix=did_you_mean(name, known))
        found += SPARK if name == "spark" else [name]
    return list(dict.fromkeys(found))


@contextmanager
def open_bench(
    engines: Sequence[str | Engine],
    *,
    oracle: str = "duckdb",
    dsn: str | None = None,
    registry: Registry | None = None,
) -> Iterator[Workbench]:
    """Engines ready to be judged; what they need to run is started once and stopped at the end."""
    with ExitStack() as stack:
        judge = stack.enter_context(open_oracle(oracle, dsn=dsn, registry=registry))
        names = [name for given in engines if isinstance(given, str) for name in engine_names([given])]
        subjects: list[Subject] = [stack.enter_context(_subject(name, dsn)) for name in names]
        subjects += [EngineSubject(given) for given in engines if not isinstance(given, str)]
        yield Workbench({subject.name: Judge(subject, judge) for subject in subjects}, judge)


@contextmanager
def open_oracle(name: str, *, dsn: str | None = None, registry: Registry | None = None) -> Iterator[CaseOracle]:
    """An oracle by its name; one that needs a server that does not answer says so at once."""
    known = registry or all_modules()
    if name not in ORACLES:
        raise PlanError(f'unknown oracle "{name}"', fix=did_you_mean(name, ORACLES))
    if name == "evaluator":
        yield EvaluatorOracle(known)
        return
    found = cast("SqlEngine", engine(name, **_options(name, dsn)))
    found.reach()
    yield SqlOracle(found, known)


def _options(name: str, dsn: str | None) -> dict[str, object]:
    return {"dsn": dsn} if name == "postgres" else {"threads": 1} if name == "duckdb" else {}


@contextmanager
def _subject(name: str, dsn: str | None) -> Iterator[Subject]:
    if name == "local":
        yield LocalSubject()
    elif name == "spark-buckets":
        from streamproof.workbench.buckets import BucketSubject  # noqa: PLC0415  # it loads much of Spark's room

        yield BucketSubject()
    elif name == "spark-chain":
        from streamproof.workbench.stages import StageSubject  # noqa: PLC0415  # it loads much of Spark's room

        yield StageSubject()
    elif name in SPARK:
        from streamproof.workbench.spark import spark_subject  # noqa: PLC0415  # it starts Spark

        with spark_subject(name) as subject:
            yield subject
    elif name == "evaluator":
        with open_oracle(name) as oracle:
            yield OracleSubject(oracle)
    else:
        yield EngineSubject(engine(name, **_options(name, dsn)), exact=name in ORACLES)


def replay(repro: Repro, *, dsn: str | None = None, registry: Registry | None = None) -> Verdict:
    """What comes of a repro today."""
    with open_bench([repro.engine], oracle=repro.oracle, dsn=dsn, registry=registry) as bench:
        judge = bench.judges[repro.engine]
        verdict = judge.verdict(repro.case)
        return judge.explained(repro.case, verdict) if verdict.is_found else verdict
