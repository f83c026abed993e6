"""Properties on Spark streaming beside FlinkCheck's published tables: 100 tests per cell, for safety and liveness.

python benchmarks/bench_properties.py                    the largest cell of both properties, and formulas alone
python benchmarks/bench_properties.py --table            Table 3 (49 cells of safety), Figure 9 (both; 21 of liveness)
python benchmarks/bench_properties.py --windows 4 28 --sizes 50 350 --property safety
python benchmarks/bench_properties.py --alone            some cells with one query per case: no multiplexing

A cell is the whole property in a warm session: drawing the streams twice, writing them, one streaming query for all
cases, two cases alone as a check, splitting and judging. Seconds are of the clock, as the paper's are; CPU seconds of
the whole process tree stand beside them. Rows of large windows come from seeds. The paper's machine had 8 cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from pyspark.sql import SparkSession

from streamproof.engines.spark.session import session
from streamproof.properties import (
    Formula,
    Progress,
    always,
    assert_holds,
    consume,
    eventually,
    implies,
    now,
    of,
    prove,
    run_stream,
    tumbling,
    windows,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "properties"))
from test_harassmap import extreme_zones_show, harass_max, incidents, no_zone_is_safe  # the same job

WINDOWS = (4, 8, 12, 16, 20, 24, 28)
SIZES = (50, 100, 150, 200, 250, 300, 350)
CASES = 100
PAPER = {  # Table 3, safety: seconds by size and number of windows
    50: (424, 730, 1051, 1386, 1714, 2006, 2364),
    100: (422, 758, 1082, 1390, 1693, 2040, 2382),
    150: (412, 752, 1071, 1396, 1747, 2057, 2414),
    200: (427, 761, 1097, 1436, 1766, 2099, 2419),
    250: (458, 778, 1129, 1478, 1818, 2187, 2540),
    300: (434, 777, 1129, 1469, 1826, 2202, 2563),
    350: (430, 782, 1163, 1474, 1834, 2220, 2599),
}
LINES = {"safety": (83.2, 97.7), "liveness": (104.8, -26.9)}  # the paper's fitted seconds for x windows
FIGURE = {"safety": SIZES, "liveness": (50, 200, 350)}  # sizes behind the medians of Figure 9
RESULTS = Path(__file__).parent / "results"


def safety(many: int, size: int):
    """No zone is Safe where every incident is above 1: windows of an hour."""
    formula = always(now(no_zone_is_safe)).during(many)

    @settings(max_examples=CASES, database=None)
    @given(stream=windows(always(of(incidents(1.1), size), many), size="1 hour", time="event_time"))
    def test(stream, spark):
        assert_holds(formula, run_stream(spark, stream, harass_max), steps=tumbling("1 hour", on="window"))

    return test


def liveness(many: int, size: int):
    """Zones above 8 show as Extreme now or in the next three steps of 15 minutes, which the cell counts."""

    formula = always(consume(extreme_zones_show)).during(many - 3)

    @settings(max_examples=CASES, database=None)
    @given(stream=windows(always(of(incidents(0.0), 2 * size), many // 2), size="30 minutes", time="event_time"))
    def test(stream, spark):
        assert_holds(formula, run_stream(spark, stream, harass_max), steps=tumbling("15 minutes", on="window"))

    return test


PROPERTIES = {"safety": safety, "liveness": liveness}


def cpu() -> float:
    """CPU seconds of this process and all that it started."""
    spent = sum(os.times()[:4])
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _parent(entry) == os.getpid():
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            spent += sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return spent


def _parent(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def cell(
    spark: SparkSession, name: str, many: int, size: int, *, multiplex: bool, cases: int = CASES
) -> dict[str, object]:
    """One cell: the whole property, drawn, run and judged."""
    test = PROPERTIES[name](many, size)
    clock, spent = time.perf_counter(), cpu()
    summary = prove(test, {"spark": spark}, seed=many * 1000 + size, cases=cases, multiplex=multiplex)
    return {
        "property": name, "windows": many, "size": size, "cases": cases, "multiplexed": multiplex,
        "seconds": round(time.perf_counter() - clock, 2), "cpu": round(cpu() - spent, 2),
        "queries": summary.queries, "judged": summary.judged, "rows": cases * many * size,
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def paper_seconds(name: str, many: int, size: int) -> float:
    """What the paper says: its table for safety, its fitted line for liveness (whose table is partly illegible)."""
    if name == "safety" and size in PAPER and many in WINDOWS:
        return float(PAPER[size][WINDOWS.index(many)])
    slope, constant = LINES[name]
    return slope * many + constant


def progression() -> list[dict[str, object]]:
    """Steps per second through Python predicates, and whether twice the word costs twice as much."""
    positive, seven = now(lambda i, o: o >= 0), now(lambda i, o: o == 6)

    def answered(_: int, o: int) -> Formula:
        return implies(o == 6, eventually(now(lambda _, later: later == 3)).within(5))

    formulas = {
        "always": always(positive).during(10**6),
        "until": positive.until(now(lambda i, o: o > 9)).within(10**6),
        "always eventually": always(eventually(seven).within(10)).during(10**6),
        "always implies eventually": always(seven.implies(eventually(positive).within(5))).during(10**6),
        "always consume eventually": always(consume(answered)).during(10**6),
    }
    found = []
    for name, formula in formulas.items():
        rates = [max(_rate(formula, steps) for _ in range(3)) for steps in (50_000, 100_000)]
        print(f"  {name:<28} {rates[1]:>9,.0f} steps/s, twice the word at {rates[1] / rates[0]:.2f} of the speed")
        found.append({"formula": name, "steps_per_second": round(rates[1]), "ratio": round(rates[1] / rates[0], 2)})
    return found


def _rate(formula: Formula, steps: int) -> float:
    """Steps per CPU second."""
    progress, spent = Progress(formula), time.process_time()
    for number in range(steps):
        progress.feed((0, number % 7, 0))
    return steps / (time.process_time() - spent)


def show(row: dict[str, object]) -> None:
    paper = paper_seconds(str(row["property"]), int(str(row["windows"])), int(str(row["size"])))
    ours = float(str(row["seconds"])) * CASES / int(str(row["cases"]))
    scaled = "" if row["cases"] == CASES else f" (from {row['cases']} cases)"
    print(
        f"  {row['property']:<9} {row['windows']:>3} x {row['size']:<4} {ours:>8.1f} s{scaled}, {row['cpu']} CPU s, "
        f"{row['queries']} queries   paper {paper:,.0f} s   {paper / ours:,.0f} times", flush=True
    )  # fmt: skip


def lines(rows: list[dict[str, object]]) -> None:
    """Figure 9: the median over sizes for each number of windows, the spread, and the fitted line."""
    for name in PROPERTIES:
        points = {}
        for many in WINDOWS:
            found = [float(str(r["seconds"])) for r in rows if r["property"] == name and r["windows"] == many]
            if found:
                points[many] = (statistics.median(found), min(found), max(found))
        if len(points) > 2:
            fit = statistics.linear_regression(list(points), [median for median, _, _ in points.values()])
            slope, constant = LINES[name]
            print(f"  {name}: {fit.slope:.2f} x + {fit.intercept:.2f} s; paper {slope} x + {constant} s")
            for many, (median, least, most) in points.items():
                print(f"    {many:>3} windows: median {median:.1f} s ({least:.1f} to {most:.1f})")


def save(rows: list[dict[str, object]], formulas: list[dict[str, object]]) -> list[dict[str, object]]:
    """Into today's file, keeping cells that were measured before. Gives the cells of Figure 9."""
    file = RESULTS / f"properties-{datetime.now(UTC):%Y-%m-%d}.json"
    old = json.loads(file.read_text()) if file.exists() else {"cells": []}
    key = ("property", "windows", "size", "multiplexed", "cases")
    kept = {tuple(r[k] for k in key): r for r in [*old["cells"], *rows]}
    RESULTS.mkdir(exist_ok=True)
    machine = {"cores": os.cpu_count(), "python": sys.version.split()[0], "machine": platform.machine()}
    cells = sorted(kept.values(), key=lambda r: [str(r[k]).rjust(6) for k in key])
    file.write_text(
        json.dumps({"machine": machine, "cells": cells, "formulas": formulas or old.get("formulas", [])}, indent=1)
    )
    return [r for r in cells if r["multiplexed"] and r["cases"] == CASES]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--windows", type=int, nargs="+", default=[28])
    parser.add_argument("--sizes", type=int, nargs="+", default=[350])
    parser.add_argument("--property", choices=sorted(PROPERTIES), action="append")
    parser.add_argument("--cases", type=int, default=CASES)
    given_arguments = parser.parse_args()
    formulas = [] if given_arguments.alone else progression()
    many = WINDOWS if given_arguments.table else given_arguments.windows
    spark = session(**{"spark.master": "local[2]"})
    for name in PROPERTIES:
        cell(spark, name, 4, 50, multiplex=True)  # warm
    rows = []
    for name in given_arguments.property or PROPERTIES:
        sizes = FIGURE[name] if given_arguments.table else given_arguments.sizes
        for n in many:
            for size in sizes:
                rows.append(
                    cell(spark, name, n, size, multiplex=not given_arguments.alone, cases=given_arguments.cases)
                )
                show(rows[-1])
            save(rows, formulas)  # a table that is broken off is half a table
    lines(save(rows, formulas))
    spark.stop()


if __name__ == "__main__":
    main()
