"""Monitors over recorded streams: formulas without bounds, verdict changes, late rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamproof.errors import InputError
from streamproof.properties import always, eventually, implies, monitor, now, recorded, sliding, tumbling
from streamproof.properties.streams import START

MINUTE = 60_000_000
hot = now(lambda i, o: any(row.v > 50 for row in i), "hot")
calm = now(lambda i, o: any(row.v < 5 for row in i), "calm")


def stream(*readings: tuple[float, int]):
    rows = [{"at": START + int(minute * MINUTE), "v": v} for minute, v in readings]
    return recorded(rows, time="at", size="1 minute")


def test_an_unbounded_formula_is_undecided_until_it_fails() -> None:
    watched = monitor(always(~hot), stream((0, 1), (1, 2), (2, 60), (3, 1)), steps=tumbling("1 minute", on="at"))
    assert [(change.step, change.verdict.value) for change in watched.changes] == [(0, "?"), (2, "F")]
    assert watched.changes[-1].reasons == ("hot: true",)


def test_it_can_begin_anew_and_write_lines(tmp_path: Path) -> None:
    file = tmp_path / "verdicts.jsonl"
    response = always(implies(hot, eventually(calm).within(2)))
    readings = stream((0, 60), (1, 9), (2, 60), (3, 1), (4, 60), (5, 9), (6, 9))
    watched = monitor(response, readings, steps=tumbling("1 minute", on="at"), restart=True, file=file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line["step"], line["verdict"]) for line in lines] == [
        (0, "undecided"), (1, "fails"), (2, "undecided"), (5, "fails"), (6, "undecided"),
    ]  # fmt: skip
    assert len(watched.changes) == 5


def test_it_says_what_it_watches() -> None:
    watched = monitor(eventually(hot).within(3), stream((0, 60)), steps=tumbling("1 minute", on="at"))
    assert repr(watched).startswith("monitor of eventually(hot).within(3): holds\n0  2024-01-04 00:00:00  holds")


def test_steps_must_tumble_and_have_a_time() -> None:
    with pytest.raises(InputError, match="a monitor's steps tumble"):
        monitor(always(hot), stream((0, 1)), steps=sliding("2 minutes", "1 minute", on="at"))
