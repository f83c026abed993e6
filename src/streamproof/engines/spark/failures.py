"""Errors on their way from Spark to the user.

An error of ours comes back from a worker inside the text of an exception, which is all that Spark hands on. A failure
of Spark's own is put into our words by the signs of it that we know.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from streamproof import errors
from streamproof.errors import InfrastructureError, InputError, StreamproofError

_LOOK: Final = "look at Spark's log"
_NO_ROOM: Final = 1 << 20  # bytes
_MARK: Final = "streamproof-error:"
_MARKED: Final = re.compile(re.escape(_MARK) + r" (\{.*\})")
_RAISED: Final = re.compile(r"[A-Za-z_][\w.]*(Error|Exception)\b")  # the end of a traceback


class WorkerError(Exception):
    """An error of ours on its way from a worker to the driver, which sees its text only."""

    def __init__(self, error: StreamproofError) -> None:
        document = {"class": type(error).__name__, **error.as_dict()}
        super().__init__(f"{_MARK} {json.dumps(document)}")


def error_from(text: str) -> StreamproofError:
    """The error that a worker raised, from what Spark says about it.

    >>> worker = WorkerError(errors.RunError("uda m@1 failed", at="window [0, 10)"))
    >>> error = error_from(f"Task failed: {worker} at line 1")
    >>> type(error).__name__, error.what, error.at
    ('RunError', 'uda m@1 failed', 'window [0, 10)')

    What is not ours is told by what is known of it, or by its cause:

    >>> print(error_from("Query failed. Traceback:\\n  File x, line 1\\nOSError: odd\\n  at org.apache").what)
    the streaming query failed: OSError: odd
    >>> print(error_from("[STREAM_FAILED] … OSError: [Errno 28] No space left on device: '/out/x.parquet'"))
    the disk is full
      at: /out/x.parquet
      fix: make room and start again: it goes on where it was
    """
    marked = _MARKED.search(text)
    if marked is not None:
        document, _ = json.JSONDecoder().raw_decode(marked[1])
        kind = getattr(errors, document["class"], StreamproofError)
        error: StreamproofError = kind(document["what"], at=document["at"], fix=document["fix"], name=document["error"])
        return error
    for sign, known in KNOWN.items():
        if re.search(sign, text):
            place = next((found[0] for found in re.finditer(known.place, text)), None)
            what = known.what + "".join(f": {found[0]}" for found in [re.search(known.more, text)] if found)
            return known.kind(what, at=None if place is None else re.sub("^/+", "/", unquote(place)), fix=known.fix)
    what = _cause(text)
    return InfrastructureError(f"the streaming query failed: {what}", fix=_LOOK)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is wrong where Spark fails, in our words."""

    what: str
    fix: str
    kind: type[StreamproofError] = InputError
    more: str = r"$^"  # what of Spark's text belongs to it
    place: str = r"(?<=file:)/[^\s,;\])'\"]+(?<![.:])|(?<=')/[^'\n]+(?=')"


_NEW: Final = "start with a new checkpoint and a new folder for the output"
_CHECKPOINT: Final = r"(?<=checkpointLocation=)[^\],]+|(?<=file:)/\S+/(?:commits|offsets|sources)/\S+(?<![.:])"
_WHOLE: Final = "take it away; write a file under another name (.part), and rename it when it is whole"
_FULL: Final = Diagnosis("the disk is full", "make room and start again: it goes on where it was", InfrastructureError)
_DAMAGED: Final = Diagnosis(
    "Spark's notes in the checkpoint are missing or damaged",
    f"use a whole copy of the checkpoint; or {_NEW}",
    place=_CHECKPOINT,
)
_READING_NOTES: Final = re.compile(
    r"\.(?:HDFSMetadataLog|CommitLog|OffsetSeq|OffsetSeqLog|CompactibleFileStreamLog|FileStreamSourceLog|StreamMetadata"
    r"|OperatorStateMetadata\w*|StateSchema\w*|SchemaReader|SchemaV\dReader)\b"
)
"""What Java was doing, among the frames of an error that says nothing."""
KNOWN: Final[Mapping[str, Diagnosis]] = {
    r"No space left on device|Errno 28": _FULL,
    r"PARQUET_COLUMN_DATA_TYPE_MISMATCH|SchemaColumnConvertNotSupported": Diagnosis(
        "a file has another type in a column than the table",
        "give all files of a table the same types, and the reader the schema that they have",
        more=r"column: \[[^\]]*\], physicalType: \w+, logicalType: [\w() ,]+",
    ),
    r"is not a Parquet file|CANNOT_READ_FILE_FOOTER|Could not read footer|corrupted file|Malformed Parquet": Diagnosis(
        "a file is no whole Parquet file", _WHOLE
    ),
    r"FILE_NOT_EXIST|FileNotFoundException: File file:\S+/in|It is possible the underlying files": Diagnosis(
        "a file is gone before it was read", f"put it back; or {_NEW}"
    ),
    r"MISSING_STATE_DIRECTORY|CANNOT_LOAD_STATE_STORE|StateStore.*(?:not exist|missing|corrupt)"
    r"|state/\d+/\d+": Diagnosis(
        "the state in the checkpoint is missing or damaged",
        f"use a whole copy of the checkpoint; or {_NEW}",
        place=_CHECKPOINT,
    ),
    r"offset log|commit log|log file|batch \d+ doesn't exist"
    r"|HDFSMetadataLog|StreamMetadata|FileStreamSourceLog|OffsetSeqLog|end-of-input"
    r"|JsonParse": _DAMAGED,
    r"CONCURRENT_STREAM_LOG_UPDATE|is already active|Concurrent update": Diagnosis(
        "another query goes on from this checkpoint", "stop it first, or start with a checkpoint of your own"
    ),
    r"Permission denied|AccessControlException|Errno (?:1|13|30)\b|Read-only file system": Diagnosis(
        "a file or folder cannot be read or written", "look at who may do so", InfrastructureError
    ),
    r"\[Errno 2\]": Diagnosis(
        "a file is gone that was there a moment ago, or a link leads nowhere",
        f"put it back, or take the link away; or {_NEW}",
    ),
    r"\[Errno (?:17|20|21)\]": Diagnosis(
        "a file lies where a folder should be, or a folder where a file should be", "give another path"
    ),
    r"FAILED_READ_FILE": Diagnosis("a file cannot be read", _WHOLE),
}  # fmt: skip
"""By a sign of it in what Spark says; the first that is found counts."""


def _cause(text: str) -> str:
    """What is at the bottom of it: what Python raised, or the last cause that Java names, or the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.match(line) and not line.startswith(("py4j.", *_WRAPPERS))]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    found = (raised or causes or lines or ["it does not say why"])[-1 if raised or causes else 0]
    return _WRAPPED.sub("", found)[:500]


_WRAPPED: Final = re.compile(
    r"^StreamingQueryException: \[STREAM_FAILED\] .*? terminated with exception: | SQLSTATE: \w+$"
)
_WRAPPERS: Final = ("StreamingQueryException", "pyspark.errors", "Py4JJavaError")


@contextmanager
def disk_errors() -> Iterator[None]:
    """Raise what the disk refuses within this block as an error in our words."""
    try:
        yield
    except OSError as error:
        raise failure_of(error) from error


def failure_of(error: Exception, *, place: Path | None = None) -> StreamproofError:
    """An error of a streaming query in our words, whoever met it; ``place`` is its checkpoint.

    Where Spark does not say why, we look: at the room on the disk, and at what Java was doing.
    """
    if isinstance(error, StreamproofError):
        return error
    found = error_from(f"{type(error).__name__}: {error}")
    if found.fix != _LOOK or place is None:
        return found
    known = None
    if place.is_dir() and shutil.disk_usage(place).free < _NO_ROOM:
        known = _FULL
    elif _READING_NOTES.search(getattr(error, "_stackTrace", None) or ""):
        known = _DAMAGED
    return found if known is None else known.kind(known.what, at=str(place), fix=known.fix)
