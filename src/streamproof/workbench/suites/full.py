"""Minutes: every operator, window, module kind and facet value, pairs of them, every law."""

from streamproof.workbench.suite import Suite
from streamproof.workbench.suites.scenarios import everything

SUITE = Suite(
    "full",
    everything(),
    cases=12_000,
    slow_cases=1_200,
    engines=("local", "spark-buckets"),
    streams_per_plan=8,
    about=__doc__ or "",
)
