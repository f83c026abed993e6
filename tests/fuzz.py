"""Fuzz: random plans over random streams, engines against the evaluator.

    python -m tests.fuzz --seed 1 --count 2000 --engine duckdb --engine postgres --jobs 2
    python -m tests.fuzz --replay tests/data/found/duckdb-1234.json

Case number n of seed s is the same for ever. A difference is shrunk, printed and saved; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from streamproof.engines.base import Engine
from streamproof.events.event import write_event
from streamproof.language import json as plan_json
from streamproof.plan import nodes
from streamproof.workbench.coverage import expressions_of, functions_of
from streamproof.workbench.shrink import shrink
from tests.reference.compare import show
from tests.reference.found import FOLDER, from_json, to_json
from tests.reference.judge import Outcome, Verdict, judge
from tests.reference.random_cases import Case, seeded_case
from tests.reference.servers import open_engine

STRIDE = 10_000_000  # seeds are that far apart
PROGRESS_SECONDS = 10
SHOWN_ROWS = 30
ENGINES = (
    "duckdb (default)",
    "postgres",
    "local",
    "spark",
    "spark-chain: stages of Spark cut wherever the key changes",
)


@dataclass(slots=True)
class Tally:
    """What a run has seen."""

    cases: int = 0
    skipped: int = 0  # too large to judge
    errors: Counter[str] = field(default_factory=Counter)  # both sides raise the same
    coverage: Counter[str] = field(default_factory=Counter)
    differences: Counter[str] = field(default_factory=Counter)  # by sort
    rows: int = 0
    files: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.skipped += other.skipped
        self.rows += other.rows
        self.errors += other.errors
        self.coverage += other.coverage
        self.differences += other.differences
        self.files += other.files


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is told."""

    engine: str
    seed: int
    dsn: str | None
    mode: Any
    most_differences: int
    save: bool
    depth: int
    quiet: bool = False


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzz, or replay one file."""
    given = _parser().parse_args(arguments)
    engines = given.engine or ["duckdb"]
    if given.replay:
        return max(replay(Path(given.replay), name, given.dsn, given.mode) for name in engines)
    found = [_fuzz(name, given) for name in engines]
    return 1 if any(tally.differences for tally in found) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--engine", action="append", help=f"{', '.join(ENGINES)}; may be repeated")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--depth", type=int, default=5, help="how deep plans may be")
    parser.add_argument("--mode", choices=("plain", "rewritten"), default="plain", help="judge the optimised plan")
    parser.add_argument("--dsn", help="a PostgreSQL server; one is started if none is given")
    parser.add_argument("--most", type=int, default=5, help="stop after that many differences")
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--replay", help="judge one saved case")
    return parser


def _fuzz(name: str, given: argparse.Namespace) -> Tally:
    options = Options(name, given.seed, given.dsn, given.mode, given.most, not given.no_save, given.depth)
    began = time.monotonic()
    share = -(-given.count // given.jobs)
    parts = [(given.start + n * share, min(share, given.count - n * share)) for n in range(given.jobs)]
    tally = Tally()
    if given.jobs == 1:
        tally = run_part(parts[0], options)
    else:
        with ProcessPoolExecutor(given.jobs) as pool:
            for part in pool.map(partial(run_part, options=options), parts):
                tally.add(part)
    _report(tally, options, time.monotonic() - began)
    return tally


def run_part(part: tuple[int, int], options: Options) -> Tally:
    """Judge a range of cases."""
    start, count = part
    tally = Tally()
    with open_engine(options.engine, options.dsn) as engine, _progress(options, count) as tick:
        for number in range(start, start + count):
            _one(number, engine, options, tally)
            tick(tally)
            if sum(tally.differences.values()) >= options.most_differences:
                break
    return tally


def _one(number: int, engine: Engine, options: Options, tally: Tally) -> None:
    case = seeded_case(options.seed * STRIDE + number, deepest=options.depth)
    verdict = judge(case, engine, mode=options.mode)
    tally.cases += 1
    tally.coverage += coverage(case)
    if verdict.agrees is None:
        tally.skipped += 1
    elif verdict.agrees:
        if isinstance(verdict.expected, str):
            tally.errors[verdict.expected] += 1
        else:
            tally.rows += len(verdict.expected)
    else:
        tally.differences[verdict.kind] += 1
        _difference(number, (case, verdict), engine, options, tally)


def _difference(number: int, found: tuple[Case, Verdict], engine: Engine, options: Options, tally: Tally) -> None:
    case, verdict = found
    kind = verdict.kind

    def differs(smaller: Case) -> bool:
        again = judge(smaller, engine, mode=options.mode)
        return again.agrees is False and again.kind == kind

    small = shrink(case, differs)
    verdict = judge(small, engine, mode=options.mode)
    where = f"case {number} of seed {options.seed} on {options.engine}"
    print(f"\n=== difference in {where}: {verdict.kind}")
    print(describe(small, verdict))
    command = f"python -m tests.fuzz --engine {options.engine} --mode {options.mode}"
    print(f"again: {command} --seed {options.seed} --start {number} --count 1 --depth {options.depth}")
    if options.save:
        FOLDER.mkdir(parents=True, exist_ok=True)
        path = FOLDER / f"{options.engine}-{options.seed}-{number}.json"
        document = {**to_json(small), "found": f"{options.engine}: {verdict.kind}"}
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
        tally.files.append(str(path))
        print(f"saved: {path}", flush=True)


def describe(case: Case, verdict: Verdict) -> str:
    """A case for people: plan, streams, and what each side says."""
    lines = [plan_json.dumps(case.plan)]
    if case.horizon is not None:
        lines.append(f"horizon: {case.horizon}")
    for name, stream in case.streams.items():
        columns = {column: str(kind) for column, kind in stream.schema}
        lines.append(f"{name} {columns} unit {stream.schema.unit}")
        lines += [json.dumps(write_event(event), ensure_ascii=False) for event in stream.events]
    lines += [verdict.text, "expected:", *_shown(verdict.expected), "actual:", *_shown(verdict.actual)]
    return "\n".join(lines)


def _shown(outcome: Outcome) -> list[str]:
    if isinstance(outcome, str):
        return [f"  {outcome}"]
    return [f"  {show(row)}" for row in sorted(outcome, key=lambda row: row[:2])[:SHOWN_ROWS]]


def replay(path: Path, name: str, dsn: str | None, mode: Any) -> int:
    """Judge one saved case again."""
    case = from_json(json.loads(path.read_text()))
    with open_engine(name, dsn) as engine:
        verdict = judge(case, engine, mode=mode)
    print(describe(case, verdict) if not verdict.agrees else f"{name} agrees on {path.name}")
    return 0 if verdict.agrees else 1


# --- coverage and progress --------------------------------------------------------------------------------------------


def coverage(case: Case) -> Counter[str]:
    """What a case exercises: operators with their windows, aggregates, functions."""
    seen: Counter[str] = Counter()
    for node in nodes.walk(case.plan):
        window = getattr(node, "window", None)
        seen[node.op + (f" × {window.kind}" if window else "")] += 1
        seen.update(f"aggregate {agg.fn}" for _, agg in getattr(node, "aggs", ()))
        seen.update(w.replace("|", " ") for expr in expressions_of(node) for w in functions_of(expr))
    return seen


@contextmanager
def _progress(options: Options, count: int) -> Iterator[Any]:
    began = last = time.monotonic()

    def tick(tally: Tally) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_SECONDS:
            last = now
            speed = tally.cases / (now - began)
            done = f"{tally.cases}/{count} cases, {speed:.0f}/s, {sum(tally.differences.values())} differences"
            print(f"{options.engine}: {done}", file=sys.stderr, flush=True)

    yield tick


def _report(tally: Tally, options: Options, seconds: float) -> None:
    print(f"\n{options.engine}, seed {options.seed}: {tally.cases} cases in {seconds:.0f} s", end="")
    print(f" ({tally.cases / max(seconds, 0.001):.0f}/s), {tally.rows} rows, {tally.skipped} too large")
    print(f"errors on both sides: {dict(tally.errors)}")
    print(f"differences: {dict(tally.differences) or 'none'}")
    for words in ("", "aggregate ", "function "):
        chosen = {k: n for k, n in sorted(tally.coverage.items()) if _section(k) == words}
        print(
            f"coverage of {words or 'operators'}: "
            + ", ".join(f"{k.removeprefix(words)} {n}" for k, n in chosen.items())
        )


def _section(word: str) -> str:
    return next((section for section in ("aggregate ", "function ") if word.startswith(section)), "")


if __name__ == "__main__":
    sys.exit(main())
