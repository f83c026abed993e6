"""How a contestant talks to the arena: one JSON line per request on stdin, one marked JSON line per answer on stdout.

Only the standard library is used here, because each contestant runs in its own virtual environment.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

MARK = "::bench "  # tells our answers from whatever else a system prints


@dataclass(frozen=True)
class Task:
    """One run of one query: where its rows are, how they come, and whether to keep the result."""

    query: str
    folder: str  # holds <kind>.parquet, and for those who ask <kind>.csv and <kind>.parts/
    batch: int = 100_000
    delay: int = 5_000  # how far the watermark trails behind the greatest start, in ms
    latency: float = 0.0  # how many seconds small batches may wait for others; peers may leave it out
    pushed: bool = False  # whether rows are pushed into a running query; peers may leave it out
    keep: str | None = None  # write the result rows to this Parquet file; otherwise they are thrown away

    def path(self, kind: str, form: str = "parquet") -> str:
        return str(Path(self.folder) / f"{kind}.{form}")


@dataclass(frozen=True)
class Answer:
    """What a run gave: result rows if the system counts them, and rows sent, corrections included."""

    rows: int | None
    sent: int | None = None
    peak_mb: float | None = None


Run = Callable[[Task], Answer]


def serve(runs: Mapping[str, Run]) -> None:
    """Answer requests until stdin ends. ``runs`` has an entry for each query that the system can express."""
    _say({"ready": sorted(runs)})
    for line in sys.stdin:
        task = Task(**json.loads(line))
        try:
            _say(asdict(runs[task.query](task)))
        except Exception as error:
            traceback.print_exc()
            _say({"error": f"{type(error).__name__}: {error}"[:400]})


def _say(answer: Mapping[str, object]) -> None:
    print(MARK + json.dumps(answer), flush=True)
