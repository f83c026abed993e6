"""What an annotation admits: as a test, and in words that say what to give instead.

>>> import datetime
>>> print(kind_of("int | str | timedelta", Space({"timedelta": datetime.timedelta})).words)
a length of time
>>> kind_of("list[int]", Space({})).misfit([1, "2"])[:2]
('[1]', '2')
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
import typing
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar, Union, cast

MOST_LOOKED_AT: Final = 100  # elements of a sequence or a mapping
FRAMES: Final = {"pandas": "pyarrow.Table.from_pandas(df)", "polars": "df.to_arrow()", "pyspark": "df.toArrow()"}

Misfit = tuple[str, object, "Kind"]  # where in the argument, what stands there, and what should


class Kind:
    """What an annotation admits: in words, and as a test."""

    def __init__(self, words: str, find: Callable[[Any], Misfit | bool], fix: str | None = None) -> None:
        self.words, self._find = words, find
        self.fix = fix or f"give {words}"

    def misfit(self, value: object) -> Misfit | None:
        """What does not fit, if anything."""
        found = self._find(value)
        if isinstance(found, bool):
            return None if found else ("", value, self)
        return found


_NAMED: Final = "named_"
_OF_SPARK: Final = ("DataFrame", "SparkSession")
ANYTHING: Final = Kind("anything", lambda value: True)


NOTHING: Final = Kind("None", lambda value: value is None, "leave it out")


# --- from annotations to kinds ---


class Space:
    """The names that annotations of a module mean, also those that only type checkers import."""

    def __init__(self, names: Mapping[str, Any], *, anywhere: bool = False) -> None:
        self.names = names
        self.anywhere = anywhere  # look in other modules too: the fields of a class come from those of its parents

    def __getitem__(self, name: str) -> Any:
        if name in self.names:
            found = self.names[name]
        else:
            package = sys.modules["streamproof"]
            if name in package.__all__:
                found = getattr(package, name)
            elif self.anywhere:
                found = _found_anywhere(name)
            else:
                raise KeyError(name)
        return typing.ForwardRef(found) if isinstance(found, str) else found  # an alias that is text


def kind_of(annotation: Any, space: Space) -> Kind:
    """What an annotation admits; what cannot be told admits anything."""
    if isinstance(annotation, str):
        return _evaluated(annotation, space)
    if isinstance(annotation, typing.ForwardRef):
        return kind_of(annotation.__forward_arg__, space)
    if annotation is None or annotation is type(None):
        return NOTHING
    if isinstance(annotation, TypeVar) and annotation.__name__.startswith(_NAMED):
        return _by_name(annotation.__name__.removeprefix(_NAMED))
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        return either([kind_of(part, space) for part in arguments])
    if origin is typing.Annotated:
        return kind_of(arguments[0], space)
    if origin is abc.Callable:
        return _callable(arguments)
    if origin is type:
        return Kind("a class", inspect.isclass)
    if origin is not None and inspect.isclass(origin):
        return _generic(origin, [kind_of(part, space) for part in arguments if part is not ...])
    if not inspect.isclass(annotation) or annotation in (object, Any):
        return ANYTHING
    return _class(annotation)


def _evaluated(text: str, space: Space) -> Kind:
    """An annotation that is text: from where it stands, or from where an alias of this text was made."""
    spaces = [space, *(Space(vars(module)) for module in _modules_with(text)), Space(space.names, anywhere=True)]
    for names in spaces:
        try:
            meant = eval(text, {}, cast("Mapping[str, object]", names))  # noqa: S307  # annotations in our own source
        except NameError:
            continue
        return kind_of(meant, names)
    return ANYTHING


def _found_anywhere(name: str) -> Any:
    if name in _OF_SPARK:
        return TypeVar(f"{_NAMED}{name}")  # what may stand in a union
    modules = [module for place, module in sys.modules.items() if place.startswith("streamproof.")]
    found = {id(value): value for module in modules if (value := vars(module).get(name)) is not None}
    if len(found) != 1:
        raise KeyError(name)
    return next(iter(found.values()))


def _by_name(name: str) -> Kind:
    """A class of Spark, which is not loaded for this."""
    words = f"a Spark {name.removeprefix('Spark')}"

    def fits(value: object) -> bool:
        kinds = type(value).__mro__
        return any(kind.__name__ == name and not kind.__module__.startswith(("pandas", "polars")) for kind in kinds)

    return Kind(words, fits)


def _modules_with(text: str) -> Iterator[types.ModuleType]:
    for name, module in list(sys.modules.items()):
        if name.startswith("streamproof.") and any(value is text for value in vars(module).values()):
            yield module


_WORDS: Final[dict[type, tuple[str, str | None]]] = {
    str: ("text", None), bool: ("true or false", "write True or False"), int: ("a whole number", None),
    float: ("a number", None), type(None): ("None", "leave it out"), bytes: ("bytes", None), dict: ("a dict", None),
}  # fmt: skip
_HINTS: Final = {
    "Aggregate": 'write e.g. sum("v") or count()',
    "Ordering": 'write desc("v") for the greatest first, asc("v") for the least',
    "Stream": 'give a stream, e.g. source("S").where("v > 1")',
    "Linear": 'give a stream, e.g. source("S")',
    "Node": "give a plan: that of a stream, or one that a language reads",
    "Schema": 'write e.g. Schema.of({"v": "int64"})',
    "Type": 'write e.g. "int64"',
    "ColumnMapping": 'write e.g. ColumnMapping(start="time", duration="1h")',
    "Reader": "give what read(path) gives",
    "History": "give a history, e.g. run.history",
    "PhysicalStream": "give what read(path).stream() gives",
    "Validator": 'write e.g. Validator(policy="drop")',
    "Happening": 'write e.g. arrive("S", "v > 1")',
    "Path": "give a path",
    "Registry": "write Registry([module, …])",
}  # fmt: skip


def _class(wanted: type) -> Kind:
    if wanted in _WORDS:
        words, fix = _WORDS[wanted]
    else:
        words, fix = a(wanted.__name__), _HINTS.get(wanted.__name__)
    if wanted is bool:
        return Kind(words, lambda value: isinstance(value, bool), fix)
    if wanted is int:
        return Kind(words, lambda value: isinstance(value, int) and not isinstance(value, bool), fix)
    if wanted is float:
        return Kind(words, lambda value: isinstance(value, int | float) and not isinstance(value, bool), fix)
    if getattr(wanted, "_is_protocol", False):
        return ANYTHING
    if wanted in (abc.Iterable, abc.Sequence, abc.Mapping):
        return _generic(wanted, [])
    if wanted.__name__ == "Node":  # streams hold the plan that is meant
        return Kind("a plan", lambda value: isinstance(getattr(value, "plan", value), wanted), fix)
    return Kind(words, lambda value: isinstance(value, wanted), fix)


def _literal(values: tuple[object, ...]) -> Kind:
    shown = ", ".join(map(str, values))
    fits = {(type(value), value) for value in values}
    return Kind(
        f"one of {shown}" if len(values) > 1 else repr(values[0]),
        lambda value: isinstance(value, str | int | bool | None) and (type(value), value) in fits,
    )


def either(kinds: list[Kind]) -> Kind:
    if any(kind is ANYTHING for kind in kinds):
        return ANYTHING
    words = [kind.words for kind in kinds if kind.words != "None"]
    named = _union_in_words(set(words))
    if named is None:
        unique = list(dict.fromkeys(words))
        text = f"{', '.join(unique[:-1])} or {unique[-1]}" if len(unique) > 1 else (unique or ["None"])[0]
        hints = [kind.fix for kind in kinds if kind.words != "None"]
        named = text, hints[0] if len(set(hints)) == 1 else f"give {text}"
    words_of_all, fix = named

    def find(value: object) -> Misfit | bool:
        misfits = []
        for kind in kinds:
            found = kind.misfit(value)
            if found is None:
                return True
            misfits.append(found)
        deeper = [found for found in misfits if found[0]]  # it is the right container of wrong things
        return deeper[0] if len(deeper) == 1 else False

    return Kind(words_of_all, find, fix)


def _union_in_words(words: set[str]) -> tuple[str, str] | None:
    """Unions that people know by one word."""
    for marks, text, fix in _UNIONS:
        if marks <= words:
            return text, fix
    return None


_UNIONS: Final = (
    ({"a Column", "text"}, "an expression", 'write text such as "v > 1", a column or a constant'),
    ({"a timedelta", "a whole number"}, "a length of time", 'write ticks (5) or text with a unit ("5s")'),
    (
        {"a Table", "a Batch", "a PhysicalStream"},
        "events, a batch, a history or an Arrow table",
        'events are dicts such as {"le": 1, "re": 5, "payload": {"v": 7}}',
    ),
    (
        {"a Table", "a Reader"},
        "a file, events, a history or an Arrow table",
        'give a path, or events such as [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 7}}]',
    ),
    ({"text", "a Path"}, "a path", "give the path of a file"),
)


def _callable(arguments: tuple[Any, ...]) -> Kind:
    """A function that can be called with so many arguments."""
    wanted = arguments[0] if arguments and isinstance(arguments[0], list) else None

    def fits(value: object) -> bool:
        if not callable(value) or wanted is None:
            return callable(value)
        try:
            inspect.signature(value).bind(*wanted)
        except TypeError:
            return False
        except ValueError:  # some built-in functions have no signature
            return True
        return True

    number = "" if wanted is None else f" of {len(wanted)} argument{'' if len(wanted) == 1 else 's'}"
    fix = f"give a function: lambda {', '.join('xyzuvw'[: len(wanted or 'x')])}: …"
    return Kind(f"a function{number}", fits, fix)


def _generic(origin: type, inside: list[Kind]) -> Kind:
    if origin is abc.AsyncIterable:
        return Kind("an asynchronous generator", lambda value: isinstance(value, abc.AsyncIterable))
    if issubclass(origin, abc.Mapping):
        return mapping(*(inside if len(inside) == 2 else (ANYTHING, ANYTHING)))
    if origin is tuple and len(inside) > 1 and len({id(kind) for kind in inside}) > 1:
        return Kind(f"a tuple of {len(inside)}", lambda value: isinstance(value, tuple) and len(value) == len(inside))
    if origin in (tuple, list, set, frozenset) or origin.__module__ == "collections.abc":
        one = inside[0] if inside else ANYTHING
        if origin is abc.Sequence:
            return sequence(one, (list, tuple, range), "a list")
        if origin in (tuple, list, set, frozenset):
            return sequence(one, (origin,), f"a {origin.__name__}")
        return sequence(one, (), "a list")
    return _class(origin)


def sequence(one: Kind, kinds: tuple[type, ...], words: str) -> Kind:
    def find(value: object) -> Misfit | bool:
        if kinds and not isinstance(value, kinds):
            return False
        if isinstance(value, str | bytes | Mapping) or is_frame(value) or not hasattr(value, "__iter__"):
            return False
        if dataclasses.is_dataclass(value) or type(value).__module__.startswith("pyarrow"):
            return False
        if isinstance(value, list | tuple | set | frozenset) and len(value) <= MOST_LOOKED_AT and one is not ANYTHING:
            for place, part in enumerate(value):
                found = one.misfit(part)
                if found is not None:
                    return f"[{place}]{found[0]}", found[1], found[2]
        return True

    return Kind(words, find)


def mapping(key: Kind, one: Kind) -> Kind:
    def find(value: object) -> Misfit | bool:
        if not isinstance(value, Mapping):
            return False
        if len(value) > MOST_LOOKED_AT:
            return True
        for name, part in value.items():
            if key.misfit(name) is not None:
                return " (a key of it)", name, key
            found = one.misfit(part)
            if found is not None:
                return f"[{show(name)}]{found[0]}", found[1], found[2]
        return True

    return Kind("a mapping", find, 'write a mapping by name: {"name": …}')


# --- values in words ---


def show_kind(value: object) -> str:
    """A value in a sentence about its kind.

    >>> show_kind("v > 1"), show_kind(None), show_kind({1, 2})
    ('the text "v > 1"', 'None', 'a set')
    """
    if isinstance(value, str):
        return f"the text {show(value)}"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    return f"a {library} {kind.__name__}" if library in FRAMES else a(kind.__name__)


def a(word: str) -> str:
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def is_frame(value: object) -> bool:
    """A data frame of a library that we do not read directly."""
    return type(value).__module__.partition(".")[0] in FRAMES


def show(value: object) -> str:
    if isinstance(value, str):
        return f'"{value[:80]}…"' if len(value) > 80 else f'"{value}"'
    if isinstance(value, Mapping):
        return "{" + ", ".join(f'"{key}": {show(part)}' for key, part in value.items()) + "}"
    plain = (
        isinstance(value, int | float | tuple | list) or value is None or type(value).__name__ in ("Column", "Choice")
    )
    text = repr(value) if plain else "…"
    return f"{text[:80]}…" if len(text) > 80 else text
