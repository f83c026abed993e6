"""Texts that Python reads more widely than they mean: each door takes them for what they say, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import streamproof as sp
from streamproof.engines.job import on
from streamproof.errors import StreamproofError
from streamproof.events.schema import Schema
from streamproof.language import eql
from streamproof.language.notation import from_data
from streamproof.plan.check import check
from streamproof.properties.streams import instant

NUMBERS = ("1_0", "١", " 1", "1 ", "0x10", "1e", "", "--1", "1,5")
MOMENTS = ("2026-01-01T00:00:00.1234567Z", "2026-01-01T00:00:00.123456789Z", "2026-01-01T00:00:00,1234567891Z")


def _row(kind: str) -> Callable[[str], object]:
    row = {"kind": "insert", "id": "a", "le": 0, "re": 5}
    plan = sp.source("S", {"v": kind}).plan
    return lambda text: on(plan, "local").run({"S": [{**row, "payload": {"v": text}}]})


def _constant(kind: str) -> Callable[[str], object]:
    window, source = {"type": "snapshot"}, {"op": "source", "name": "S"}
    call = {"op": "uda", "in": source, "window": window, "fn": "f", "arg": "v", "as": "x"}
    return lambda text: from_data({**call, "params": {"p": {"type": kind, "value": text}}})


def _clock(text: str) -> object:
    schema = Schema.of({"v": "int64"}, unit="ns")
    return check(eql.loads(f"SELECT count(*) FROM S AT TIME('{text}') WINDOW 5s"), {"S": schema})


DOORS: dict[str, tuple[Callable[[str], object], tuple[str, ...], str]] = {
    "a decimal in a row": (_row("decimal(5,2)"), NUMBERS, "1.50"),
    "a timestamp in a row": (_row("timestamp"), MOMENTS, "2026-01-01T00:00:00.1234560Z"),
    "a decimal in a plan": (_constant("decimal"), NUMBERS, "-1.50"),
    "a float in a plan": (_constant("float64"), (*NUMBERS, "1e400", "Infinity"), "inf"),
    "a timestamp in a plan": (_constant("timestamp"), MOMENTS, "2026-01-01T00:00:00.123456Z"),
    "a clock of EQL": (_clock, MOMENTS, "2026-01-01T00:00:00.123456Z"),
    "an instant of a property": (instant, MOMENTS, "2026-01-01T00:00:00.123456Z"),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_text_is_what_it_says_or_refused(door: str) -> None:
    read, wrong, right = DOORS[door]
    assert read(right)
    for text in wrong:
        with pytest.raises(StreamproofError):
            read(text)
