"""XXH64 as Spark computes it: the same number for the same row on every machine and for every partitioning.

The last step hashes one int64 with a fixed seed, and that is a bijection: no two rows ever draw the same number.

>>> [hex(draw) for draw in draws(7, "select", np.array([0, 1]))]
['0xbbfb108ffc1c2b04', '0x349a75a1916bc8b5']
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from streamproof.events.order import Ints

Bytes: TypeAlias = npt.NDArray[np.uint8]
Draws: TypeAlias = npt.NDArray[np.uint64]
Floats: TypeAlias = npt.NDArray[np.float64]

SPARK_SEED = 42
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5,
    )
)  # fmt: skip


def draws(seed: int, purpose: str, ids: Ints) -> Draws:
    """One number for each row id: ``xxhash64(seed, purpose, id)`` in Spark's words, read as unsigned."""
    start = hash_long(np.array([seed], np.int64), np.uint64(SPARK_SEED))[0]
    start = hash_bytes(np.frombuffer(purpose.encode(), np.uint8), 0, len(purpose.encode()), start)
    found: Draws = hash_long(ids.astype(np.int64, copy=False), np.uint64(start))
    return found


def uniforms(numbers: Draws) -> Floats:
    """Draws as numbers from [0, 1), with 53 bits."""
    return (numbers >> np.uint64(11)).astype(np.float64) * 2.0**-53


@njit(cache=True)
def hash_long(values, seed):  # type: ignore[no-untyped-def]
    """XXH64 of each int64."""
    out = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        k = np.uint64(values[i]) * _P2
        k = ((k << np.uint64(31)) | (k >> np.uint64(33))) * _P1
        h = (seed + _P5 + np.uint64(8)) ^ k
        h = ((h << np.uint64(27)) | (h >> np.uint64(37))) * _P1 + _P4
        out[i] = _mixed(h)
    return out


@njit(cache=True)
def _mixed(h):  # type: ignore[no-untyped-def]
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


@njit(cache=True)
def _round(lane, word):  # type: ignore[no-untyped-def]
    lane = lane + word * _P2
    return ((lane << np.uint64(31)) | (lane >> np.uint64(33))) * _P1


@njit(cache=True)
def _word(data, at, size):  # type: ignore[no-untyped-def]
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@njit(cache=True)
def hash_bytes(data, start, end, seed):  # type: ignore[no-untyped-def]
    """XXH64 of ``data[start:end]``."""
    at, size = start, end - start
    if size >= 32:
        h, at = _stripes(data, start, end, seed)
    else:
        h = seed + _P5
    h += np.uint64(size)
    while at + 8 <= end:
        h ^= _round(np.uint64(0), _word(data, at, 8))
        h = ((h << np.uint64(27)) | (h >> np.uint64(37))) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        h ^= _word(data, at, 4) * _P1
        h = ((h << np.uint64(23)) | (h >> np.uint64(41))) * _P2 + _P3
        at += 4
    while at < end:
        h ^= np.uint64(data[at]) * _P5
        h = ((h << np.uint64(11)) | (h >> np.uint64(53))) * _P1
        at += 1
    return _mixed(h)


@njit(cache=True)
def _stripes(data, start, end, seed):  # type: ignore[no-untyped-def]
    """The four lanes over whole stripes of 32 bytes, merged; and where they end."""
    a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
    at = start
    while at + 32 <= end:
        a, b = _round(a, _word(data, at, 8)), _round(b, _word(data, at + 8, 8))
        c, d = _round(c, _word(data, at + 16, 8)), _round(d, _word(data, at + 24, 8))
        at += 32
    h = ((a << np.uint64(1)) | (a >> np.uint64(63))) + ((b << np.uint64(7)) | (b >> np.uint64(57)))
    h += ((c << np.uint64(12)) | (c >> np.uint64(52))) + ((d << np.uint64(18)) | (d >> np.uint64(46)))
    for lane in (a, b, c, d):
        h = (h ^ _round(np.uint64(0), lane)) * _P1 + _P4
    return h, at


@njit(cache=True)
def hash_slices(data, starts, ends):  # type: ignore[no-untyped-def]
    """XXH64 of many pieces of ``data``."""
    out = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        out[i] = hash_bytes(data, starts[i], ends[i], np.uint64(42))
    return out
