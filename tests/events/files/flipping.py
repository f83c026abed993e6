"""Damages binary files a bit here and there, and reads them: ``python -m tests.events.files.flipping SEED COUNT``.

It runs in a process of its own, which a crash would end. What it prints is how often reading was refused in words, how
often it went well, and everything else that was raised.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather

from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, read, write
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.validate import Validator

MAPPING = ColumnMapping(
    start="at", end="until", payload=["text", "code", "price", "n", "when", "day", "big", "ok"], unit="ms"
)
SCHEMA = Schema.of({"k": "string", "v": "float64", "p": "decimal(9,2)", "d": "date", "t": "timestamp"}, unit="s")


def foreign() -> pa.Table:
    """A table with a column of every kind that can be read, and some that are left out."""
    rows = range(60)
    ends = [None if n % 3 else datetime(2024, 6, 1, tzinfo=UTC) for n in rows]
    return pa.table({
        "at": pa.array([datetime(2024, 5, 1, 10, n % 60, tzinfo=UTC) for n in rows], pa.timestamp("us", "UTC")),
        "until": pa.array(ends, pa.timestamp("us", "UTC")),
        "text": [None if n % 7 == 0 else "ä" * (n % 5) + str(n) for n in rows],
        "code": pa.array([f"c{n % 4}" for n in rows]).dictionary_encode(),
        "price": pa.array([Decimal(n) / 4 for n in rows], pa.decimal128(12, 2)),
        "n": pa.array([None if n % 5 == 0 else n for n in rows], pa.int32()),
        "when": pa.array([datetime(2024, 5, 1, tzinfo=UTC)] * 60, pa.timestamp("ms", "UTC")),
        "day": pa.array([date(2024, 5, 1)] * 60),
        "big": pa.array(["x" * n for n in rows], pa.large_string()),
        "ok": [n % 2 == 0 for n in rows],
        "deep": [[{"a": n, "b": [str(n)]}] for n in rows],
    })  # fmt: skip


def bases(folder: Path) -> list[tuple[bytes, str, bool]]:
    """Whole files: their bytes, their ending, and whether they are in a layout of our own."""
    payload = {"k": "a", "v": 0.5, "p": Decimal("1.25"), "d": date(2024, 5, 1), "t": datetime(2024, 5, 1, tzinfo=UTC)}
    history = History.from_rows(SCHEMA, [(n % 9, n % 9 + 5, {**payload, "k": f"k{n % 3}"}) for n in range(60)])
    found = [(write(history, folder / f"own.{ending}").read_bytes(), ending, True) for ending in ("parquet", "arrow")]
    table, paths = foreign(), []
    for codec in ("none", "snappy", "zstd"):
        paths.append(folder / f"{codec}.parquet")
        pq.write_table(table, paths[-1], compression=codec, row_group_size=25, use_dictionary=codec != "none")
    for codec in ("uncompressed", "lz4"):
        paths.append(folder / f"{codec}.feather")
        feather.write_feather(table, paths[-1], compression=codec, chunksize=25)
    paths.append(folder / "stream.arrows")
    with pa.ipc.new_stream(str(paths[-1]), table.schema) as file:
        file.write_table(table, max_chunksize=25)
    return found + [(path.read_bytes(), path.suffix[1:], False) for path in paths]


def damaged(data: bytes, draw: random.Random) -> bytes:
    """The file with some of its bits flipped, bytes changed, or its end cut off."""
    found = bytearray(data)
    how = draw.random()
    if how < 0.15:
        return bytes(found[: draw.randrange(len(found))])
    for _ in range(1 if how < 0.7 else 1 + draw.randrange(8)):
        place = draw.randrange(len(found))
        if draw.random() < 0.5:  # near the ends are the lengths and offsets
            place = draw.choice((place % 700, -1 - place % 700)) % len(found)
        found[place] = draw.randrange(256) if draw.random() < 0.3 else found[place] ^ (1 << draw.randrange(8))
    return bytes(found)


def outcomes(seed: int, count: int, folder: Path) -> Iterator[str]:
    draw = random.Random(seed)
    files = bases(folder)
    for number in range(count):
        data, ending, own = files[number % len(files)]
        path = folder / f"damaged.{ending}"
        path.write_bytes(damaged(data, draw))
        try:
            reader = read(path, mapping=None if own else MAPPING)
            validator = Validator(policy="drop")
            for chunk in reader:
                "".join(validator.check(chunk).json_lines())
            reader.history().to_rows()
            yield "read"
        except InputError as error:
            if not (error.what and error.fix):
                yield f"without words: {error!r}"
            yield "refused"
        except Exception as error:  # that is what is looked for
            (folder / f"raw-{number}.{ending}").write_bytes(path.read_bytes())
            yield f"raw: {type(error).__name__}: {str(error)[:100]} ({number})"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(Counter(outcomes(int(sys.argv[1]), int(sys.argv[2]), Path(place)))))
