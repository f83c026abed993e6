"""Every deliberate error: what happened, where, and how to fix it.

>>> print(PlanError("hop must be positive, got 0", at="hopping(size=10, hop=0)", fix="give a hop of at least 1 tick"))
hop must be positive, got 0
  at: hopping(size=10, hop=0)
  fix: give a hop of at least 1 tick
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from html import escape
from typing import Any, Final, Literal, Self, TypeVar, get_args

ErrorName = Literal[
    "cti_violation",
    "unmatched_retraction",
    "duplicate_id",
    "empty_lifetime",
    "cti_backwards",
    "output_in_past",
    "unbounded_windows",
    "overflow",
    "reserved_column",
    "duplicate_column",
    "unknown_column",
    "type_mismatch",
    "unknown_module",
    "module_failed",
    "bad_plan",
    "bad_input",
    "limit_exceeded",
    "infrastructure",
    "internal",
]
ERROR_NAMES: tuple[ErrorName, ...] = get_args(ErrorName)


class StreamproofError(Exception):
    """The root of all deliberate errors. ``name`` is stable and machine-readable; the texts are for people."""

    default_name: ErrorName = "bad_input"
    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        at: str | None = None,
        fix: str | None = None,
        name: ErrorName | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.at = at
        self.fix = fix
        self.name: ErrorName = name or self.default_name
        self.others: tuple[StreamproofError, ...] = ()  # what else is wrong, found in one go
        self.omitted = 0  # the number of further ones

    def __str__(self) -> str:
        lines = [_in_lines(what, at, fix) for _, what, at, fix in self.told()]
        return "\n".join([*lines, *([f"and {self.omitted} more errors"] if self.omitted else [])])

    def told(self) -> Iterator[tuple[str, str, str, str]]:
        """Name, what, at and fix of each error for people; a place or a fix that the one before has is not repeated."""
        place = way = None
        for error in (self, *self.others):
            at, fix = ("" if error.at == place else error.at or ""), ("" if error.fix == way else error.fix or "")
            place, way = error.at, error.fix
            yield error.name, _for_people(error.what), _for_people(at), _for_people(fix)

    def as_dict(self) -> dict[str, Any]:
        """The error as one JSON object, as ``--json`` prints it; the others, if there are any, are a list in it."""
        texts = {"what": self.what, "at": self.at, "fix": self.fix}
        shown = {key: text and printable(shortened(text)) for key, text in texts.items()}
        found: dict[str, Any] = {"error": self.name, **shown}
        if self.others:
            found["others"] = [error.as_dict() for error in self.others]
        return {**found, "omitted": self.omitted} if self.omitted else found

    def located(self, at: str) -> StreamproofError:
        """The same error, with a place if it had none."""
        for error in (self, *self.others):
            error.at = error.at or at
        return self

    def within(self, place: str, between: str = ", ") -> StreamproofError:
        """The same error, its place in a larger one."""
        for error in (self, *self.others):
            error.at = f"{place}{between}{error.at}" if error.at else place
        return self


def _for_people(text: str) -> str:
    return printable(shortened(text))


def _in_lines(what: str, at: str, fix: str) -> str:
    return "\n".join([what, *([f"  at: {at}"] if at else []), *([f"  fix: {fix}"] if fix else [])])


MOST_AT_ONCE: Final = 20
T = TypeVar("T")
M = TypeVar("M")


class Gathering:
    """Steps that do not need each other: where some fail, the errors of all are told at the end.

    >>> def even(number):
    ...     if number % 2:
    ...         raise PlanError(f"{number} is odd")
    >>> with Gathering() as steps:
    ...     for number in (1, 2, 3):
    ...         _ = steps.tried(lambda: even(number))
    Traceback (most recent call last):
    streamproof.errors.PlanError: 1 is odd
    3 is odd
    """

    def __init__(self) -> None:
        self.errors: list[StreamproofError] = []

    def tried(self, do: Callable[[], T]) -> T | None:
        """What a step makes; None where it fails."""
        try:
            return do()
        except StreamproofError as error:
            self.errors.append(error)
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, StreamproofError):
            self.errors.append(error)
        if self.errors and (error is None or isinstance(error, StreamproofError)):
            raise together(self.errors) from None


def each(things: Iterable[T], do: Callable[[T], M]) -> list[M]:
    """What a function makes of each thing; where it fails for several, all their errors are told at once.

    It calls nothing between itself and the function, because plans and expressions may be nested deeply.
    """
    made, errors = list[M](), list[StreamproofError]()
    for thing in things:
        try:
            made.append(do(thing))
        except StreamproofError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return made


def together(errors: Iterable[StreamproofError]) -> StreamproofError:
    """The first error, with the others as what else is wrong; of very many, the first, and the number of the rest.

    >>> print(str(together(PlanError(f"error {n}") for n in range(25))).splitlines()[-2:])
    ['error 19', 'and 5 more errors']
    """
    known = list(errors)
    first, *others = dict.fromkeys(part for error in known for part in (error, *error.others))
    omitted = sum(error.omitted for error in known) + max(0, len(others) - MOST_AT_ONCE + 1)
    for error in others:
        error.others, error.omitted = (), 0
    first.others, first.omitted = tuple(others[: MOST_AT_ONCE - 1]), omitted
    return first


MOST_SHOWN = 600


def shortened(text: str) -> str:
    """Text for people, who do not read thousands of characters: the ends stay.

    >>> shortened("x" * 10_000).count("x")
    600
    """
    half = MOST_SHOWN // 2
    return text if len(text) <= MOST_SHOWN else f"{text[:half]} … {text[-half:]}"


def printable(text: str) -> str:
    """Text with control characters and halves of characters written out, so that none from data can steer a terminal.

    >>> printable("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)


def on_a_page(text: str) -> str:
    """Text for HTML and SVG: nothing in it is markup, and nothing steers what shows it.

    >>> on_a_page("<b>\\x1b[2J")
    '&lt;b&gt;\\\\x1b[2J'
    """
    return escape(printable(text))


def as_shown(value: Any) -> Any:
    """What a page shows of a value: for text, as `printable`; markup of our own stays as it is."""
    return printable(value) if type(value) is str else value


class PlanWarning(UserWarning):
    """A plan that does what it says, which is seldom what is meant."""


class PlanError(StreamproofError):
    """The plan itself is wrong: found before any data is read."""

    default_name: ErrorName = "bad_plan"


class InputError(StreamproofError):
    """The data breaks a rule of the physical stream or of the file format."""

    default_name: ErrorName = "bad_input"


class ArgumentError(PlanError, InputError, TypeError):
    """A call that cannot be made: an argument too many, too few, or of another kind than the call takes."""

    default_name: ErrorName = "bad_input"


class UnknownName(PlanError, AttributeError):  # type: ignore[misc]  # both call something else `name`
    """A method or a function that does not exist."""

    default_name: ErrorName = "bad_input"


class RunError(StreamproofError):
    """Plan and data are well-formed, but their result does not exist: overflow, unbounded windows, a failing module."""

    default_name = "module_failed"


class InfrastructureError(StreamproofError):
    """A database or another outside system failed; neither plan nor data is to blame."""

    default_name = "infrastructure"
    exit_code = 3


class InternalError(StreamproofError):
    """Something that nobody expected: most likely a mistake in this program."""

    default_name = "internal"
    exit_code = 3


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name.

    >>> did_you_mean("valeu", ["key", "value"])
    'did you mean "value"? Known: "key", "value"'
    >>> did_you_mean("x", [])
    'none are known here'
    """
    names = list(known)
    if not names:
        return "none are known here"
    near = get_close_matches(word, names, n=1)
    shown = ", ".join(f'"{name}"' for name in names[:20]) + (", …" if len(names) > 20 else "")
    return f'did you mean "{near[0]}"? Known: {shown}' if near else f"known: {shown}"
