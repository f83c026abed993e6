"""The one road: inputs are read once, results added up once, and Python is as lean as the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import streamproof as sp
from streamproof.engines import base
from streamproof.events.files import Reader
from streamproof.events.history import History

MAPPING = sp.ColumnMapping(start="t")
COUNTS = sp.source("S").tumbling(10).aggregate(n=sp.count())


@pytest.fixture
def rows(tmp_path: Path) -> Callable[[], Reader]:
    file = tmp_path / "S.csv"
    file.write_text("t,v\n" + "".join(f"{n},{n}\n" for n in range(50)))
    return lambda: sp.read(file, mapping=MAPPING)


def test_of_a_file_without_ids_no_event_is_remembered(rows: Callable[[], Reader]) -> None:
    query = COUNTS.on("local").start({"S": rows()})
    left = [query.sources["S"].remembered for _ in query.over()]
    assert set(left) == {0}
    assert len(query.history) == 5


def test_a_retraction_after_such_a_file_is_refused(rows: Callable[[], Reader]) -> None:
    query = COUNTS.on("local").start({"S": rows()})
    query.push("S", {"le": 1, "re": 2, "id": "a", "payload": {"v": 1}})
    with pytest.raises(sp.InputError, match="no such event is live"):
        query.push("S", {"kind": "retract", "id": "a", "le": 1, "re": 2, "re_new": 1, "payload": {"v": 1}})


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_every_input_is_read_once_and_every_plan_prepared_once(
    engine: str, rows: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes, prepared = [0], [0]
    plain, prepare = Reader.__iter__, base._prepared.__wrapped__

    def iterated(self: Reader) -> Iterator[Any]:
        passes[0] += 1
        return plain(self)

    def counted(*given: Any) -> Any:
        prepared[0] += 1
        return prepare(*given)

    monkeypatch.setattr(Reader, "__iter__", iterated)
    monkeypatch.setattr(base, "_prepared", counted)
    run = COUNTS.on(engine).run({"S": rows()})
    assert (len(run.history), run.history is run.history) == (5, True)
    assert (passes, prepared) == ([1], [1])


def test_a_result_is_added_up_once(rows: Callable[[], Reader], monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[int] = []
    plain = History.from_table

    def counted(schema: Any, table: Any, **options: Any) -> History:
        added.append(table.num_rows)
        return plain(schema, table, **options)

    monkeypatch.setattr(History, "from_table", counted)
    run = COUNTS.on("duckdb").run({"S": rows()})
    before = len(added)
    assert len(run.history) == 5
    assert len(run.head(2)[0]) == 2
    assert len(added) == before


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "jsonl"])
@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_equal_events_of_a_history_are_as_many_in_a_query(ending: str, engine: str, tmp_path: Path) -> None:
    plan = sp.source("S", {"v": "int64"})
    rows = [{"le": 1, "re": 5, "payload": {"v": 7}}] * 3 + [{"le": 2, "re": 4, "payload": {"v": None}}]
    history = plan.on("duckdb").run({"S": rows}).history
    path = sp.write(history, tmp_path / f"h.{ending}")
    assert plan.on(engine).run({"S": path}).history == history
    assert plan.on(engine).run({"S": sp.read(path, schema=plan.plan.schema)}).events.rows.num_rows == 5  # and a CTI
