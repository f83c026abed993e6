"""The plugin, in test sessions of its own: options, junit, profiles, vacuity, xdist, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# what the sessions inside this process use is loaded here, so that none of them loads it anew
import streamproof.properties.drawing
import streamproof.properties.matchers
import streamproof.properties.proving
import streamproof.properties.report
import streamproof.properties.runner  # noqa: F401

pytest_plugins = ["pytester"]

PROPERTY = """
    from hypothesis import given, settings, strategies as st
    import pyarrow.compute as pc
    import pytest
    from streamproof.properties import always, assert_holds, every, now, of, run_function, windows

    element = st.fixed_dictionaries({"v": st.integers(0, 100)})
    seen = []

    @pytest.mark.streamproof
    @settings(max_examples=20, database=None)
    @given(stream=windows(always(of(element, 0, 3), 3), size="1 hour", time="at"))
    def test_small(stream):
        seen.append(stream.digest)
        run = run_function(stream, lambda rows: rows.filter(pc.field("v") > LIMIT), frames="arrow")
        assert_holds(always(now(lambda i, o: every(o, lambda r: r.v <= 90))).during(3), run)

    def test_how_many():
        print("DRAWN", len(seen), hash(tuple(seen[1:])))
"""


def written(pytester: pytest.Pytester, limit: int) -> None:
    pytester.makepyfile(test_it=PROPERTY.replace("LIMIT", str(limit)))
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider --strict-markers")


def test_a_failure_is_shrunk_and_can_be_repeated(pytester: pytest.Pytester) -> None:
    written(pytester, 10)
    ran = pytester.runpytest("--streamproof-cases=200", "--streamproof-seed=7", "--streamproof-report=pages")
    ran.assert_outcomes(failed=1, passed=1)
    ran.stdout.fnmatch_lines(["*fails at window 2 of 3*", "*v=91*", "*1 rows in 3 windows*", "*report: pages*"])
    page = next(Path(pytester.path, "pages").glob("*.html")).read_text(encoding="utf-8")
    assert "v=91" in page


def test_the_database_remembers_a_failure(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)  # where Hypothesis sees it, it keeps no database
    pytester.makepyfile(test_it=PROPERTY.replace("LIMIT", "10").replace(", database=None", ""))
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider")
    pytester.runpytest_subprocess("--streamproof-cases=200", "--streamproof-seed=7").assert_outcomes(failed=1, passed=1)
    again = pytester.runpytest_subprocess("--streamproof-cases=1", "--streamproof-seed=8")
    again.assert_outcomes(failed=1, passed=1)
    again.stdout.fnmatch_lines(["*v=91*"])


def test_cases_and_seeds_come_from_the_command_line(pytester: pytest.Pytester) -> None:
    written(pytester, 1000)
    lines = [
        [line for line in pytester.runpytest(*options, "-s").outlines if "DRAWN" in line]
        for options in (["--streamproof-cases=7"], ["--streamproof-seed=3"], ["--streamproof-seed=3"])
    ]
    assert "DRAWN 8 " in lines[0][0]  # one more, to see whether anything runs on Spark
    assert lines[1] == lines[2]


def test_the_profile_of_ci_draws_the_same_cases(pytester: pytest.Pytester) -> None:
    written(pytester, 1000)
    ran = [pytester.runpytest("--streamproof-profile=ci", "-s").outlines for _ in range(2)]
    shown = [[line for line in lines if "DRAWN" in line] for lines in ran]
    assert "DRAWN 51 " in shown[0][0]
    assert shown[0] == shown[1]


def test_junit_and_vacuity(pytester: pytest.Pytester) -> None:
    written(pytester, 1000)
    ran = pytester.runpytest("--junit-xml=junit.xml")
    ran.assert_outcomes(passed=2)
    ran.stdout.fnmatch_lines(["*streamproof*", "*vacuous: the subject emitted no row, in any of 20 cases*"])
    junit = Path(pytester.path, "junit.xml").read_text(encoding="utf-8")
    assert 'name="streamproof.judged" value="20"' in junit
    assert 'name="streamproof.vacuous"' in junit


def test_workers_of_xdist_report_too(pytester: pytest.Pytester) -> None:
    written(pytester, 1000)
    ran = pytester.runpytest_subprocess("-n", "2")
    ran.assert_outcomes(passed=2)
    ran.stdout.fnmatch_lines(["*vacuous: the subject emitted no row*"])


def test_a_fixture_called_spark_stays_the_projects_own(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import pytest\n\n@pytest.fixture\ndef spark():\n    return 'mine'")
    pytester.makepyfile("def test_it(spark):\n    assert spark == 'mine'")
    pytester.runpytest().assert_outcomes(passed=1)
    listed = pytester.runpytest("--fixtures").outlines
    assert any(line.startswith("streamproof_spark") for line in listed)


def test_methods_and_examples_work(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        from hypothesis import example, given, strategies as st

        class TestIt:
            @pytest.mark.streamproof(cases=5)
            @example(41)
            @given(st.integers(0, 3))
            def test_method(self, n):
                assert n != 41

        @pytest.mark.streamproof
        @example(2).xfail()
        @given(st.integers(5, 9))
        def test_expected(n):
            assert n != 2
        """
    )
    ran = pytester.runpytest("-p", "no:cacheprovider")
    ran.assert_outcomes(failed=1, passed=1)
    ran.stdout.fnmatch_lines(["*n=41*"])


@pytest.mark.parametrize(
    "line", ["import streamproof.properties.pytest_plugin", "from streamproof.properties import now"]
)
def test_importing_it_starts_and_loads_nothing(line: str) -> None:
    code = f"{line}; import sys; print({{'pyspark', 'hypothesis', 'jinja2'}} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.strip() == "set()"
