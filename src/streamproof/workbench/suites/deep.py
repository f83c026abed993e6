"""As long as you like: the scenarios of full, without an end; give --cases or --time-budget."""

from streamproof.workbench.suite import Suite
from streamproof.workbench.suites.scenarios import everything

SUITE = Suite(
    "deep",
    everything(),
    cases=1_000_000,
    slow_cases=50_000,
    seed=2,
    engines=("local", "spark-buckets"),
    streams_per_plan=8,
    about=__doc__ or "",
)
