"""Random cases as a Hypothesis strategy; the others come from a seed."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from streamproof.workbench.case import Case
from streamproof.workbench.draw.plans import DEEPEST, random_case, seeded_case
from tests.reference.choices import DrawnChoices

__all__ = ["Case", "cases", "random_case", "seeded_case"]


@st.composite
def cases(draw: Callable[[st.SearchStrategy[int]], int], deepest: int = DEEPEST) -> Case:
    """Random cases, as a Hypothesis strategy."""
    return random_case(DrawnChoices(draw), deepest=deepest)
