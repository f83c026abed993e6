"""Running a suite: in one process or several, within a time budget, and on from where it stopped.

Work is cut into tasks: a scenario and a few of its plans, on one engine. What a task gives depends on nothing else.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, Final, NamedTuple

from streamproof.documents import existing
from streamproof.engines.sealed import fitting
from streamproof.errors import InputError
from streamproof.events.history import History
from streamproof.kernels.modulecheck import check_module
from streamproof.plan.modules import Registry
from streamproof.workbench.bench import Workbench, engine_names, open_bench
from streamproof.workbench.case import Case
from streamproof.workbench.concretise import concrete_group, covering_groups
from streamproof.workbench.judge import Judge
from streamproof.workbench.repro import Repro
from streamproof.workbench.results import EngineResult
from streamproof.workbench.rewrite_check import Difference, differing
from streamproof.workbench.suite import Suite, load_suite
from streamproof.workbench.verdict import Verdict, Word, worst

WITH_JAVA: Final = ("spark-stream", "spark-batch")
SLOW: Final = (*WITH_JAVA, "postgres")
PLANS_PER_TASK: Final = {"spark-stream": 24, "spark-batch": 4}
USUAL_PLANS: Final = 5
PATIENCE: Final = 20  # so many differences that do not show again count as one
ALONE: Final = 3  # so many cases of a bundle are looked at alone, if what differs in one run with others holds alone
SHORTEST: Final = 10.0  # seconds that a difference is shrunk for, when the time is up as well
TOGETHER: Final = {"spark-stream": 192}
"""So many cases, of whatever scenarios, are given to an engine at once where a run costs the same however many."""


class Task(NamedTuple):
    """Some plans of one scenario on one engine."""

    engine: str
    scenario: int
    first: int
    plans: int
    size: int  # cases per plan


@dataclass(frozen=True)
class VerifyOptions:
    """What a run is told."""

    engines: tuple[str, ...] = ()
    oracle: str = "duckdb"
    dsn: str | None = None
    cases: int | None = None
    seed: int | None = None
    jobs: int = 1
    time_budget: float | None = None  # seconds
    most: int = 3  # differences, after which it stops
    shrink_seconds: float = 60.0
    resume: Path | None = None  # where what is done is kept
    until: float = math.inf  # the end of the time budget, by the clock of `time.monotonic`


@dataclass
class SuiteResult:
    """What a run of a suite gave."""

    suite: str
    seed: int
    oracle: str
    tallies: dict[str, EngineResult]
    seconds: float = 0.0
    planned: int = 0
    stopped: str = ""  # why before the end
    about: str = ""
    repros: list[Path] = field(default_factory=list)
    modules: dict[str, list[str]] = field(default_factory=dict)  # what each module promises and does not keep

    @property
    def cases(self) -> int:
        return sum(tally.cases for tally in self.tallies.values())

    @property
    def verdict(self) -> Word:
        broken: list[Word] = ["fails" for findings in self.modules.values() if findings]
        return worst([*broken, *(tally.verdict for tally in self.tallies.values())])

    @property
    def found(self) -> list[Repro]:
        """The differences; those that show again come first."""
        found = [one for tally in self.tallies.values() for one in tally.found]
        return sorted(found, key=lambda one: one.verdict.word != "fails")


Progress = Callable[[int, int, int], None]
"""Called with how many cases are done, how many there are, and how many differences were found."""


def run_suite(
    given: str | Suite, options: VerifyOptions | None = None, *, progress: Progress | None = None
) -> SuiteResult:
    """Run a suite by name, file or value. A suite that is a value runs in this process."""
    options = options or VerifyOptions()
    suite = load_suite(given) if isinstance(given, str) else given
    engines = engine_names(options.engines or suite.engines)
    seed = suite.seed if options.seed is None else options.seed
    tasks = [task for engine in engines for task in tasks_of(suite, engine, options.cases, seed)]
    result = SuiteResult(
        suite.name, seed, options.oracle, {name: EngineResult(name) for name in engines}, about=suite.about
    )
    result.planned = sum(task.plans * task.size for task in tasks)
    book = _Book(options.resume, result, _key(suite, options, engines, seed))
    result.modules = broken_modules(suite.modules, seed)
    begun = monotonic()
    if options.time_budget is not None:
        options = replace(options, until=begun + options.time_budget)
    where = given if isinstance(given, str) else None
    for done, tally in _runs(suite, where, book.remaining(tasks), options, seed):
        result.tallies[done[0].engine].merge(tally)
        book.done(done)
        if progress is not None:
            progress(result.cases, result.planned, len(result.found))
        result.stopped = _enough(result, options)
        if result.stopped:
            break
    result.seconds = monotonic() - begun
    return result


def broken_modules(registry: Registry, seed: int) -> dict[str, list[str]]:
    """Every module, and which of the properties that it declares do not hold; one may raise on purpose."""
    found = {}
    for module in registry:
        report = check_module(module, seed=seed)
        found[report.module] = [str(finding) for finding in report.findings if finding.law != "no_exceptions"]
    return found


def _enough(result: SuiteResult, options: VerifyOptions) -> str:
    certain = sum(one.verdict.word == "fails" for one in result.found)
    if certain >= options.most or len(result.found) >= options.most * PATIENCE:
        return f"after {len(result.found)} difference{'s' * (len(result.found) > 1)}"
    if monotonic() > options.until:
        return "the time is up"
    return ""


def tasks_of(suite: Suite, engine: str, cases: int | None, seed: int) -> list[Task]:
    """The work, each scenario with its share, in turn, so that what is done early has some of everything.

    Four times as many pairs to cover are twice the share: small scenarios look closer.
    """
    wanted = cases if cases is not None else suite.slow_cases if engine in SLOW else suite.cases
    size = min(suite.streams_per_plan, max(1, wanted // len(suite.scenarios)))
    weights = [math.sqrt(len(covering_groups(one, seed=seed, size=size).groups)) for one in suite.scenarios]
    shares = [max(1, math.ceil(wanted * weight / (size * sum(weights)))) for weight in weights]
    step = min(PLANS_PER_TASK.get(engine, USUAL_PLANS), max(1, suite.at_once // size))
    tasks = [
        (first / plans, Task(engine, n, first, min(step, plans - first), size))
        for n, plans in enumerate(shares)
        for first in range(0, plans, step)
    ]
    return _trimmed([task for _, task in sorted(tasks)], -(-wanted // size))


def _trimmed(tasks: Sequence[Task], plans: int) -> list[Task]:
    """The first tasks, with so many plans in all: shares are rounded up, and what is asked for is what is run."""
    kept: list[Task] = []
    for task in tasks:
        if plans > 0:
            kept.append(task._replace(plans=min(task.plans, plans)))
        plans -= task.plans
    return kept


# --- one task ---------------------------------------------------------------------------------------------------------


def run_tasks(tasks: Sequence[Task], suite: Suite, bench: Workbench, options: VerifyOptions, seed: int) -> EngineResult:
    """Judge the cases of tasks on one engine; the first difference is shrunk."""
    began = perf_counter()
    groups = [
        concrete_group(suite.scenarios[task.scenario], n, seed=seed, size=task.size, registry=suite.modules)
        for task in tasks
        for n in range(task.first, task.first + task.plans)
    ]
    tally = judged(bench.judges[tasks[0].engine], groups, suite.name, options)
    tally.seconds = perf_counter() - began
    return tally


def judged(judge: Judge, groups: Sequence[Sequence[Case]], suite: str, options: VerifyOptions) -> EngineResult:
    """What an engine does with cases; the first difference that shows again when its case runs alone is shrunk."""
    tally, began = EngineResult(judge.subject.name), perf_counter()
    cases = [case for group in groups for case in group]
    verdicts = judge.verdicts(cases)
    for case, verdict in zip(cases, verdicts, strict=True):
        count(tally, case, verdict, judge.subject.laws)
    found = [Difference(judge, case, v) for case, v in zip(cases, verdicts, strict=True) if v.is_found]
    others = list(differing(judge, cases, verdicts))
    tally.words.update(one.verdict.word for one in others)
    for differs in [*found, *others][:ALONE]:
        seconds = min(options.shrink_seconds, max(SHORTEST, options.until - monotonic()))
        small, again = differs.judge.shrunk(differs.case, differs.verdict, seconds=seconds, beside=cases)
        tally.found[:] = [Repro(small, again, differs.judge.subject.name, judge.oracle.name, suite)]
        if again.word == "fails":
            break
    for group in groups:
        tally.coverage.add(group)
    tally.seconds = perf_counter() - began
    return tally


def count(tally: EngineResult, case: Case, verdict: Verdict, laws: Sequence[str]) -> None:
    """Add one verdict, and the laws that the engine was put to the test by."""
    tally.words[verdict.word] += 1
    tally.laws.update(law for law in case.schedule.laws if law in laws)
    tally.events += case.size
    if isinstance(verdict.actual, History):
        tally.rows += len(verdict.actual)
    elif verdict.actual is not None:
        tally.errors[verdict.actual.name] += 1


# --- one process or several -------------------------------------------------------------------------------------------


def _runs(
    suite: Suite, where: str | None, tasks: Sequence[Task], options: VerifyOptions, seed: int
) -> Iterator[tuple[Sequence[Task], EngineResult]]:
    """Tasks with what they gave. Spark runs in this process, whatever the number of jobs."""
    apart = options.jobs > 1 and where is not None
    inside = [task for task in tasks if task.engine in WITH_JAVA or not apart]
    outside = [task for task in tasks if apart and task.engine not in WITH_JAVA]
    if outside:
        assert where is not None
        yield from _outside(where, outside, options, seed)
    engines = list(dict.fromkeys(task.engine for task in inside))
    for engine in engines:
        with open_bench([engine], oracle=options.oracle, dsn=options.dsn, registry=suite.modules) as bench:
            for together in _bundles([task for task in inside if task.engine == engine], suite.at_once):
                yield together, run_tasks(together, suite, bench, options, seed)


def _bundles(tasks: Sequence[Task], most: int) -> Iterator[list[Task]]:
    """Tasks of one engine, those together that it should be given at once."""
    bundle, cases = list[Task](), 0
    for task in tasks:
        bundle.append(task)
        cases += task.plans * task.size
        if cases >= min(most, TOGETHER.get(task.engine, 0)):
            yield bundle
            bundle, cases = [], 0
    if bundle:
        yield bundle


_STACK = ExitStack()
_OPEN: dict[str, Any] = {}


def _open(where: str, engines: tuple[str, ...], options: VerifyOptions, seed: int) -> None:
    """In a worker: the suite and the bench, once; it ends with the process that started it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    suite = load_suite(where)
    bench = open_bench(engines, oracle=options.oracle, dsn=options.dsn, registry=suite.modules)
    _OPEN.update(suite=suite, bench=_STACK.enter_context(bench), options=options, seed=seed)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _unheard() -> Iterator[None]:
    """While this lasts, processes can be started that Ctrl-C does not reach: they end with this one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(task: Task) -> dict[str, Any]:
    return run_tasks([task], _OPEN["suite"], _OPEN["bench"], _OPEN["options"], _OPEN["seed"]).as_dict()


def _outside(
    where: str, tasks: Sequence[Task], options: VerifyOptions, seed: int
) -> Iterator[tuple[Sequence[Task], EngineResult]]:
    engines = tuple(dict.fromkeys(task.engine for task in tasks))
    waiting, running = list(reversed(tasks)), dict[Future[dict[str, Any]], Task]()
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        options.jobs, multiprocessing.get_context("spawn"), _open, (where, engines, options, seed)
    )
    try:
        while waiting or running:
            while waiting and len(running) < 2 * options.jobs:
                task = waiting.pop()
                with _unheard():
                    running[pool.submit(_work, task)] = task
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield [running.pop(done)], EngineResult.from_dict(done.result())
    finally:
        if waiting or running:  # nobody wants the rest
            for worker in multiprocessing.active_children():
                if worker not in others:
                    worker.terminate()
        pool.shutdown(cancel_futures=True)  # waits: a process that ends before its pool does may wait for ever


# --- on from where it stopped -----------------------------------------------------------------------------------------


def _key(suite: Suite, options: VerifyOptions, engines: Sequence[str], seed: int) -> dict[str, Any]:
    """What must be the same for a run to go on."""
    return {
        "suite": suite.name, "engines": list(engines), "oracle": options.oracle, "cases": options.cases, "seed": seed,
        "version": version("streamproof"),
    }  # fmt: skip


class _Book:
    """Which tasks are done, and what they gave, in a file."""

    def __init__(self, path: Path | None, result: SuiteResult, key: dict[str, Any]) -> None:
        self._path, self._result, self._key = path, result, key
        self._done: list[list[Any]] = []
        if path is not None and os.path.lexists(path):
            self._read(path)

    def _read(self, path: Path) -> None:
        with fitting("file of an interrupted run", at=str(path)):
            kept = json.loads(existing(path).read_text(encoding="utf-8"))
            if kept["key"] != self._key:
                text = "the file belongs to another run: suite, engines, oracle, cases or seed differ"
                raise InputError(text, at=str(path), fix="give the same options, or another file")
            self._done = [list(task) for task in kept["done"]]
            self._result.tallies.update({name: EngineResult.from_dict(data) for name, data in kept["tallies"].items()})

    def remaining(self, tasks: Sequence[Task]) -> list[Task]:
        known = {tuple(task) for task in self._done}
        return [task for task in tasks if tuple(task) not in known]

    def done(self, tasks: Sequence[Task]) -> None:
        self._done += [list(task) for task in tasks]
        if self._path is None:
            return
        tallies = {name: tally.as_dict() for name, tally in self._result.tallies.items()}
        new = self._path.with_name(f".{self._path.name}")
        new.write_text(json.dumps({"key": self._key, "done": self._done, "tallies": tallies}), encoding="utf-8")
        new.replace(self._path)
