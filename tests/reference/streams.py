"""Dense streams as a Hypothesis strategy, and what they add up to by definition."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from streamproof.events.schema import Schema
from streamproof.workbench.case import Stream
from streamproof.workbench.draw.dense import TYPES, UNITS, random_schema, random_stream
from tests.reference.choices import DrawnChoices
from tests.reference.fold import fold
from tests.reference.values import Row

__all__ = ["TYPES", "UNITS", "Stream", "fold", "folded", "random_schema", "random_stream", "streams"]


def folded(stream: Stream) -> list[Row]:
    """Its history, folded event by event."""
    return fold(stream.events, stream.schema.names)


@st.composite
def streams(draw: Callable[[st.SearchStrategy[int]], int], schema: Schema | None = None, far: bool = True) -> Stream:
    """Legal physical streams, as a Hypothesis strategy."""
    choices = DrawnChoices(draw)
    return random_stream(choices, schema or random_schema(choices, choices.pick(UNITS)), far=far)
