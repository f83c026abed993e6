"""What Spark's processes print although nobody asked for it, kept from the terminal.

Spark starts a Python process for each query with state, and that one prints what it is doing line by line. What Spark
logs, and what users' own functions print, comes through.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import SparkConf

HUSHED: Final = Event()
"""Set where this process ends before its time: Java then tells of everything that it was just doing."""
NOISE: Final = (b"Streaming TransformWithStateInPandas Python worker", b"Starting Streaming TransformWithStateInPandas")


def launch_quietly(conf: SparkConf) -> None:
    """Start Java for this process, if it does not run yet, with a sieve before its standard error."""
    from pyspark import SparkContext  # noqa: PLC0415  # half a second that only Spark's users pay
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    reading, writing = os.pipe()
    try:
        gateway = launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
        Thread(target=_copy, args=(reading,), name="streamproof-stderr", daemon=True).start()
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _copy(reading: int) -> None:
    with os.fdopen(reading, "rb") as lines:
        for line in sieved(lines):
            if HUSHED.is_set():
                continue
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()


def sieved(lines: Iterable[bytes]) -> Iterator[bytes]:
    """All lines but those of noise, and the empty line after each.

    >>> told = b"Streaming TransformWithStateInPandas Python worker received parameters"
    >>> list(sieved([b"a", told, b"", told, b"", b"b", b""]))
    [b'a', b'b', b'']
    """
    after_noise = False
    for line in lines:
        if line.startswith(NOISE):
            after_noise = True
            continue
        if line.strip() or not after_noise:
            yield line
        after_noise = False
