"""The configuration of experiments: one source, and one data set for each entry.

    {"dataSource": {"file": "trips.csv", "seperator": ",", "time": {"timeIndex": 1, "sourceTimeUnit": "ms"}},
     "experimentDataConfigurations": [
       {"targetOutOfOrderFactor": 20, "minDelay": 0, "maxDelay": 2000, "delaySeed": 7}]}

An unknown key or a wrong value is an error that names the key and what is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from streamproof import documents
from streamproof.disorder.distributions import Distribution, read_distribution
from streamproof.disorder.units import TICKS, TimeUnit, read_unit, ticks_within
from streamproof.errors import InputError, did_you_mean
from streamproof.events.files.listing import read_separator

FORMATS: Final = ("csv", "jsonl", "parquet")
LAST_SEED: Final = 2**63 - 1
LONGEST_DELAY: Final = 2**60  # ticks: times reach to 2^61, and their sums must fit


@dataclass(frozen=True, kw_only=True)
class SourceConfig:
    """Where the events come from, and which field is their time."""

    file: Path
    separator: str = ","
    time_index: int | str = 0
    arrival_index: int | str | None = None  # rows arrive in the order of this column; None: as they stand
    unit: TimeUnit | None = None  # of numbers; of instants the unit they are counted in
    header: bool | None = None  # None: a first line whose time is no time, above one whose time is one
    format: str | None = None  # None: by the ending
    zone: str | None = None  # of instants that say none; None: UTC, and the remark says so
    quote: bool = True
    multiline: bool | None = None  # None: whichever reading rejects fewer rows
    key: int | str | None = None


@dataclass(frozen=True, kw_only=True)
class Outage:
    """A network that is down: what is sent in the interval arrives at its end."""

    start: int | str
    end: int | str
    keys: tuple[str, ...] = ()  # empty: everything


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One data set: how much disorder, which delays, and where it goes."""

    factor: Fraction
    min_delay: Fraction  # ms
    max_delay: Fraction
    seed: int = 0
    distribution: Distribution = field(default_factory=Distribution)
    per_key: bool | None = None  # one delay for each device, not for each event; None: if there is a key
    outages: tuple[Outage, ...] = ()
    skews: Mapping[str, Fraction] | Fraction | None = None  # ms by key, or the most that a key may draw
    path: Path | None = None
    format: str | None = None

    def delays(self, unit: TimeUnit, at: str = "") -> tuple[int, int]:
        """The shortest and the longest delay in whole ticks."""
        low, high = ticks_within(self.min_delay, self.max_delay, unit)
        if high > LONGEST_DELAY:
            raise InputError(
                f"maxDelay {self.max_delay} ms is more than 2^60 ticks of 1 {unit}",
                at=at,
                fix="use a coarser sourceTimeUnit",
            )
        if low > high:
            raise InputError(
                f"between minDelay {self.min_delay} ms and maxDelay {self.max_delay} ms lies no whole tick of 1 {unit}",
                at=at, fix="widen the delays, or keep the times of the source in a finer sourceTimeUnit",
            )  # fmt: skip
        return low, high

    @property
    def moves_arrivals(self) -> bool:
        return bool(self.outages) or self.skews is not None


@dataclass(frozen=True)
class Configuration:
    """A source and its experiments; ``document`` is the text that they were read from."""

    source: SourceConfig
    experiments: tuple[Experiment, ...]
    document: Mapping[str, Any]


def read_configuration(path: Path, modules: Collection[str] = ()) -> Configuration:
    """Read a configuration; paths in it are relative to its own folder, and ``modules`` it may name as code."""
    return configuration_of(documents.load(path), path.parent, modules)


def configuration_of(document: object, folder: Path = Path(), modules: Collection[str] = ()) -> Configuration:
    """A configuration from plain data."""
    _refuse_other_names(document)
    top = _Keys(document, "the configuration")
    source = _source(_with_beside(top.take("dataSource", needed=True), top), folder)
    entries = top.take("experimentDataConfigurations", needed=True)
    top.done()
    if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
        raise InputError(
            "experimentDataConfigurations must be a list with at least one entry", at="the configuration",
            fix='write "experimentDataConfigurations": [{"targetOutOfOrderFactor": 20, "maxDelay": 2000}]',
        )  # fmt: skip
    experiments = tuple(
        _experiment(entry, f"experimentDataConfigurations[{n}]", folder, modules) for n, entry in enumerate(entries)
    )
    source = _with_key(source, entries)
    for number, experiment in enumerate(experiments):
        keyed = experiment.per_key or any(o.keys for o in experiment.outages) or experiment.skews is not None
        if source.key is None and keyed:
            raise InputError(
                "delays, outages and clocks per key need to know the key",
                at=f"experimentDataConfigurations[{number}]",
                fix='name the column: "dataSource": {…, "key": "device"}',
            )
    if source.key is not None:  # a key means delays per device, unless an experiment says perKey: false
        experiments = tuple(replace(e, per_key=e.per_key is not False) for e in experiments)
    assert isinstance(document, Mapping)
    return Configuration(source, experiments, document)


_OF_THE_PROGRAM: Final = {
    "rawFilePath": "dataSource.file",
    "timeIndex": "dataSource.time.timeIndex",
    "srcTimeScale": "dataSource.time.sourceTimeUnit",
    "generatorConfigurations": "experimentDataConfigurations, with targetOutOfOrderFactor for outOfOrder",
    "outputFilePath": "the option --out",
    "keySelect": "nothing: filter the file before",
    "startTime": "nothing: filter the file before",
    "endTime": "nothing: filter the file before",
}
"""What the program of the configuration's inventors calls things, and what they are called here."""


def _refuse_other_names(document: object) -> None:
    found = [name for name in _OF_THE_PROGRAM if isinstance(document, Mapping) and name in document]
    if "rawFilePath" in found or "generatorConfigurations" in found:
        ours = "; ".join(f"{name} is {_OF_THE_PROGRAM[name]}" for name in found)
        what = f"{found[0]} is a name of the original program, whose configurations have another form"
        raise InputError(what, at="the configuration", fix=f"write it in the form of the paper: {ours}")


def _with_beside(source: object, top: _Keys) -> object:
    """What is said of the source may also stand beside it, as many write it; but once."""
    beside = {name: value for name in _OF_THE_SOURCE if (value := top.take(name)) is not None}
    if not beside or not isinstance(source, Mapping):
        return source
    twice = [name for name in beside if name in source]
    if twice:
        raise InputError(f'"{twice[0]}" is said twice', at="dataSource", fix=f'keep "{twice[0]}" in dataSource alone')
    return {**source, **beside}


def _with_key(source: SourceConfig, entries: Sequence[Mapping[str, Any]]) -> SourceConfig:
    """The key may be named with the source or with an experiment; all must mean the same column."""
    named = {entry["key"] for entry in entries if entry.get("key") is not None} | ({source.key} - {None})
    if len(named) > 1:
        names = ", ".join(sorted(map(str, named)))
        raise InputError(f"several keys are named: {names}", at="key", fix="name one column in dataSource")
    return replace(source, key=named.pop()) if named else source


_OF_THE_SOURCE: Final = ("time", "separator", "seperator", "header", "format", "quote", "multiline", "key")


class _Keys:
    """The keys of one JSON object: taken one by one; what is left over is unknown."""

    def __init__(self, value: object, at: str) -> None:
        if not isinstance(value, Mapping):
            raise InputError(f"{at} must be an object with keys, got {json.dumps(value)[:60]}", at=at, fix="write {…}")
        self._left = {str(key).strip(): item for key, item in value.items()}
        self._known: list[str] = []
        self.at = at

    def take(self, *names: str, needed: bool = False, default: Any = None) -> Any:
        """The value under one of several spellings."""
        self._known += names
        found = [name for name in names if name in self._left]
        if len(found) > 1:
            raise InputError(f"{' and '.join(found)} say the same thing twice", at=self.at, fix=f"keep {found[0]}")
        if not found and needed:
            raise InputError(f'"{names[0]}" is missing', at=self.at, fix=f'add "{names[0]}"')
        return self._left.pop(found[0]) if found else default

    def done(self) -> None:
        for name in self._left:
            raise InputError(f'unknown key "{name}"', at=self.at, fix=did_you_mean(name, self._known))

    def error(self, name: str, value: object, allowed: str) -> InputError:
        return InputError(
            f'"{name}" cannot be {json.dumps(value, default=str)[:80]}', at=self.at, fix=f"allowed: {allowed}"
        )


def _source(document: object, folder: Path) -> SourceConfig:
    keys = _Keys(document, "dataSource")
    file = keys.take("file", "path", needed=True)
    if not isinstance(file, str) or not file:
        raise keys.error("file", file, "the path of a file or a folder")
    separator = keys.take("separator", "seperator", default=",")
    if not isinstance(separator, str):
        raise keys.error("separator", separator, 'one character: ",", ";", "|", "\\t", …')
    time = _Keys(keys.take("time", needed=True), "dataSource.time")
    found = SourceConfig(
        file=folder / file,
        separator=read_separator(separator, f"{keys.at}.separator"),
        time_index=_column(time, "timeIndex", time.take("timeIndex", needed=True)),
        arrival_index=_column(time, "arrivalIndex", time.take("arrivalIndex"), optional=True),
        unit=_unit(time.take("sourceTimeUnit", "unit")),
        zone=_optional(time, "zone", str, "the name of a time zone, e.g. UTC"),
        header=_optional(keys, "header", bool, "true or false"),
        format=_choice(keys, "format", (*FORMATS, "gz")),
        quote=bool(_optional(keys, "quote", bool, "true or false", default=True)),
        multiline=_optional(keys, "multiline", bool, "true or false"),
        key=_column(keys, "key", keys.take("key"), optional=True),
    )
    time.done()
    keys.done()
    return found


def _unit(value: object) -> TimeUnit | None:
    return None if value is None else read_unit(value, "dataSource.time.sourceTimeUnit")


def _column(keys: _Keys, name: str, value: object, *, optional: bool = False) -> Any:
    if value is None and optional:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str) or (isinstance(value, int) and value < 0):
        raise keys.error(name, value, "a column's name, or its number counted from 0")
    return value


def _optional(keys: _Keys, name: str, kind: type, allowed: str, *, default: Any = None) -> Any:
    value = keys.take(name, default=default)
    if value is not None and not isinstance(value, kind):
        raise keys.error(name, value, allowed)
    return value


def _choice(keys: _Keys, name: str, known: Sequence[str]) -> str | None:
    value = keys.take(name)
    if value is not None and value not in known:
        raise keys.error(name, value, ", ".join(known))
    return None if value is None else str(value)


def number(keys: _Keys, name: str, value: object, allowed: str, test: Callable[[Fraction], bool]) -> Fraction:
    """An exact number: 0.1 means a tenth."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        found = documents.fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise keys.error(name, value, allowed) from None
    except InputError as error:
        raise error.located(f"{keys.at}.{name}") from None
    if not test(found):
        raise keys.error(name, value, allowed)
    return found


def _experiment(document: object, at: str, folder: Path, modules: Collection[str]) -> Experiment:
    keys = _Keys(document, at)
    factor = number(
        keys, "targetOutOfOrderFactor", keys.take("targetOutOfOrderFactor", needed=True), "a percentage from 0 to 100",
        lambda x: 0 <= x <= 100,
    )  # fmt: skip
    low, high = (
        number(keys, name, keys.take(name, default=default), "milliseconds, at least 0", lambda x: 0 <= x < 10**15)
        for name, default in (("minDelay", 0), ("maxDelay", 2000))
    )
    if low > high:
        raise InputError(f"minDelay {low} is more than maxDelay {high}", at=at, fix="give minDelay <= maxDelay")
    seed = keys.take("delaySeed", "seed", default=0)
    if isinstance(seed, bool) or not isinstance(seed, int) or abs(seed) > LAST_SEED:
        raise keys.error("delaySeed", seed, "a whole number of at most 64 bits")
    key = _column(keys, "key", keys.take("key"), optional=True)
    output = keys.take("output", default={})
    place = _Keys({"path": output} if isinstance(output, str) else output, f"{at}.output")
    path = _optional(place, "path", str, "the path of a file")
    found = Experiment(
        factor=factor, min_delay=low, max_delay=high, seed=seed,
        distribution=read_distribution(keys.take("distribution"), f"{at}.distribution", folder, modules),
        per_key=_optional(keys, "perKey", bool, "true or false", default=None if key is None else True),
        outages=_outages(keys, at), skews=_skews(keys),
        path=None if path is None else Path(path), format=_choice(place, "format", FORMATS),
    )  # fmt: skip
    place.done()
    keys.done()
    return found


def _outages(keys: _Keys, at: str) -> tuple[Outage, ...]:
    entries = keys.take("outages", default=[])
    if not isinstance(entries, list):
        raise keys.error("outages", entries, 'a list of {"from": …, "to": …, "key": …}')
    found = []
    for n, entry in enumerate(entries):
        one = _Keys(entry, f"{at}.outages[{n}]")
        start, end = one.take("from", needed=True), one.take("to", needed=True)
        names = one.take("key", default=[])
        one.done()
        found.append(Outage(start=start, end=end, keys=tuple(map(str, names if isinstance(names, list) else [names]))))
    return tuple(found)


def _skews(keys: _Keys) -> Mapping[str, Fraction] | Fraction | None:
    value = keys.take("clockSkew")
    allowed = 'milliseconds by key, e.g. {"m1": 250}, or the most that a key may draw'
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {str(name): number(keys, "clockSkew", ms, allowed, lambda x: True) for name, ms in value.items()}
    return number(keys, "clockSkew", value, allowed, lambda x: x >= 0)


def skew_ticks(milliseconds: Fraction, unit: TimeUnit, at: str) -> int:
    """A clock's error in whole ticks."""
    ticks = milliseconds * TICKS[unit] / 1000
    if ticks.denominator != 1 or abs(ticks) > LONGEST_DELAY:
        raise InputError(
            f"a skew of {milliseconds} ms is not a whole number of ticks of 1 {unit} below 2^60",
            at=at,
            fix="use another sourceTimeUnit",
        )
    return int(ticks)
