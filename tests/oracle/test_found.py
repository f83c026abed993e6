"""Every case that a fuzz run ever found, replayed: what was a difference must stay an agreement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamproof.engines.base import Engine
from tests.reference.found import FOLDER, from_json
from tests.reference.judge import judge

FILES = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("engine_name", ["duckdb", "postgres"])
def test_found_case(path: Path, engine_name: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(f"{engine_name}_under_test")
    verdict = judge(from_json(json.loads(path.read_text())), engine)
    assert verdict.agrees, verdict.text
