"""Changes of inputs that know a little of what they change: tokens, lines and numbers, beside the bytes."""

# ruff: noqa: E501  # a list of bytes

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

_TOKENS: Final = re.compile(rb"\s+|\w+|[^\w\s]")
_EXTREMES: Final = (
    b"0", b"-1", b"1e999", b"9223372036854775807", b"9223372036854775808", b"4611686018427387904", b"1" + b"0" * 400, b"0.1", b"1e-400",
    b"\xed\xa0\x80", b"\xff", b"\0", b"\xef\xbb\xbf", "é".encode(), "²".encode(), b'"', b"'", b"null", b"[]", b"{}", b"true", b'""', b"",
)  # fmt: skip


def tokens_changed(data: bytes, words: Sequence[bytes], draw: Random) -> bytes:
    """One to four changes of the tokens of a text."""
    tokens = _TOKENS.findall(data) or [b""]
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(tokens))
        draw.choice(_CHANGES)(tokens, at, words, draw)
        tokens = tokens or [b""]
    return b"".join(tokens)


Change = Callable[[list[bytes], int, Sequence[bytes], Random], None]


def _replace(tokens: list[bytes], at: int, words: Sequence[bytes], draw: Random) -> None:
    tokens[at] = draw.choice(words)


def _insert(tokens: list[bytes], at: int, words: Sequence[bytes], draw: Random) -> None:
    tokens[at:at] = [draw.choice(words), b" "]


def _extreme(tokens: list[bytes], at: int, words: Sequence[bytes], draw: Random) -> None:
    tokens[at] = draw.choice(_EXTREMES)


def _drop(tokens: list[bytes], at: int, words: Sequence[bytes], draw: Random) -> None:
    del tokens[at : at + draw.choice((1, 1, 2, 5))]


def _move(tokens: list[bytes], at: int, words: Sequence[bytes], draw: Random) -> None:
    part = tokens[at : at + draw.choice((1, 3, 9))]
    to = draw.randrange(len(tokens))
    tokens[to:to] = part


def _repeat(tokens: list[bytes], at: int, words: Sequence[bytes], draw: Random) -> None:
    """Nesting and length: the same again, many times."""
    part = tokens[at : at + draw.choice((1, 2, 4))]
    tokens[at:at] = part * draw.choice((2, 10, 60))


def _swap(tokens: list[bytes], at: int, words: Sequence[bytes], draw: Random) -> None:
    other = draw.randrange(len(tokens))
    tokens[at], tokens[other] = tokens[other], tokens[at]


_CHANGES: Final[tuple[Change, ...]] = (
    _replace,
    _replace,
    _insert,
    _insert,
    _extreme,
    _extreme,
    _drop,
    _move,
    _repeat,
    _swap,
)
