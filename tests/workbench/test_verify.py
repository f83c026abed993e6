"""Verification: what holds, what differs, what it says, and what it shrinks to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from time import monotonic

import pytest

import streamproof as sp
from streamproof.cli.demo_proof import planted_bug
from streamproof.engines.base import engine
from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.event import Cti
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.kernels.linear import ExtendKernel
from streamproof.plan.limits import Limits
from streamproof.thresholds import NAMED
from streamproof.workbench import intent as I  # noqa: N812
from streamproof.workbench import repro
from streamproof.workbench.arrivals import pushes, reordered
from streamproof.workbench.bench import Workbench, open_bench, replay
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.concretise import concrete_group, factors_of
from streamproof.workbench.languages import as_python, as_sql, as_xml, plan_json, result_of_sql, runs_as_sql
from streamproof.workbench.modules import all_modules
from streamproof.workbench.oracle import SqlOracle
from streamproof.workbench.promises import broken_promise
from streamproof.workbench.runner import ALONE, SHORTEST, VerifyOptions, judged, run_suite, tasks_of
from streamproof.workbench.schedule import Schedule
from streamproof.workbench.shipped_suites import everything
from streamproof.workbench.smaller_streams import is_legal
from streamproof.workbench.suite import Suite, load_suite
from streamproof.workbench.verdict import Verdict, worst

SCHEMA = Schema.of({"v": "int64"})


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    with open_bench(["local", "spark-buckets"]) as opened:
        yield opened


@pytest.mark.parametrize("name", ["local", "spark-buckets"])
def test_every_scenario_holds(bench: Workbench, name: str) -> None:
    for intent in everything():
        for case in concrete_group(intent, 3, seed=11, size=1):
            verdict = bench.judges[name].verdict(case)
            assert verdict.word == "holds", f"{intent.name}: {verdict.text}"


def test_time_that_is_advanced_is_judged_both_ways(bench: Workbench) -> None:
    """What advance_time lets through is known only of runs, so the rewritten plan is judged over that as well."""
    a, b = (I.stream({"k": "string", "v": "int64"}) for _ in range(2))
    below = a.advance_time().then("where", expr="v > 0").then("where", expr="v < 9")
    scenario = below.then("union", b.advance_time()).over(I.events(speculative=False)).called("advanced")
    groups = [concrete_group(scenario, number, seed=5, size=4) for number in range(3)]
    assert all(case.schedule.live for group in groups for case in group)
    tally = judged(bench.judges["local"], groups, "advanced", VerifyOptions())
    assert dict(tally.words) == {"holds": 12}, tally.found


def test_large_streams_are_above_what_switches_code(bench: Workbench) -> None:
    suite = load_suite("large")
    of_rows = [one.usual for one in NAMED.values() if not one.name.startswith(("stored", "journal", "output", "looks"))]
    for task in tasks_of(suite, "local", 140, 1):
        assert task.plans * task.size == 1, "one at a time"
    for scenario in suite.scenarios:
        data = next(part.data for part in scenario.walk() if part.data is not None)
        assert 20_000 <= data.least < data.most <= 200_000
        assert factors_of(scenario).data["thresholds"] == ("usual",)
    assert sum(usual <= 20_000 for usual in of_rows) >= len(of_rows) - 8
    scenario = next(one for one in suite.scenarios if one.name == "large-equals")
    (case,) = concrete_group(scenario, 0, seed=1, size=1)
    assert case.size >= 20_000
    assert bench.judges["local"].verdict(case).word == "holds"


def test_a_long_stream_in_another_order_has_few_ctis() -> None:
    stream = CaseStream.inserting(SCHEMA, [(n, n + 1, {"v": n}) for n in range(20_000)])
    events = [*stream.events, Cti(FOREVER)]
    assert 0 < sum(isinstance(event, Cti) for event in reordered(events, Random(1), most=10)) < 1000


def test_what_the_judge_may_not_list_is_undecided(bench: Workbench) -> None:
    plan = sp.source("S").join(sp.source("R"), "l.v = r.v", select={"v": "l.v"}).plan
    stream = CaseStream.inserting(SCHEMA, [(0, 10, {"v": 1})] * 20)
    case = Case(plan, {"S": stream, "R": stream}, limits=Limits(events_listed=300))
    verdict = bench.judges["local"].verdict(case)
    assert (verdict.word, verdict.exit_code) == ("undecided", 0)
    assert "the limit events_listed is 300" in verdict.text
    assert bench.judges["local"].verdict(replace(case, limits=Limits())).word == "holds"


def test_cases_of_one_plan_are_judged_together_as_alone() -> None:
    oracle = SqlOracle(engine("duckdb", threads=1), all_modules())  # type: ignore[arg-type]
    for intent in everything()[:8]:
        cases = concrete_group(intent, 1, seed=3, size=3)
        assert oracle.outcomes(cases) == [oracle.expected(case) for case in cases]


def test_a_bug_is_found_shrunk_and_replayed(tmp_path: Path) -> None:
    left, right = I.stream(), I.stream()
    scenario = left.followed_by(right).over(I.events(pattern="dense", speculative=False)).called("follows")
    with planted_bug():
        result = run_suite(Suite("bugs", (scenario,), cases=200), VerifyOptions(most=1))
        (found,) = result.found
        assert found.case.size <= 5
        assert found.verdict.word == "fails"
        again = replay(found)
        assert again.is_found
    assert not replay(found).is_found, "the bug is gone"
    path = tmp_path / "repro.json"
    repro.save(found, path)
    loaded = repro.load(path)
    assert (loaded.case.plan, loaded.case.streams) == (found.case.plan, found.case.streams)
    assert loaded.case.schedule == found.case.schedule
    test = tmp_path / "test_it.py"
    test.write_text(repro.pytest_file(found), encoding="utf-8")
    names: dict[str, object] = {}
    exec(compile(test.read_text(), str(test), "exec"), names)
    (check,) = [value for name, value in names.items() if name.startswith("test_")]
    assert callable(check)
    check()
    with planted_bug(), pytest.raises(AssertionError):
        check()


def test_a_broken_law_is_named(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """An extension that keeps a frontier it must not keep breaks the rules of streams."""
    plain = ExtendKernel.on_batch

    def early(self: ExtendKernel, port: int, delta: object) -> object:
        made = plain(self, port, delta)  # type: ignore[arg-type]
        return replace(made, frontier=delta.frontier)  # type: ignore[attr-defined]

    monkeypatch.setattr(ExtendKernel, "on_batch", early)
    scenario = I.stream().extend(-3).over(I.events(pattern="dense")).called("shrinking")
    judge = bench.judges["local"]
    found = [
        (case, verdict)
        for number in range(90)
        for case in concrete_group(scenario, number, seed=1, size=2)
        if (verdict := judge.verdict(case)).is_found
    ]
    assert found
    small, verdict = judge.shrunk(*found[0])
    assert small.size <= 5
    assert verdict.kind.startswith("promise")


def test_a_case_that_differs_only_among_others_is_shown_as_it_is(bench: Workbench) -> None:
    scenario = I.stream().extend(3).over(I.events(pattern="dense")).called("longer")
    (case,) = concrete_group(scenario, 0, seed=1, size=1)
    judge = bench.judges["local"]
    among_others = replace(judge.verdict(case), word="fails", kind="rows", text="at 3: one row too many")
    shown, verdict = judge.shrunk(case, among_others)
    assert shown is case
    assert (verdict.word, verdict.text) == (
        "nondeterministic", "run alone the case holds; in one run with others: at 3: one row too many",
    )  # fmt: skip


def test_a_case_that_differs_only_among_others_may_need_their_events(bench: Workbench) -> None:
    scenario = I.stream().followed_by(I.stream()).over(I.events(pattern="dense", speculative=False)).called("follows")
    judge = bench.judges["local"]
    with planted_bug():
        for group in (concrete_group(scenario, n, seed=1, size=6) for n in range(20)):
            verdicts = judge.verdicts(group)
            holding = [case for case, verdict in zip(group, verdicts, strict=True) if not verdict.is_found]
            if 0 < len(holding) < len(group):
                break
        among_others = replace(judge.verdict(holding[0]), word="fails", kind="rows", text="among others")
        small, verdict = judge.shrunk(holding[0], among_others, beside=group)
    assert verdict.is_found
    assert verdict.word == "fails"
    assert small.size <= 5


def test_a_difference_that_shows_again_is_preferred(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = I.stream().followed_by(I.stream()).over(I.events(pattern="dense", speculative=False)).called("follows")
    judge = bench.judges["local"]
    with planted_bug():
        cases = [case for n in range(20) for case in concrete_group(scenario, n, seed=1, size=1)]
        verdicts = [judge.verdict(case) for case in cases]
        wrong = next(n for n, verdict in enumerate(verdicts) if verdict.is_found)
        right = next(n for n, verdict in enumerate(verdicts) if not verdict.is_found)
        seen = [replace(verdicts[right], word="fails", kind="rows", text="among others"), verdicts[wrong]]
        monkeypatch.setattr(judge, "verdicts", lambda _: seen)
        tally = judged(judge, [[cases[right]], [cases[wrong]]], "mine", VerifyOptions())
    assert [one.verdict.word for one in tally.found] == ["fails"]


def test_what_has_no_end_may_be_kept(bench: Workbench) -> None:
    """Nothing ends the one on the left, so it lasts for ever, although no input does."""
    plan = sp.source("S").pairing(sp.source("R")).alter_duration("re").plan
    streams = {"S": CaseStream.inserting(SCHEMA, [(0, 1, {"v": 1})]), "R": CaseStream(SCHEMA, ())}
    assert bench.judges["local"].verdict(Case(plan, streams)).word == "holds"


def test_promises() -> None:
    row, back = (3, 5, 1, {"v": 1}), (3, 5, -1, {"v": 1})
    done = Batch.from_rows(SCHEMA, [], frontier=FOREVER)
    assert not broken_promise([Batch.from_rows(SCHEMA, [row]), done])
    assert broken_promise([Batch.from_rows(SCHEMA, [row, back]), done]).kind == "cancelling"
    taken = [Batch.from_rows(SCHEMA, [row]), Batch.from_rows(SCHEMA, [back]), done]
    assert not broken_promise(taken)
    assert broken_promise(taken, final=True).kind == "final"
    assert broken_promise([Batch.from_rows(SCHEMA, [row])]).kind == "complete"
    early = [Batch.from_rows(SCHEMA, [], frontier=9), Batch.from_rows(SCHEMA, [row]), done]
    assert broken_promise(early).kind == "events"


def test_promises_see_the_whole_of_a_long_value() -> None:
    schema = Schema.of({"s": "string"})
    rows = [(1, 2, -1, {"s": "a" * 99}), (1, 2, 1, {"s": "a" * 100})]
    first = Batch.from_rows(schema, [(1, 2, 1, {"s": "a" * 99})])
    done = Batch.from_rows(schema, [], frontier=FOREVER)
    assert not broken_promise([first, Batch.from_rows(schema, rows), done])


def test_a_case_means_the_same_in_every_language() -> None:
    oracle = SqlOracle(engine("duckdb", threads=1), all_modules())  # type: ignore[arg-type]
    ran = 0
    for intent in everything()[:6]:
        for case in [*concrete_group(intent, 2, seed=5, size=1), *concrete_group(intent, 3, seed=5, size=1)]:
            expected = oracle.expected(case)
            assert all((as_python(case), plan_json(case), as_xml(case), as_sql(case)))
            if isinstance(expected, History) and runs_as_sql(case):
                assert result_of_sql(case) == expected
                ran += 1
    assert ran >= 3


def test_another_order_is_legal_and_means_the_same() -> None:
    import random

    for intent in everything()[:4]:
        for case in concrete_group(intent, 5, seed=9, size=3):
            for name, stream in case.streams.items():
                events = tuple(reordered(stream.events, random.Random(1)))
                assert is_legal(stream.schema, events)
                moved = replace(stream, events=events)
                assert moved.history == stream.history
                parts = [
                    part for source, part in pushes(case, Schedule(seed=3, cuts=-1, interleave=True)) if source == name
                ]
                assert sum(map(len, parts)) == len(stream.events)


def test_runs_go_on_where_they_stopped(tmp_path: Path) -> None:
    scenario = I.operator(I.stream(), among=("shift", "extend", "where")).called("light")
    suite = Suite("short", (scenario,), cases=60)
    book = tmp_path / "book.json"
    part = run_suite(suite, VerifyOptions(resume=book, time_budget=0.0))
    assert part.stopped == "the time is up"
    assert 0 < part.cases < 60
    whole = run_suite(suite, VerifyOptions(resume=book))
    assert whole.cases >= 60
    assert not whole.stopped
    assert run_suite(suite, VerifyOptions(resume=book)).cases == whole.cases
    with pytest.raises(InputError, match="belongs to another run"):
        run_suite(suite, VerifyOptions(resume=book, seed=99))


def test_suites_are_files(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(
        '{"name": "mine", "cases": 8, "scenarios": {"equi": {"op": "join", "left": {"op": "stream", "columns":'
        ' {"k": "string"}}, "right": "stream", "on": "1 = 1", "select": {"a": "l.k"},'
        ' "over": {"disorder": {"one_of": ["slightly", "highly"]}}}}}'
    )
    suite = load_suite(str(path))
    assert (suite.name, suite.cases) == ("mine", 8)
    assert run_suite(suite).verdict == "holds"
    code = tmp_path / "mine.suite.py"
    code.write_text(
        "from streamproof.workbench import intent as I\nfrom streamproof.workbench.suite import Suite\n"
        'SUITE = Suite("code", (I.stream().distinct().called("d"),), cases=4)\n'
    )
    assert load_suite(str(code)).name == "code"
    with pytest.raises(InputError, match='there is no suite "smoek"'):
        load_suite("smoek")


def test_words_have_an_order() -> None:
    assert worst(["holds", "fails", "undecided"]) == "fails"
    assert worst([]) == "holds"


def test_what_only_differs_in_company_is_looked_at_alone_a_few_times_and_not_past_the_time_budget(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, asked = bench.judges["local"], list[float]()
    cases = concrete_group(everything()[0], 3, seed=11, size=ALONE + 3)
    fails = Verdict("fails", "rows", "in company", engine="local")
    monkeypatch.setattr(judge, "verdicts", lambda cases, expected=None: [fails] * len(cases))

    def shrunk(case: Case, verdict: Verdict, *, seconds: float, beside: object) -> tuple[Case, Verdict]:
        asked.append(seconds)
        return case, replace(verdict, word="nondeterministic")

    monkeypatch.setattr(judge, "shrunk", shrunk)
    tally = judged(judge, [cases], "mine", VerifyOptions(until=monotonic() - 1))
    assert asked == [SHORTEST] * ALONE
    assert tally.words["fails"] == len(cases)
    assert [one.verdict.word for one in tally.found] == ["nondeterministic"]
    asked.clear()
    judged(judge, [cases], "mine", VerifyOptions())
    assert asked == [60.0] * ALONE
