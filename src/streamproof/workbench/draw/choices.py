"""Where drawing gets its choices from: a seed, or anything else that can choose.

>>> RandomChoices(1).pick("abc") == RandomChoices(1).pick("abc")
True
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Choices(Protocol):
    """Choices; the first option and the smallest number are the simplest."""

    def integer(self, low: int, high: int) -> int: ...

    def pick(self, options: Sequence[T]) -> T: ...

    def chance(self, percent: int) -> bool: ...


class RandomChoices:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  # test data, not secrets

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]

    def chance(self, percent: int) -> bool:
        return self._random.random() * 100 < percent
