"""How disordered a stream is: figures, the delay to choose, and advice in plain words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from streamproof.arguments import door
from streamproof.disorder import measuring
from streamproof.disorder.array_store import ArrayStore, SubStore
from streamproof.disorder.config import SourceConfig
from streamproof.disorder.external_sort import sort_stream
from streamproof.disorder.figures import (
    delay_for_loss,
    drop_curve,
    fine_curve,
    frequency_of,
    histogram_of,
    lateness_figures,
    order_measures,
    rows_held,
)
from streamproof.disorder.loading import LoadedSource, key_of_row, load, place_of_row
from streamproof.disorder.measuring import Holder, MeasuredPiece, holders_across_pieces, measure_piece, runs_of
from streamproof.disorder.records import LOWEST, prefix_maxima
from streamproof.disorder.runner import Runner, chosen_runner, workplace
from streamproof.disorder.text import advice_for
from streamproof.disorder.units import TICKS, TimeUnit, moment_text
from streamproof.disorder.watermark import simulate
from streamproof.errors import InputError

Simulation: TypeAlias = "tuple[int | None, int | str | None, int | str | None]"
"""Rows of a micro-batch, the watermark's delay and the length of windows, in ticks or as text."""
BLAMED: Final = 10
SUSPECT: Final = (0.01, 0.10)  # a clock is looked at that makes so many of all, and of the late events, late


@dataclass(frozen=True)
class Analysis:
    """The figures of a stream; ``as_dict`` is what ``--json`` prints. In a notebook it shows itself."""

    figures: Mapping[str, Any] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        return dict(self.figures)

    def to_json(self) -> str:
        return json.dumps(self.figures, ensure_ascii=False)

    def __getitem__(self, name: str) -> Any:
        return self.figures[name]

    def __str__(self) -> str:
        from streamproof.disorder.text import text_of  # noqa: PLC0415  # which shows what is made here

        return text_of(self.figures)

    def _repr_html_(self) -> str:
        from streamproof.disorder.page import body_of  # noqa: PLC0415

        return body_of(self.figures)

    def to_html(self) -> str:
        """A page of its own, with everything in it."""
        from streamproof.disorder.page import page_of  # noqa: PLC0415

        return page_of(self.figures)


@door
def analyze_file(
    path: Path, event_time: int | str, *, arrival: int | str | None = None, unit: TimeUnit | None = None,
    key: int | str | None = None, separator: str = ",", header: bool | None = None, format: str | None = None,  # noqa: A002
    zone: str | None = None, more: bool = False, duplicates: bool = True, batch_rows: int | None = None,
    delay: int | str | None = None, window: int | str | None = None, on: str = "auto", spark: Any = None,
    partitions: int | None = None, work: Path | None = None, rejects: Path | None = None,
) -> Analysis:  # fmt: skip
    """Measure a file or a folder of files, in the order of their rows or of ``arrival``."""
    source = SourceConfig(
        file=path,
        separator=separator,
        time_index=event_time,
        unit=unit,
        header=header,
        format=format,
        zone=zone,
        key=key,
    )
    runner = chosen_runner(path, spark=spark, on=on, partitions=partitions)
    with workplace(work, runner) as (place, store):
        loaded = load(source, runner, place, store, arrival=arrival, hashes=duplicates)
        if rejects is not None:
            loaded.write_rejects(rejects)
        stream = _stream(loaded, runner)
        return analyze_stream(
            stream, runner, more=more, duplicates=duplicates, simulation=(batch_rows, delay, window),
        )  # fmt: skip


@dataclass(frozen=True)
class AnalyzedStream:
    """What the measurements work on: pieces of times in arrival order, and how they came to be."""

    store: ArrayStore
    rows: Sequence[int]  # of each piece
    highest: Sequence[int]
    unit: TimeUnit
    source: str
    event_time: str
    rejected: int = 0
    nulls: int = 0
    naive: int = 0
    keyed: bool = False
    loaded: LoadedSource | None = None

    @property
    def carries(self) -> list[int]:
        return prefix_maxima(self.highest)

    @property
    def total(self) -> int:
        return sum(self.rows)

    @property
    def places(self) -> list[tuple[int, int]]:
        starts = np.concatenate([[0], np.cumsum(self.rows)[:-1]]).tolist()
        return [(start, self.total) for start in starts]


def _stream(loaded: LoadedSource, runner: Runner) -> AnalyzedStream:
    layout = loaded.layout
    store: ArrayStore = loaded.store
    rows, highest = [scan.rows for scan in loaded.scans], [scan.highest for scan in loaded.scans]
    if layout.arrival is not None:
        highest = sort_stream(store, runner, len(rows), "arrival", "sorted")
        store = SubStore(store, "sorted")
        rows = [len(store.get(f"t/{piece}")) for piece in range(len(highest))]
    return AnalyzedStream(
        store, rows, highest, layout.unit, str(layout.named), layout.names[layout.time], rejected=loaded.rejected,
        nulls=loaded.nulls, naive=loaded.naive, keyed=layout.key is not None, loaded=loaded,
    )  # fmt: skip


def analyze_stream(
    stream: AnalyzedStream, runner: Runner, *, more: bool = False, duplicates: bool = True,
    simulation: Simulation = (None, None, None),
) -> Analysis:  # fmt: skip
    """All figures of a stream."""
    found = _measured(stream, runner)
    late = sum(piece.late for piece in found)
    lateness = _runs(stream, "lateness", len(found))
    times = _runs(stream, "times", len(found))
    total = stream.total
    holders = holders_across_pieces(found)
    figures: dict[str, Any] = {
        "source": stream.source,
        "event_time": stream.event_time,
        "unit": stream.unit,
        "events": total,
        "out_of_order": late,
        "factor": 100 * late / total,
        "lateness": _spread(lateness),
        "drop_curve": drop_curve(lateness, total, stream.unit),
        "delay_for_loss": delay_for_loss(lateness, total),
        "frequency": frequency_of(times, total, stream.unit),
        "runs": runs_of(found),
        "blame": [_blamed(holder, total, stream) for holder in holders[:BLAMED]],
        "over_time": _over_time(found, stream),
        "nulls": stream.nulls,
        "negatives": sum(piece.negatives for piece in found),
        "duplicates": _duplicates(stream, runner) if duplicates else None,
        "rejected": stream.rejected,
        "zone_assumed": stream.naive,
    }
    if stream.store.has("arrival/0"):
        figures["delay"] = _spread(_runs(stream, "delays", len(found)))
    figures["rows_held"] = rows_held(times, figures["delay_for_loss"])
    figures["without_culprits"] = _without(stream, runner, holders, late)
    if more:
        figures["order"] = order_measures(_runs(stream, "t", len(found)))
    figures |= _on_request(stream, runner, simulation, figures["delay_for_loss"]["0.1%"])
    figures["advice"] = advice_for(figures)
    return Analysis(figures)


def _on_request(stream: AnalyzedStream, runner: Runner, simulation: Simulation, usual: int) -> dict[str, Any]:
    """Figures by key, and what Spark would drop at a delay, by default the usual one."""
    figures: dict[str, Any] = {"keys": _keys(stream, runner)} if stream.keyed else {}
    batch, wait, length = simulation
    if batch is None and (wait is not None or length is not None):
        raise InputError("delay and window are of micro-batches", at="batch_rows", fix="say how many rows one takes")
    if batch is not None:
        delay, window = delay_ticks(wait, stream.unit, "--delay"), delay_ticks(length, stream.unit, "--window")
        wanted = usual if delay is None else delay
        figures["spark"] = simulate(stream.store, runner, stream.rows, batch, wanted, window, stream.unit)
    return figures


def _spread(runs: Sequence[Any]) -> dict[str, Any]:
    count = sum(len(run) for run in runs)
    return {**lateness_figures(runs), "histogram": histogram_of(runs), "curve": fine_curve(runs, max(1, count))}


def _measured(
    stream: AnalyzedStream, runner: Runner, without: Sequence[int] = (), keep: str = ""
) -> list[MeasuredPiece]:
    carries = stream.carries
    if without:  # the maxima without the culprits have to be found first
        highs = runner.each(_highest, [(stream.store, piece, tuple(without)) for piece in range(len(stream.rows))])
        carries = prefix_maxima(highs)
    calls = [
        (stream.store, piece, carry, place, tuple(without), keep)
        for piece, (carry, place) in enumerate(zip(carries, stream.places, strict=True))
    ]
    return runner.each(measure_piece, calls)


def _highest(store: ArrayStore, piece: int, without: Sequence[int]) -> int:
    wanted = ~np.isin(np.asarray(store.get(f"id/{piece}")), np.array(without))
    times = np.asarray(store.get(f"t/{piece}"))[wanted]
    return int(times.max()) if len(times) else LOWEST


def _runs(stream: AnalyzedStream, name: str, pieces: int) -> list[Any]:
    return [stream.store.get(f"{name}/{piece}") for piece in range(pieces)]


def _blamed(holder: Holder, total: int, stream: AnalyzedStream) -> dict[str, Any]:
    return {
        "event_time": holder.time,
        "moment": moment_text(holder.time, stream.unit),
        "made_late": holder.made_late,
        "percent": 100 * holder.made_late / total,
        "ahead": holder.ahead,
        "row": place_of_row(stream.loaded, holder.id),
    }


def _over_time(found: Sequence[MeasuredPiece], stream: AnalyzedStream) -> list[list[float]]:
    """Share of late events along the stream, in pieces of equal numbers of events: [from event, events, late]."""
    bins = np.sum([piece.bins for piece in found], axis=0)
    total = stream.total
    starts = [-(-n * total // measuring.BINS) for n in range(measuring.BINS)]
    return [[s, int(e), int(x)] for s, e, x in zip(starts, *bins.tolist(), strict=True) if e]


def _duplicates(stream: AnalyzedStream, runner: Runner) -> int | None:
    pieces = len(stream.rows)
    if not stream.store.has("row/0"):
        return None
    runner.each(measuring.sort_hashes, [(stream.store, piece) for piece in range(pieces)])
    calls = [(stream.store, pieces, part, pieces) for part in range(pieces)]
    return stream.total - sum(runner.each(measuring.distinct_between, calls))


def _without(stream: AnalyzedStream, runner: Runner, holders: Sequence[Holder], late: int) -> dict[str, Any] | None:
    """The figures without the few clocks that made most events late, if leaving them out helps."""
    of_all, of_late = SUSPECT
    bad = [h for h in holders[:BLAMED] if h.made_late >= of_all * stream.total and h.made_late >= of_late * late]
    if not bad:
        return None
    found = _measured(stream, runner, [holder.id for holder in bad], "clean/")
    runs = [stream.store.get(f"clean/lateness/{piece}") for piece in range(len(found))]
    count, still = sum(piece.rows for piece in found), sum(piece.late for piece in found)
    if still > 0.7 * late:  # others take their place: the disorder is no clock's fault
        return None
    return {
        "left_out": [_blamed(holder, stream.total, stream) for holder in bad],
        "out_of_order": still,
        "factor": 100 * still / count,
        "delay_for_loss": delay_for_loss(runs, count),
    }


def _keys(stream: AnalyzedStream, runner: Runner) -> dict[str, Any]:
    tables = runner.each(
        measuring.keys_of_piece, [(stream.store, piece, carry) for piece, carry in enumerate(stream.carries)]
    )
    table = measuring.merged_keys(tables)
    top = np.lexsort((table.keys, -table.events, -table.late))[:BLAMED]
    texts = _key_texts(stream, [(int(table.row[n]), int(table.length[n])) for n in top])
    rows = [
        {
            "key": text, "events": int(table.events[n]), "out_of_order": int(table.late[n]),
            "factor": 100 * int(table.late[n]) / int(table.events[n]), "max_lateness": int(table.longest[n]),
        }
        for n, text in zip(top.tolist(), texts, strict=True)
    ]  # fmt: skip
    return {"count": len(table.keys), "most_late": rows}


def _key_texts(stream: AnalyzedStream, rows: Sequence[tuple[int, int]]) -> list[str]:
    """The keys of a few rows, read again."""
    if stream.loaded is None:
        return [f"key of row {row}" for row, _ in rows]
    return [key_of_row(stream.loaded, row, length) for row, length in rows]


def delay_ticks(text: str | int | None, unit: TimeUnit, at: str) -> int | None:
    """A length of time given by a user, in ticks."""
    from streamproof.errors import StreamproofError  # noqa: PLC0415
    from streamproof.events.time import duration  # noqa: PLC0415

    if text is None or isinstance(text, int):
        return text
    try:
        return duration(text, "ns" if unit == "ps" else unit) * (1000 if unit == "ps" else 1)
    except StreamproofError as error:
        raise InputError(
            error.what, at=at, fix=error.fix or f"1 tick is 1 {unit}, {TICKS[unit]} make a second"
        ) from None
