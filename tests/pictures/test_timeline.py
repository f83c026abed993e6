"""Timelines: one layout, three drawings."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import fromstring

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.pictures.timeline import Bar, Lane, Timeline, axis_of

PICTURE = Timeline(
    "a <case>",
    (
        Lane("S", (Bar(1, 4, "a & b"), Bar(BEGINNING, 3, "old"), Bar(2, FOREVER, "open", gone=True)), (2, 5)),
        Lane("windows", (Bar(0, 5), Bar(5, 10)), tone="window"),
        Lane("expected", (Bar(1, 4, "n=1", wrong=True),), tone="expected"),
        Lane("actual", (), tone="actual"),
    ),
    note="what differs",
)


def test_ticks_stand_in_their_order_between_the_infinities() -> None:
    axis = axis_of(PICTURE)
    places = [axis.at(tick) for tick in axis.ticks]
    assert places == sorted(places)
    assert axis.at(BEGINNING) == 0
    assert axis.at(FOREVER) == 1
    far = axis_of(Timeline("", (Lane("S", (Bar(0, 10**15), Bar(1, 2))),)))
    assert far.at(1) - far.at(0) == far.at(2) - far.at(1), "a long range is drawn by rank"


def test_text_marks_the_difference() -> None:
    text = PICTURE.text(width=80)
    lines = text.splitlines()
    assert lines[0] == "a <case>"
    assert any("✗ n=1" in line and "━" in line for line in lines)
    assert any("(taken back)" in line and "▶" in line for line in lines)
    assert any(line.startswith("actual") and "(nothing)" in line for line in lines)
    assert any("CTI" in line and line.count("▲") == 2 for line in lines)
    assert max(map(len, lines)) <= 110


def test_svg_is_one_whole_element_with_an_alternative_text() -> None:
    svg = PICTURE.svg()
    root = fromstring(svg)
    assert root.tag.endswith("svg")
    assert root[0].text == "what differs"
    assert "a &amp; b" in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert PICTURE._repr_html_() == svg


def test_png_is_a_picture(tmp_path: Path) -> None:
    PICTURE.png(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
