"""Choices that Hypothesis makes, and can shrink; the others come from a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

from streamproof.workbench.draw.choices import Choices, RandomChoices

__all__ = ["Choices", "DrawnChoices", "RandomChoices"]

T = TypeVar("T")


class DrawnChoices:
    """Choices that Hypothesis makes."""

    def __init__(self, draw: Callable[[st.SearchStrategy[int]], int]) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent
