"""Binary files are checked before anything looks into them: what is damaged, or made to do harm, is refused in words.

>>> with refusing_damage("Arrow", Path("x.arrow")):
...     raise pa.ArrowInvalid("no magic")
Traceback (most recent call last):
    ...
streamproof.errors.InputError: not an Arrow file, or damaged: no magic
  at: x.arrow
  fix: check its format; if it was whole once, fetch or write it again
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from streamproof.errors import InputError


@contextmanager
def refusing_damage(kind: str, path: Path, where: str = "") -> Iterator[None]:
    """Whatever Arrow says about bytes that it cannot read, as one error. Trouble with the disk is not among it."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(kind, path, where, error) from None
    except (pa.ArrowException, ValueError, OverflowError, MemoryError) as error:
        raise _damaged(kind, path, where, error) from None


def _damaged(kind: str, path: Path, where: str, error: Exception) -> InputError:
    article = "an" if kind[0] in "AEIOU" else "a"
    first = (str(error).strip().partition("\n")[0] or type(error).__name__)[:200]
    shown = "".join(letter if letter.isprintable() else "·" for letter in first)
    return InputError(
        f"not {article} {kind} file, or damaged: {shown}",
        at=f"{path}{where and f', {where}'}",
        fix="check its format; if it was whole once, fetch or write it again",
    )


def readable(fields: pa.Schema) -> pa.Schema:
    """The columns, if their names and zones are text."""
    for field in fields:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        _ = field.name, str(kind), kind.tz if pa.types.is_timestamp(kind) else None
    return fields


Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def checked(rows: Rows) -> Rows:
    """The rows, if their offsets, lengths, codes and texts are in order; kernels rely on that."""
    rows.validate(full=True)
    return rows
