"""``--input`` and ``--map``: which file feeds which source, and how its columns become events.

>>> split_input("S=data/events.jsonl")
('S', PosixPath('data/events.jsonl'))
>>> mapping_for("S", ["start=time,duration=1h", "R:start=at"]).duration
'1h'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from streamproof.cli.screen import counted
from streamproof.errors import InputError, did_you_mean
from streamproof.events.files import ColumnMapping, Reader, read
from streamproof.events.files.listing import read_separator
from streamproof.events.files.rejects import free_name
from streamproof.events.schema import Schema


def split_input(text: str) -> tuple[str, Path]:
    """A source's name and its file, from ``NAME=FILE``."""
    name, separator, path = text.partition("=")
    if not separator or not name or not path:
        raise InputError(f"cannot read --input {text!r}", fix="write --input NAME=FILE, e.g. --input S=events.jsonl")
    return name, Path(path)


def input_files(inputs: list[str], maps: list[str]) -> dict[str, Path]:
    """The file of each source that ``--input`` names; every ``--map NAME:…`` is for one of them."""
    files: dict[str, Path] = {}
    for name, path in map(split_input, inputs):
        if name in files:
            raise InputError(f'two files are given for the source "{name}"', fix="give each source one file")
        files[name] = path
    for option in maps:
        target = _target(option)
        if target is not None and target not in files:
            raise InputError(f'--map is for "{target}", and there is no such input', fix=did_you_mean(target, files))
    return files


def _target(option: str) -> str | None:
    """The input that a ``--map`` is for; None if it is for all."""
    target, separator, _ = option.partition(":")
    return target if separator and "=" not in target and "," not in target else None


def mapping_for(name: str, options: list[str]) -> ColumnMapping | None:
    """The column mapping that ``--map`` gives a source: ``start=time,duration=1h``; ``S:…`` is for S and wins."""
    settings = _settings(name, options)
    if _of_text(settings):
        what = "Spark streams read CSV with commas and a header"
        raise InputError(what, at="--map separator, header", fix="convert the file first: streamproof convert")
    return _mapping(settings) if settings else None


def _settings(name: str, options: list[str]) -> dict[str, str]:
    return {**_pairs(None, options), **_pairs(name, options)}


def _of_text(settings: dict[str, str]) -> dict[str, Any]:
    """What ``--map`` says of the text of a CSV file, taken out of the settings: ``separator=;``, ``header=no``."""
    found: dict[str, Any] = {}
    if "separator" in settings:
        found["separator"] = read_separator(settings.pop("separator"), "--map separator")
    if "header" in settings:
        word = settings.pop("header")
        if word not in _YES_OR_NO:
            raise InputError(f"header cannot be {word!r}", at="--map", fix=did_you_mean(word, _YES_OR_NO))
        found["header"] = _YES_OR_NO[word]
    return found


_YES_OR_NO: Final = {"yes": True, "no": False, "true": True, "false": False}


def _pairs(target: str | None, options: list[str]) -> dict[str, str]:
    """What the options for an input, or for all of them, say."""
    settings: dict[str, str] = {}
    for option in options:
        if _target(option) != target:
            continue
        for pair in option.removeprefix(f"{target}:").split(","):
            key, equals, value = (part.strip() for part in pair.partition("="))
            if not (equals and key and value):
                raise InputError(f"cannot read --map {option!r}", fix="write key=value pairs, e.g. start=time,unit=ms")
            if settings.setdefault(key, value) != value:
                raise InputError(f"--map says {key}={settings[key]} and {key}={value}", fix="say one of them")
    return settings


def _mapping(settings: dict[str, str]) -> ColumnMapping:
    known = [field.name for field in fields(ColumnMapping)]
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key == "rename" or key.startswith("rename."):
            values.setdefault("rename", {})[key.removeprefix("rename.")] = value
        elif key == "payload":
            values["payload"] = tuple(value.split("+"))
        elif key in known:
            values[key] = value
        else:
            raise InputError(f'a mapping has no "{key}"', fix=did_you_mean(key, known))
    return ColumnMapping(**values)


def open_input(
    name: str,
    path: Path,
    *,
    maps: list[str],
    schema: Schema | None = None,
    rejects: Path | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> Reader:
    """A reader of one input: a file, a folder or a pattern.

    Rows that cannot be read go to ``NAME.rejects.jsonl``, or a free name like it.
    """
    target = rejects or free_name(Path(f"{plain_name(name)}.rejects.jsonl"))
    settings = _settings(name, maps)
    text = _of_text(settings)
    mapping = _mapping(settings) if settings else None
    return read(path, mapping=mapping, schema=schema, rejects=target, on_rows=on_rows, **text)


def plain_name(name: str) -> str:
    """The name of a source, as part of the name of a file."""
    return re.sub(r"[^\w .-]", "_", name)


def rejected(reader: Reader) -> str:
    """How many rows of an input could not be read, why the first one, and where they are."""
    first = reader.first_rejects[0]
    return f"{counted(reader.rejected, 'row')} could not be read, first: {first}; all are in {reader.rejects}"
