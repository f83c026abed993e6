"""The files and folders that pages about the code name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "src" / "streamproof"
NAMED = re.compile(r"`([\w./-]+(?:\.py|/))`")
PAGES = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "life-of-an-event.md",
    ROOT / "tests" / "README.md",
    *sorted(HOUSE.rglob("README.md")),
]


def is_there(name: str, page: Path, places: set[str]) -> bool:
    """Whether a path, or the end of one, leads from the page, from the house or from the root to something."""
    if any((base / name).exists() for base in (page.parent, HOUSE, ROOT)):
        return True
    return any(place.endswith(f"/{name.strip('/')}") for place in places)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    found = [
        path for folder in (HOUSE, ROOT / "tests") for path in folder.rglob("*") if "__pycache__" not in path.parts
    ]
    places = {str(path) for path in found if path.suffix == ".py" or path.is_dir()}
    named = [name for name in NAMED.findall(page.read_text(encoding="utf-8")) if "NAME" not in name]  # a place to fill
    assert sorted({name for name in named if not is_there(name, page, places)}) == []


def test_every_folder_of_tests_is_in_their_readme() -> None:
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    folders = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/*.py")}
    assert sorted(name for name in folders if f"`{name}/`" not in text) == []
