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
from typing import Any, Final, cast

from streamproof import extensions
from streamproof.engines.base import Engine, engine
from streamproof.errors import PlanError, did_you_mean
from streamproof.plan.modules import Registry
from streamproof.workbench.modules import all_modules
from streamproof.workbench.oracle import Oracle, SqlEngine
from streamproof.workbench.repro import Repro
from streamproof.workbench.subjects import EngineSubject, LocalSubject, Subject
from streamproof.workbench.verdict import Verdict
from streamproof.workbench.verify import Judge

SPARK: Final = ("spark-buckets", "spark-stream", "spark-batch")
ORACLES: Final = ("duckdb", "postgres")


@dataclass(frozen=True)
class Bench:
    """One judge per engine, all with one oracle."""

    judges: dict[str, Judge]
    oracle: Oracle


def engine_names(given: Sequence[str]) -> list[str]:
    """The engines by the names that verdicts carry: spark is all of its modes.

    >>> engine_names(["local", "spark"])
    ['local', 'spark-buckets', 'spark-stream', 'spark-batch']
    """
    known = ["spark", *SPARK, *(name for name in extensions.names("engines") if name != "spark")]
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
) -> Iterator[Bench]:
    """Engines ready to be judged; what they need to run is started once and stopped at the end."""
    with ExitStack() as stack:
        judge = Oracle(stack.enter_context(_oracle(oracle, dsn)), registry or all_modules())
        names = [name for given in engines if isinstance(given, str) for name in engine_names([given])]
        subjects: list[Subject] = [stack.enter_context(_subject(name, dsn)) for name in names]
        subjects += [EngineSubject(given) for given in engines if not isinstance(given, str)]
        yield Bench({subject.name: Judge(subject, judge) for subject in subjects}, judge)


@contextmanager
def _oracle(name: str, dsn: str | None) -> Iterator[Any]:
    if name not in ORACLES:
        raise PlanError(f'unknown oracle "{name}"', fix=did_you_mean(name, ORACLES))
    if name == "duckdb":
        yield engine(name, threads=1)
    else:
        found = cast("SqlEngine", engine(name, dsn=dsn))
        found.reach()
        yield found


@contextmanager
def _subject(name: str, dsn: str | None) -> Iterator[Subject]:
    if name == "local":
        yield LocalSubject()
    elif name == "spark-buckets":
        from streamproof.workbench.buckets import BucketSubject  # noqa: PLC0415  # it loads much of Spark's room

        yield BucketSubject()
    elif name in SPARK:
        from streamproof.workbench.spark import spark_subject  # noqa: PLC0415  # it starts Spark

        with spark_subject(name) as subject:
            yield subject
    else:
        options: dict[str, object] = {"dsn": dsn} if name == "postgres" else {"threads": 1} if name == "duckdb" else {}
        yield EngineSubject(engine(name, **options))


def replay(repro: Repro, *, dsn: str | None = None, registry: Registry | None = None) -> Verdict:
    """What comes of a repro today."""
    with open_bench([repro.engine], oracle=repro.oracle, dsn=dsn, registry=registry) as bench:
        judge = bench.judges[repro.engine]
        verdict = judge.verdict(repro.case)
        return judge.explained(repro.case, verdict) if verdict.is_found else verdict
