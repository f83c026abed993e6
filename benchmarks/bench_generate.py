"""What generated streams cost: CPU seconds per million events, as ratios to NumPy and to one event at a time.

python benchmarks/bench_generate.py [--events 1000000]

NumPy draws the plain columns with its own generator and writes them as Arrow: no ids, no CTIs, no rules to keep. One at
a time means Python's random module and `Insert` objects. The others are streams of ours, from plain to all at once.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from streamproof.events.schema import Schema
from streamproof.events.stream import Insert, PhysicalStream
from streamproof.generate import Facets, generate

SCHEMA = Schema.of({"k": "string", "v": "int64"})
STREAMS = {
    "plain": Facets(),
    "eager": Facets(liveliness="eager"),
    "highly out of order": Facets(disorder="highly"),
    "edges": Facets(shape="edge"),
    "shrinking": Facets(speculation="shrink"),
    "chains": Facets(speculation="chains"),
    "mixed, highly out of order": Facets(speculation="mixed", disorder="highly"),
    "skewed, with nulls and boundary values": Facets(skew="zipf", nulls="some", boundary="some"),
    "everything twice": Facets(duplicates="all"),
}


def with_numpy(count: int) -> None:
    draw = np.random.default_rng(7)
    le = np.cumsum(draw.integers(1, 6, count))
    columns = [le, le + draw.integers(2, 21, count), draw.integers(-50, 50, count)]
    names = pa.array([f"k{n}" for n in range(100)]).take(pa.array(draw.integers(0, 100, count)))
    pa.table([*map(pa.array, columns), names], names=["le", "re", "v", "k"])


def one_at_a_time(count: int) -> None:
    draw, le, events = random.Random(7), 0, []
    for number in range(count):
        le += draw.randrange(1, 6)
        payload = {"k": f"k{draw.randrange(100)}", "v": draw.randrange(-50, 50)}
        events.append(Insert(f"e{number}", le, le + draw.randrange(2, 21), payload))
    PhysicalStream.from_events(events, schema=SCHEMA)


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def rows_of(facets: Facets, count: int) -> int:
    return sum(len(chunk) for chunk in generate(SCHEMA, count, 7, facets))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    count = parser.parse_args().events
    rows_of(Facets(), 1000)  # imports
    peers = {"numpy": min(seconds(lambda: with_numpy(count)) for _ in range(3))}
    part = max(count // 20, 1)
    peers["one at a time"] = seconds(lambda: one_at_a_time(part)) * count / part
    for name, spent in peers.items():
        print(json.dumps({"stream": name, "seconds_per_million": round(spent / count * 1e6, 3)}))
    for name, facets in STREAMS.items():
        spent = min(seconds(lambda facets=facets: rows_of(facets, count)) for _ in range(2))
        ratios = {f"times {peer}": round(spent / other, 3) for peer, other in peers.items()}
        print(json.dumps({"stream": name, "seconds_per_million": round(spent / count * 1e6, 3), **ratios}))


if __name__ == "__main__":
    main()
