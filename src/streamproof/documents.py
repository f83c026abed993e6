"""Documents that people write, such as configurations and suites: JSON and numbers, read within named budgets.

What costs more than its length is refused before it is done: deep nesting, long numbers, large exponents.

>>> parse('{"factor": 2.5, "seed": 7}')
{'factor': 2.5, 'seed': 7}
>>> fraction("1/150"), fraction("2.5e-1")
(Fraction(1, 150), Fraction(1, 4))
>>> fraction("1e10000000")
Traceback (most recent call last):
streamproof.errors.InputError: 1e10000000 has a larger exponent than 400
  fix: write the number with fewer digits, or use other units
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NoReturn

from streamproof.errors import InputError, did_you_mean

MAX_BYTES: Final = 4_000_000  # of a document
MAX_DEPTH: Final = 64  # of lists and objects in each other
MAX_NAME: Final = 255  # bytes of the name of a file
MAX_PATH: Final = 4095  # bytes of all names on the way to it
MAX_DIGITS: Final = 400  # of a number, signs and points included
MAX_EXPONENT: Final = 400

# Every quote opens text that ends at the next quote or at the end of the document, so that the scan never goes back.
_NESTING: Final = re.compile(r'"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z)|[][{}]', re.DOTALL)
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_EXPONENT: Final = re.compile(r"[eE]([-+]?[0-9_]+)\s*\Z")


def load(path: Path, *, exact: bool = False, constants: bool = False) -> Any:
    """The document in a file."""
    try:
        return parse(read_text(path, most=MAX_BYTES), exact=exact, constants=constants)
    except InputError as error:
        raise (error if (error.at or "").startswith(str(path)) else error.within(str(path))) from None


def read_text(path: Path, *, most: int) -> str:
    """The text of a file that people write."""
    place = existing(path)
    try:
        if place.stat().st_size > most:
            raise _too_large(f"{path.name} is larger than {most:,} bytes")
        return place.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        at = f"{path}, byte {error.start}"
        raise InputError(f"{path.name} is not UTF-8 text", at=at, fix="save it as UTF-8") from None
    except OSError as error:
        what = f"cannot read {path.name}: {error.strerror or error}"
        raise InputError(what, at=str(path), fix="give a file that can be read") from None


def existing(path: Path, *, what: str = "file") -> Path:
    """The file that a path means, symbolic links followed: one that lies on a disk and can be read again.

    >>> existing(Path("no/such.json"))
    Traceback (most recent call last):
    streamproof.errors.InputError: there is no file no/such.json
      at: no/such.json
      fix: check the path: there is no folder no
    """
    check_name(path)
    place = Path(os.path.realpath(path))
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"there is no {what} {path}", at=str(path), fix=_near(path)) from None
    except (OSError, ValueError) as error:  # a loop of links, a name that is too long, a folder that is closed
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {path}: {why}", at=str(path), fix="give a file that can be read") from None
    if stat.S_ISREG(mode):
        return place
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a folder, not a file", at=str(path), fix="give one of the files in it")
    kind = "a device" if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else "a pipe or a socket"
    fix = "write what it gives to a file, and give that"
    raise InputError(f"{path} is {kind}, not a file", at=str(path), fix=fix)


def check_name(path: Path) -> None:
    """Refuse a name that no file has: what reads and writes files for us takes only names in UTF-8.

    >>> check_name(Path("n" * 300))
    Traceback (most recent call last):
    ...
    streamproof.errors.InputError: the name of a file is longer than 255 bytes
      at: nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
      fix: give the name of a file
    """
    try:
        names = [part.encode() for part in path.parts]
    except UnicodeEncodeError:
        raise InputError("the name of the file is not UTF-8", at=str(path), fix="rename it, or its folder") from None
    if any(b"\0" in name for name in names):
        what = "no file has a zero byte in its name"
    elif any(len(name) > MAX_NAME for name in names):
        what = f"the name of a file is longer than {MAX_NAME} bytes"
    elif len(str(path).encode()) > MAX_PATH:
        what = f"the path of a file is longer than {MAX_PATH:,} bytes"
    else:
        return
    raise InputError(what, at=str(path)[:80], fix="give the name of a file")


def _near(path: Path) -> str:
    """What lies where a file was looked for."""
    folder = path.parent
    try:
        names = sorted(name for name in os.listdir(folder) if (folder / name).is_file())
    except OSError:
        return f"check the path: there is no folder {folder}"
    return did_you_mean(path.name, names) if names else f"check the path: {folder} holds no files"


def parse(text: str, *, exact: bool = False, constants: bool = False) -> Any:
    """A document from its text. No key occurs twice in an object.

    With ``exact``, 0.1 is a tenth: a `Decimal`. With ``constants``, NaN and Infinity are numbers, as in payloads.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(f"the document is longer than {MAX_BYTES:,} characters")
    _check_nesting(text)
    read_float: Callable[[str], Any] = Decimal if exact else float
    try:
        found = json.loads(
            text.removeprefix("\ufeff"),
            parse_int=lambda word: int(_checked(word)),
            parse_float=lambda word: read_float(_checked(word)),
            parse_constant=float if constants else _refuse_constant,
            object_pairs_hook=_without_repeats,
        )
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"this is not JSON: {error.msg}", at=at, fix="mend the document there") from None
    if _HALF.search(text):
        _check_characters(found)
    return found


def _check_characters(found: object) -> None:
    """Refuse halves of characters, which only escapes can make: no file and no terminal takes them."""
    try:
        json.dumps(found, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise InputError(
            "half a character: \\ud800 to \\udfff make one only in pairs", fix="write the other half"
        ) from None


def fraction(text: str) -> Fraction:
    """The number that a text says, a ratio such as ``1/150`` included. ValueError where it says none."""
    return Fraction(_checked(text))


def _checked(word: str) -> str:
    """A number's text, if it is not one that would take forever to work with."""
    if len(word) > MAX_DIGITS:
        raise _too_large(f"{word[:20]}… has more digits than {MAX_DIGITS}", _SMALLER)
    exponent = _EXPONENT.search(word)
    if exponent is not None and abs(int(exponent[1])) > MAX_EXPONENT:
        raise _too_large(f"{word[:40]} has a larger exponent than {MAX_EXPONENT}", _SMALLER)
    return word


_SMALLER: Final = "write the number with fewer digits, or use other units"


def _check_nesting(text: str) -> None:
    depth = 0
    for found in _NESTING.finditer(text):
        depth += _STEP.get(found[0], 0)
        if depth > MAX_DEPTH:
            raise _too_large(f"the document is nested more than {MAX_DEPTH} deep")


_STEP: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def _too_large(what: str, fix: str = "give a smaller document") -> InputError:
    return InputError(what, fix=fix, name="limit_exceeded")


def _refuse_constant(word: str) -> NoReturn:
    raise InputError(f"{word} is not a number", fix="give a finite number")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are all different: of two equal ones, JSON would silently forget the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set[str]()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InputError(f'the key "{twice}" appears twice', fix="give it once")
    return found
