"""What is known of a formula so far: it holds, it fails, nobody can tell yet, or judging it failed.

>>> Verdict.of(True), Verdict.of("?")
(Verdict.HOLDS, Verdict.UNDECIDED)
>>> Verdict.UNDECIDED.solved, Verdict.ERROR.solved
(False, True)
"""

from __future__ import annotations

from enum import Enum

from streamproof.errors import InputError


class FormulaError(InputError, ValueError):
    """A formula or a generator that cannot be built: found where it is written, before anything runs."""


class Verdict(Enum):
    """The four values of a formula. A solved one never changes."""

    HOLDS = "T"
    FAILS = "F"
    UNDECIDED = "?"
    ERROR = "E"

    @property
    def solved(self) -> bool:
        """Whether no later letter can change it."""
        return self is not Verdict.UNDECIDED

    @classmethod
    def of(cls, value: object) -> Verdict:
        """The verdict that a value stands for: a Boolean, a verdict, its letter, or anything with a verdict's truth."""
        if isinstance(value, cls):
            return value
        if isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}:  # NumPy's Booleans too
            return cls.HOLDS if value else cls.FAILS
        if isinstance(value, str) and value in {"T", "F", "?", "E"}:
            return cls(value)
        matched = getattr(value, "holds", None)  # a match, which also says why
        if isinstance(matched, bool):
            return cls.HOLDS if matched else cls.FAILS
        raise FormulaError(
            f"a predicate gives a Boolean, a match or a verdict, not {type(value).__name__}: {value!r}",
            fix="compare explicitly, e.g. len(o) > 0; for a formula use consume(f)",
        )

    def __repr__(self) -> str:
        return f"Verdict.{self.name}"
