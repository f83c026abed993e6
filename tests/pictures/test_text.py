from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.history import History
from streamproof.events.physical import to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.pictures.text import marbles
from tests.events.strategies import SMALL, legal_events


@given(legal_events(), st.integers(20, 120), st.integers(1, 8))
def test_pictures_fit_and_are_always_the_same(events: list[Event], width: int, rows: int) -> None:
    stream = PhysicalStream.from_events(events, schema=SMALL)
    for content in (stream, to_history(stream), events):
        picture = marbles(content, width=width, rows=rows)
        assert picture == marbles(content, width=width, rows=rows)
        assert max(map(len, picture.splitlines())) <= width
        assert len(picture.splitlines()) <= rows + 2
        assert marbles(content, width=width, ascii=True).isascii()


def test_ends_of_every_kind() -> None:
    events: list[Event] = [
        Insert("point", 2, 3, {}),
        Insert("always", BEGINNING, FOREVER, {}),
        Retract("longer", 1, 3, 6, {}),
        Retract("never", 1, 5, 1, {}),
        Cti(4),
        Cti(FOREVER),
    ]
    assert marbles(events, width=60) == "\n".join(
        [
            "point              ├───┤",
            "always        ◀───────────────────────▶",
            "longer → 6     ├───────┆───────────┤",
            "never → never  ╳╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┆",
            "CTI                        ╵4",
            "CTI                                   ╵∞",
            "               1   2   3   4   5   6",
        ]
    )


def test_far_times_stand_in_order() -> None:
    day = 86_400_000_000
    picture = marbles([Insert("a", 0, 1, {}), Insert("b", 5 * day, 5 * day + 3, {})], width=50)
    assert picture == "\n".join(["a ├───────┤", "b                 ├───────┤", "  0       1       432000000000"])


@pytest.mark.parametrize("count", [20, 33, 60])
@pytest.mark.parametrize("width", [30, 40])
def test_times_in_order_use_the_room_that_there_is(count: int, width: int) -> None:
    """As many cells as there are, or a fixed step where that is less."""
    events = [Insert(f"{n:02}", 3**n, 3**n + 1, {}) for n in range(count // 2)]
    bars = [line.rstrip() for line in marbles(events, width=width, rows=count).splitlines()[: count // 2]]
    times = len({time for event in events for time in (event.le, event.re)})
    room = width - 3 - 4
    step = room // (times - 1)
    assert max(map(len, bars)) == 3 + (step * (times - 1) + 1 if step else room)


def test_counts_limits_and_escapes() -> None:
    history = History.from_rows(Schema.of({"s": "string"}), [(i, i + 1, {"s": "\x1b[31mred"}) for i in range(95)])
    picture = marbles(history, rows=2)
    assert "\x1b" not in picture
    assert picture.endswith("… 93 more")
    assert marbles([Insert("\x1b", 1, 2, {})]).startswith("'\\x1b'")
    assert marbles([]) == "(no events)"


@pytest.mark.parametrize("text", ["長い", "é", "x" * 99])
def test_wide_and_long_labels_keep_the_axis_straight(text: str) -> None:
    lines = marbles([Insert("a", 1, 2, {"k": text}), Insert("b", 1, 2, {})], width=60).splitlines()
    wide = sum(c in "長い" for c in lines[0])
    assert lines[0].index("├") + wide == lines[1].index("├")
