"""Two passes over Hypothesis: a property's cases are collected first, run together, then judged and shrunk.

Both passes draw the same cases because they have the same seed. Runs are remembered, collected, shared, and guessed in
rounds while Hypothesis shrinks.

What the second pass needs and does not find, because the draws went another way, runs then and there. Shrinking goes in
rounds: candidates that nobody has run are taken to pass until there are enough of them for one batch job, then
Hypothesis starts again with what is known. Only where a batch job was found to give the same as streaming; else each
candidate is a streaming query of its own. The smallest failing case is confirmed alone in streaming.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from time import perf_counter
from typing import Any

from hypothesis import HealthCheck, Phase
from hypothesis.errors import Flaky, HypothesisException

from streamproof.errors import InputError
from streamproof.properties import judgement as judging
from streamproof.properties.formula import Verdict
from streamproof.properties.hypothesis_internals import EndBody, EndPass, GivenTest, shows_smallest_case, some_seed
from streamproof.properties.judgement import Judgement
from streamproof.properties.multiplex import CannotMultiplex, Case, SubjectRunner, same_outputs
from streamproof.properties.runs import SubjectRun


def prove(
    test: Callable[..., Any] | GivenTest,
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
    given = test if isinstance(test, GivenTest) else GivenTest(test)
    if given is not test and not GivenTest.made(test):
        raise InputError(f"prove runs a test that given made, not {test!r}", fix="@given(stream=windows(…))")
    started = perf_counter()
    rounds = Rounds(workers=workers, multiplex=multiplex)
    try:
        with entered(rounds), _prepared(given, cases, seed) as chosen:
            rounds.summary.seed = chosen
            seeded = "" if chosen is None else f" --streamproof-seed={chosen}"
            rounds.repeat = f"{repeat}{seeded}" if repeat else f"prove(…, seed={chosen})"
            _passes(given, dict(arguments or {}), rounds)
    finally:
        rounds.summary.seconds = perf_counter() - started
        if summary is not None:
            summary(rounds.summary)
    return rounds.summary


@contextmanager
def _prepared(test: GivenTest, cases: int | None, seed: int | None) -> Iterator[int | None]:
    """For a while, settings that fit Spark: no deadline, one seed for both passes."""
    before = test.settings
    changes: dict[str, Any] = {"deadline": None, "phases": [p for p in before.phases if p is not Phase.explain]}
    if cases is not None:
        changes["max_examples"] = cases
    chosen = test.seed if seed is None else seed
    if seed is not None:
        changes["derandomize"] = False
    elif chosen is None and not before.derandomize:
        chosen = some_seed()
    with test.with_settings(**changes), test.with_seed(chosen):
        yield chosen


def _passes(test: GivenTest, arguments: dict[str, Any], rounds: Rounds) -> None:
    # Hypothesis does not shrink what its database knows to fail, and starting again would find it there half shrunk
    rounds.guessing = test.settings.database is None
    collect = rounds.multiplex and not test.repeats_one_failure
    while True:
        if collect:
            _collect(test, arguments, rounds)
            rounds.run_collected()
        rounds.begin()
        try:
            with test.with_body(_judging(test.body, rounds)):
                test(arguments)
            return
        except EndPass:
            collect = not rounds.guesses
            rounds.recollected += collect
            rounds.run_guesses()
        except Flaky:  # the smallest case, alone in streaming, does not fail
            collect = False
            if not rounds.forget_batches():
                raise


def _judging(inner: Callable[..., Any], rounds: Rounds) -> Callable[..., Any]:
    """The body of the second pass: a candidate that nobody has run counts as passing until it ran with others."""

    @wraps(inner)
    def body(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        rounds.calls = 0
        try:
            return inner(*args, **kwargs)
        except EndBody:
            return None
        except HypothesisException:
            raise
        except Exception:
            rounds.failed = True
            raise

    return body


def _collect(test: GivenTest, arguments: dict[str, Any], rounds: Rounds) -> None:
    """The first pass: every body runs until it asks for a run that is not known."""
    inner = test.body

    @wraps(inner)
    def body(*args: Any, **kwargs: Any) -> None:
        if rounds.nothing_to_collect:
            return
        rounds.calls = 0
        try:
            inner(*args, **kwargs)
            rounds.nothing_to_collect = rounds.calls == 0  # a subject that does not run on Spark
        except EndBody:
            return
        except HypothesisException:
            raise
        except Exception:  # what fails here fails again in the second pass, where it counts
            return

    once = {"phases": [Phase.generate], "database": None, "suppress_health_check": list(HealthCheck)}
    rounds.collecting = True
    try:
        with test.with_settings(**once), test.with_body(body):
            test(arguments)
    finally:
        rounds.collecting = False


RECOLLECT = 3  # times that cases are collected anew because the second pass needed others
GUESSES = 32  # candidates of shrinking that run together


@dataclass(frozen=True, eq=False)
class Request:
    """A subject to run over a case."""

    bench: SubjectRunner
    case: Case
    mode: str = "stream"

    @property
    def group(self) -> Hashable:
        """Cases of one group can share a run."""
        schemas = tuple(str(stream.full_schema) for stream in self.case)
        bench = self.bench
        return (subject_key(bench.subject), repr(bench.setting), bench.batches, self.mode, schemas)

    @property
    def key(self) -> Hashable:
        """The same for the same subject over the same case."""
        return (self.group, tuple(stream.digest for stream in self.case))

    def alone(self, mode: str | None = None) -> SubjectRun:
        """Run it by itself."""
        __tracebackhide__ = True  # pytest shows the line of the test
        return self.bench.alone(self.case, mode or self.mode)


def subject_key(subject: Any) -> Hashable:
    """What tells subjects apart: their code and what they closed over, so that a lambda made anew stays the same."""
    if hasattr(subject, "func") and hasattr(subject, "keywords"):  # functools.partial
        inner = (subject_key(subject.func), subject.args, tuple(sorted(subject.keywords.items())))
        return inner if _hashable(inner) else id(subject)
    code = getattr(subject, "__code__", None)
    if code is None:
        return id(subject)
    cells = [cell.cell_contents for cell in getattr(subject, "__closure__", None) or ()]
    held = tuple(value if _hashable(value) else id(value) for value in (*cells, *(subject.__defaults__ or ())))
    return (code, held, id(getattr(subject, "__self__", None)))


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


@dataclass
class SubjectGroup:
    """What was found out about running a subject."""

    multiplexed: bool = False
    batch_agrees: bool | None = None  # None: not tried
    guesses: bool = True  # whether candidates of shrinking may run together
    probe: SubjectRun | None = None  # a case whose streaming output is known
    note: str = ""
    waiting: list[Request] = field(default_factory=list)  # cases that could not share a run


@dataclass
class Summary:
    """How a property was run, for reports."""

    seed: int | None = None
    cases: int = 0
    queries: int = 0
    batch_jobs: int = 0
    seconds: float = 0.0
    judged: int = 0
    vacuous: dict[str, int] = field(default_factory=dict)  # why passes said nothing, and how many
    spoke: int = 0  # passes that said something
    notes: list[str] = field(default_factory=list)
    failure: Judgement | None = None

    @property
    def vacuity(self) -> str | None:
        """Why the whole property said nothing, if so."""
        if self.spoke or not self.vacuous or self.failure is not None:
            return None
        return f"{max(self.vacuous, key=lambda why: self.vacuous[why])}, in any of {self.judged} cases"


class Rounds:
    """Runs of one property: remembered, collected, shared."""

    def __init__(self, *, workers: int = 1, multiplex: bool = True) -> None:
        self.memo: dict[Hashable, SubjectRun] = {}
        self.groups: dict[Hashable, SubjectGroup] = {}
        self.requests: dict[Hashable, Request] = {}
        self.collecting = False
        self.nothing_to_collect = False  # a body went through without asking for a run
        self.calls = 0  # of run_stream in the current body
        self.misses = 0
        self.recollected = 0
        self.guessing = False  # whether shrinking may go in rounds: a database would end it after the first
        self.guesses: dict[Hashable, Request] = {}  # candidates of shrinking that nobody has run
        self.failed = False  # whether a case of this pass failed: from then on Hypothesis shrinks
        self.workers, self.multiplex = workers, multiplex
        self.repeat = ""  # the line that repeats it
        self.summary = Summary()

    def run(self, request: Request) -> SubjectRun:
        """The run that a body asked for."""
        __tracebackhide__ = True
        self.calls += 1
        if self.guesses and shows_smallest_case():
            raise EndPass  # the smallest case so far; candidates are still open
        known = self.memo.get(request.key)
        if known is not None and not (known.how == "batch" and request.mode == "stream" and shows_smallest_case()):
            return known
        if self.collecting:
            self.requests[request.key] = request
            raise EndBody  # it goes on in the second pass
        self._maybe_recollect(request)
        found = replace(self._missing(request), reproduce=self.repeat)
        self.memo[request.key] = found
        return found

    def _maybe_recollect(self, request: Request) -> None:
        """Before any failure, needing unknown runs means that collecting was not complete."""
        if request.group in self.groups and self.groups[request.group].waiting:
            return  # it was collected, and has to run alone
        self.misses += 1
        second_call = self.calls > 1
        if not self.failed and self.multiplex and self.recollected < RECOLLECT and (second_call or self.misses == 3):
            raise EndPass

    def _missing(self, request: Request) -> SubjectRun:
        __tracebackhide__ = True
        group = self.groups.setdefault(request.group, SubjectGroup())
        if request.mode == "stream" and not shows_smallest_case() and self._batch_agrees(group, request):
            return self._guessed(group, request)
        if group.waiting and self.workers > 1 and not self.failed:
            return self._parallel(group, request)
        self.summary.queries += 1
        return replace(request.alone(), notes=(group.note,) if group.note else ())

    def _guessed(self, group: SubjectGroup, request: Request) -> SubjectRun:
        """A candidate of shrinking as a batch job: together with others where cases can share a run."""
        if self.guessing and group.multiplexed and group.guesses:
            self.guesses[request.key] = request
            raise EndPass if len(self.guesses) >= GUESSES else EndBody
        self.summary.batch_jobs += 1
        return request.alone("batch")

    def run_guesses(self) -> None:
        """Run the open candidates of shrinking, those of one subject in one batch job."""
        groups: dict[Hashable, list[Request]] = {}
        for request in self.guesses.values():
            groups.setdefault(request.group, []).append(request)
        self.guesses = {}
        for key, requests in groups.items():
            try:
                runs = requests[0].bench.together([request.case for request in requests], "batch")
            except Exception:  # one candidate breaks the subject: then one by one
                self.groups[key].guesses = False
                continue
            self.summary.batch_jobs += 1
            for request, run in zip(requests, runs, strict=True):
                self.memo[request.key] = replace(run, reproduce=self.repeat)

    def forget_batches(self) -> bool:
        """A batch job was wrong: from now on, shrink in streaming. Tells whether there was anything to forget."""
        batches = [key for key, run in self.memo.items() if run.how == "batch"]
        for key in batches:
            del self.memo[key]
        for group in self.groups.values():
            group.batch_agrees = False
        return bool(batches)

    def begin(self) -> None:
        """A new pass of judging."""
        self.failed, self.misses, self.guesses = False, 0, {}
        self.summary.judged, self.summary.spoke, self.summary.vacuous = 0, 0, {}

    def _parallel(self, group: SubjectGroup, request: Request) -> SubjectRun:
        """Cases that cannot share a run, some at a time in queries of their own."""
        others = [r for r in group.waiting if r.key not in self.memo and r.key != request.key][: self.workers - 1]
        with ThreadPoolExecutor(self.workers) as pool:
            runs: list[SubjectRun] = list(pool.map(Request.alone, [request, *others]))
        self.summary.queries += len(runs)
        for other, run in zip(others, runs[1:], strict=True):
            self.memo[other.key] = run
        return runs[0]

    def _batch_agrees(self, group: SubjectGroup, request: Request) -> bool:
        """Whether a batch job gives what streaming gives: tried once, on a case whose streaming output is known."""
        failure = self.summary.failure
        if not self.failed or failure is None or failure.by_batch or not all(s.ordered for s in request.case):
            return False  # disorder and micro-batches show in streaming alone; before a failure nothing is hurried
        if group.batch_agrees is None:
            probe = self._failing_probe(request) or group.probe
            if probe is None:
                return False
            try:
                again = replace(request, case=probe.inputs).alone("batch")
                group.batch_agrees = same_outputs(again, probe)
            except Exception:  # a subject that only streams
                group.batch_agrees = False
        return group.batch_agrees

    def _failing_probe(self, request: Request) -> SubjectRun | None:
        """The failing case itself is the best to try."""
        failure = self.summary.failure
        if failure is None or failure.run.how == "batch":
            return None
        return failure.run if replace(request, case=failure.run.inputs).key in self.memo else None

    def run_collected(self) -> None:
        """Run what the first pass asked for: together where that is valid."""
        groups: dict[Hashable, list[Request]] = {}
        for request in self.requests.values():
            groups.setdefault(request.group, []).append(request)
        self.requests = {}
        for key, requests in groups.items():
            self._run_group(self.groups.setdefault(key, SubjectGroup()), requests)

    def _run_group(self, group: SubjectGroup, requests: list[Request]) -> None:
        self.summary.cases = max(self.summary.cases, len(requests))
        one = requests[0]
        if len(requests) < 2 or one.mode != "stream" or one.bench.setting.restart_after is not None:
            group.waiting = requests
            return
        try:
            runs, probes = one.bench.checked([r.case for r in requests])
        except CannotMultiplex as reason:
            self._fall_back(group, requests, str(reason))
            return
        except Exception as error:  # one case may break the subject; alone it will say which
            self._fall_back(group, requests, f"the shared run broke off: {str(error).splitlines()[0][:200]}")
            return
        group.multiplexed, group.probe = True, runs[probes[0]]
        self.summary.queries += 1 + len(probes)
        for request, run in zip(requests, runs, strict=True):
            self.memo[request.key] = replace(run, reproduce=self.repeat)

    def _fall_back(self, group: SubjectGroup, requests: list[Request], reason: str) -> None:
        group.note = f"cases ran one by one: {reason}"
        group.waiting = requests
        self.summary.notes.append(group.note)

    def observe(self, judgement: Judgement) -> None:
        """Take down what was judged."""
        if self.collecting:
            return
        self.summary.judged += 1
        if judgement.verdict is not Verdict.HOLDS:
            self.failed = True
            self.summary.failure = judgement
        elif judgement.vacuous:
            self.summary.vacuous[judgement.vacuous] = self.summary.vacuous.get(judgement.vacuous, 0) + 1
        else:
            self.summary.spoke += 1


_current: list[Rounds] = []


def current() -> Rounds | None:
    """The rounds that a body runs in, if any."""
    return _current[-1] if _current else None


@contextmanager
def entered(rounds: Rounds) -> Iterator[None]:
    """While a property runs in these rounds."""
    _current.append(rounds)
    judging.observers.append(rounds.observe)
    try:
        yield
    finally:
        judging.observers.remove(rounds.observe)
        _current.pop()
