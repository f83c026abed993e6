"""The session: really started, in processes of its own, quiet, and gone when they are."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from streamproof.engines.spark.session import MEANING, _log_file, active, meaning, session
from streamproof.errors import InfrastructureError
from tests.spark.sessions import FAST

NEEDED = ("bash", "sh", "env", "dirname", "uname", "cat", "chmod", "ls", "mkdir", "rm", "readlink", "ps", "sed", "grep")
JOB = """
    from streamproof.engines.spark.session import session
    from tests.spark.sessions import FAST

    spark = session(**FAST)
    assert session() is spark

    def same(batches):
        import pyspark
        assert ".zip" not in pyspark.__file__, "modules in archives are compiled by every worker"
        return batches

    print(spark.range(5).mapInArrow(same, "id bigint").count(), flush=True)
"""


def without_java(folder: Path) -> dict[str, str]:
    """An environment in which no Java is found, but everything else that Spark's scripts call."""
    for name in NEEDED:
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    changed = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    return {**changed, "PATH": str(folder)}


def started(code: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    """A process that runs the code in a folder of its own; all it starts belongs to its group."""
    tests = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=folder, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**environment, "PYTHONPATH": tests},
    )  # fmt: skip


def living(group: int) -> list[str]:
    """What still runs of a group of processes."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [row[2] for row in rows if int(row[0]) == group and not row[1].startswith("Z")]


def gone(group: int) -> bool:
    deadline = time.monotonic() + 60
    while living(group) and time.monotonic() < deadline:
        time.sleep(0.2)
    return living(group) == []


def test_the_bundled_java_runs_a_job_quietly_and_nothing_stays_behind(tmp_path: Path) -> None:
    tools, folder = tmp_path / "bin", tmp_path / "work"
    tools.mkdir()
    folder.mkdir()
    process = started(JOB, folder, without_java(tools))
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (0, "5\n", "")
    assert gone(process.pid)
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_an_interrupt_leaves_no_process_behind(tmp_path: Path) -> None:
    endless = (
        JOB
        + """
    import time
    def slow(batches):
        time.sleep(3600)
        yield from batches
    spark.range(1).mapInArrow(slow, "id bigint").count()
    """
    )
    process = started(endless, tmp_path, dict(os.environ))
    assert process.stdout is not None
    assert process.stdout.readline() == "5\n"
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in err
    assert gone(process.pid)


@pytest.fixture(scope="module")
def spark():  # type: ignore[no-untyped-def]
    return active() or session(**FAST)


def test_the_running_session_is_used_again(spark) -> None:  # type: ignore[no-untyped-def]
    assert session() is spark
    before = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        assert session(**{"spark.sql.shuffle.partitions": 7}) is spark
        assert spark.conf.get("spark.sql.shuffle.partitions") == "7"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def test_a_setting_that_cannot_change_any_more_is_an_error(spark) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InfrastructureError, match=r"Spark runs already, and spark\.master cannot change to local") as e:
        session(**{"spark.master": "local[17]"})
    assert "session.stop()" in str(e.value.fix)


def test_settings_that_decide_the_meaning_hold_while_a_plan_is_built(spark) -> None:  # type: ignore[no-untyped-def]
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        with meaning(spark):
            assert {name: spark.conf.get(name) for name in MEANING} == MEANING
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")


def test_loggers_that_repeat_what_is_raised_are_off_unless_asked_for() -> None:
    """One of them logs a stack trace when it cannot close a socket twice."""
    name = "org.apache.spark.sql.execution.python.streaming"
    quiet, loud = (_log_file(level).read_text() for level in ("error", "info"))
    number = next(line.split(".")[1] for line in quiet.splitlines() if line.endswith(f"name = {name}"))
    assert f"logger.{number}.level = off" in quiet.splitlines()
    assert name not in loud
