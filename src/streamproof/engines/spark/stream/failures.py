"""How an error of ours comes back from a worker: Spark hands on the text of an exception, so the text carries it."""

from __future__ import annotations

import json
import re
from typing import Final

from streamproof import errors
from streamproof.errors import InfrastructureError, StreamproofError

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

    What is not ours is told by its first line, and by what was raised in Python, if anything was:

    >>> print(error_from("Query failed. Traceback:\\n  File x, line 1\\nOSError: no space left\\n  at org.apache").what)
    the streaming query failed: Query failed. Traceback: OSError: no space left
    """
    marked = _MARKED.search(text)
    if marked is None:
        lines = [line for line in text.strip().splitlines() if line.strip()]
        what = lines[0][:500] if lines else "it does not say why"
        raised = [line for line in lines[1:] if _RAISED.match(line)]
        what += f" {raised[-1][:500]}" if raised else ""
        return InfrastructureError(f"the streaming query failed: {what}", fix="look at Spark's log")
    document, _ = json.JSONDecoder().raw_decode(marked[1])
    kind = getattr(errors, document["class"], StreamproofError)
    error: StreamproofError = kind(document["what"], at=document["at"], fix=document["fix"], name=document["error"])
    return error


def failure_of(error: Exception) -> StreamproofError:
    """An error of a streaming query in our words, whoever met it."""
    return error if isinstance(error, StreamproofError) else error_from(f"{type(error).__name__}: {error}")
