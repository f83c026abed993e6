"""Documents are read within budgets, in time that grows with their length and no faster."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from streamproof import documents
from streamproof.disorder.config import configuration_of, read_configuration
from streamproof.errors import InputError, StreamproofError
from streamproof.qos.config import read_config
from streamproof.qos.exact import exact, millis
from streamproof.workbench.suite import load_suite


def seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    with suppress(StreamproofError):
        call()
    return time.process_time() - began


GROWING = {
    "keys": lambda n: "{" + ", ".join(f'"k{i}": 1' for i in range(n)) + "}",
    "the same key": lambda n: "{" + ", ".join('"k": 1' for _ in range(n)) + "}",
    "open lists": lambda n: "[" * n,
    "lists and text": lambda n: '["]"' * n,
    "an open text": lambda n: '"' + '\\"' * n,
    "open texts": lambda n: '"a\\' * n,
    "backslashes": lambda n: '"' + "\\" * (2 * n + 1),
    "digits": lambda n: "9" * n,
    "a fraction": lambda n: "0." + "9" * n,
    "an exponent": lambda n: "1e" + "9" * n,
    "queries": lambda n: '{"capacity": {"ops_per_ms": 1}, "queries": [' + "{}, " * n + "{}]}",
}


@pytest.mark.parametrize("make", GROWING.values(), ids=GROWING)
@pytest.mark.parametrize("read", [documents.parse, read_config], ids=["plain", "exact"])
def test_reading_is_linear(make: Callable[[int], str], read: Callable[[str], object]) -> None:
    small, large = (min(seconds(partial(read, make(n))) for _ in range(2)) for n in (20_000, 40_000))
    assert large < 3 * small + 0.05, (small, large)
    assert large < 1


BOMBS = ["1e10000000", "1e100000000", "1e-10000000", "9" * 5_000, "1/" + "9" * 5_000, "1e401", "0." + "1" * 5_000]
CONFIG = {
    "dataSource": {"file": "x.csv", "time": {"timeIndex": 0}},
    "experimentDataConfigurations": [{"targetOutOfOrderFactor": 20, "maxDelay": 2000}],
}


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb[:12])
@pytest.mark.parametrize(
    "read",
    [
        documents.fraction, exact, millis, documents.parse,
        lambda text: configuration_of(
            {**CONFIG, "experimentDataConfigurations": [{"targetOutOfOrderFactor": text, "maxDelay": text}]}
        ),
        lambda text: read_config('{"capacity": {"ops_per_ms": "' + text + '"}, "queries": [{}]}'),
        lambda text: read_config('{"capacity": {"ops_per_ms": ' + text + '}, "queries": [{}]}'),
    ],
    ids=["fraction", "qos", "millis", "json", "disorder", "qos text", "qos number"],
)  # fmt: skip
def test_numbers_that_explode_are_refused_first(bomb: str, read: Callable[[str], object]) -> None:
    began = time.process_time()
    with pytest.raises(StreamproofError):
        read(bomb)
    assert time.process_time() - began < 0.2


def test_what_is_refused_says_why() -> None:
    for text, what in (
        ("[" * 65 + "]" * 65, "nested more than 64 deep"), ("1e401", "larger exponent than 400"),
        ("1" * 401, "more digits than 400"), ("NaN", "NaN is not a number"),
        ('{"a": 1, "a": 2}', 'the key "a" appears twice'),
        ('{"a": ', "this is not JSON"), ("\ud800", "this is not JSON"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=what):
            documents.parse(text)
    assert documents.parse("[" * 64 + "]" * 64)
    assert documents.parse("\ufeff[1]") == [1]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe{", b"[1,", b"{" * 100_000, b'{"a": ' + b"9" * 9_000 + b"}"])
@pytest.mark.parametrize("read", [read_configuration, load_suite, documents.load], ids=["disorder", "suite", "plain"])
def test_files_that_are_no_documents(content: bytes, read: Callable[..., object], tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read(str(path) if read is load_suite else path)


def test_a_file_is_read_up_to_the_budget_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text('{"a": 1}' + " " * (documents.MAX_BYTES - 8))
    assert documents.load(path) == {"a": 1}
    path.write_text('{"a": 1}' + " " * (documents.MAX_BYTES - 7))
    with pytest.raises(InputError, match="is larger than 4,000,000 bytes"):
        documents.load(path)
