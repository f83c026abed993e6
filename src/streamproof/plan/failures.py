"""When a module fails: the error that tells its author where, and the dead letter that is left where a run goes on.

A failure names the module, the window, its group and its events, and the line of the module's own code that raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from streamproof.arguments import doors
from streamproof.errors import RunError
from streamproof.events.time import read_tick, show_tick

if TYPE_CHECKING:
    from streamproof.plan.modules import Event, Module, WindowSpan

OnModuleError: TypeAlias = Literal["fail", "dead_letter"]
"""What a failing module does to a run: end it, or leave out what it was called for and go on."""

SHOWN: Final = 3  # events in a message
MOST_EVENTS: Final = 100  # events in a dead letter
LONGEST: Final = 120  # characters of one value in a message


@doors
@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One call that failed, and what was left out for it: a window's rows (UDA, UDO), or rows of a function (UDF)."""

    module: str  # kind, name and version
    error: RunError
    window: WindowSpan | None = None  # None for a function
    group: Mapping[str, Any] | None = None  # the key of the window's group, if there are groups
    events: tuple[Event, ...] = ()  # the window's events, at most `MOST_EVENTS`
    args: tuple[Any, ...] | None = None  # what a function was called with
    count: int = 0  # how many events the window has, or how many rows of a batch the function was called for

    def as_dict(self) -> dict[str, Any]:
        """The letter as plain data; values that JSON does not know are written as text."""
        return {
            "module": self.module,
            "window": None if self.window is None else [show_tick(time) for time in self.window],
            "group": None if self.group is None else {name: _plain(value) for name, value in self.group.items()},
            "events": [{"le": show_tick(e.le), "re": show_tick(e.re), "value": _plain(e.value)} for e in self.events],
            "args": None if self.args is None else [_plain(arg) for arg in self.args],
            "count": self.count,
            **self.error.as_dict(),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> DeadLetter:
        """The letter of such data. Law: ``DeadLetter.from_dict(letter.as_dict()).as_dict() == letter.as_dict()``."""
        from streamproof.plan.modules import Event, WindowSpan  # noqa: PLC0415  # which imports this

        window, args = data["window"], data["args"]
        return DeadLetter(
            module=data["module"],
            error=RunError(data["what"], at=data["at"], fix=data["fix"], name=data["error"]),
            window=None if window is None else WindowSpan(*map(read_tick, window)),
            group=data["group"],
            events=tuple(Event(read_tick(e["le"]), read_tick(e["re"]), e["value"]) for e in data["events"]),
            args=None if args is None else tuple(args),
            count=data["count"],
        )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def module_failed(
    module: Module,
    error: Exception,
    window: WindowSpan,
    events: Sequence[Event],
    *,
    group: Mapping[str, Any] | None = None,
) -> RunError:
    """The error of a module that raised: which module, which window, which events, which line."""
    line = raised_at(error, module)
    return RunError(
        f"{module} failed: {type(error).__name__}: {error}",
        at=f"{place(window, events, group=group)}{line and f', raised at {line}'}",
        fix="call the module by hand on these events; it must not raise",
        name="module_failed",
    )


def function_failed(module: Module, error: Exception, args: Sequence[Any]) -> RunError:
    """The error of a function that raised: which function, with what, at which line."""
    line = raised_at(error, module)
    return RunError(
        f"{module} failed: {type(error).__name__}: {error}",
        at=f"{shown_call(module, args)}{line and f', raised at {line}'}",
        fix="call the function by hand on these values; it must not raise",
        name="module_failed",
    )


def shown_call(module: Module, args: Sequence[Any]) -> str:
    """A call as it would be written."""
    return f"{module.name}({', '.join(map(_short, args))})"


def place(window: WindowSpan, events: Sequence[Event] = (), *, group: Mapping[str, Any] | None = None) -> str:
    """A window in words, with its group and its first events.

    >>> place((0, 10), group={"k": "a"})  # type: ignore[arg-type]
    "window [0, 10) of k='a'"
    """
    text = f"window [{show_tick(window[0])}, {show_tick(window[1])})"
    if group:
        text += " of " + ", ".join(f"{name}={_short(value)}" for name, value in group.items())
    shown = ", ".join(f"[{show_tick(e.le)}, {show_tick(e.re)}) {_short(e.value)}" for e in events[:SHOWN])
    more = f" and {len(events) - SHOWN} more" if len(events) > SHOWN else ""
    return text + (f" with {shown}{more}" if shown else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def raised_at(error: Exception, module: Module) -> str:
    """The line of the module's own code that raised, or that called what raised; empty if it has none."""
    code, found = _code_of(module), ""
    trace = error.__traceback__
    while trace is not None and code is not None:
        if trace.tb_frame.f_code.co_filename == code.co_filename:
            found = f"{Path(code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _code_of(module: Module) -> CodeType | None:
    """Any code of a module's implementation: it tells the file."""
    implementation = module.implementation
    for holder in (implementation, getattr(implementation, "add", None), type(implementation).__call__):
        code = getattr(holder, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


__all__ = ["DeadLetter", "OnModuleError", "function_failed", "module_failed", "place", "raised_at", "shown_call"]
