"""Running queries: what may be pushed, what comes out, and that neither cuts nor restarts change it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

import streamproof as sp
from streamproof.engines.frames import to_frame
from streamproof.engines.local.query import RunningQuery
from streamproof.errors import InfrastructureError, InputError, StreamproofError
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING
from streamproof.events.validate import Validator
from tests.engines.local.running import alone, processor_of, pushes, without_errors

V = sp.Schema.of({"v": "int64"})
S = sp.source("S")
PER_TEN = S.tumbling(10).aggregate(n=sp.count())


def started(stream: sp.Stream = S, **options: object) -> RunningQuery:
    query: RunningQuery = stream.on("local", **options).start({"S": V})
    return query


def insert(name: str, le: int, re: int, v: int = 1) -> sp.Insert:
    return sp.Insert(name, le, re, {"v": v})


# --- laws -------------------------------------------------------------------------------------------------------------


def test_no_cut_of_the_input_changes_a_bit_of_the_history() -> None:
    compared = 0
    for number, case in without_errors(400, 25):
        whole = alone(case, case.plan, pushes(case, number, most_cuts=0))
        for seed in (1, 2):
            cut = alone(case, case.plan, pushes(case, seed, most_cuts=9))
            if isinstance(whole, str) or isinstance(cut, str):
                continue
            assert cut.history == whole.history, f"case {number}"
            compared += 1
    assert compared > 25


def test_a_restart_after_every_push_changes_nothing() -> None:
    compared = 0
    for number, case in without_errors(500, 15):
        parts = pushes(case, number)
        whole = alone(case, case.plan, parts)
        assert not isinstance(whole, str)
        query = processor_of(case).start(case.plan)
        for name, part in parts:
            savepoint = query.savepoint()
            query = processor_of(case).start(case.plan)
            query.restore(savepoint)
            query.push(name, part)
        query.finish()
        assert query.events() == whole.events(), f"case {number}"
        compared += 1
    assert compared > 8


@pytest.mark.parametrize("late", ["drop", "adjust"])
def test_advance_time_goes_on_after_a_restart(late: Literal["drop", "adjust"]) -> None:
    plan = S.advance_time(every=1, delay=3, late=late)
    starts = [5, 1, 9, 3, 20, 8, 21, 2, 30, 19]
    whole, query = started(plan), started(plan)
    for number, start in enumerate(starts):
        event = insert(str(number), start, start + 12)
        savepoint = query.savepoint()
        query = started(plan)
        query.restore(savepoint)
        for one in (whole, query):
            one.push("S", event)
    for one in (whole, query):
        one.push("S", sp.Retract("9", 19, 31, 40, {"v": 1}))  # of an event that came late
        one.finish()
    assert query.events() == whole.events()
    assert query.metrics.sources == whole.metrics.sources
    counts = whole.metrics.sources["S"]
    assert counts.late_dropped + counts.late_adjusted > 2


# --- in ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        insert("a", 1, 5),
        [insert("a", 1, 5)],
        {"le": 1, "re": 5, "payload": {"v": 1}},
        [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 1}}],
        sp.PhysicalStream.from_events([insert("a", 1, 5)], schema=V),
        sp.PhysicalStream.from_events([insert("a", 1, 5)], schema=V).rows,
        sp.Batch.from_rows(V, [(1, 5, 1, {"v": 1})]),
        sp.History.from_rows(V, [(1, 5, {"v": 1})]),
        pa.table({"le": [1], "re": [5], "v": [1]}),
    ],
    ids=lambda content: type(content).__name__,
)
def test_whatever_is_pushed_arrives(content: object) -> None:
    query = started()
    query.push("S", content)  # type: ignore[arg-type]  # of many types
    assert query.history.to_rows() == [(1, 5, {"v": 1})]


def test_dicts_without_ids_get_new_ones_at_every_push() -> None:
    query = started()
    for start in (1, 2):
        query.push("S", {"le": start, "re": 5, "payload": {"v": 1}})
    assert len(query.history) == 2


@pytest.mark.parametrize(
    ("content", "name", "what"),
    [
        (insert("a", 3, 4), "cti_violation", "a change from 3 on, but the CTI before it promised no change before 5"),
        (insert("a", 9, 9), "empty_lifetime", "an insert without a lifetime"),
        (sp.Retract("b", 6, 9, 7, {"v": 1}), "unmatched_retraction", 'names "b", but no such event is live'),
        (sp.Retract("z", 5, 8, 7, {"v": 1}), "unmatched_retraction", 'does not match what "z" is now'),
        (sp.Batch.from_rows(V, [(6, 9, -1, {"v": 1})]), "unmatched_retraction", "a −row matches no live event"),
        (pa.table({"le": [6], "re": [7], "x": [1]}), "unknown_column", 'unknown column "x"'),
        ({"le": 6, "re": 7, "payload": {"x": 1}}, "unknown_column", '"x"'),
        (7, "bad_input", "cannot push int"),
        ("S.csv", "bad_input", "cannot push str"),
        ([7], "bad_input", "cannot push 7"),
        (
            sp.History.from_rows(sp.Schema(), []),
            "type_mismatch",
            "the content has the columns none, the source v int64",
        ),
    ],
)
def test_what_is_illegal_is_an_error_and_changes_nothing(content: object, name: str, what: str) -> None:
    query = started()
    query.push("S", [insert("z", 5, 9), sp.Cti(5)])
    with pytest.raises(StreamproofError) as raised:
        query.push("S", content)  # type: ignore[arg-type]  # of many types
    assert (raised.value.name, what in raised.value.what) == (name, True), raised.value
    assert str(raised.value.at).startswith("input S")
    query.push("S", sp.Retract("z", 5, 9, 7, {"v": 1}))
    assert query.history.to_rows() == [(5, 7, {"v": 1})]


def rows(*changes: tuple[int, int, int], cti: int = BEGINNING) -> sp.Batch:
    return sp.Batch.from_rows(V, [(le, re, w, {"v": 1}) for le, re, w in changes], frontier=cti)


@pytest.mark.parametrize(
    ("batch", "at", "what"),
    [
        (rows((5, 8, 1), (3, 4, 1), cti=9), "event 2 (insert row 2 [3, 4)); last CTI 5",
         "a change from 3 on, but the CTI before it promised no change before 5"),
        (rows((5, 9, -1), (5, 4, -1), cti=9), "frontier 5", "a −row matches no live event: [5, 4) v=1"),
        (rows((2, 7, -1), cti=9), "event 2 (retract row 0 [2, 7) → 2); event row 0 was [2, 7), last CTI 5",
         "a change from 2 on, but the CTI before it promised no change before 5"),
    ],
)  # fmt: skip
def test_after_an_illegal_batch_it_is_as_if_it_had_not_come(batch: sp.Batch, at: str, what: str) -> None:
    query = started()
    query.push("S", rows((2, 7, 1), (5, 9, 1), cti=5))
    with pytest.raises(InputError) as raised:
        query.push("S", batch)
    assert (raised.value.what, raised.value.at) == (what, f"input S, {at}")
    query.push("S", rows((5, 9, -1), (5, 8, 1), cti=6))
    assert (query.history.to_rows(), query.cti) == ([(2, 7, {"v": 1}), (5, 8, {"v": 1})], 6)
    assert query.metrics.sources["S"].events == 3


def test_batches_and_events_of_one_source_know_each_other() -> None:
    query = started()
    query.push("S", rows((2, 7, 1), (5, 9, 1), cti=5))
    query.push("S", [insert("a", 6, 9)])
    query.push("S", rows((5, 9, -1), (6, 8, 1)))
    query.push("S", sp.Retract("a", 6, 9, 7, {"v": 1}))
    with pytest.raises(InputError, match='the id "a" belongs to a live event'):
        query.push("S", insert("a", 7, 9))
    assert query.history.to_rows() == [(2, 7, {"v": 1}), (6, 7, {"v": 1}), (6, 8, {"v": 1})]


def test_batches_go_on_after_a_restart() -> None:
    query = started()
    query.push("S", rows((2, 7, 1), (5, 9, 1), cti=5))
    other = started()
    other.restore(query.savepoint())
    with pytest.raises(InputError, match="a −row matches no live event"):
        other.push("S", rows((5, 7, -1)))
    other.push("S", rows((5, 9, -1), (2, 7, -1), (2, 6, 1)))
    assert other.history.to_rows() == [(2, 6, {"v": 1})]


def test_a_lenient_validator_leaves_rows_of_batches_out_too() -> None:
    query = S.on("local").start({"S": V}, validators={"S": Validator(policy="drop")})
    for batch in (rows((5, 9, 1), cti=5), rows((3, 4, 1), (6, 7, 1)), rows((3, 4, -1), (5, 9, -1))):
        query.push("S", batch)
    assert query.history.to_rows() == [(6, 7, {"v": 1})]
    assert query.metrics.sources["S"].left_out == {"cti_violation": 2}


def test_a_lenient_validator_counts_what_it_leaves_out() -> None:
    query = S.on("local").start({"S": V}, validators={"S": Validator(policy="drop")})
    query.push("S", [sp.Cti(5), insert("a", 3, 4), insert("b", 6, 7)])
    assert len(query.history) == 1
    assert query.metrics.sources["S"].left_out == {"cti_violation": 1}


def test_after_its_end_a_source_takes_nothing() -> None:
    query = started()
    query.finish()
    with pytest.raises(InputError, match='the source "S" has ended'):
        query.push("S", insert("a", 1, 2))


# --- advance_time -----------------------------------------------------------------------------------------------------


def test_advance_time_seals_windows_and_counts_what_is_late() -> None:
    query = started(S.advance_time(every=1).tumbling(10).aggregate(n=sp.count()))
    query.push("S", [insert("a", 1, 2), insert("b", 12, 13), insert("c", 3, 4)])
    assert query.cti == 10
    assert query.history.to_rows() == [(0, 10, {"n": 1})]
    assert query.metrics.sources["S"].late_dropped == 1
    query.finish()
    assert query.notes == ("input S: events that came too late for advance_time: 1 dropped, 0 adjusted",)


def test_a_delay_lets_late_events_in() -> None:
    late = [insert("b", 12, 13), insert("c", 3, 4)]
    run = S.advance_time(every=1, delay=9).on("local").run({"S": sp.PhysicalStream.from_events(late, schema=V)})
    assert len(run.history) == 2
    assert run.metrics.sources["S"].late_dropped == 0


def test_late_events_can_be_kept() -> None:
    query = S.advance_time(every=1).on("local").start({"S": V}, keep_late=True)
    query.push("S", [insert("b", 12, 13), insert("c", 3, 4)])
    assert query.processor.take_late()["S"].to_events() == [insert("c", 3, 4)]
    assert query.processor.take_late() == {}


def test_each_advance_time_of_a_source_has_its_own_idea_of_late() -> None:
    plan = S.advance_time(every=1).select(v="1").union(S.advance_time(every=1, delay=20).select(v="2"), S.select(v="3"))
    run = plan.on("local").run({"S": [insert_dict(12, 13), insert_dict(3, 4)]})
    assert sorted((row.le, row.payload["v"]) for row in run.history.to_rows()) == [
        (3, 2),
        (3, 3),
        (12, 1),
        (12, 2),
        (12, 3),
    ]


def insert_dict(le: int, re: int) -> dict[str, object]:
    return {"le": le, "re": re, "payload": {"v": 1}}


def test_without_its_final_cti_the_end_seals_nothing_more() -> None:
    plan = S.advance_time(every=1, final=False).tumbling(10).aggregate(n=sp.count())
    run = plan.on("local", emission="final").run({"S": [insert_dict(1, 2), insert_dict(12, 13)]})
    assert run.history.to_rows() == [(0, 10, {"n": 1})]


def test_a_complete_history_has_nothing_late() -> None:
    table = pa.table({"le": [12, 3], "re": [13, 4], "v": [1, 1]})
    assert len(S.advance_time(every=1).on("local").run({"S": table}).history) == 2


def test_a_source_without_ctis_is_noted() -> None:
    run = PER_TEN.on("local").run({"S": [insert_dict(1, 2)]})
    assert run.notes == (
        "input S has no CTIs, so no result was sealed before its end; advance_time above the source makes them",
    )
    assert PER_TEN.on("local").run({"S": [insert_dict(1, 2), {"kind": "cti", "t": 3}]}).notes == ()


def test_a_source_that_has_to_remember_everything_is_noted() -> None:
    count = 10_000
    stream = PhysicalStream.from_events(
        [sp.Insert(f"e{n}", n, n + 1, {"v": 1}) for n in range(count)], schema=Schema.of({"v": "int64"})
    )
    query = PER_TEN.on("local").start({"S": {"v": "int64"}})
    query.push("S", stream)
    assert query.notes == (
        "input S: 10,000 events are remembered, because any of them may still be retracted; memory grows with the "
        "input until CTIs let them go: advance_time above the source makes them",
    )
    query.push("S", sp.Cti(count))
    assert query.notes == ()


def test_advanced_errors_say_where_they_were_found() -> None:
    query = started(S.advance_time(every=5))
    with pytest.raises(InputError) as raised:
        query.push("S", [insert("a", 1, 5), insert("a", 2, 5)])
    assert "input S, after advance_time(every=5, delay=0, late=drop), event 1" in str(raised.value.at)


# --- out --------------------------------------------------------------------------------------------------------------


def test_output_is_given_once_as_batches_or_as_events() -> None:
    query = started(PER_TEN)
    query.push("S", [insert("a", 1, 2), sp.Cti(10)])
    assert [event["kind"] for event in query.events().to_dicts()] == ["insert", "cti"]
    assert len(query.events()) == 0
    with pytest.raises(InputError, match=r"read with events\(\) already"):
        query.pull()


def test_a_correction_is_counted() -> None:
    query = started(PER_TEN)
    query.push("S", [insert("a", 1, 2), insert("b", 11, 12)])
    query.push("S", insert("c", 3, 4))
    metrics = query.metrics
    assert (metrics.inserted, metrics.retracted, metrics.corrections, metrics.events_in) == (2, 1, 0.5, 3)
    assert json.loads(metrics.to_json())["corrections"] == 0.5
    assert "2 rows inserted, 1 taken back (50.0% corrections)" in str(metrics)


def test_the_lag_is_from_the_output_cti_to_the_latest_start() -> None:
    query = started(PER_TEN)
    assert (query.metrics.cti, query.metrics.lag) == (None, None)
    query.push("S", [insert("a", 17, 18), sp.Cti(15)])
    assert (query.metrics.cti, query.metrics.lag, query.metrics.live_windows) == (10, 7, 1)
    assert query.metrics.state_bytes > 0


def test_iterating_over_inputs(tmp_path: Path) -> None:
    rows = [{"kind": "insert", "id": str(n), "le": n, "re": n + 1, "payload": {"v": n}} for n in range(3)]
    file = tmp_path / "s.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    query = PER_TEN.on("local").start({"S": file})
    assert [batch.rows.num_rows for batch in query] == [1]
    assert query.history.to_rows() == [(0, 10, {"n": 3})]
    with pytest.raises(InputError, match='there is no source "T"'):
        query.over({"T": file})


def test_asynchronous_inputs_are_taken_as_they_come() -> None:
    async def readings() -> AsyncIterator[sp.Insert]:
        for n in range(3):
            yield insert(str(n), n, n + 1)
            await asyncio.sleep(0)

    async def run() -> list[int]:
        query = S.union(sp.source("R")).on("local").start({"S": V, "R": V})
        inputs = {"S": readings(), "R": [insert_dict(5, 6)]}
        return [batch.rows.num_rows async for batch in query.over(inputs)]

    assert sum(asyncio.run(run())) == 4


def test_data_frames_come_where_their_library_is_there() -> None:
    query = started()
    query.push("S", insert("a", 1, 5, 7))
    assert query.to_arrow().to_pylist() == [{"le": 1, "re": 5, "v": 7}]
    with pytest.raises(InfrastructureError, match="no_such_frames is not installed") as raised:
        to_frame(query.history, "no_such_frames")
    assert raised.value.fix == "pip install no_such_frames, or use to_arrow()"


def test_pandas_and_polars_frames() -> None:
    query = started()
    query.push("S", insert("a", 1, 5, 7))
    run = S.on("local").run({"S": [insert_dict(1, 5)]})
    for name in ("pandas", "polars"):
        pytest.importorskip(name)
        assert list(getattr(query, f"to_{name}")()["v"]) == [7]
        assert list(getattr(run, f"to_{name}")()["v"]) == [1]


def test_notebooks_show_a_table_and_a_timeline_with_everything_escaped() -> None:
    query = S.on("local").start({"S": {"<b>": "string"}})
    query.push("S", {"le": 1, "re": "inf", "payload": {"<b>": "<script>"}})
    page = query._repr_html_()
    assert "<script>" not in page
    assert "<th>&lt;b&gt;</th>" in page
    assert "<td>&lt;script&gt;</td>" in page
    assert "<svg" in page
    assert "<table>" in S.on("duckdb").run({"S": [insert_dict(1, 2)]})._repr_html_()


def test_a_closed_query_still_shows_what_it_became() -> None:
    with started() as query:
        query.push("S", insert("a", 1, 5))
    assert len(query.history) == 1
    assert repr(query) == "RunningQuery(query, closed, 1 events)"
    with pytest.raises(InputError, match='the query "query" is closed'):
        query.push("S", insert("b", 1, 5))


def test_only_live_engines_start() -> None:
    with pytest.raises(InputError, match="the engine duckdb runs over whole inputs only") as raised:
        S.on("duckdb").start({"S": V})
    assert raised.value.fix == 'use run(inputs), or start on the engine "local"'


def test_a_history_that_is_not_kept_is_not_guessed() -> None:
    query = S.on("local").start({"S": V}, keep_history=False)
    query.push("S", insert("a", 1, 5))
    with pytest.raises(InputError, match="the history of this query is not kept"):
        _ = query.history
    assert sum(batch.rows.num_rows for batch in query.pull()) == 1


def test_savepoints_of_something_else_are_refused() -> None:
    query = started()
    with pytest.raises(InputError, match="not a savepoint"):
        query.restore(b"x")
    with pytest.raises(InputError, match="the savepoint belongs to another plan"):
        query.restore(started(S.coalesce()).savepoint())
