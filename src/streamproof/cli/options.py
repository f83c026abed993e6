"""The fields of a dataclass as the options of a command: said once, with their types, defaults and help.

>>> from streamproof.cli.run import run
>>> list(inspect.signature(run).parameters)[:3]
['plan', 'input', 'engine']
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")


def takes(options: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Make a function of one such object a command that has its fields as options."""

    def made(function: Callable[[T], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            function(options(**given))

        hints = get_type_hints(options, include_extras=True)
        empty = inspect.Parameter.empty
        parameters = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
            for field in fields(options)  # type: ignore[arg-type]  # it is a dataclass
        ]
        command.__name__, command.__doc__, command.__module__ = function.__name__, function.__doc__, function.__module__
        command.__annotations__ = {**hints, "return": None}
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what a function has if told
        return command

    return made
