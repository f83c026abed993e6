"""Lasting events that overlap: response delay and memory against their number and their duration.

    python benchmarks/bench_lasting.py [--tuples 200000] [--save] [--peers]

1. The paper's experiments: time-bounded events with exponential arrivals, by DWM, SLES, SLES*, FIFO and prefix.
2. The same query on the local engine, vectorised: tuples per CPU-second, and rows held.
3. With --peers, the query as Flink's MATCH_RECOGNIZE, if .venv-peers has apache-flink.

Times are CPU time of one run; all results are compared first.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.lasting import peers
from benchmarks.lasting.online import ALGORITHMS

from streamproof.engines.base import Settings
from streamproof.engines.local.graph import Graph
from streamproof.engines.local.processor import context_of
from streamproof.events.schema import Schema
from streamproof.kernels.delta import Delta
from streamproof.language.eql import loads
from streamproof.plan.check import check
from streamproof.plan.rewrites import rewrite

RESULTS = Path(__file__).parent / "results"
OVERLAPS = (1, 10, 100, 1000, 10_000)
DURATIONS = (100, 1_000, 10_000, 100_000)


def schedule(tuples: int, overlap: int, duration: int) -> np.ndarray:
    """Begins with exponential gaps, so that on average ``overlap`` events are open."""
    chance = np.random.default_rng(7)
    count = max(2, int(tuples * overlap / duration))
    begins = np.cumsum(chance.exponential(duration / overlap, 2 * count)).astype(np.int64)
    return begins[begins + duration < tuples][: min(count, 20_000)]


def online(kind: Any, tuples: int, overlap: int, duration: int) -> dict[str, float]:
    """One algorithm, tuple by tuple: µs per tuple, µs from an end to its result, and the peak of what is held.

    Between two events there is one call with all tuples, which itself costs as much as many of them. So a tuple's cost
    is what more tuples cost in the same number of calls.
    """
    one, few = _fed(kind, tuples, overlap, duration, 1), _density(kind, overlap)
    many = [_fed(kind, tuples, overlap, duration, few)["feeding"] for _ in range(3)]
    alone = [one["feeding"], *(_fed(kind, tuples, overlap, duration, 1)["feeding"] for _ in range(2))]
    cost = (min(many) - min(alone)) / 1000 / max(one["tuples"], 1) / (few - 1)
    return {"tuple_us": max(cost, 0.0), **{name: one[name] for name in ("response_us", "peak", "results", "sum")}}


def _density(kind: Any, overlap: int) -> int:
    """How many tuples at each tick it takes to tell their cost from that of calls: fewer where a tuple costs more."""
    if kind.name == "SLES":
        return 2 if overlap > 1000 else 8
    return 8 if kind.name == "DWM" else 64


def _fed(kind: Any, tuples: int, overlap: int, duration: int, density: int) -> dict[str, float]:
    """One run with so many tuples at each tick; ns for all tuples."""
    begins = schedule(tuples, overlap, duration)
    values = np.random.default_rng(1).normal(20, 5, tuples * density).round(1)
    moments = sorted([(int(b), 1) for b in begins] + [(int(b) + duration, 0) for b in begins])
    state, at, answers, waits, feeding = kind(overlap * 4 + 64), 0, [], [], 0
    for t, is_begin in moments:
        came = values[at * density : t * density]
        began = time.thread_time_ns()
        state.tuples(came)
        feeding += time.thread_time_ns() - began
        at = t
        if is_begin:
            state.begin()
            continue
        began = time.thread_time_ns()
        answers.append(state.end())
        waits.append(time.thread_time_ns() - began)
    found = {"feeding": feeding, "tuples": at, "response_us": float(np.median(waits)) / 1000 if waits else 0.0}
    return {**found, "peak": state.peak, "results": len(answers), "sum": float(np.sum(answers))}


def experiment(tuples: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    settings = [(overlap, 100_000, "overlap") for overlap in OVERLAPS] + [(200, d, "duration") for d in DURATIONS]
    for overlap, duration, varied in settings:
        length = max(tuples, 4 * duration)
        for kind in ALGORITHMS:
            if kind.name == "SLES" and overlap * length > 3e9:
                length_here = int(3e9 / overlap)
            else:
                length_here = length
            _fed(kind, min(length_here, 4 * duration), overlap, duration, 1)  # compiled and warm
            found = online(kind, length_here, overlap, duration)
            rows.append({"varied": varied, "overlap": overlap, "duration": duration, "algorithm": kind.name, **found})
        _agree([row for row in rows if (row["overlap"], row["duration"], row["varied"]) == (overlap, duration, varied)])
    return rows


def _agree(rows: list[dict[str, Any]]) -> None:
    """The algorithms answer the same, up to the rounding of sums of floats."""
    sums = {row["algorithm"]: row["sum"] for row in rows if row["results"] == rows[0]["results"]}
    low, high = min(sums.values()), max(sums.values())
    assert abs(high - low) <= 1e-6 * max(1.0, abs(high)), sums


def engine(
    aggregate: str, overlap: int, *, tuples: int = 1_000_000, duration: int = 100_000, batch: int = 50_000
) -> dict[str, Any]:
    """The time-bounded query on the local engine, with a CTI after each batch."""
    schemas = {"D": Schema.of({"v": "float64"}, unit="ms"), "B": Schema.of({"k": "int64"}, unit="ms")}
    plan = loads(f"SELECT {aggregate} FROM D DURING LASTING(ARRIVE(B), +{duration}ms)")
    graph = Graph(check(rewrite(plan, schemas), schemas), context_of(Settings(), "speculative"))
    chance = np.random.default_rng(1)
    begins = np.sort(chance.integers(0, tuples, max(1, tuples * overlap // duration)))
    values = chance.normal(20, 5, tuples).round(1)
    began, results = time.process_time(), 0
    for start in range(0, tuples, batch):
        end = start + batch
        own = begins[(begins >= start) & (begins < end)]
        results += len(graph.push("B", _delta(own, pa.array(own), end)))
        results += len(graph.push("D", _delta(np.arange(start, end), pa.array(values[start:end]), end)))
    held, seconds = graph.live_rows(), time.process_time() - began
    return {
        "aggregate": aggregate,
        "overlap": overlap,
        "per_cpu_second": tuples / seconds,
        "held": held,
        "results": results,
    }


def _ours(tuples: int, overlap: int, duration: int) -> float:
    """Tuples per CPU-second of the same query, over a stream that is long enough to time."""
    found = engine("avg(v)", overlap, tuples=100 * tuples, duration=duration)
    return float(found["per_cpu_second"])


def _delta(times: np.ndarray, column: pa.Array, frontier: int) -> Delta:
    count = len(times)
    return Delta(np.zeros(count, np.int64), times, times + 1, np.ones(count, np.int64), (column,), frontier)


def show(rows: list[dict[str, Any]], engines: list[dict[str, Any]], flink: dict[str, Any] | None) -> None:
    for varied in ("overlap", "duration"):
        print(f"\nagainst the {varied}: µs per tuple / µs from end to result / peak held")
        keys = list(dict.fromkeys((row["overlap"], row["duration"]) for row in rows if row["varied"] == varied))
        print("".rjust(10) + "".join(f"{key[varied == 'duration']:>26,}" for key in keys))
        for kind in ALGORITHMS:
            cells = [
                row
                for key in keys
                for row in rows
                if row["varied"] == varied
                and row["algorithm"] == kind.name
                and (row["overlap"], row["duration"]) == key
            ]
            shown = (f"{r['tuple_us']:.3f} / {r['response_us']:.1f} / {r['peak']:,}" for r in cells)
            print(kind.name.rjust(10) + "".join(text.rjust(26) for text in shown))
    print("\nlocal engine, 1,000,000 tuples in batches of 50,000 with CTIs")
    for row in engines:
        rate = f"{row['per_cpu_second'] / 1e6:.2f} M tuples per CPU-second"
        print(f"  {row['aggregate']:24} {row['overlap']:>6,} overlapping: {rate}, {row['held']:,} rows held")
    if flink is not None:
        print(f"\nFlink MATCH_RECOGNIZE: {flink['shown']}")


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Response delay and memory against overlap and duration, as the paper draws them."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(2, 2, figsize=(10, 7))
    for column, varied in enumerate(("overlap", "duration")):
        for line, (field, words) in enumerate((("response_us", "µs from end to result"), ("peak", "peak held"))):
            axis = axes[line][column]
            for kind in ALGORITHMS:
                mine = [row for row in rows if row["varied"] == varied and row["algorithm"] == kind.name]
                axis.plot(
                    [row[varied] for row in mine], [max(row[field], 0.05) for row in mine], marker="o", label=kind.name
                )
            axis.set(xscale="log", yscale="log", xlabel=varied, ylabel=words)
            axis.grid(alpha=0.3)
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tuples", type=int, default=100_000)
    parser.add_argument("--save", action="store_true", help="write results as JSON and the plot as SVG")
    parser.add_argument("--peers", action="store_true", help="also Flink's MATCH_RECOGNIZE")
    given = parser.parse_args()
    rows = experiment(given.tuples)
    engine("avg(v)", 10, tuples=100_000)
    engine("max(v)", 10, tuples=100_000)
    engines = [engine(agg, overlap) for agg in ("avg(v)", "max(v)", "count(*)") for overlap in OVERLAPS]
    flink = peers.match_recognize(_ours) if given.peers else None
    show(rows, engines, flink)
    if given.save:
        day = datetime.now(UTC).date()
        machine = {"python": platform.python_version(), "machine": platform.machine()}
        document = {"date": str(day), "machine": machine, "algorithms": rows, "engine": engines, "flink": flink}
        (RESULTS / f"lasting-{day}.json").write_text(json.dumps(document, indent=1) + "\n")
        plot(rows, Path(__file__).parents[1] / "docs" / "lasting.svg")


if __name__ == "__main__":
    main()
