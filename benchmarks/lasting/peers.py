"""The time-bounded query on Flink, in an environment of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

PYTHON = Path(__file__).parents[2] / ".venv-peers" / "flink" / "bin" / "python"
SCRIPT = Path(__file__).parent / "flink_match.py"


def match_recognize(tuples: int = 20_000, duration: int = 2_000, overlaps: tuple[int, ...] = (1, 10)) -> dict[str, Any]:
    """Tuples per CPU-second for some overlaps; why not, where it cannot be measured."""
    if not PYTHON.exists():
        return {"shown": "not measured: .venv-peers has no apache-flink (make bench-peers)"}
    found: dict[str, Any] = {}
    for overlap in overlaps:
        command = [str(PYTHON), str(SCRIPT), str(tuples), str(overlap), str(duration)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            found[str(overlap)] = json.loads(done.stdout.strip().splitlines()[-1])
        except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError) as error:
            found[str(overlap)] = {"failed": type(error).__name__}
            break
    shown = ", ".join(f"{overlap} overlapping: {_shown(run, tuples)}" for overlap, run in found.items())
    return {"tuples": tuples, "runs": found, "shown": shown}


def _shown(run: dict[str, Any], tuples: int) -> str:
    if "failed" in run:
        return f"gave up ({run['failed']})"
    return f"{tuples / max(run['seconds'], 0.001) / 1000:.0f} k tuples per CPU-second ({run['results']} results)"
