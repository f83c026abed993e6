"""The glossary is true: what it names exists, every room's nouns are in it, and words that were given up stay away."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamproof as sp

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "streamproof"
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("| \n").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")
]
REFERENCES = sorted({name for row in ROWS[1:] if len(row) > 2 for name in re.findall(r"`([\w.]+)`", row[2])})

KEY_NOUNS = {
    "events": "event lifetime batch history schema CTI retraction validator encoder",
    "plan": "plan node trait expression scope rule module limit aggregate window",
    "language": "notation EQL",
    "kernels": "kernel delta interning pane emission",
    "engines": "engine job claim",
    "engines/local": "graph processor inlet outlet era savepoint tracer",
    "engines/oracle": "oracle",
    "engines/spark": "stage bucket journal checkpoint",
    "workbench": "case intent subject verdict repro evaluator conformance",
    "properties": "formula step residual vacuous generator matcher",
    "disorder": "disorder piece replay",
    "qos": "task deadline admission",
    "generate": "facet",
}
SPOKEN_OF = {  # public classes that the page speaks of under another name, or that are errors
    "Analysis": "disorder", "ColumnMapping": "source", "Event": "event", "Facets": "facet", "Job": "job",
    "Metrics": "running query", "Parameter": "module", "Properties": "module", "QoS": "deadline",
    "QueryServer": "admission", "Run": "job", "Stream": "plan", "TokenBucket": "arrival curve",
}  # fmt: skip
GIVEN_UP = {
    r"(?<![Ee]vent-)\bdriven\b(?! by\b)": "event-driven, eql or event nodes",
    r"\b[dD]riving\b|\bDriv(er|en)\b(?= *[(:|\]])": "event nodes, observing event",
    r"\bshel(f|ves)\b": "array store",
    r"\bShipment\b": "QueryBytes",
    r"\bimages?\b(?=.{0,40}\b(state|bucket|journal)\b)": "savepoint",
    r"\b(ageless)\b": "no_start",
    r"\blasting_events\b": "event_driven",
    r"\bresume files?\b": "savepoint",
    r"\.snapshot\(\) *-> *(bytes|State)": "savepoint, save",
    r"\bletters=|\bLetters?\(|\b[Ll]etters? (of|in) (a|the) (word|run)\b": "step",
}
ELSEWHERE = re.compile(r"docs/(decisions|results)/|docs/mutation-score\.md|CHANGELOG")  # they tell what was


def words() -> set[str]:
    return {word.strip() for row in ROWS for word in re.split(r",| or ", row[0].replace("*", ""))}


@pytest.mark.parametrize("name", REFERENCES)
def test_what_the_page_names_exists(name: str) -> None:
    path = SOURCES.joinpath(*name.split("."))
    if path.is_dir() or path.with_suffix(".py").is_file():
        return
    module, _, thing = name.rpartition(".")
    home = SOURCES.joinpath(*module.split("."))
    file = home / "__init__.py" if home.is_dir() else home.with_suffix(".py")
    assert file.is_file(), f"{module} is no module"
    assert re.search(rf"^(class|def) {thing}\b|^{thing}\b.*=", file.read_text(encoding="utf-8"), re.M), (
        f"{name} is gone"
    )


@pytest.mark.parametrize("room", KEY_NOUNS)
def test_the_nouns_of_every_room_are_there(room: str) -> None:
    assert (SOURCES / room).is_dir()
    assert [noun for noun in KEY_NOUNS[room].split() if noun not in words()] == []


def test_every_public_class_is_there_or_spoken_of() -> None:
    classes = [
        name for name in sp.__all__
        if inspect.isclass(getattr(sp, name)) and not issubclass(getattr(sp, name), BaseException)
    ]  # fmt: skip
    named = {reference.rpartition(".")[2] for reference in REFERENCES}
    assert [name for name in classes if name not in named and SPOKEN_OF.get(name) not in words()] == []


def test_no_word_is_explained_twice() -> None:
    firsts = [row[0] for row in ROWS if row[0] not in ("word", "---")]
    assert sorted({word for word in firsts if firsts.count(word) > 1}) == []


def texts() -> Iterator[tuple[str, str]]:
    for folder in ("src", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in (".py", ".md", ".lark") and not ELSEWHERE.search(name):
                yield name, path.read_text(encoding="utf-8")


@pytest.mark.parametrize("given_up", GIVEN_UP, ids=GIVEN_UP.values())
def test_words_that_were_given_up_stay_away(given_up: str) -> None:
    found = [
        f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]}"
        for name, text in texts()
        for hit in re.finditer(given_up, text)
    ]
    assert found == [], f"the word is: {GIVEN_UP[given_up]}"


def test_what_was_given_up_would_be_found() -> None:
    old = (
        "a driven query", "Driving(Pairs)", "a shelf", "Shipment", "an image of the state", "ageless", "lasting_events",
        "a resume file", "x.snapshot() -> bytes", "letters=tumbling(1)",
    )  # fmt: skip
    assert [text for text, rule in zip(old, GIVEN_UP, strict=True) if not re.search(rule, text)] == []
