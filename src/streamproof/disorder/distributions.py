"""How delays are distributed: the inverse of a distribution's function, between the shortest and the longest delay.

A delay has a lower bound of its own: it must last until something overtakes the event. So each is drawn from the
distribution *given* that it lies within its bounds.

>>> Distribution().draw(np.array([0.0, 0.5, 0.999]), np.array([0, 0, 90]), 100, 1.0).tolist()
[0, 50, 100]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, TypeAlias

import numpy as np

from streamproof import documents
from streamproof.disorder.hashing import Floats
from streamproof.errors import InputError, StreamproofError, did_you_mean
from streamproof.events.order import Ints
from streamproof.extensions import named_object

Curve: TypeAlias = Callable[[Floats], Floats]
PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "uniform": (),
    "constant": ("value",),
    "normal": ("mean", "deviation"),
    "exponential": ("mean",),
    "lognormal": ("median", "sigma"),
    "pareto": ("scale", "alpha"),
    "empirical": ("file",),
}
_STANDARD: Final = NormalDist()
_phi: Final[Any] = np.vectorize(_STANDARD.cdf, otypes=[np.float64])
_probit: Final[Any] = np.vectorize(_STANDARD.inv_cdf, otypes=[np.float64])
_LEAST: Final = 2.0**-53


@dataclass(frozen=True)
class Distribution:
    """A distribution by name; lengths are in milliseconds. ``module:function`` names one of your own."""

    name: str = "uniform"
    parameters: Mapping[str, float] = field(default_factory=dict)
    bins: tuple[tuple[float, float, float], ...] = ()  # of a histogram: from, to, how many

    def draw(self, chances: Floats, lowest: Ints, highest: int, ticks_per_ms: float) -> Ints:
        """A delay in ticks for each chance, between its own lower bound and ``highest``, both included."""
        if self.name == "uniform":
            return lowest + np.floor(chances * (highest - lowest + 1).astype(np.float64)).astype(np.int64)
        if ":" in self.name:
            own = named_object(self.name, what="distribution", named=None)  # admitted when the name was read
            return _bounded(np.asarray(own(chances, lowest, highest), np.float64), lowest, highest)
        if self.name == "constant":
            return _bounded(np.full(len(chances), self.parameters["value"] * ticks_per_ms), lowest, highest)
        below, inverse = self._curves(ticks_per_ms)
        low, high = below(lowest.astype(np.float64)), below(np.array([float(highest)]))
        inside = np.clip(low + chances * (high - low), _LEAST, 1 - _LEAST)
        return _bounded(inverse(inside), lowest, highest)

    def _curves(self, scale: float) -> tuple[Curve, Curve]:
        """The distribution's function and its inverse, in ticks."""
        p = self.parameters
        match self.name:
            case "normal":
                mean, deviation = p["mean"] * scale, p["deviation"] * scale
                return lambda x: _phi((x - mean) / deviation), lambda q: mean + deviation * _probit(q)
            case "exponential":
                mean = p["mean"] * scale
                return lambda x: -np.expm1(-x / mean), lambda q: -mean * np.log1p(-q)
            case "lognormal":
                middle, sigma = math.log(p["median"] * scale), p["sigma"]
                return (
                    lambda x: _phi((np.log(np.maximum(x, 1e-12)) - middle) / sigma),
                    lambda q: np.exp(middle + sigma * _probit(q)),
                )
            case "pareto":
                least, alpha = p["scale"] * scale, p["alpha"]
                return (
                    lambda x: 1 - (least / np.maximum(x, least)) ** alpha,
                    lambda q: least * (1 - q) ** (-1 / alpha),
                )
        edges, heights = self._cumulated(scale)
        return lambda x: np.interp(x, edges, heights), lambda q: np.interp(q, heights, edges)

    def _cumulated(self, scale: float) -> tuple[Floats, Floats]:
        """The histogram as a rising line through (delay, share of delays below it)."""
        edges, heights, total = [self.bins[0][0]], [0.0], 0.0
        for start, end, count in self.bins:
            if start > edges[-1]:  # a gap between bins
                edges.append(start)
                heights.append(total)
            total += count
            edges.append(end)
            heights.append(total)
        return np.array(edges) * scale, np.array(heights) / total

    def as_dict(self) -> dict[str, Any]:
        bins = {"bins": len(self.bins)} if self.bins else {}
        return {"name": self.name, **self.parameters, **bins}


def _bounded(delays: Floats, lowest: Ints, highest: int) -> Ints:
    whole = np.clip(np.nan_to_num(np.rint(delays)), 0, 2.0**62).astype(np.int64)
    return np.asarray(np.clip(whole, lowest, highest))


def read_distribution(value: object, at: str, folder: Path, modules: Collection[str] = ()) -> Distribution:
    """A distribution from a configuration: a name, or a name with its parameters.

    ``module:function`` is code: its module must be one of ``modules``, or one that an installed package offers.

    >>> read_distribution({"name": "exponential", "mean": 500}, "here", Path()).parameters
    {'mean': 500.0}
    """
    if value is None:
        return Distribution()
    document = {"name": value} if isinstance(value, str) else value
    if not isinstance(document, Mapping) or not isinstance(document.get("name"), str):
        raise InputError(
            "a distribution needs a name", at=at, fix=f"one of {', '.join(PARAMETERS)}, or module:function"
        )
    name = document["name"]
    if ":" in name:
        try:
            named_object(name, what="distribution", named=modules)
        except StreamproofError as error:
            raise error.located(at) from None
        return Distribution(name)
    if name not in PARAMETERS:
        raise InputError(f'there is no distribution "{name}"', at=at, fix=did_you_mean(name, PARAMETERS))
    for key in document:
        if key not in ("name", *PARAMETERS[name]):
            fix = did_you_mean(key, PARAMETERS[name]) if PARAMETERS[name] else f"{name} takes none"
            raise InputError(f'{name} has no parameter "{key}"', at=at, fix=fix)
    if name == "empirical":
        return Distribution(name, bins=_bins(document.get("file"), at, folder))
    return Distribution(name, {key: _positive(document, key, name, at) for key in PARAMETERS[name]})


def _positive(document: Mapping[str, Any], key: str, name: str, at: str) -> float:
    value = document.get(key)
    least = 0 if key in ("value", "mean") and name in ("constant", "normal") else _LEAST
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        raise InputError(f'{name} needs "{key}", a positive number, got {value!r}', at=at, fix=f'write "{key}": 500')
    return float(value)


def _bins(file: object, at: str, folder: Path) -> tuple[tuple[float, float, float], ...]:
    """A histogram from a file: lines ``from,to,count`` in ms, a JSON list of such, or the report of an analysis."""
    fix = "give a file of lines from,to,count in milliseconds, or what streamproof analyze --json printed"
    if not isinstance(file, str):
        raise InputError('empirical needs "file"', at=at, fix=fix)
    try:
        text = documents.read_text(folder / file, most=documents.MAX_BYTES)
        rows = _histogram(documents.parse(text)) if text.lstrip()[:1] in ("[", "{") else _lines(text)
        bins = tuple(sorted((float(a), float(b), float(n)) for a, b, n in rows))
    except (OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise InputError(f"{file} is not a histogram: {error}", at=at, fix=fix) from None
    overlapping = any(a[1] > b[0] for a, b in pairwise(bins))
    refused = any(not 0 <= a <= b < math.inf or not n >= 0 for a, b, n in bins)  # what is no number is refused too
    if not bins or overlapping or refused or not 0 < sum(n for *_, n in bins) < math.inf:
        raise InputError(f"the bins of {file} are empty, negative, not finite or overlap", at=at, fix=fix)
    return bins


def _lines(text: str) -> list[list[str]]:
    rows = [line.split(",") for line in text.splitlines() if line.strip()]
    return rows[1:] if rows and not rows[0][0].strip().lstrip("-")[:1].isdigit() else rows


def _histogram(document: Any) -> Any:
    if isinstance(document, list):
        return document
    part = document.get("delay") or document["lateness"]
    per_ms = {"ps": 10**9, "ns": 10**6, "us": 1000, "ms": 1, "s": 1 / 1000}[document["unit"]]
    return [(start / per_ms, end / per_ms, count) for start, end, count in part["histogram"]]
