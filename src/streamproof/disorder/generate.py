"""Disordered streams with exactly the factor asked for, one for each experiment of a configuration."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from streamproof.disorder import exact_delay
from streamproof.disorder.array_store import ArrayStore, SubStore
from streamproof.disorder.config import Configuration, Experiment
from streamproof.disorder.external_sort import at_ranks, cut_at_ranks, sort_stream
from streamproof.disorder.figures import lateness_figures
from streamproof.disorder.ingestion import DelayChoice, Mode, move_piece, moves_of, repair_piece
from streamproof.disorder.loading import LoadedSource, load
from streamproof.disorder.must_stay import mark_must_stay
from streamproof.disorder.output import StreamOutput, join_tables, merge_tables, renamed_columns
from streamproof.disorder.records import Records, guard_piece, latest_kept_late, prefix_maxima, split_piece
from streamproof.disorder.runner import Runner, chosen_runner, workplace
from streamproof.disorder.units import TICKS, TimeUnit
from streamproof.disorder.writing import count_late, make_run, merge_raw
from streamproof.documents import check_name
from streamproof.errors import InputError
from streamproof.events.files.listing import files_at
from streamproof.events.files.rejects import exists
from streamproof.events.files.writer import replacing

SLICE_BYTES: Final = 32 << 20
MANIFEST_VERSION: Final = 1
Say = Callable[[str], None]


@dataclass(frozen=True)
class DataSet:
    """One data set that was made."""

    path: Path
    manifest_path: Path
    manifest: Mapping[str, Any] = field(repr=False)

    @property
    def exact(self) -> bool:
        """Whether the factor is the one that was asked for."""
        return bool(self.manifest["requested"]["events"] == self.manifest["achieved"]["events"])


def generate_disorder(
    configuration: Configuration, *, out: Path = Path(), overwrite: bool = False, on: str = "auto", spark: Any = None,
    partitions: int | None = None, work: Path | None = None, say: Say = lambda text: None,
) -> list[DataSet]:  # fmt: skip
    """Make every data set of a configuration. The same configuration gives the same bytes, wherever it runs."""
    targets = _targets(configuration, out)
    for target in targets:
        _refuse_existing(target, overwrite=overwrite)
    check_name(_rejects_path(configuration, out))
    if os.path.lexists(_rejects_path(configuration, out)) and not overwrite:
        raise exists(_rejects_path(configuration, out))
    runner = chosen_runner(configuration.source.file, spark=spark, on=on, partitions=partitions)
    with workplace(work, runner) as (place, store):
        say("reading")
        loaded = load(configuration.source, runner, place, store, arrival=configuration.source.arrival_index)
        loaded.write_rejects(_rejects_path(configuration, out), overwrite=overwrite)
        maker = _Maker(configuration, loaded, runner, place, out)
        return [maker.make(number, target, say) for number, target in enumerate(targets)]


def _targets(configuration: Configuration, out: Path) -> list[Path]:
    """Where each data set goes."""
    if not out.is_dir():
        raise InputError(f"there is no folder {out}", at="--out", fix="make it first, or choose another")
    found = []
    for number, experiment in enumerate(configuration.experiments, start=1):
        kind = output_format(configuration, experiment)
        path = experiment.path or Path(f"{_stem(configuration)}-{number}.{kind}")
        check_name(out / path)
        found.append(Path(os.path.realpath(out / path)))  # a whole path stays as it is
        if not path.is_absolute() and not found[-1].is_relative_to(os.path.realpath(out)):
            raise InputError(
                f"{path} leads out of {out}",
                at=f"experimentDataConfigurations[{number - 1}].output.path",
                fix="stay below --out, or give a whole path",
            )
    if len(set(found)) < len(found):
        raise InputError("two experiments write the same file", at="output.path", fix="give each its own")
    return found


def _stem(configuration: Configuration) -> str:
    file = configuration.source.file
    if glob.has_magic(str(file)) and not file.exists():
        return file.parent.name or "stream"
    return Path(file.name.removesuffix(".gz")).stem


def _rejects_path(configuration: Configuration, out: Path) -> Path:
    return out / f"{_stem(configuration)}.rejects.jsonl"


def output_format(configuration: Configuration, experiment: Experiment) -> str:
    """The format asked for, else the one of the output's ending, else the one of the source."""
    known = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}
    if experiment.format:
        return experiment.format
    if experiment.path and experiment.path.suffix in known:
        return known[experiment.path.suffix]
    source = configuration.source
    if source.format in ("csv", "jsonl", "parquet"):
        return source.format
    name = source.file.name.removesuffix(".gz")
    return "jsonl" if name.endswith(".ndjson") else known.get(Path(name).suffix, "csv")


def _refuse_existing(target: Path, *, overwrite: bool) -> None:
    if not target.name or target.is_dir():
        raise InputError(f"{target} is a folder", at="output.path", fix="give the path of a file")
    check_name(manifest_of(target))
    for path in (target, manifest_of(target)):
        if path.exists() and not overwrite:
            raise InputError(f"{path} exists", at=str(path), fix="choose another place, or say --overwrite")
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent}", at=str(target), fix="make it first")


def manifest_of(path: Path) -> Path:
    """Where the manifest of a data set lies."""
    return path.with_name(f"{path.stem}.manifest.json")


def half_up(value: Fraction) -> int:
    """The nearest whole number, halves up.

    >>> half_up(Fraction(5, 2)), half_up(Fraction(9, 4))
    (3, 2)
    """
    return int((value + Fraction(1, 2)) // 1)


def split_all(store: ArrayStore, runner: Runner, carries: Sequence[int]) -> Records:
    """The records of a stream, with everything they need to be chosen from."""
    splits = runner.each(split_piece, [(store, piece, carry) for piece, carry in enumerate(carries)])
    records = Records(store, splits, carries, latest_kept_late(splits))
    runner.each(guard_piece, [(records, piece) for piece in range(len(splits))])
    return records


class _Maker:
    """Makes the data sets of one source, one after the other."""

    def __init__(
        self, configuration: Configuration, loaded: LoadedSource, runner: Runner, work: Path, out: Path
    ) -> None:
        self.configuration, self.loaded, self.runner, self.work, self.out = configuration, loaded, runner, work, out
        self.unit: TimeUnit = loaded.layout.unit
        self._records: Records | None = None  # of the source in its order of arrival
        self._store, self._carries = self._arrived()
        self._hashes: dict[str, str] = {}  # of the source's files
        self._several = False

    def make(self, number: int, target: Path, say: Say) -> DataSet:
        experiment = self.configuration.experiments[number]
        at = f"experimentDataConfigurations[{number}]"
        experiment.delays(self.unit, at)
        say(f"experiment {number + 1}: choosing events")
        records = self._moved(experiment, number, at) if experiment.moves_arrivals else self._plain()
        choice, figures = choose(records, self.loaded.rows, experiment, self.unit, self.runner)
        say(f"experiment {number + 1}: writing {target.name}")
        sample = _sample(self.loaded)
        output = StreamOutput(
            layout=self.loaded.layout, format=output_format(self.configuration, experiment), work=self.work,
            renamed=renamed_columns(self.loaded.layout, sample),
        )  # fmt: skip
        with replacing(target, overwrite=True) as place:
            achieved = self._write(records, choice, output, place)
        drawn = [records.store.get(f"drawn/{piece}") for piece in range(len(records.splits))]
        manifest = self._manifest(number, experiment, figures, achieved, choice, output, drawn, target)
        with replacing(manifest_of(target), overwrite=True) as place:
            place.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        records.store.drop("run")
        records.store.drop("out")
        return DataSet(target, manifest_of(target), manifest)

    def _arrived(self) -> tuple[ArrayStore, list[int]]:
        """The source in the order of its arrival column, or as it stands."""
        store = self.loaded.store
        if self.loaded.layout.arrival is None:
            return store, self.loaded.carries()
        highest = sort_stream(store, self.runner, len(self.loaded.pieces), "arrival", "arrived")
        return SubStore(store, "arrived"), prefix_maxima(highest)

    def _plain(self) -> Records:
        if self._records is None:
            self._records = split_all(self._store, self.runner, self._carries)
        return self._records

    def _moved(self, experiment: Experiment, number: int, at: str) -> Records:
        """The stream with its outages and clocks, in the order in which they make it arrive."""
        store, runner = self._store, self.runner
        outages, skews = moves_of(experiment, self.unit, at)
        calls = [(store, p, carry, outages, skews, experiment.seed) for p, carry in enumerate(self._carries)]
        runner.each(move_piece, calls)
        highest = sort_stream(store, runner, len(calls), "g", f"moved-{number}")
        store.drop("g")
        carries = prefix_maxima(highest)
        return split_all(SubStore(store, f"moved-{number}"), runner, carries)

    def _write(self, records: Records, choice: DelayChoice, output: StreamOutput, place: Path) -> int:
        """Write the stream in its new order; returns how many events of it are out of order, counted in the output."""
        store, runner, pieces = records.store, self.runner, len(records.splits)
        made = runner.each(make_run, [(records, piece, choice, output, self.loaded.pieces) for piece in range(pieces)])
        rows, size = sum(count for count, _ in made), sum(count for _, count in made)
        runs = [store.get(f"run/key/{piece}") for piece in range(pieces)]
        slices = max(1, min(rows, max(pieces, -(-size // SLICE_BYTES))))
        cuts = cut_at_ranks(runs, [rows * n // slices for n in range(slices + 1)])
        stretches = list(pairwise(cuts.tolist()))
        if output.raw:
            places = _byte_places(store, cuts, output.header())
            with place.open("wb") as file:
                file.write(output.header())
                file.truncate(int(places[-1]))
            calls = [(store, n, place, int(places[n]), stretch) for n, stretch in enumerate(stretches)]
            highest = runner.each(merge_raw, calls)
        else:
            highest = runner.each(merge_tables, [(store, n, output, stretch) for n, stretch in enumerate(stretches)])
            join_tables(output, place, slices)
        carries = prefix_maxima(highest)
        return sum(runner.each(count_late, [(store, n, carry) for n, carry in enumerate(carries)]))

    def _manifest(  # noqa: PLR0917
        self, number: int, experiment: Experiment, figures: _Figures, achieved: int, choice: DelayChoice,
        output: StreamOutput, drawn: Sequence[Any], target: Path,
    ) -> dict[str, Any]:  # fmt: skip
        loaded, rows = self.loaded, self.loaded.rows
        return {
            "manifest": MANIFEST_VERSION,
            "versions": {
                "streamproof": version("streamproof"), "python": platform.python_version(), "numpy": np.__version__,
            },
            "config": self.configuration.document,
            "experiment": number,
            "seed": experiment.seed,
            "source": {
                "file": str(self.configuration.source.file), "sha256": self._hash_of_source(), "rows": rows,
                "rejected": loaded.rejected, "zone_assumed": loaded.naive, "time_unit": self.unit,
                "out_of_order": _share(self._plain().late, rows),
            },
            "before_delays": _share(figures.late, rows),  # with outages and wrong clocks, if there are any
            "requested": {"factor": float(experiment.factor), "events": figures.wanted},
            "achieved": _share(achieved, rows),
            "reachable_max": _share(figures.reachable, rows),
            "mode": choice.mode,
            "delays": _delays(experiment, choice, drawn, self.unit),
            "renamed_columns": output.renamed,
            "output": {
                "file": target.name, "format": output.format, "rows": rows, "bytes": target.stat().st_size,
                "sha256": sha256_of(target),
            },
        }  # fmt: skip

    def _hash_of_source(self) -> str | dict[str, str]:
        if not self._hashes:
            found = files_at(self.configuration.source.file)
            self._hashes = {found.name_of(file): sha256_of(file) for file in found.files}
            self._several = found.several
        return self._hashes if self._several else next(iter(self._hashes.values()))


def _share(count: int, rows: int) -> dict[str, float | int]:
    return {"factor": round(100 * count / rows, 6), "events": count}


@dataclass(frozen=True)
class _Figures:
    late: int
    wanted: int
    reachable: int


def choose(
    records: Records, rows: int, experiment: Experiment, unit: TimeUnit, runner: Runner
) -> tuple[DelayChoice, _Figures]:
    """Which events to delay or to put in order so that the target is hit."""
    low, high = experiment.delays(unit)
    wanted = half_up(rows * experiment.factor / 100)
    reachable = rows - mark_must_stay(records, high)
    plain = DelayChoice(
        mode="as it is", seed=experiment.seed, unit=unit, shortest=low, longest=high,
        distribution=experiment.distribution, per_key=bool(experiment.per_key),
    )  # fmt: skip
    figures = _Figures(records.late, wanted, reachable)
    if wanted == records.late:
        return plain, figures
    if wanted < records.late:
        if experiment.moves_arrivals:  # what an outage disorders is not to be repaired
            return replace(plain, mode="lowest reachable"), figures
        return _repaired(records, plain, records.late - wanted, runner), figures
    target = min(wanted, reachable) - records.late
    threshold, mode = _threshold(records, plain, target, runner)
    mode = "highest reachable" if wanted > reachable else mode
    surveys = runner.each(exact_delay.survey_piece, [(records, p, threshold) for p in range(len(records.splits))])
    return replace(plain, mode=mode, threshold=threshold, surveys=surveys), figures


def _repaired(records: Records, plain: DelayChoice, count: int, runner: Runner) -> DelayChoice:
    pieces = range(len(records.splits))
    runner.each(repair_piece, [(records.store, piece, plain.seed) for piece in pieces])
    runs = [records.store.get(f"repairs/{piece}") for piece in pieces]
    return replace(plain, mode="repair", repaired_up_to=int(at_ranks(runs, [count - 1])[0]))


def _threshold(records: Records, plain: DelayChoice, target: int, runner: Runner) -> tuple[int, Mode]:
    """The threshold, with as few that must stay as it takes: none if it goes without."""
    pieces = range(len(records.splits))
    modes: tuple[tuple[bool, Mode], ...] = ((False, "delay"), (True, "anchors"))
    for anchored, mode in modes:
        highest = runner.each(exact_delay.draw_piece, [(records, piece, plain.seed, anchored) for piece in pieces])
        runner.each(exact_delay.limit_piece, [(records, piece, plain.longest, highest) for piece in pieces])
        threshold = exact_delay.find_threshold(records.store, len(records.splits), target)
        if threshold is not None:
            return threshold, mode
    raise AssertionError("with all that must stay every target up to the highest is reached")


def _byte_places(store: ArrayStore, cuts: Any, header: bytes) -> Any:
    """Where each slice starts in the output."""
    total = np.full(len(cuts), len(header), np.int64)
    for piece in range(cuts.shape[1]):
        sizes = np.concatenate([[0], np.cumsum(store.get(f"run/used/{piece}"), dtype=np.int64)])
        total += sizes[cuts[:, piece]]
    return total


def _sample(loaded: LoadedSource) -> bytes:
    if loaded.layout.format != "jsonl":
        return b""
    with loaded.layout.files[0].open("rb") as file:
        return file.read(1 << 20)


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_QUANTILES: Final = {"p50": Fraction(1, 2), "p90": Fraction(9, 10), "p99": Fraction(99, 100)}


def _delays(experiment: Experiment, choice: DelayChoice, drawn: Sequence[Any], unit: TimeUnit) -> dict[str, Any]:
    """The delays asked for and the delays drawn, side by side, in ticks of the source."""
    per_ms = TICKS[unit] / 1000
    chances = (np.arange(4096) + 0.5) / 4096
    lowest = np.full(len(chances), choice.shortest)
    asked = np.sort(experiment.distribution.draw(chances, lowest, choice.longest, per_ms))
    return {
        "unit": unit,
        "distribution": experiment.distribution.as_dict(),
        "requested": {
            "min": choice.shortest, "max": choice.longest, "mean": round(float(asked.mean()), 3),
            **{name: int(asked[int(q * (len(asked) - 1))]) for name, q in _QUANTILES.items()},
        },
        "drawn": lateness_figures(drawn, _QUANTILES),
    }  # fmt: skip
