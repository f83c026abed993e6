"""The harness at its smallest: a round of us and DuckDB, and what is said about it."""

from __future__ import annotations

import io

import pytest
from engine import match
from engine.agreement import Bag
from engine.data import Shape
from engine.field import FIELD
from engine.match import Round, Score, disagreements
from engine.queries import QUERIES, chosen
from engine.report import line, tables, targets
from rich.console import Console


@pytest.fixture(autouse=True)
def small_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "SMALL", Shape(8_000))
    monkeypatch.setattr(match, "TIMES", 1)


def test_all_queries_agree_with_duckdb_and_polars_out_of_order(tmp_path):
    shape = Shape(12_000, disorder=True)
    entries = [FIELD[name] for name in ("local", "duckdb", "polars")]
    played = list(Round(tmp_path, shape, 500, entries).play(list(QUERIES.values())))
    assert [query.id for query, _ in played] == list(QUERIES)
    for query, scores in played:
        assert disagreements(scores) == [], query.title
        assert {name: score.note for name, score in scores.items()} == dict.fromkeys(scores)
        said = line(query, scores, shape, 500)
        assert list(said) == ["query", "events", "batch", "output", "ours", "DuckDB", "Polars", "ratio",
                              "thousand events/s"]  # fmt: skip
        assert scores["local"].rows <= said["output"]


def test_a_part_of_a_query_name_chooses_all_its_forms():
    assert [query.id for query in chosen(["Q5", "Q2"])] == ["Q2", "Q5g", "Q5k"]


def test_targets_are_judged_against_the_best_streaming_peer():
    scores = {
        "local": Score(cpu=0.1),
        "duckdb": Score(cpu=0.01),
        "flink": Score(cpu=5.0),
        "spark": Score(cpu=3.0),
        "pathway": Score(note="stopped after 120 s"),
    }
    said = targets([(QUERIES["Q2"], scores), (QUERIES["Q7"], {"local": Score(cpu=10.0)})], Shape(1_000_000))
    assert said == [
        "Q2: 30.0 × Spark, wanted at least 40: NOT MET",
        "Q7: 100.0 thousand events per CPU second, wanted at least 400: NOT MET",
    ]


def test_a_disagreement_is_loud():
    scores = {"local": Score(cpu=1.0, small=Bag(1, "a")), "duckdb": Score(cpu=2.0, small=Bag(1, "b"))}
    text = io.StringIO()
    tables([(QUERIES["Q2"], scores)], Shape(1_000), Console(file=text, width=200))
    assert "DISAGREEMENT on Q2" in text.getvalue()
    assert "(2.0×)" in text.getvalue()
