"""Files of our own: sealed when they are written, and read only if not one bit of them has changed.

    magic 8 │ kind 16 │ version 4 │ length 8 │ digest 32 │ content
                                               of all the others

>>> data = sealed(b"words", kind="example", version=1)
>>> opened(data, kind="example", version=1)
b'words'
>>> opened(data[:-1], kind="example", version=1)
Traceback (most recent call last):
    ...
streamproof.errors.InputError: the example is damaged: it has 72 bytes and should have 73
  fix: use another copy of it, or start anew without it
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any, Final

from streamproof.errors import InputError, StreamproofError

MAGIC: Final = b"strmprf\x1a"
ANEW: Final = "use another copy of it, or start anew without it"
_HEAD: Final = Struct("<8s16sIQ")
_DIGEST: Final = 32
KIND: Final = 16
_JSON_HEAD: Final = b'{"digest": "'
_JSON_BODY: Final = len(_JSON_HEAD) + 2 * _DIGEST + 3


def sealed(content: bytes, *, kind: str, version: int) -> bytes:
    """The content behind a head that tells what it is, and a digest of both. ``kind`` has at most 16 letters."""
    assert len(kind.encode()) <= KIND, "a kind is a short word"
    head = _HEAD.pack(MAGIC, kind.encode(), version, len(content))
    return head + _digest(head, content) + content


def opened(data: bytes, *, kind: str, version: int, at: str | None = None) -> bytes:
    """The content, if it is of this kind and version and as it was written; one clear error if it is not."""
    start = _HEAD.size + _DIGEST
    if len(data) < start or not data.startswith(MAGIC):
        what = "is empty" if not data else f"is not {_a(kind)}" if data[:8] != MAGIC else "ends within its head"
        raise InputError(f"not {_a(kind)}: the file {what}", at=at, fix=f"give the {kind} that a run wrote")
    _, word, found, length = _HEAD.unpack_from(data)
    if len(data) - start != length:
        text = f"the {kind} is damaged: it has {len(data)} bytes and should have {start + length}"
        raise InputError(text, at=at, fix=ANEW)
    if _digest(data[: _HEAD.size], data[start:]) != data[_HEAD.size : start]:
        raise InputError(f"the {kind} is damaged: its checksum is another one", at=at, fix=ANEW)
    name = word.rstrip(b"\0").decode()
    if name != kind:
        raise InputError(f"not {_a(kind)}: this is {_a(name)}", at=at, fix=f"give the {kind} that a run wrote")
    if found != version:
        text = f"the {kind} has version {found}, this program reads {version}"
        raise InputError(text, at=at, fix="use the version of streamproof that wrote it, or start anew without it")
    return data[start:]


def sealed_json(document: Mapping[str, Any], *, kind: str, version: int) -> bytes:
    """A document that people may look at: JSON that begins with a digest of all that follows.

    >>> data = sealed_json({"batch": 3}, kind="example", version=1)
    >>> data[:21], data[79:]
    (b'{"digest": "add0e1f45', b'"kind": "example", "version": 1, "batch": 3}')
    >>> opened_json(data, kind="example", version=1)["batch"]
    3
    >>> opened_json(data.replace(b"3}", b"4}"), kind="example", version=1)
    Traceback (most recent call last):
        ...
    streamproof.errors.InputError: the example is damaged: its checksum is another one
      fix: use another copy of it, or start anew without it
    """
    body = json.dumps({"kind": kind, "version": version, **document}).encode()[1:]
    return _JSON_HEAD + digest_of(body).encode() + b'", ' + body


def opened_json(data: bytes, *, kind: str, version: int, at: str | None = None, fix: str = ANEW) -> dict[str, Any]:
    """The document, if it is of this kind and version and as it was written; one clear error if it is not."""
    digest, body = data[len(_JSON_HEAD) : _JSON_BODY - 3], data[_JSON_BODY:]
    if not data.startswith(_JSON_HEAD) or data[_JSON_BODY - 3 : _JSON_BODY] != b'", ':
        _refuse_version(_loosely(data), kind, version, at)
        raise InputError(f"the {kind} is damaged: it does not begin with its checksum", at=at, fix=fix)
    if digest_of(body).encode() != digest:
        raise InputError(f"the {kind} is damaged: its checksum is another one", at=at, fix=fix)
    with fitting(kind, at=at):
        document: dict[str, Any] = json.loads(b"{" + body)
        if document["kind"] != kind:
            raise InputError(f"not {_a(kind)}: this is {_a(document['kind'])}", at=at, fix=f"give the {kind} of a run")
        _refuse_version(document, kind, version, at)
    return document


def write_atomically(file: Path, data: bytes) -> None:
    """Write a small file so that a crash leaves the old or the new one, on the disk."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
    with temporary.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)


def digest_of(content: bytes) -> str:
    """The digest of a content, in letters."""
    return blake2b(content, digest_size=_DIGEST).hexdigest()


def _loosely(data: bytes) -> Mapping[str, Any]:
    """What a document without a digest says, as older versions wrote it."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("version"), int) else {}


def _refuse_version(document: Mapping[str, Any], kind: str, version: int, at: str | None) -> None:
    found = document.get("version", version)
    if found != version:
        text = f"the {kind} has version {found}, this program reads {version}"
        raise InputError(text, at=at, fix="use the version of streamproof that wrote it, or start anew without it")


@contextmanager
def fitting(kind: str, *, at: str | None = None) -> Iterator[None]:
    """The one door for content that was opened: whatever fails in it is the error that the content does not fit."""
    try:
        yield
    except StreamproofError:
        raise
    except Exception as error:
        what = f"the {kind} holds what this program cannot go on from: {type(error).__name__}: {error}"
        raise InputError(what, at=at, fix=ANEW) from error


def _digest(head: bytes, content: bytes) -> bytes:
    state = blake2b(head, digest_size=_DIGEST)
    state.update(content)
    return state.digest()


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
