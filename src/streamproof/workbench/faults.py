"""What may not be as it was when a run goes on from what was saved: a setting, its input, its output.

Law: whatever it is, it is refused in words, or it changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from streamproof.kernels.base import Emission
from streamproof.plan import nodes
from streamproof.workbench.case import Case


def _other_emission(case: Case) -> Case:
    emission: Emission = "speculative" if case.schedule.emission == "final" else "final"
    return replace(case, schedule=replace(case.schedule, emission=emission))


CHANGES: Final[Mapping[str, Callable[[Case], Case]]] = {
    "emission": _other_emission,
    "horizon": lambda case: replace(case, horizon=7 if case.horizon is None else case.horizon + 5),
    "limits": lambda case: replace(case, limits=replace(case.limits, windows_per_event=17)),
    "rewriting": lambda case: replace(case, schedule=replace(case.schedule, optimise=not case.schedule.optimise)),
    "plan": lambda case: replace(case, plan=nodes.Shift(case.plan, 1)),
}
"""What may be another one, and a case in which it is."""

OF_INPUT: Final = ("late", "grown", "replaced", "renamed", "half", "killed")
"""What may happen to files of the input."""

OF_OUTPUT: Final = ("gone", "emptied", "lost", "cut", "flipped", "older")
"""What may happen to the folder of the output."""
