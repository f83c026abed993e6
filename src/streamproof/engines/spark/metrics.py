"""What a streaming run has done so far: events, corrections, live state, how far behind it is, and where time goes.

>>> metrics = StreamMetrics("quakes")
>>> metrics.add_batch({"events": 50, "outputs": 7, "corrections": 1}, cti=40, latest=55)
>>> metrics.as_dict()["lag"], metrics.as_dict()["events"]
(15, 50)
>>> print(metrics.prometheus().splitlines()[2])
streamproof_events_total{query="quakes"} 50
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from streamproof.events.time import BEGINNING, FOREVER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OBSERVED: Final = "streamproof"
_SELDOM: Final = 1.0  # seconds between questions to Spark
_SUMS: Final = {
    "events": "Events that came in",
    "outputs": "Signed rows that went out",
    "corrections": "Signed rows that took something back",
    "dropped": "Events that broke a rule and were dropped",
    "micros": "Microseconds in the kernels",
}
OF_OUTPUT: Final = ("outputs", "corrections")
"""Sums of the last stage alone; the others are of all stages."""
_LEVELS: Final = {
    "live": "Rows that the kernels hold",
    "state": "Bytes of state written by the last micro-batch",
    "cti": "The time up to which the output is complete",
    "lag": "The latest start that came in, minus the output's CTI, in ticks",
}
_BY_STAGE: Final = ("events", "outputs", "corrections", "micros", "live", "state")


class StreamMetrics:
    """Counters of one run; safe to read while it goes on."""

    def __init__(self, query: str = "streamproof") -> None:
        self.query = query
        self._lock = Lock()
        self._sums = dict.fromkeys(_SUMS, 0)
        self._levels = {"live": 0, "state": 0}
        self._stages: dict[int, dict[str, int]] = {}
        self._batches = 0
        self._cti, self._latest = BEGINNING, BEGINNING
        self._seconds: dict[str, float] = {}  # by Spark's names for the parts of a micro-batch
        self._asked = -_SELDOM  # when Spark was asked for it last
        self._timed = -1  # the last micro-batch whose time is in there
        self.follow: Callable[[], Iterable[Mapping[str, Any]]] = tuple  # what Spark knows of its last micro-batches

    def add_batch(
        self,
        counts: Mapping[str, Any],
        *,
        cti: int | None = None,
        latest: int | None = None,
        stages: Mapping[int, Mapping[str, int]] | None = None,
    ) -> None:
        """Count a micro-batch; ``stages`` are the same counts, stage by stage."""
        with self._lock:
            self._batches += 1
            for name in _SUMS:
                self._sums[name] += int(counts.get(name) or 0)
            for name in self._levels:
                self._levels[name] = int(counts.get(name) or 0)
            for number, found in (stages or {}).items():
                known = self._stages.setdefault(number, dict.fromkeys(_BY_STAGE, 0))
                for name in _BY_STAGE:
                    known[name] = found[name] + (known[name] if name in _SUMS else 0)
            self._cti = max(self._cti, BEGINNING if cti is None else cti)
            self._latest = max(self._latest, BEGINNING if latest is None else latest)

    def catch_up(self) -> None:
        """Add the milliseconds that Spark spent on micro-batches since the last time; it remembers a hundred."""
        self._asked, known = monotonic(), list(self.follow())
        with self._lock:
            for progress in known:
                if progress["batchId"] > self._timed:
                    self._timed = progress["batchId"]
                    for name, millis in progress["durationMs"].items():
                        self._seconds[name] = self._seconds.get(name, 0.0) + float(millis) / 1000

    def as_dict(self) -> dict[str, Any]:
        """Everything, as plain data; times before anything came are null."""
        if monotonic() > self._asked + _SELDOM:
            self.catch_up()
        with self._lock:
            known = self._latest > BEGINNING and self._cti > BEGINNING
            return {
                "query": self.query,
                "batches": self._batches,
                **self._sums,
                **self._levels,
                "cti": None if self._cti == BEGINNING else "inf" if self._cti == FOREVER else self._cti,
                "lag": max(0, self._latest - self._cti) if known else None,
                **({"stages": {n: dict(s) for n, s in self._stages.items()}} if len(self._stages) > 1 else {}),
                "seconds": {name: round(value, 3) for name, value in self._seconds.items()},
            }

    def to_json(self) -> str:
        return json.dumps(self.as_dict())

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.as_dict().items())

    def prometheus(self) -> str:
        """The text format that Prometheus reads."""
        found = self.as_dict()
        label = f'{{query="{_escaped(self.query)}"}}'
        lines: list[str] = []
        for name, text in _SUMS.items():
            lines += [f"# HELP streamproof_{name}_total {text}", f"# TYPE streamproof_{name}_total counter"]
            lines.append(f"streamproof_{name}_total{label} {found[name]}")
        for name, text in _LEVELS.items():
            value = {None: "NaN", "inf": "+Inf"}.get(found[name], found[name])
            lines += [f"# HELP streamproof_{name} {text}", f"# TYPE streamproof_{name} gauge"]
            lines.append(f"streamproof_{name}{label} {value}")
        lines += self._prometheus_stages(found.get("stages", {}))
        lines += ["# HELP streamproof_stage_seconds_total Seconds by part of a micro-batch"]
        lines += ["# TYPE streamproof_stage_seconds_total counter"]
        for name, value in found["seconds"].items():
            lines.append(f'streamproof_stage_seconds_total{{query="{_escaped(self.query)}",stage="{name}"}} {value}')
        return "\n".join(lines) + "\n"

    def _prometheus_stages(self, stages: Mapping[int, Mapping[str, int]]) -> list[str]:
        """Where a plan runs in several stages: what each of them did."""
        lines: list[str] = []
        for name in _BY_STAGE if stages else ():
            kind, ending, text = ("counter", "_total", _SUMS[name]) if name in _SUMS else ("gauge", "", _LEVELS[name])
            metric = f"streamproof_by_stage_{name}{ending}"
            lines += [f"# HELP {metric} {text}, stage by stage", f"# TYPE {metric} {kind}"]
            for number, found in stages.items():
                lines.append(f'{metric}{{query="{_escaped(self.query)}",stage="{number}"}} {found[name]}')
        return lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def observed(outputs: DataFrame, last: int = 0) -> DataFrame:
    """What buckets put out, with its sums observable by listeners; ``last`` is the query whose output it is."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    sums = [F.sum(name).alias(name) for name in (*_SUMS, "live", "state") if name not in OF_OUTPUT]
    own = F.col("query") == last
    sums += [F.sum(F.when(own, F.col(name)).otherwise(0)).alias(name) for name in OF_OUTPUT]
    cti = F.min(F.when(own, F.col("cti"))).alias("cti")
    return outputs.observe(OBSERVED, *sums, cti, F.max("latest").alias("latest"))
