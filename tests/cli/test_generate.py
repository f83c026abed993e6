"""``streamproof generate``: files in every format, figures, and clear errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streamproof.events.files import read
from streamproof.events.schema import Schema
from streamproof.generate import Facets, Values, generated
from tests.cli.conftest import Done

Run = Callable[..., Done]
COLUMNS = "k string, v int64, price decimal(10, 2), at timestamp"
SCHEMA = Schema.of({"k": "string", "v": "int64", "price": "decimal(10,2)", "at": "timestamp"}, unit="ms")
WORDS = (
    "--disorder", "highly", "--speculation", "chains,0.5", "--duplicates", "some", "--nulls", "0.2", "--keys", "7",
    "--duration", "3,90", "--liveliness", "4", "--column", "v:keys=2,boundary=many",
)  # fmt: skip
FACETS = Facets(
    disorder="highly", speculation=("chains", 0.5), duplicates="some", nulls=0.2, keys=7, duration=(3, 90),
    liveliness=4, columns={"v": Values(keys=2, boundary="many")},
)  # fmt: skip


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv", "arrow"])
def test_the_file_holds_the_stream_of_the_facets(run: Run, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"events.{ending}"
    done = run("generate", "--schema", COLUMNS, "--unit", "ms", "--count", 300, "--seed", 5, *WORDS, "--out", out)
    assert done.code == 0, done
    assert read(out, schema=SCHEMA, unit="ms").stream() == generated(SCHEMA, 300, 5, FACETS)
    assert f"rows in {out}; seed 5" in done.err


def test_without_a_file_the_events_are_printed(run: Run) -> None:
    done = run("generate", "--count", 20, "--seed", 3, "--shape", "edge", "--schema", "v int64")
    assert done.out == generated({"v": "int64"}, 20, 3, Facets(shape="edge")).to_json_lines()


def test_figures_as_json(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "e.parquet"
    (made,) = run("generate", "--count", 1000, "--disorder", "0.25,9", "--out", out, "--json").rows
    assert (made["count"], made["seed"], made["facets"]) == (1000, 0, {"disorder": [0.25, 9]})
    figures = made["figures"]
    assert isinstance(figures, dict)
    assert (figures["inserts"], figures["late"], figures["late_fraction"]) == (1000, 250, 0.25)


def test_large_streams_are_measured_without_their_history(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamproof.cli.generate.ADDED_UP", 50)
    (made,) = run("generate", "--count", 100, "--disorder", "0.25", "--out", tmp_path / "e.parquet", "--json").rows
    figures = made["figures"]
    assert isinstance(figures, dict)
    assert (figures["inserts"], figures["late"], figures["copies"]) == (100, 25, None)


def test_figures_for_people(run: Run, tmp_path: Path) -> None:
    done = run("generate", "--count", 1000, "--disorder", "highly", "--out", tmp_path / "e.jsonl")
    lines = dict(line.split("  ", 1) for line in done.out.splitlines())
    assert lines["inserts"].strip() == "1,000"
    assert lines["late"].strip() == "500 (50.0000% of the inserts)"


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv", "arrow"])
def test_no_events_at_all(run: Run, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"none.{ending}"
    done = run("generate", "--count", 0, "--out", out, "--json")
    assert done.code == 0, done
    assert len(read(out, schema=Schema.of({"k": "string", "v": "int64"})).stream()) == 1


def test_a_pattern_of_your_own(run: Run, lay: Callable[..., Path]) -> None:
    lay("mine.py", "def every_hour():\n    t = 0\n    while True:\n        yield t, t + 60\n        t += 3600\n")
    done = run("generate", "--count", 3, "--pattern", "mine:every_hour", "--liveliness", "never")
    assert [(row["le"], row["re"]) for row in done.rows] == [(0, 60), (3600, 3660), (7200, 7260)]


def test_a_broken_rule_is_found(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "bad.jsonl"
    assert run("generate", "--count", 50, "--illegal", "duplicate_id", "--out", out).code == 0
    found = run("validate", out, "--json")
    assert (found.code, found.rows[0]["error"]) == (1, "duplicate_id")
    assert run("generate", "--out", tmp_path / "good.jsonl").code == run("validate", tmp_path / "good.jsonl").code == 0


@pytest.mark.parametrize(
    ("arguments", "what", "fix"),
    [
        (("--disorder", "higly"), "unknown disorder 'higly'", 'did you mean "highly"?'),
        (("--schema", "k string, v"), "the column 'v' has no type", 'write "k string, v int64"'),
        (("--schema", "v itn64"), "unknown type 'itn64'", 'did you mean "int64"?'),
        (("--count", "-5"), "count must be from 0 to 2,147,483,647, got -5", "choose a number between"),
        (("--unit", "minutes"), "unknown time unit 'minutes'", "use one of ns, us, ms, s"),
        (("--shape", "point", "--duration", "long"), "a point lasts one tick", "leave duration out"),
        (("--column", "v:kyes=3"), 'a column has no "kyes"', 'did you mean "keys"?'),
        (("--column", "keys=3"), "cannot read --column 'keys=3'", "write NAME:keys=3,nulls=0.5"),
        (("--pattern", "nowhere:f"), 'there is no Python module "nowhere"', "give the name"),
        (("--pattern", "json:nothing"), 'cannot load the pattern: json has no "nothing"', "known: "),
        (("--out", "e.xyz"), "cannot tell the format of 'e.xyz' by its name", "give it a name that ends in"),
    ],
)  # fmt: skip
def test_bad_words_get_clear_errors(run: Run, arguments: tuple[str, ...], what: str, fix: str) -> None:
    done = run("generate", *arguments, "--json")
    assert done.code == 2, done
    error = json.loads(done.out)
    assert error["what"].startswith(what)
    assert fix in error["fix"]


def test_an_existing_file_stays(run: Run, lay: Callable[..., Path]) -> None:
    out = lay("kept.jsonl", "precious")
    done = run("generate", "--out", out)
    assert (done.code, out.read_text()) == (2, "precious")
    assert run("generate", "--out", out, "--overwrite").code == 0
    assert len(out.read_text().splitlines()) == 1100
