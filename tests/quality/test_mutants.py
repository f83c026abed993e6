"""The planted bugs: each can be planted, each is listed, and each is found by ``full`` and shrunk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.quality.mutants import MOST_EVENTS, MUTANTS, RESULTS, ROOT, Mutant, hunt, is_killed, shown_alone


def test_there_are_enough() -> None:
    assert len(MUTANTS) >= 30
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    rooms = {"kernels", "windows", "events", "oracle", "stream", "batch"}
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


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_is_found_and_shrunk(mutant: Mutant) -> None:
    assert is_killed(hunt(mutant))
