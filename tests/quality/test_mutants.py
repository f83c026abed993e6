"""The planted bugs: each can be planted, each is listed, and each is found by ``full`` and shrunk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.quality.mutants import (
    MOST_EVENTS,
    MUTANTS,
    RESULTS,
    ROOT,
    Mutant,
    compiled_with,
    hunt,
    is_killed,
    shown_alone,
)
from tests.quality.seeded import HEAD, ROOMS, applies, drawn, known
from tests.quality.seeded import tests_of as judges_of


def test_there_are_enough() -> None:
    assert len(MUTANTS) >= 30
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    rooms = {"kernels", "recompute", "shared", "hopping_sums", "events", "oracle", "stream", "batch"}
    assert {Path(mutant.file).parent.name for mutant in MUTANTS} == rooms


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_can_be_planted(mutant: Mutant) -> None:
    text = (ROOT / "src" / "streamproof" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1
    compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")


def test_the_page_lists_what_was_found() -> None:
    page = (ROOT / "docs" / "mutation-score.md").read_text(encoding="utf-8")
    known = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert [mutant.name for mutant in MUTANTS if f"| {mutant.name} |" not in page] == []
    hunted = [known[mutant.name] for mutant in MUTANTS if mutant.name in known]
    assert f"**{sum(map(is_killed, hunted))} of {len(hunted)}**" in page
    assert all(shown_alone(result)[0]["events"] <= MOST_EVENTS for result in hunted if is_killed(result))


def test_drawn_bugs_can_be_planted_and_the_same_seed_draws_the_same() -> None:
    bugs = drawn(7, ["documents.py", "kernels"])
    assert bugs == drawn(7, ["documents.py", "kernels"])
    assert [applies(bug) for bug in bugs] == [True] * (ROOMS["documents.py"].count + ROOMS["kernels"].count)
    assert {bug["file"] for bug in bugs} >= {"documents.py", "kernels/interning.py", "kernels/store.py"}
    for bug in bugs:
        own, *others = judges_of(bug)
        assert own == f"src/streamproof/{bug['file']}"
        assert others


def test_the_list_of_drawn_bugs_says_what_came_of_each() -> None:
    bugs = known()
    assert len({(bug["file"], bug["old"], bug["new"]) for bug in bugs}) == len(bugs) >= 120
    assert {bug["room"] for bug in bugs} <= set(ROOMS)
    for bug in bugs:
        wanted = {"killed": "by", "equivalent": "reason"}.get(bug.get("result", ""), "file")
        assert bug.get(wanted), bug
    assert HEAD in (ROOT / "docs" / "mutation-score.md").read_text(encoding="utf-8")


def test_compiled_code_of_callers_is_forgotten_too() -> None:
    source = ROOT / "src" / "streamproof"
    assert {path.name.split(".")[0] for path in compiled_with(source, "store_loops")} <= {
        p.stem for p in source.rglob("*.py")
    }
    assert compiled_with(source, "documents") == []


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_is_found_and_shrunk(mutant: Mutant) -> None:
    assert is_killed(hunt(mutant))
