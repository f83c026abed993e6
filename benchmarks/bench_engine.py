"""The local engine beside named peers: the same queries over the same rows, each contestant in its own process.

python benchmarks/bench_engine.py [--events 1000000] [--batch 100000] [--query Q2 --query Q4] [--disorder]
    us and DuckDB in batch, which needs no increments and is the limit
python benchmarks/bench_engine.py --peers [...]          all contestants; --peer flink names one, again and again
python benchmarks/bench_engine.py --full                 everything: in order, out of order, and ten times as much

Every figure is CPU seconds of the contestant's whole process tree, from the file to the last output row; the output is
counted and thrown away. A small run before it is not in the figure: it starts and warms up compilers, and its result is
compared. The local engine also gives corrections and CTIs, which a batch run does not need. The ratio is DuckDB's time
divided by ours: above 1 we are faster. See docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engine.data import Shape
from engine.field import FIELD
from engine.match import Round
from engine.queries import chosen
from engine.report import line, round_as_data, save, tables, targets
from rich.console import Console

LIMIT = ["local", "duckdb"]
LONG = ["local", "duckdb", "flink", "spark"]


@dataclass(frozen=True)
class Setting:
    """One round."""

    shape: Shape
    batch: int
    queries: list[str]
    contestants: list[str]

    @property
    def name(self) -> str:
        return f"engine-{self.shape.events}{'-disorder' if self.shape.disorder else ''}"


def settings(options: argparse.Namespace) -> list[Setting]:
    """The rounds that were asked for."""
    if options.full:
        short = [Setting(Shape(options.events, disorder), options.batch, [], list(FIELD)) for disorder in (False, True)]
        return [*short, Setting(Shape(10 * options.events), options.batch, ["Q2", "Q3", "Q6"], LONG)]
    names = list(FIELD) if options.peers else [*LIMIT, *options.peer]
    return [Setting(Shape(options.events, options.disorder), options.batch, options.query, list(dict.fromkeys(names)))]


def play(setting: Setting, console: Console) -> dict[str, object]:
    """A round, said line by line as it goes."""
    played = []
    with tempfile.TemporaryDirectory() as folder:
        entries = [FIELD[name] for name in setting.contestants]
        round_ = Round(Path(folder), setting.shape, setting.batch, entries)
        for query, scores in round_.play(chosen(setting.queries)):
            played.append((query, scores))
            print(json.dumps(line(query, scores, setting.shape, setting.batch)), flush=True)
    if setting.contestants != LIMIT:
        tables(played, setting.shape, console)
        for said in targets(played, setting.shape):
            console.print(said)
    return round_as_data(played, setting.shape, setting.batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=100_000)
    parser.add_argument("--query", action="append", default=[])
    parser.add_argument("--disorder", action="store_true")
    parser.add_argument("--peers", action="store_true", help="all contestants")
    parser.add_argument("--peer", action="append", default=[], choices=list(FIELD))
    parser.add_argument("--full", action="store_true", help="all rounds with all contestants")
    options = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 160)
    for setting in settings(options):
        found = play(setting, console)
        if not setting.queries or options.full:  # a part of a round is a look, not a result
            versions = {FIELD[name].title: FIELD[name].version() for name in setting.contestants}
            save(setting.name, {"versions": versions, **found})


if __name__ == "__main__":
    main()
