"""Configurations: the published one as it stands, and every mistake named with what is allowed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from streamproof.disorder.config import configuration_of, read_configuration
from streamproof.errors import InputError

FIRST = "experimentDataConfigurations.0"
LISTING = {
    "dataSource": {"file": "x.csv", "seperator": "|", "time": {"timeIndex": 3, "sourceTimeUnit": "ns"}},
    "experimentDataConfigurations": [
        {"targetOutOfOrderFactor": 20, "minDelay": 0, "maxDelay": 2000, "delaySeed": 42},
    ],
}


def changed(place: str, value: Any) -> dict[str, Any]:
    """The listing with one value more or another one; ``place`` is a path of keys."""
    import copy

    document = copy.deepcopy(LISTING)
    *path, last = place.split(".")
    inner: Any = document
    for key in path:
        inner = inner[int(key)] if key.isdigit() else inner[key]
    inner[last] = value
    return document


EXPERIMENTS = {"experimentDataConfigurations": [{"targetOutOfOrderFactor": 20, "minDelay": 0, "maxDelay": 2000}]}


def test_the_published_listing_as_it_stands() -> None:
    read = configuration_of(LISTING)
    assert (read.source.separator, read.source.time_index, read.source.unit) == ("|", 3, "ns")
    (experiment,) = read.experiments
    assert (experiment.factor, experiment.min_delay, experiment.max_delay, experiment.seed) == (20, 0, 2000, 42)


def test_the_names_of_the_original_program_are_told_as_ours() -> None:
    document = {"rawFilePath": "a.csv", "srcTimeScale": "ps", "generatorConfigurations": [], "keySelect": 4}
    with pytest.raises(InputError, match="rawFilePath is a name of the original program") as found:
        configuration_of(document)
    assert "srcTimeScale is dataSource.time.sourceTimeUnit" in str(found.value.fix)
    assert "keySelect is nothing: filter the file before" in str(found.value.fix)


def test_what_is_said_of_the_source_may_stand_beside_it() -> None:
    inside = {"dataSource": {"file": "a.csv", "time": {"timeIndex": 1}, "header": True}, **EXPERIMENTS}
    beside = {"dataSource": {"file": "a.csv"}, "time": {"timeIndex": 1}, "header": True, **EXPERIMENTS}
    assert configuration_of(beside).source == configuration_of(inside).source
    with pytest.raises(InputError, match='"time" is said twice'):
        configuration_of({**inside, "time": {"timeIndex": 1}})


def test_a_tenth_is_a_tenth() -> None:
    read = configuration_of(changed(f"{FIRST}.targetOutOfOrderFactor", 0.1))
    assert read.experiments[0].factor == Fraction(1, 10)


@pytest.mark.parametrize(
    ("place", "value", "what", "fix"),
    [
        ("dataSorce", {}, 'unknown key "dataSorce"', "dataSource"),
        ("dataSource.seprator", ",", 'unknown key "seprator"', 'did you mean "se'),
        ("dataSource.separator", "|", "separator and seperator say the same thing twice", "keep separator"),
        ("dataSource.seperator", "||", "the separator cannot be '||'", "one character"),
        ("dataSource.time.sourceTimeUnit", "min", "'min' is not a time unit", '"ps", "ns", "us", "ms", "s"'),
        ("dataSource.time.timeIndex", -1, '"timeIndex" cannot be -1', "counted from 0"),
        ("dataSource.format", "xlsx", '"format" cannot be "xlsx"', "csv, jsonl, parquet, gz"),
        ("experimentDataConfigurations", [], "must be a list with at least one entry", "maxDelay"),
        (f"{FIRST}.targetOutOfOrderFactor", 101, '"targetOutOfOrderFactor" cannot be 101', "0 to 100"),
        (f"{FIRST}.targetOutOfOrderFactor", -1, "cannot be -1", "0 to 100"),
        (f"{FIRST}.targetOutOfOrderFactor", "many", 'cannot be "many"', "0 to 100"),
        (f"{FIRST}.minDelay", 3000, "minDelay 3000 is more than maxDelay 2000", "minDelay <= maxDelay"),
        (f"{FIRST}.maxDelay", -5, '"maxDelay" cannot be -5', "at least 0"),
        (f"{FIRST}.delaySeed", 1.5, '"delaySeed" cannot be 1.5', "whole number"),
        (f"{FIRST}.distribution", "normel", 'no distribution "normel"', 'did you mean "normal"'),
        (f"{FIRST}.distribution", {"name": "normal", "mean": 5}, 'normal needs "deviation"', "500"),
        (f"{FIRST}.distribution", {"name": "uniform", "mean": 5}, "no parameter", "takes none"),
        (f"{FIRST}.perKey", True, "need to know the key", '"key": "device"'),
        (f"{FIRST}.outages", [{"from": 1}], '"to" is missing', 'add "to"'),
        (f"{FIRST}.output", {"format": "xml"}, '"format" cannot be "xml"', "csv, jsonl, parquet"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_what_is_allowed(place: str, value: Any, what: str, fix: str) -> None:
    with pytest.raises(InputError) as caught:
        configuration_of(changed(place, value))
    assert what in caught.value.what
    assert fix in (caught.value.fix or "")
    assert caught.value.at


def test_a_key_means_delays_per_device() -> None:
    assert configuration_of(changed("dataSource.key", "taxi")).experiments[0].per_key
    assert configuration_of(changed(f"{FIRST}.key", 2)).source.key == 2


def test_files_that_are_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        read_configuration(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        read_configuration(tmp_path / "bad.json")


def test_delays_without_a_whole_tick_between_them() -> None:
    experiment = configuration_of(changed(f"{FIRST}.maxDelay", 900)).experiments[0]
    assert experiment.delays("ms") == (0, 900)
    assert experiment.delays("s") == (0, 0)
    with pytest.raises(InputError, match="no whole tick of 1 s"):
        configuration_of(
            {
                **LISTING,
                "experimentDataConfigurations": [{"targetOutOfOrderFactor": 1, "minDelay": 100, "maxDelay": 900}],
            }
        ).experiments[0].delays("s")


def test_what_is_left_out_is_what_the_docs_say() -> None:
    source = {"file": "a.csv", "time": {"timeIndex": 0}}
    spoken = {**source, "separator": ",", "quote": True}
    one = {"targetOutOfOrderFactor": 20}
    whole = {
        **one,
        "minDelay": 0,
        "maxDelay": 2000,
        "delaySeed": 0,
        "distribution": "uniform",
        "outages": [],
        "output": {},
    }
    found = [
        configuration_of({"dataSource": data, "experimentDataConfigurations": [experiment]})
        for data, experiment in ((source, one), (spoken, whole))
    ]
    assert found[0].source == found[1].source
    assert found[0].experiments == found[1].experiments
