"""Every worked case through the command line, on both oracles."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Done

CASES = json.loads((Path(__file__).parents[1] / "data/algebra.json").read_text(encoding="utf-8"))["cases"]
CHT = [case for case in CASES if case["level"] == "cht"]


def bag(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in a canonical order; 15 and 15.0 are the same number."""
    return sorted(json.dumps([row["le"], row["re"], {k: _value(v) for k, v in row["payload"].items()}], sort_keys=True)
                  for row in rows)  # fmt: skip


def _value(value: object) -> object:
    return round(float(value), 9) if isinstance(value, int | float) and not isinstance(value, bool) else value


def instants(rows: list[dict[str, Any]]) -> list[str]:
    """What holds at every instant between two neighbouring endpoints."""
    ends = sorted({float(t) for row in rows for t in (row["le"], row["re"])})
    pieces = []
    for start in ends:
        alive = sorted(json.dumps(row["payload"], sort_keys=True) for row in rows
                       if float(row["le"]) <= start < float(row["re"]))  # fmt: skip
        if not pieces or pieces[-1][1] != alive:
            pieces.append((start, alive))
    return [json.dumps(piece) for piece in pieces]


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "local"])
@pytest.mark.parametrize("case", CHT, ids=lambda case: case["id"])
def test_case(
    case: dict[str, Any],
    engine: str,
    run: Callable[..., Done],
    lay: Callable[..., Path],
    request: pytest.FixtureRequest,
) -> None:
    arguments: list[object] = ["run", lay("plan.json", case["query"]), "--engine", engine, "--emit", "cht", "--json"]
    if engine == "postgres":
        arguments += ["--dsn", request.getfixturevalue("postgres_dsn")]
    if "horizon" in case:
        arguments += ["--horizon", case["horizon"]]
    for name, events in case["streams"].items():
        arguments += ["--input", f"{name}={lay(name + '.jsonl', events)}"]
    done = run(*arguments)
    if "error" in case["expected"]:
        assert (done.code, done.rows[0]["error"]) == (2, case["expected"]["error"])
        assert done.rows[0]["what"]
        assert done.rows[0]["fix"]
    else:
        shape = bag if case["compare"] == "exact" else instants
        assert done.code == 0, done
        assert shape(done.rows) == shape(case["expected"]["cht"])


def test_explain_shows_what_an_event_driven_query_becomes(run: Callable[..., Done]) -> None:
    folder = Path(__file__).parents[2] / "examples" / "eql"
    alone = run("explain", f"{folder}/queries.eql#2")
    assert alone.out.startswith("eql(Room, TEC, avg_temp=avg(temp), window=60s)")
    shown = run("explain", f"{folder}/queries.eql#5", "--input", f"Sensors={folder}/sensors.csv",
                "--input", f"Bird={folder}/bird.csv", "--map", "start=time,unit=s")  # fmt: skip
    assert shown.code == 0
    assert "during(end, avg_light=avg(light), avg_temp=avg(temp))" in shown.out
    assert "alter_duration(10)" in shown.out
    assert "[begin int64, end int64, avg_light float64, avg_temp float64] in s" in shown.out
