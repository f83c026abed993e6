"""``streamproof analyze``: figures as text, JSON and a page; mistakes with their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

QUAKES = Path(__file__).parents[2] / "examples/earthquakes.csv"


def test_text_and_page(run, tmp_path: Path) -> None:
    done = run(
        "analyze", QUAKES, "--event-time", "time", "--arrival", "updated", "--html", "q.html", "--key", "net", "--more"
    )
    assert done.code == 0
    assert "out of order   8,848   (85.18 %)" in done.out
    assert '.withWatermark("time", "29 days")' in done.out
    assert "ak: 2,063 of 2,097" in done.out
    assert "the report is in q.html" in done.err
    page = (tmp_path / "q.html").read_text()
    assert page.startswith("<!doctype html>")
    again = run("analyze", QUAKES, "--event-time", "time", "--html", "q.html")
    assert (again.code, "q.html exists" in again.err) == (2, True)


def test_json(run) -> None:
    done = run("analyze", QUAKES, "--event-time", "time", "--arrival", "updated", "--unit", "ms", "--json")
    figures = json.loads(done.out)
    assert (figures["events"], figures["out_of_order"], figures["unit"]) == (10_387, 8_848, "ms")


def test_what_spark_would_drop(run) -> None:
    done = run(
        "analyze", QUAKES, "--event-time", "time", "--arrival", "updated", "--batch-rows", 500, "--delay", "1 day",
        "--window", "1h", "--json",
    )  # fmt: skip
    assert json.loads(done.out)["spark"]["windows_hit"] > 0


def test_rejects_go_to_a_file(run, lay, tmp_path: Path) -> None:
    path = lay("s.csv", "t\n1\nx\n3\n")
    done = run("analyze", path, "--event-time", "t", "--unit", "s")
    assert "(1 rejected)" in done.out
    assert "the rejected rows are in s.rejects.jsonl" in done.err
    assert json.loads((tmp_path / "s.rejects.jsonl").read_text())["line"] == 3


def test_escapes_never_reach_the_terminal(run, lay) -> None:
    path = lay("s.csv", "t,k\n5,\x1b[2J\n1,\x1b[2J\n")
    assert "\x1b" not in run("analyze", path, "--event-time", "t", "--unit", "s", "--key", "k").out


def test_mistakes(run, lay) -> None:
    path = lay("s.csv", "t\n1\n2\n")
    for arguments, what in (
        ((path, "--event-time", "time", "--unit", "s"), 'there is no column "time"'),
        ((path, "--event-time", "t"), "nothing says how long a tick is"),
        ((path, "--event-time", "t", "--unit", "h"), "'h' is not a time unit"),
        ((path, "--event-time", "t", "--unit", "s", "--on", "moon"), "--on cannot be moon"),
        ((path, "--event-time", "t", "--unit", "s", "--separator", "ab"), "the separator cannot be"),
        ((path, "--event-time", "t", "--unit", "s", "--batch-rows", 1, "--delay", "soon"), "cannot read the duration"),
        (("none.csv", "--event-time", "t"), "there is no file none.csv"),
    ):
        done = run("analyze", *arguments)
        assert done.code == 2
        assert what in done.err
        assert "fix:" in done.err
    assert (
        json.loads(run("analyze", "none.csv", "--event-time", "t", "--json").out)["what"] == "there is no file none.csv"
    )
