"""Choices, streams and cases that Hypothesis draws, and can shrink; those that come from a seed are the workbench's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import strategies as st

from streamproof.events.schema import Schema
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.draw.dense import UNITS, random_schema, random_stream
from streamproof.workbench.draw.plans import DEEPEST, random_case
from streamproof.workbench.evaluator.fold import fold
from streamproof.workbench.evaluator.values import Row

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[int]], int]


class DrawnChoices:
    """Choices that Hypothesis makes."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.integer(0, 99) >= 100 - percent


@st.composite
def cases(draw: Draw, deepest: int = DEEPEST) -> Case:
    """Random cases, as a Hypothesis strategy."""
    return random_case(DrawnChoices(draw), deepest=deepest)


@st.composite
def streams(draw: Draw, schema: Schema | None = None, far: bool = True) -> CaseStream:
    """Legal physical streams, as a Hypothesis strategy."""
    choices = DrawnChoices(draw)
    return random_stream(choices, schema or random_schema(choices, choices.pick(UNITS)), far=far)


def folded(stream: CaseStream) -> list[Row]:
    """The history of a stream, by definition: event by event."""
    return fold(stream.events, stream.schema.names)
