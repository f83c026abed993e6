"""Everything drawn: any plan over dense streams, five operators deep, each plan once; for the evaluator to judge."""

from streamproof.workbench import intent as I  # noqa: N812  # as testers write it
from streamproof.workbench.suite import Suite

SUITE = Suite(
    "fuzz",
    (I.random_case().called("anything"),),
    cases=2000,
    slow_cases=500,
    streams_per_plan=1,
    about=__doc__ or "",
)
