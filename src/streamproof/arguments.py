"""The public surface takes what its signatures say, or says what it takes: one decorator, no checks by hand.

A call that Python could not make (an unknown keyword, one too few), and a value of another kind than the annotation
names, are an `ArgumentError`, which says which argument it is, in which call, and what to write.

>>> @door
... def wait(seconds: float, *, unit: Literal["s", "ms"] = "s") -> None: ...
>>> wait("long")
Traceback (most recent call last):
streamproof.errors.ArgumentError: seconds must be a number, got the text "long"
  at: wait("long")
  fix: give a number
>>> wait(1, unti="s")
Traceback (most recent call last):
streamproof.errors.ArgumentError: wait has no argument "unti"
  at: wait(1, unti="s")
  fix: did you mean "unit"? Known: "seconds", "unit"

Calls of ours among each other are looked at only where they fail. Law: what fits is passed on as it is. Elements of
long sequences, and of what can be read only once, are not looked at.
"""

from __future__ import annotations

import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache, wraps
from typing import Any, Final, ParamSpec, TypeVar

from streamproof.errors import ArgumentError, StreamproofError, UnknownName, did_you_mean
from streamproof.kinds import (
    ANYTHING,
    FRAMES,
    NOTHING,
    Kind,
    Space,
    a,
    either,
    is_frame,
    kind_of,
    mapping,
    sequence,
    show,
    show_kind,
)

_HERE: Final = os.path.dirname(__file__) + os.sep
P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def door(function: Callable[P, R]) -> Callable[P, R]:
    """A function or a method that takes what its signature says."""
    return _door(function, looks_first=True)


def told(function: Callable[P, R]) -> Callable[P, R]:
    """A door that is used often, or has better words of its own: where a call fails, its arguments are looked at."""
    return _door(function, looks_first=False)


def _door(function: Callable[P, R], *, looks_first: bool) -> Callable[P, R]:
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if looks_first and not is_ours(sys._getframe(1)):
            check_call(function, args, kwargs)
        try:
            return function(*args, **kwargs)
        except StreamproofError as error:
            if is_ours(sys._getframe(1)):
                raise
            raise error.located(show_call(function, args, kwargs)) from None
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError):
            check_call(function, args, kwargs)
            raise

    return call


def is_ours(frame: types.FrameType) -> bool:
    """Whether code of this package runs there."""
    return frame.f_code.co_filename.startswith(_HERE)


def doors(kind: C) -> C:
    """A class whose constructor and public methods are doors.

    >>> @doors
    ... class Tap:
    ...     def turn(self, degrees: int) -> int: return degrees
    >>> Tap().turn(True)
    Traceback (most recent call last):
    streamproof.errors.ArgumentError: degrees must be a whole number, got True
      at: .turn(True)
      fix: give a whole number
    """
    return _with_doors(kind, door)


def often(kind: C) -> C:
    """A class that is used so often that arguments are looked at only where a call fails."""
    return _with_doors(kind, told)


def _with_doors(kind: C, made: Callable[[Any], Any]) -> C:
    for name, value in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(value, staticmethod | classmethod):
            if not hasattr(value.__func__, "__wrapped__"):
                setattr(kind, name, type(value)(made(value.__func__)))
        elif inspect.isfunction(value) and not hasattr(value, "__wrapped__"):
            setattr(kind, name, made(value))
    return kind


class Knows:
    """An object that says what it has when it is asked for something else."""

    __slots__ = ()

    if not typing.TYPE_CHECKING:  # type checkers know what there is

        def __getattr__(self, name: str) -> object:
            kind = type(self)
            if name.startswith("_"):  # copying, printing and documentation tools ask for these
                raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
            known = [word for word in dir(kind) if not word.startswith("_")]
            fix = kind._instead(name) or did_you_mean(name, known)
            raise UnknownName(f'{a(kind.__name__)} has no "{name}"', at=f".{name}", fix=fix)

    @classmethod
    def _instead(cls, name: str) -> str | None:
        """What to write where a name belongs to something else."""
        return None


# --- the check of a call ---


def check_call(function: Callable[..., Any], args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
    """Raise an `ArgumentError` unless the function takes these arguments."""
    check_kinds(function, check_names(function, args, kwargs), args, kwargs)


def check_names(
    function: Callable[..., Any], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Mapping[str, object]:
    """The arguments by the names of parameters; an `ArgumentError` where Python could not make the call."""
    signature = _known(function)[0]
    try:
        return signature.bind(*args, **kwargs).arguments
    except TypeError:
        raise _unlike(signature, function, args, kwargs) from None


def check_kinds(
    function: Callable[..., Any], bound: Mapping[str, object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> None:
    """Raise an `ArgumentError` for the first argument of another kind than its annotation."""
    kinds = _known(function)[1]
    for parameter, value in bound.items():
        found = kinds[parameter].misfit(value) if parameter in kinds else None
        if found is not None:
            where, culprit, wanted = found
            what = f"{parameter}{where} must be {wanted.words}, got {show_kind(culprit)}"
            raise ArgumentError(what, at=show_call(function, args, kwargs), fix=_fix(wanted, culprit))


def _unlike(
    signature: inspect.Signature, function: Callable[..., Any], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> ArgumentError:
    """What Python says where a call does not fit its signature, in our words."""
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    at, short = show_call(function, args, kwargs), _shown_name(function).removeprefix(".")
    own = _own(function, args)
    takes = f"it takes {_listed(names)}" if names else "it takes none"
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for word in kwargs:
        if word not in names and not open_ended:
            fix = did_you_mean(word, names) if names else takes
            return ArgumentError(f'{short} has no argument "{word}"', at=at, fix=fix)
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(own) > len(placed) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        most = f"at most {len(placed)} arguments" if placed else "no arguments"
        by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        fix = f"give by name: {_listed(by_name)}" if by_name else takes
        return ArgumentError(f"{short} takes {most} without a name, got {len(own)}", at=at, fix=fix)
    given = {*kwargs, *(p.name for p in placed[: len(own)])}
    missing = [p.name for p in parameters if p.default is p.empty and p.name in names and p.name not in given]
    if missing:
        return ArgumentError(f'{short} needs the argument "{missing[0]}"', at=at, fix=takes)
    return ArgumentError(f"{short} is given an argument twice", at=at, fix=takes)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _fix(wanted: Kind, culprit: object) -> str:
    """How to get from what is there to what is wanted."""
    library = type(culprit).__module__.partition(".")[0]
    if library in FRAMES and is_frame(culprit):
        return (
            f"write the frame to a file and give that, with a mapping; or give an Arrow table with columns le and re: "
            f"{FRAMES[library]}"
        )
    words = wanted.fix
    if isinstance(culprit, str) and wanted.words.startswith("one of"):
        return did_you_mean(culprit, wanted.words.removeprefix("one of ").split(", "))
    return words


def show_call(function: Callable[..., Any], args: tuple[object, ...], kwargs: Mapping[str, object]) -> str:
    """A call as it was written, more or less."""
    parts = [*map(show, _own(function, args)), *(f"{key}={show(value)}" for key, value in kwargs.items())]
    return f"{_shown_name(function)}({', '.join(parts)})"


def _own(function: Callable[..., Any], args: tuple[object, ...]) -> tuple[object, ...]:
    return args[1:] if _has_self(function) else args


def _shown_name(function: Callable[..., Any]) -> str:
    """How a call is written: ``.top`` for a method, ``source`` for a function, ``Schema`` for a constructor."""
    owner, _, name = function.__qualname__.rpartition(".")
    if name == "__init__":
        return owner
    return f".{name}" if _has_self(function) else name


def _has_self(function: Callable[..., Any]) -> bool:
    return next(iter(_signature(function).parameters), None) == "self"


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


@cache
def _known(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Kind]]:
    signature = _signature(function)
    space = Space(getattr(inspect.unwrap(function), "__globals__", None) or _globals_of(function))
    kinds = {}
    for parameter in signature.parameters.values():
        if parameter.annotation is parameter.empty or parameter.name in ("self", "cls"):
            continue
        kind = kind_of(parameter.annotation, space)
        if parameter.kind is parameter.VAR_POSITIONAL:
            kind = sequence(kind, (tuple,), "arguments")
        elif parameter.kind is parameter.VAR_KEYWORD:
            kind = mapping(ANYTHING, kind)
        elif parameter.default is None and kind.misfit(None) is not None:
            kind = either([kind, NOTHING])
        kinds[parameter.name] = kind
    return signature, kinds


def _globals_of(function: Callable[..., Any]) -> dict[str, Any]:
    return vars(sys.modules[function.__module__])
