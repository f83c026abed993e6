"""Bad input at the command line: a clear error or a count, and nothing lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done

Run = Callable[..., Done]
Lay = Callable[..., Path]
SOURCE = {"op": "source", "name": "S"}


def insert(name: str, le: object, re: object, **payload: object) -> dict[str, object]:
    return {"kind": "insert", "id": name, "le": le, "re": re, "payload": payload}


def tumbling(size: object = 10) -> dict[str, object]:
    return {"op": "agg", "in": SOURCE, "window": {"type": "tumbling", "size": size}, "aggs": {"n": ["count", None]}}


def error_of(done: Done) -> dict[str, object]:
    assert done.code == 2, done
    (error,) = done.rows
    return error


def test_code_in_an_expression_is_just_an_unknown_function(run: Run, lay: Lay) -> None:
    plan = {"op": "where", "in": SOURCE, "expr": "java_method('java.lang.System', 'exit') is null"}
    done = run("run", lay("p.json", plan), "--input", f"S={lay('s.jsonl', [insert('a', 1, 5, v=1)])}", "--json")
    error = error_of(done)
    assert error["error"] == "unknown_module"
    assert error["what"] == 'unknown function "java_method"'
    assert error["at"] == "plan: where(java_method('java.lang.System', 'exit') is null)"


def test_a_subquery_is_refused(run: Run, lay: Lay) -> None:
    plan = {"op": "where", "in": SOURCE, "expr": "v in (select 1 from read_csv('/etc/passwd'))"}
    error = error_of(run("run", lay("p.json", plan), "--json"))
    assert (error["error"], error["what"]) == ("bad_plan", "subqueries cannot stand in an expression")


@pytest.mark.parametrize("name", ['we"ird', "back`tick", "semi;colon", "söme ünïcode", "a'b", "select", "new\nline"])
def test_odd_column_names_pass_through(name: str, run: Run, lay: Lay) -> None:
    rows = [insert("a", 1, 5, **{name: 7})]
    plan = {"op": "select", "in": SOURCE, "exprs": {name: '"' + name.replace('"', '""') + '" + 1'}}
    done = run("run", lay("p.json", plan), "--input", f"S={lay('s.jsonl', rows)}", "--json")
    assert done.rows == [{"le": 1, "re": 5, "payload": {name: 8}}]


def test_entities_in_xml_are_refused(run: Run, lay: Lay) -> None:
    bomb = '<!DOCTYPE p [<!ENTITY a "aaaa">]><plan version="1"><source name="&a;"/></plan>'
    error = error_of(run("explain", lay("p.xml", bomb), "--json"))
    assert error["error"] == "bad_plan"
    assert "DTD" in str(error["what"]) or "entit" in str(error["what"])


def test_a_time_beyond_the_range_names_its_line(run: Run, lay: Lay) -> None:
    rows = [insert("a", 1, 5, v=1), insert("b", 2**62 + 1, 2**62 + 2, v=1)]
    done = run("run", lay("p.json", SOURCE), "--input", f"S={lay('s.jsonl', rows)}", "--json")
    assert (done.code, done.rows) == (0, [{"le": 1, "re": 5, "payload": {"v": 1}}])
    rejected = json.loads(Path("S.rejects.jsonl").read_text(encoding="utf-8"))
    assert rejected["line"] == 2
    assert "2^62" in rejected["why"]


def test_a_shift_out_of_range_is_an_overflow_that_names_the_event(run: Run, lay: Lay) -> None:
    plan = {"op": "shift", "in": SOURCE, "by": 10}
    rows = [insert("a", 2**62 - 5, "inf", v=3)]
    error = error_of(run("run", lay("p.json", plan), "--input", f"S={lay('s.jsonl', rows)}", "--json"))
    assert error["error"] == "overflow"
    assert str(2**62 - 5) in str(error["at"])


def test_too_many_windows_for_one_event(run: Run, lay: Lay) -> None:
    rows = [insert("a", 0, 2_000_000, v=1)]
    error = error_of(run("run", lay("p.json", tumbling(1)), "--input", f"S={lay('s.jsonl', rows)}", "--json"))
    assert error["error"] == "limit_exceeded"
    assert error["what"] == "one event falls into 2000000 windows; the limit windows_per_event is 1000000"


def test_an_infinite_lifetime_needs_a_horizon(run: Run, lay: Lay) -> None:
    arguments = ["run", lay("p.json", tumbling()), "--input", f"S={lay('s.jsonl', [insert('a', 5, 'inf', v=1)])}"]
    error = error_of(run(*arguments, "--json"))
    assert error["error"] == "unbounded_windows"
    assert "horizon" in str(error["fix"])
    done = run(*arguments, "--horizon", "20", "--json")
    assert [(row["le"], row["re"]) for row in done.rows] == [(0, 10), (10, 20)]


def test_integer_overflow_is_an_error(run: Run, lay: Lay) -> None:
    plan = {"op": "select", "in": SOURCE, "exprs": {"x": "v + 1"}}
    rows = [insert("a", 1, 5, v=2**63 - 1)]
    error = error_of(run("run", lay("p.json", plan), "--input", f"S={lay('s.jsonl', rows)}", "--json"))
    assert error["error"] == "overflow"


def test_times_without_a_zone_are_rejected_and_counted(run: Run, lay: Lay) -> None:
    table = "at,v\n2024-05-01T12:00:00Z,1\n2024-05-01T12:00:00,2\n,3\n"
    done = run(
        "run", lay("p.json", SOURCE), "--input", f"S={lay('s.csv', table)}", "--map", "start=at,unit=s", "--json"
    )
    assert [row["payload"] for row in done.rows] == [{"v": 1}]
    assert "2 rows could not be read" in done.err
    lines = [json.loads(line) for line in Path("S.rejects.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["line"] for line in lines] == [3, 4]
    assert "zone" in lines[0]["why"]


@pytest.fixture
def late(lay: Lay) -> Path:
    """A stream whose second event comes too late, and whose third retracts an event that never was."""
    return lay("s.jsonl", [
        {"kind": "cti", "t": 10}, insert("a", 12, 15, v=1), insert("b", 5, 20, v=2),
        {"kind": "retract", "id": "x", "le": 11, "re": 30, "re_new": 20, "payload": {"v": 3}},
        {"kind": "cti", "t": "inf"},
    ])  # fmt: skip


def test_an_illegal_event_fails_by_default(late: Path, run: Run, lay: Lay) -> None:
    error = error_of(run("run", lay("p.json", SOURCE), "--input", f"S={late}", "--json"))
    assert error["error"] == "cti_violation"
    assert str(error["at"]).startswith("input S, event 2")


def test_illegal_events_can_be_dropped_and_are_counted(late: Path, run: Run, lay: Lay) -> None:
    done = run("run", lay("p.json", SOURCE), "--input", f"S={late}", "--json", "--on-error", "drop")
    assert [row["payload"] for row in done.rows] == [{"v": 1}]
    assert "1 event left out (cti_violation)" in done.err
    assert "1 event left out (unmatched_retraction)" in done.err


def test_illegal_events_can_be_kept_as_dead_letters(late: Path, run: Run, lay: Lay) -> None:
    arguments = ["run", lay("p.json", SOURCE), "--input", f"S={late}", "--on-error", "dead_letter", "--json"]
    done = run(*arguments, "--dead-letters", "dead.jsonl")
    assert done.code == 0
    dead = [json.loads(line) for line in Path("dead.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(event["kind"], event["id"]) for event in dead] == [("insert", "b"), ("retract", "x")]


def test_validate_reports_every_violation_and_exits_1(late: Path, run: Run) -> None:
    done = run("validate", late, "--json")
    assert done.code == 1
    assert [row.get("error") for row in done.rows[:-1]] == ["cti_violation", "unmatched_retraction"]
    assert done.rows[-1]["broken"] == {"cti_violation": 1, "unmatched_retraction": 1}


def test_malformed_lines_are_rejected_with_their_numbers(run: Run, lay: Lay) -> None:
    good = json.dumps(insert("a", 1, 5, v=1))
    content = f"{good}\n\nnot json\n{{}}\n{json.dumps(insert('b', 2, 6, v='text'))}\n".encode() + b"\xff\xfe\n"
    done = run("run", lay("p.json", SOURCE), "--input", f"S={lay('s.jsonl', content)}", "--json")
    assert [row["payload"] for row in done.rows] == [{"v": 1}]
    lines = [json.loads(line)["line"] for line in Path("S.rejects.jsonl").read_text(encoding="utf-8").splitlines()]
    assert lines == [3, 4, 5, 6]


def test_an_existing_output_is_not_overwritten(run: Run, lay: Lay) -> None:
    source, target = lay("s.jsonl", [insert("a", 1, 5, v=1)]), lay("out.parquet", "precious")
    arguments = ["run", lay("p.json", SOURCE), "--input", f"S={source}", "--out", target]
    done = run(*arguments)
    assert done.code == 2
    assert "--overwrite" in done.err or "overwrite" in done.err
    assert target.read_text(encoding="utf-8") == "precious"
    assert run(*arguments, "--overwrite").code == 0
    assert run("run", lay("p.json", SOURCE), "--input", f"S={target}", "--json").rows == [
        {"le": 1, "re": 5, "payload": {"v": 1}}
    ]


def test_terminal_escapes_in_payloads_are_shown_not_obeyed(run: Run, lay: Lay) -> None:
    rows = [insert("a", 1, 5, v="\x1b[2Jgone [bold]x")]
    done = run("run", lay("p.json", SOURCE), "--input", f"S={lay('s.jsonl', rows)}")
    assert "\x1b" not in done.out
    assert "gone [bold]x" in done.out


def test_an_unknown_version_is_refused(run: Run, lay: Lay) -> None:
    error = error_of(run("explain", lay("p.json", {"version": 2, "plan": SOURCE}), "--json"))
    assert "version 2" in str(error["what"])


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_input_needs_a_schema(content: str, run: Run, lay: Lay) -> None:
    source = f"S={lay('s.jsonl', content)}"
    plan = {"op": "where", "in": SOURCE, "expr": "v > 1"}
    error = error_of(run("run", lay("p.json", plan), "--input", source, "--json"))
    assert (error["error"], error["fix"]) == ("unknown_column", "an empty input has no columns: declare its schema")
    plan["in"] = {**SOURCE, "schema": {"v": "int64"}}
    done = run("run", lay("q.json", plan), "--input", source, "--json")
    assert (done.code, done.out) == (0, "")


def test_columns_called_like_ours_are_payload(run: Run, lay: Lay) -> None:
    source = lay("s.csv", "at,w\n1,2\n")
    done = run("run", lay("p.json", SOURCE), "--input", f"S={source}", "--map", "start=at", "--json")
    assert done.rows == [{"le": 1, "re": 2, "payload": {"w": 2}}]
    done = run("run", lay("p.json", SOURCE), "--input", f"S={source}", "--map", "start=at,rename.w=weight", "--json")
    assert done.rows == [{"le": 1, "re": 2, "payload": {"weight": 2}}]


def test_a_row_without_an_id_is_traced_by_its_line(run: Run, lay: Lay) -> None:
    table = lay("s.csv", "t,v\n1,7\n2,8\n")
    arguments = ("trace", lay("p.json", SOURCE), "--input", f"S={table}", "--map", "start=t", "--event")
    assert "[1, 2) v=7" in run(*arguments, "#2").out
    missing = run(*arguments, "#1", "--json")
    assert error_of(missing)["fix"] == (
        "give the id of an insert; a row of a file without one is called by its line: #2 is the first below a header"
    )
