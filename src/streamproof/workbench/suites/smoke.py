"""Seconds: every operator once or twice, alone and in groups."""

from streamproof.workbench import intent as I  # noqa: N812  # as testers write it
from streamproof.workbench.suite import Suite

_one, _other = I.stream(), I.stream()
SUITE = Suite(
    "smoke",
    (
        I.operator(_one).called("one-input"),
        I.operator(_one, _other).called("two-inputs"),
        _one.group_apply(I.operator).called("groups"),
    ),
    cases=300,
    slow_cases=60,
    streams_per_plan=4,
    about=__doc__ or "",
)
