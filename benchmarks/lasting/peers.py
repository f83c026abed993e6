"""The time-bounded query on Flink, in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.engine.field import environment

PYTHON = Path(__file__).parents[2] / ".venv-peers" / "flink" / "bin" / "python"
SCRIPT = Path(__file__).parent / "flink_match.py"
SECONDS = 240


def match_recognize(
    ours: Callable[[int, int, int], float],
    *,
    tuples: int = 10_000,
    duration: int = 200,
    overlaps: tuple[int, ...] = (1, 10, 100),
) -> dict[str, Any]:
    """Tuples per CPU-second of both for some overlaps; why not, where it cannot be measured."""
    if not PYTHON.exists():
        return {"shown": "not measured: .venv-peers has no apache-flink (make bench-peers)"}
    runs: dict[str, Any] = {}
    start = _flink(tuples // 100, 1, duration // 100)  # Java and the job itself take seconds, however short the stream
    for overlap in overlaps:
        run = _flink(tuples, overlap, duration)
        if "failed" not in run and "failed" not in start:
            run["per_cpu_second"] = tuples / max(run["seconds"] - start["seconds"], 0.001)
        runs[str(overlap)] = {**run, "ours": ours(tuples, overlap, duration)}
        if "failed" in run:
            break
    shown = "; ".join(f"{overlap} overlapping: {_shown(run)}" for overlap, run in runs.items())
    return {"tuples": tuples, "duration": duration, "start": start, "runs": runs, "shown": shown}


def _flink(tuples: int, overlap: int, duration: int) -> dict[str, Any]:
    command = [str(PYTHON), str(SCRIPT), str(tuples), str(overlap), str(duration)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, env={**os.environ, **environment()}
        )
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError) as error:
        return {"failed": type(error).__name__}
    return found


def _shown(run: dict[str, Any]) -> str:
    ours = f"ours {run['ours'] / 1e6:.2f} M"
    if "per_cpu_second" not in run:
        return f"gave up ({run.get('failed', 'no start')}), {ours}"
    return f"{run['per_cpu_second'] / 1000:.1f} k tuples per CPU-second ({run['results']} results), {ours}"
