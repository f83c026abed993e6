"""Generators: their languages, their shrinking, and streams with times."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.properties import (
    FormulaError,
    WindowedStream,
    always,
    consume,
    eventually,
    exactly,
    of,
    recorded,
    until,
    windows,
)
from streamproof.properties.contents import sampler_of
from streamproof.properties.streams import START
from tests.properties.cases import CASES, generator

HOUR = 3_600_000_000
incident = st.fixed_dictionaries({"zone": st.integers(0, 9), "danger": st.floats(0.5, 10)})


def drawn(strategy: Any, many: int = 60) -> list[Any]:
    found: list[Any] = []

    @settings(max_examples=many, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value: Any) -> None:
        found.append(value)

    collect()
    return found


@pytest.mark.parametrize("case", CASES["generator_cases"], ids=lambda case: case["id"])
def test_the_language_of_a_generator(case: Any) -> None:
    if "ours" in case:
        with pytest.raises(ValueError, match="needs at least 1 window"):
            generator(case["generator"])
        return
    found = {json.dumps([sorted(window) for window in stream]) for stream in drawn(generator(case["generator"]))}
    assert found == {json.dumps(stream) for stream in case["language"]}


def test_generators_are_strategies() -> None:
    assert find(always(of(st.integers(), 1), 3).map(len), lambda n: True) == 3
    assert find(always(of(st.integers(0, 9), 0, 3), 2), lambda ws: sum(map(sum, ws)) >= 5) == [[], [5]]


def test_concatenation_and_dependence() -> None:
    calm, burst = exactly([[0], [0]]), exactly([[9]])
    assert drawn(calm.then(burst), 3)[0] == [[0], [0], [9]]
    growing = consume(lambda past: exactly([[sum(past[-1]) + 1 if past else 1]]), 4)
    assert drawn(growing, 3)[0] == [[1], [2], [3], [4]]


def test_an_until_stream_shrinks_to_an_until_stream() -> None:
    low, high = st.integers(0, 4), st.integers(5, 9)
    smallest = find(until(of(low, 1), of(high, 2), 5), lambda ws: len(ws) >= 3 and max(ws[-1]) >= 7)
    assert smallest == [[0], [0], [5, 7]]


def test_rows_lie_in_their_windows() -> None:
    for stream in drawn(windows(always(of(incident, 0, 40), 5), size="1 hour", time="at"), 20):
        assert stream.end - stream.start == 5 * HOUR
        times = [int(row.at.timestamp() * 10**6) for row in stream.rows]
        assert times == sorted(times)
        assert all(stream.start <= time < stream.end for time in times)
        sizes = [batch.num_rows for batch in stream.batches("window")]
        assert sizes == [sum(part.rows.count for part in window) for window in stream.windows]


def test_sliding_windows_and_sessions_have_their_layout() -> None:
    for stream in drawn(windows(always(of(incident, 1, 3), 3), size="1 hour", slide="30 minutes", time="at"), 10):
        assert stream.end - stream.start == 2 * HOUR
    for stream in drawn(windows(always(of(incident, 1, 3), 3), size="1 hour", gap="10 minutes", time="at"), 10):
        for batch in stream.batches("window"):
            times = batch.column("at").cast(pa.int64()).to_pylist()
            assert all(y - x < HOUR // 6 for x, y in pairwise(times))


def test_the_same_seed_gives_the_same_stream_with_its_times() -> None:
    strategy = windows(always(of(incident, 0, 100), 4), size="1 hour", time="at")
    assert [stream.digest for stream in drawn(strategy, 10)] == [stream.digest for stream in drawn(strategy, 10)]


def test_a_large_stream_is_drawn_and_shrinks_to_one_row() -> None:
    strategy = windows(always(of(incident, 0, 350), 28), size="1 hour", time="at")
    assert max(stream.count for stream in drawn(strategy, 10)) > 1000
    smallest = find(strategy, lambda stream: any(danger <= 1 for danger in stream.rows.column("danger")))
    assert smallest.count == 1
    assert len(smallest) == 28


def test_fewer_rows_of_a_seed_are_a_prefix_of_more() -> None:
    @dataclass
    class Ride:
        driver: int
        city: str | None

    element = st.builds(Ride, driver=st.integers(1, 5), city=st.none() | st.sampled_from(["Oslo", "Rome"]))
    sampler = sampler_of(element)
    assert sampler is not None
    assert sampler.table(5, seed=3).equals(sampler.table(50, seed=3).slice(0, 5))
    assert set(sampler.table(300, seed=1).column("driver").to_pylist()) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("strategy", "low", "high"),
    [
        (st.integers(-3, 40), -3, 40), (st.integers(5, 5), 5, 5), (st.floats(0.5, 10), 0.5, 10),
        (st.floats(-1e300, 1e300), -1e300, 1e300), (st.sampled_from([1, 2, 9]), 1, 9),
    ],
)  # fmt: skip
def test_both_ends_of_a_range_are_drawn_and_nothing_beyond(strategy: Any, low: float, high: float) -> None:
    sampler = sampler_of(st.fixed_dictionaries({"v": strategy}))
    assert sampler is not None
    values = sampler.table(2000, seed=4).column("v").to_pylist()
    assert (min(values), max(values)) == (low, high)
    assert min(values.count(low), values.count(high)) > 40  # one in 24 each, and more


def test_strategies_whose_inside_is_unknown_are_drawn_from_a_pool() -> None:
    @st.composite
    def pair(draw: Any) -> dict[str, int]:
        v = draw(st.integers(0, 100))
        return {"v": v, "double": 2 * v}

    for stream in drawn(windows(always(of(pair(), 200, 300), 2), size="1 hour", time="at"), 5):
        assert 400 <= stream.count <= 600
        assert all(row.double == 2 * row.v for row in stream.rows)


def test_late_shuffled_and_duplicate_rows() -> None:
    element = st.fixed_dictionaries({"v": st.integers(0, 3)})
    disordered = windows(always(of(element, 1, 2), 3), size="1 hour", time="at", late="2 hours", duplicates="1 hour")
    found = drawn(disordered, 30)
    assert any(stream.delays for stream in found)
    assert any(stream.repeats for stream in found)
    shown = find(disordered, lambda stream: bool(stream.delays))
    assert shown.delays[0][1] == 1000
    assert "(arrives 1ms late)" in repr(shown)
    shuffled = windows(always(of(element, 60), 3), size="1 hour", time="at", shuffled="30 minutes")
    times = [row.at for row in drawn(shuffled, 3)[-1].rows]
    assert times != sorted(times)


def test_rows_with_times_are_taken_as_they_are() -> None:
    moments = st.integers(START, START + HOUR - 1)
    timed = st.lists(st.fixed_dictionaries({"at": moments, "v": st.integers(0, 9)}), min_size=2, max_size=4)
    found = drawn(windows(timed, size="10 minutes", time="at"), 20)
    assert any(not stream.ordered for stream in found)
    huge = st.lists(st.fixed_dictionaries({"at": moments, "v": st.just(2**70)}), min_size=1)
    with pytest.raises(InputError, match="whole numbers of 64 bits"):
        drawn(windows(huge, size="10 minutes", time="at"), 1)


def test_times_and_delays_lie_anywhere() -> None:
    plain = windows(always(of(incident, 1, 3), 3), size="1 hour", time="at", late="3 hours")
    found = drawn(plain, 150)
    minutes = [row.at.minute for stream in found for row in stream.rows]
    assert all(sum(quarter <= minute // 15 < quarter + 1 for minute in minutes) > 50 for quarter in range(4))
    assert any(row.at.minute == 59 and row.at.microsecond == 999_000 for stream in found for row in stream.rows)
    delays = [delay for stream in found for _, delay in stream.delays]
    assert max(delays) == 3 * HOUR
    assert sum(delay > 2 * HOUR for delay in delays) > 20


def test_rows_of_a_seed_shrink_from_both_ends() -> None:
    readings = st.fixed_dictionaries({"v": st.integers(0, 99)})
    strategy = windows(always(of(readings, 0, 200), 3), size="1 hour", time="at")
    assert find(strategy, lambda stream: 57 in stream.rows.column("v")).count == 1


def test_a_row_shrinks_away_with_its_time() -> None:
    keys = st.fixed_dictionaries({"key": st.integers(1, 3)})
    one = windows(always(of(keys, 0, 3), 3), size="1 hour", time="at")

    def follows(pair: Any) -> bool:
        return any(
            x.key == y.key and 0 < (x.at - y.at).total_seconds() < 3600 for x in pair[0].rows for y in pair[1].rows
        )

    assert sum(stream.count for stream in find(st.tuples(one, one), follows)) == 2


def test_a_recorded_stream_keeps_its_order() -> None:
    rows = [{"at": START + second * 10**6, "v": second} for second in (1, 5, 3, 70)]
    stream = recorded(rows, time="at", size="1 minute")
    assert [row.v for row in stream.rows] == [1, 5, 3, 70]
    assert len(stream) == 2


@pytest.mark.parametrize("count", [1, 12, 13, 40])
def test_the_text_of_a_stream_shows_the_first_rows_of_a_window(count: int) -> None:
    (stream, *_) = drawn(windows(always(of(incident, count, count), 1), size="1 hour", time="at"), 1)
    rows = [line for line in repr(stream).splitlines() if line.startswith("  0  ")]
    shown = 12
    assert len([line for line in rows if "…" not in line]) == min(count, shown)
    assert [line for line in rows if "…" in line] == [f"  0  … {count - shown} more"] * (count > shown)


def test_streams_without_rows_know_their_columns() -> None:
    empty = drawn(windows(always(of(incident, 0), 2), size="1 hour", time="at"), 1)[0]
    assert empty.full_schema.names == ["zone", "danger", "at"]
    assert empty.table.num_rows == 0
    nothing = WindowedStream((), empty.layout, "at")
    with pytest.raises(InputError, match="its columns are unknown"):
        _ = nothing.table


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: always(of(incident, 1), 0), "always needs at least 1 window, got 0"),
        (lambda: eventually(of(incident, 1), -1), "eventually needs at least 1 window"),
        (lambda: of(incident, 3, 2), "0 <= n <= m"),
        (lambda: windows(of(incident, 1), size="0 s", time="at"), "must be positive"),
        (lambda: of(incident, 1.5), "got 1.5 and 1.5"),  # type: ignore[arg-type]
        (lambda: always(of(incident, 1)), "e.g. always(g, 4)"),  # type: ignore[call-overload]
        (lambda: drawn(always(incident, 2), 1), "a window is a list of elements, not dict"),
        (lambda: windows([incident], size="1 h", time="at"), "not list"),  # type: ignore[arg-type]
        (lambda: windows(of(incident, 1), size="1 h", time="at", start="soon"), "'soon' is not an instant"),
        (lambda: windows(of(incident, 1), size="1 h", time="at", schema={"zone": "number"}), "name Arrow types"),
        (lambda: recorded([{"on": 1}], time="at", size="1 h"), 'the rows have no column "at"'),
        (lambda: recorded([{"at": "noon"}], time="at", size="1 h"), "has no times but string"),
        (lambda: windows(of(incident, 1), size="1 h", slide="5 m", gap="1 m", time="at"), "not both"),
    ],
)
def test_errors_say_what_to_do(build: Any, text: str) -> None:
    with pytest.raises(InputError) as error:
        build()
    assert text in str(error.value)


def test_too_many_windows_are_refused_clearly() -> None:
    with pytest.raises(FormulaError, match="5,000 windows are too many to draw"):
        drawn(always(of(incident, 0, 2), 5000), 1)


def test_streams_are_equal_if_and_only_if_their_digests_are() -> None:
    strategy = windows(always(of(incident, 0, 3), 2), size="1 hour", time="at")
    found = drawn(strategy, 30)
    assert len({stream.digest for stream in found}) == len(set(found)) > 5
    assert found[0] == drawn(strategy, 1)[0]
