"""Steps: the worked discretisers, the whole horizon, three sizes of windows, and the end of a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from streamproof.errors import InputError
from streamproof.properties import micro_batches, recorded, run_recorded, sliding, tumbling
from tests.properties.cases import CASES

ORIGIN = datetime(2024, 1, 4, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return ORIGIN + timedelta(minutes=minutes)


@pytest.mark.parametrize("case", CASES["discretizer_cases"], ids=lambda case: case["id"])
def test_worked_cases(case: Any) -> None:
    if case["kind"] == "tumbling":
        found = tumbling(case["size"]).split(case["timestamps"], start=case["start"])
        assert [[start, times] for start, times in found] == case["expected"]
        return
    stream = recorded([{"t": t} for t in case["in"]], time="t", size=case["size"], start=case["start"])
    run = run_recorded(stream, pa.table({"t": pa.array(case["out"], pa.timestamp("us", tz="UTC"))}))
    word = tumbling(case["size"], on="t").word(run)
    assert len(word) == case["recommended_letters"]
    assert [len(step.output) for step in word] == [1, 0, 0]


def an_hour(outputs: Any) -> Any:
    stream = recorded([{"at": at(5), "v": 1}, {"at": at(50), "v": 2}], time="at", size="1 hour")
    return run_recorded(stream, outputs)


def test_a_window_belongs_to_the_step_of_its_last_instant() -> None:
    window = {"start": at(0), "end": at(60)}
    word = tumbling("15 minutes").word(an_hour([{"window": window, "n": 2}]))
    assert [len(step.output) for step in word] == [0, 0, 0, 1]
    assert [len(step.input) for step in word] == [1, 0, 0, 1]
    assert word[3].time == at(45)
    assert word[3].output[0].window.end == at(60)


def test_sliding_steps_overlap() -> None:
    word = sliding("1 hour", "30 minutes").word(an_hour([{"at": at(10)}]))
    assert [len(step.input) for step in word] == [2, 1]


def test_output_after_the_horizon_makes_more_steps() -> None:
    word = tumbling("1 hour").word(an_hour([{"at": at(130)}]))
    assert [len(step.output) for step in word] == [0, 0, 1]


def test_two_times_need_a_name() -> None:
    run = an_hour([{"begin": at(1), "finish": at(2)}])
    with pytest.raises(InputError, match="which column of the output says its time"):
        tumbling("1 hour").word(run)
    assert len(tumbling("1 hour", on="finish").word(run)[0].output) == 1
    with pytest.raises(InputError, match='did you mean "finish"'):
        tumbling("1 hour", on="finnish").word(run)


def test_a_recording_has_no_micro_batches() -> None:
    with pytest.raises(InputError, match="has no micro-batches"):
        micro_batches().word(an_hour([{"at": at(1)}]))
