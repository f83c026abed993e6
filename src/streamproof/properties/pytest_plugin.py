"""The pytest plugin: a shared Spark session, properties in two passes, options, and what they found in the report.

Importing it starts nothing. Its fixture is called ``streamproof_spark``, so that a project's own ``spark`` stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamproof.properties.proving import Summary

FIXTURE = "streamproof_spark"
SUMMARIES: pytest.StashKey[list[tuple[str, str]]] = pytest.StashKey()
PROFILES: dict[str, dict[str, Any]] = {
    "ci": {"max_examples": 50, "derandomize": True},  # the same cases every time
    "nightly": {"max_examples": 1000},  # many, and new ones every night
}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("streamproof", "properties of streaming jobs")
    group.addoption("--streamproof-cases", type=int, metavar="N", help="cases per property, instead of its own number")
    group.addoption("--streamproof-seed", type=int, metavar="N", help="draw the cases that this seed gives")
    group.addoption(
        "--streamproof-profile", choices=sorted(PROFILES), help="ci: 50 fixed cases; nightly: 1000 new ones"
    )
    group.addoption("--streamproof-alone", action="store_true", help="one query per case: no multiplexing")
    group.addoption(
        "--streamproof-workers", type=int, default=2, metavar="N", help="queries at once where cases run alone"
    )
    group.addoption("--streamproof-report", metavar="FOLDER", help="write an HTML page for every property that fails")
    group.addoption("--streamproof-master", metavar="URL", help="Spark's master for the shared session, e.g. local[2]")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "streamproof(cases=None, seed=None, multiplex=True): run a property of a streaming job in two passes, "
        "also where it does not use the fixture streamproof_spark",
    )
    config.stash[SUMMARIES] = []


@pytest.fixture(scope="session")
def streamproof_spark(request: pytest.FixtureRequest) -> SparkSession:
    """The Spark session that all properties of a process share; a session that runs already is taken."""
    from streamproof.engines.spark.session import active, session  # noqa: PLC0415  # nothing starts at import

    running = active()
    master = request.config.getoption("--streamproof-master") or os.environ.get("STREAMPROOF_MASTER")
    if running is not None:
        return running
    few = {} if master is None or master.startswith("local") else {"spark.sql.shuffle.partitions": "4"}  # not 200
    with _python_path():
        return session(**({"spark.master": master} if master else {}), **few)


@contextmanager
def _python_path() -> Iterator[None]:
    """While Spark starts, the path that its Python workers will have: that of the tests."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a property in two passes; everything else is left alone."""
    marker = pyfuncitem.get_closest_marker("streamproof")
    test = pyfuncitem.obj
    wanted = marker is not None or FIXTURE in getattr(pyfuncitem, "fixturenames", ())
    if not wanted or not getattr(test, "is_hypothesis_test", False):
        return None
    from streamproof.properties.hypothesis_internals import GivenTest  # noqa: PLC0415
    from streamproof.properties.proving import prove  # noqa: PLC0415

    _travel_by_value(pyfuncitem.module)
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    given = GivenTest(getattr(test, "__func__", test), pyfuncitem.instance)
    profile = PROFILES.get(pyfuncitem.config.getoption("--streamproof-profile"), {})
    options = _options(pyfuncitem, dict(marker.kwargs) if marker else {})
    holder: list[Summary] = []
    try:
        with given.with_settings(**profile):
            prove(given, arguments, **options, summary=holder.append)
    finally:
        if holder:
            _take_down(pyfuncitem, holder[0])
    return True


def _travel_by_value(module: Any) -> None:
    """Functions of a test module go to Spark's workers as they are, because workers cannot import it."""
    if "pyspark" not in sys.modules:
        return  # nobody uses Spark
    from pyspark import cloudpickle  # noqa: PLC0415

    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # a vendored library


def _options(item: pytest.Function, marked: dict[str, Any]) -> dict[str, Any]:
    """What the command line says, else the marker."""
    config = item.config
    cases = config.getoption("--streamproof-cases")
    seed = config.getoption("--streamproof-seed")
    return {
        "cases": cases if cases is not None else marked.get("cases"),
        "seed": seed if seed is not None else marked.get("seed"),
        "multiplex": not config.getoption("--streamproof-alone") and marked.get("multiplex", True),
        "workers": config.getoption("--streamproof-workers"),
        "repeat": f'pytest "{item.nodeid}"',
    }


def _take_down(item: pytest.Function, summary: Summary) -> None:
    """Into the junit file, the terminal's last lines, and the HTML page of a failure."""
    facts: dict[str, object] = {
        "cases": summary.cases,
        "judged": summary.judged,
        "seed": summary.seed if summary.seed is not None else "derandomized",
        "queries": summary.queries,
        "batch_jobs": summary.batch_jobs,
        "seconds": f"{summary.seconds:.2f}",
    }
    if summary.vacuity:
        facts["vacuous"] = summary.vacuity
    item.user_properties += [(f"streamproof.{name}", value) for name, value in facts.items()]
    lines = [*summary.notes] + ([f"vacuous: {summary.vacuity}"] if summary.vacuity else [])
    page = _page(item, summary)
    if page is not None:
        lines.append(f"report: {page}")
        item.user_properties.append(("streamproof.report", str(page)))
    item.user_properties += [("streamproof.note", line) for line in lines]


def _page(item: pytest.Function, summary: Summary) -> Path | None:
    folder = item.config.getoption("--streamproof-report")
    if folder is None or summary.failure is None:
        return None
    from streamproof.properties.report import html_report  # noqa: PLC0415

    name = "".join(character if character.isalnum() else "-" for character in item.nodeid).strip("-")
    file = Path(folder) / f"{name}.html"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(html_report(summary.failure, title=item.nodeid), encoding="utf-8")
    return file


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Passes that said nothing, fallbacks and pages: also from the workers of xdist, through their reports."""
    noted = [
        f"{report.nodeid}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, value in getattr(report, "user_properties", ())
        if name == "streamproof.note"
    ]
    if noted:
        terminalreporter.section("streamproof")
        for line in noted:
            terminalreporter.write_line(line)
