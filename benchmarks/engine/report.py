"""What a round says: tables for people, JSON for later, and which targets are met."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from engine.data import Shape
from engine.field import FIELD, Entry
from engine.match import Score, disagreements
from engine.queries import Query

RESULTS = Path(__file__).parent.parent / "results"
OURS = "local"
Scores = dict[str, Score]


@dataclass(frozen=True)
class Target:
    """How many times faster than the best streaming peer, or how many thousand events per CPU second."""

    query: str
    times: float | None = None
    thousand: float | None = None


TARGETS = (Target("Q2", 40), Target("Q3", 50), Target("Q4", 25), Target("Q6", 20), Target("Q7", thousand=400))


def thousand(events: int, score: Score) -> float | None:
    return events / score.cpu / 1000 if score.cpu else None


def line(query: Query, scores: Scores, shape: Shape, batch: int) -> dict[str, object]:
    """One query as plain data: CPU seconds, and the ratio of DuckDB's to ours."""
    ours, limit = scores[OURS], scores.get("duckdb", Score())
    made: dict[str, object] = {"query": query.title, "events": shape.events, "batch": batch, "output": ours.sent}
    made["ours"] = _rounded(ours.cpu)
    for name, score in scores.items():
        if name != OURS:
            made[FIELD[name].title] = _rounded(score.cpu) if score.cpu else score.note
    made["ratio"] = round(limit.cpu / ours.cpu, 2) if ours.cpu and limit.cpu else None
    made["thousand events/s"] = round(thousand(shape.events, ours) or 0)
    return made


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def tables(played: list[tuple[Query, Scores]], shape: Shape, console: Console) -> None:
    """Speed, ratios and start-up, and in red whatever the contestants do not agree on."""
    entries = [FIELD[name] for name in played[0][1]]
    order = "10 % out of order" if shape.disorder else "in order"
    speed = Table(title=f"thousand events per CPU second (ours ÷ theirs); {shape.events:,} events, {order}")
    for head in ("query", *(entry.title for entry in entries)):
        speed.add_column(head, justify="left" if head == "query" else "right")
    for query, scores in played:
        speed.add_row(query.title, *(_cell(shape.events, scores, entry) for entry in entries))
    console.print(speed)
    start = Table(title="not in the figures above: CPU seconds until ready, and of the first, small run")
    for head in ("", *(entry.title for entry in entries)):
        start.add_column(head, justify="left" if not head else "right")
    for query, scores in played:
        cells = [f"{score.ready:.1f} + {score.first:.1f}" if score.ready else "–" for score in scores.values()]
        start.add_row(query.title, *cells)
    console.print(start)
    for query, scores in played:
        for each in disagreements(scores):
            console.print(f"DISAGREEMENT on {query.title}: {each}", style="bold red")


def _cell(events: int, scores: Scores, entry: Entry) -> str:
    score, ours = scores[entry.name], scores[OURS]
    found = thousand(events, score)
    if found is None:
        return {"cannot express it": "–"}.get(score.note or "", (score.note or "?").splitlines()[0][:40])
    if entry.name == OURS or not ours.cpu or not score.cpu:
        return f"{found:,.0f}"
    return f"{found:,.0f} ({score.cpu / ours.cpu:.1f}×)"


def targets(played: list[tuple[Query, Scores]], shape: Shape) -> list[str]:
    """One sentence per target that this round can judge."""
    said = []
    for target in TARGETS:
        scores = next((scores for query, scores in played if query.id == target.query), {})
        ours = scores.get(OURS, Score())
        speed = thousand(shape.events, ours)
        if speed and target.thousand:
            said.append(_verdict(target.query, speed, target.thousand, "thousand events per CPU second"))
        peers = {name: score.cpu for name, score in scores.items()
                 if FIELD[name].streaming and name != OURS and score.cpu}  # fmt: skip
        if ours.cpu and target.times and peers:
            name = min(peers, key=lambda each: peers[each])
            said.append(_verdict(target.query, peers[name] / ours.cpu, target.times, f"× {FIELD[name].title}"))
    return said


def _verdict(what: str, found: float, wanted: float, unit: str) -> str:
    return f"{what}: {found:,.1f} {unit}, wanted at least {wanted:,.0f}: {'met' if found >= wanted else 'NOT MET'}"


def machine() -> dict[str, object]:
    """Where the figures come from."""
    model = next((text.partition(":")[2].strip() for text in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
                  if text.startswith("model name")), platform.processor())  # fmt: skip
    return {"processor": model, "cores": os.cpu_count(), "system": platform.platform(),
            "python": platform.python_version(), "load": os.getloadavg()[0]}  # fmt: skip


def save(name: str, content: dict[str, object]) -> Path:
    """Write a result with date and machine beside it."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{datetime.now(UTC):%Y-%m-%d}.json"
    head = {"date": f"{datetime.now(UTC):%Y-%m-%dT%H:%MZ}", "machine": machine()}
    path.write_text(json.dumps({**head, **content}, indent=1) + "\n", encoding="utf-8")
    return path


def round_as_data(played: list[tuple[Query, Scores]], shape: Shape, batch: int) -> dict[str, object]:
    """A round with everything that was measured."""
    return {
        "shape": asdict(shape),
        "batch": batch,
        "targets": targets(played, shape),
        "queries": {
            query.title: {"disagreements": disagreements(scores),
                          **{FIELD[name].title: asdict(score) for name, score in scores.items()}}
            for query, scores in played
        },
    }  # fmt: skip
