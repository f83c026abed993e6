"""One vocabulary of verdicts, for verification, laws and properties alike, and one mapping to exit codes.

>>> Verdict("holds").exit_code, Verdict("fails", kind="rows").exit_code
(0, 1)
>>> worst(["holds", "undecided", "holds"])
'undecided'
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from streamproof.events.history import History

Word: TypeAlias = Literal["holds", "explained", "undecided", "nondeterministic", "fails"]
WORDS: Final[tuple[Word, ...]] = ("holds", "explained", "undecided", "nondeterministic", "fails")
"""From the best to the worst."""

EXIT_CODES: Final[dict[Word, int]] = {"holds": 0, "explained": 0, "undecided": 0, "nondeterministic": 1, "fails": 1}


@dataclass(frozen=True)
class Failure:
    """A run that ended with an error: its name, and its text for people."""

    name: str
    text: str = ""


TOO_LARGE: Final = Failure("too_large", "the result is larger than the evaluator can judge")
"""Of a case that the evaluator does not judge."""

Outcome: TypeAlias = "History | Failure"
"""What a run gives: a history, or an error."""


@dataclass(frozen=True)
class Verdict:
    """What came of a case."""

    word: Word
    kind: str = ""  # what sort of difference: differences of one sort shrink together
    text: str = ""  # the first difference, in words
    expected: Outcome | None = None
    actual: Outcome | None = None
    engine: str = ""
    law: str = ""  # the law that is broken, where a plain run gives the right result

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.word]

    @property
    def is_found(self) -> bool:
        """Whether it says that something is wrong."""
        return self.exit_code == 1


def worst(words: Iterable[Word]) -> Word:
    """The verdict of many verdicts."""
    return max(words, key=WORDS.index, default="holds")
