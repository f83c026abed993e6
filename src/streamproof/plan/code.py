"""A module in words and digests: what tells whether it is still the one whose results are in saved state.

The digest is of what Python runs, not of a file's text: comments and line breaks do not count, and functions, classes
and constants that it uses do, as far as they lie near it: in the same Python package or folder.

>>> from streamproof.plan.modules import uda
>>> def made(by):
...     return uda("scaled", returns="float64")(lambda values: sum(values) * by)
>>> description(made(2)) == description(made(2)), description(made(2)) == description(made(3))
(True, False)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial
from hashlib import blake2b
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from streamproof.plan.modules import Module

PLAIN = (type(None), bool, int, float, complex, str, bytes)


def description(module: Module) -> dict[str, str]:
    """All that a module's results depend on, as far as it can be told: its code as a digest, the rest in words."""
    words = {
        field.name: _word(getattr(module, field.name))
        for field in fields(module)
        if field.name not in ("implementation", "summary", "kind", "name")
    }
    return {**words, "code": digest(module.implementation)}


def digest(function: Any) -> str:
    """A short text that tells implementations apart; as bytecode is that of a Python, with its version."""
    state = blake2b(digest_size=8)
    for text in _texts(function, _home(function), set()):
        state.update(text.encode("utf-8", errors="surrogatepass") + b"\0")
    return f"{sys.version_info.major}.{sys.version_info.minor} {state.hexdigest()}"


def _word(value: Any) -> str:
    if isinstance(value, frozenset):
        return repr(sorted(value))
    return digest(value) if callable(value) else _stable(value)


def _stable(value: Any) -> str:
    """The text of a value, sets in order."""
    held = {field.name: getattr(value, field.name) for field in fields(value)} if hasattr(value, "passes") else None
    if held is not None:
        return ", ".join(f"{name}={sorted(v) if isinstance(v, frozenset) else v!r}" for name, v in held.items())
    return repr(value)


def _home(value: Any) -> str:
    """The Python module that something comes from."""
    return str(getattr(value, "__module__", None) or type(value).__module__)


def _texts(value: Any, home: str, seen: set[int]) -> Iterator[str]:
    """A value in pieces of text; of what does not lie near the module only the name.

    What may come again within itself is known by ``seen``; constants are not, as Python shares them as it likes.
    """
    value = getattr(value, "py_func", value)  # what was compiled
    if isinstance(value, PLAIN):
        yield repr(value)
    elif isinstance(value, tuple):
        yield from _all(value, home, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(repr(item) for item in value)
    elif isinstance(value, CodeType):
        yield from _of_code(value, value.co_consts, home, seen)
    elif isinstance(value, ModuleType):
        yield value.__name__
    elif id(value) in seen:
        yield "again"
    else:
        seen.add(id(value))
        yield from _of_object(value, home, seen)


def _of_object(value: Any, home: str, seen: set[int]) -> Iterator[str]:
    if isinstance(value, FunctionType):
        yield from _of_function(value, home, seen)
    elif isinstance(value, type):
        yield from _of_class(value, home, seen)
    elif isinstance(value, partial):
        yield from _all([value.func, value.args, value.keywords], home, seen)
    elif isinstance(value, list):
        yield from _all(value, home, seen)
    elif isinstance(value, Mapping):
        yield from _all([item for pair in value.items() for item in pair], home, seen)
    elif isinstance(value, Module):
        yield from _all([value.name, value.version, value.implementation], home, seen)
    elif hasattr(value, "__func__"):  # a method, perhaps of a class or static
        yield from _all([value.__func__, getattr(value, "__self__", None)], home, seen)
    else:
        yield type(value).__qualname__
        if _is_near(_home(type(value)), home):
            yield from _all([type(value), getattr(value, "__dict__", None)], home, seen)


def _all(values: Any, home: str, seen: set[int]) -> Iterator[str]:
    yield f"{len(values)}"
    for value in values:
        yield from _texts(value, home, seen)


def _is_near(name: str, home: str) -> bool:
    """Whether two Python modules belong together: to the same package, or to the same folder."""
    if name == home:
        return True
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top == "streamproof":
        return False
    if top == home.partition(".")[0]:
        return True
    folders = [Path(file).parent for n in (name, home) if (file := getattr(sys.modules.get(n), "__file__", None))]
    return len(folders) == 2 and folders[0] == folders[1] and folders[0].name != "site-packages"


def _of_function(function: FunctionType, home: str, seen: set[int]) -> Iterator[str]:
    yield function.__qualname__
    if not _is_near(_home(function), home):
        return
    consts = function.__code__.co_consts
    documented = bool(consts) and function.__doc__ is not None and consts[0] == function.__doc__
    yield from _of_code(function.__code__, consts[1:] if documented else consts, home, seen)
    yield from _all([function.__defaults__, function.__kwdefaults__], home, seen)
    for cell in function.__closure__ or ():
        try:
            yield from _texts(cell.cell_contents, home, seen)
        except ValueError:
            yield "empty"
    names = _names(function.__code__)
    for name in names:
        if name in function.__globals__:
            value = function.__globals__[name]
            yield name
            yield from _texts(value, home, seen)
            if isinstance(value, ModuleType) and _is_near(value.__name__, home):
                yield from _all([vars(value)[part] for part in names if part in vars(value)], home, seen)


def _names(code: CodeType) -> list[str]:
    """The names that code may look up, with those of the functions in it."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names(part)]
    return sorted({*code.co_names, *inner})


def _of_code(code: CodeType, consts: tuple[Any, ...], home: str, seen: set[int]) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount, code.co_kwonlyargcount))
    yield from _all(consts, home, seen)


def _of_class(kind: type, home: str, seen: set[int]) -> Iterator[str]:
    yield kind.__qualname__
    if not _is_near(kind.__module__, home):
        return
    yield from _all(kind.__bases__, home, seen)
    for name, value in sorted(vars(kind).items()):
        if not (name.startswith("__") and name.endswith("__")) or isinstance(value, FunctionType):
            yield name
            yield from _texts(value, home, seen)
