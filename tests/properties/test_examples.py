"""The shipped examples give the verdicts that they say, each as its own file under pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "properties").glob("test_*.py"))


def test_the_first_property_of_the_docs_is_the_example() -> None:
    page = (Path(__file__).parents[2] / "docs" / "properties.md").read_text(encoding="utf-8")
    shown = page.partition('```python title="test_orders.py"\n')[2].partition("```")[0]
    assert shown == next(file for file in EXAMPLES if file.stem == "test_orders").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example(file: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(file)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stdout[-5000:]
