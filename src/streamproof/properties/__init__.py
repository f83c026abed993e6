"""Properties of streaming jobs in bounded temporal logic, on Hypothesis and pytest.

    from streamproof.properties import always, assert_holds, now, of, run_stream, tumbling, windows

Every name is loaded when it is first used: formulas alone need neither Hypothesis nor Spark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamproof.properties.drawing import windows as windows
    from streamproof.properties.formula import Formula as Formula
    from streamproof.properties.formula import FormulaError as FormulaError
    from streamproof.properties.formula import Verdict as Verdict
    from streamproof.properties.generators import Gen as Gen
    from streamproof.properties.generators import exactly as exactly
    from streamproof.properties.generators import later as later
    from streamproof.properties.generators import of as of
    from streamproof.properties.judgement import Judgement as Judgement
    from streamproof.properties.judgement import PropertyFailed as PropertyFailed
    from streamproof.properties.judgement import assert_holds as assert_holds
    from streamproof.properties.judgement import judge as judge
    from streamproof.properties.matchers import Match as Match
    from streamproof.properties.matchers import empty as empty
    from streamproof.properties.matchers import every as every
    from streamproof.properties.matchers import exists as exists
    from streamproof.properties.matchers import forall as forall
    from streamproof.properties.matchers import has_count as has_count
    from streamproof.properties.matchers import minus as minus
    from streamproof.properties.matchers import nonempty as nonempty
    from streamproof.properties.matchers import same as same
    from streamproof.properties.matchers import subset as subset
    from streamproof.properties.monitoring import Monitor as Monitor
    from streamproof.properties.monitoring import VerdictChange as VerdictChange
    from streamproof.properties.monitoring import monitor as monitor
    from streamproof.properties.operators import always as always
    from streamproof.properties.operators import consume as consume
    from streamproof.properties.operators import eventually as eventually
    from streamproof.properties.operators import implies as implies
    from streamproof.properties.operators import next as next  # noqa: A004  # its name in temporal logic
    from streamproof.properties.operators import now as now
    from streamproof.properties.operators import release as release
    from streamproof.properties.operators import until as until
    from streamproof.properties.progress import Progress as Progress
    from streamproof.properties.progress import evaluate as evaluate
    from streamproof.properties.progress import safe_length as safe_length
    from streamproof.properties.proving import prove as prove
    from streamproof.properties.report import html_report as html_report
    from streamproof.properties.runner import run_function as run_function
    from streamproof.properties.runner import run_plan as run_plan
    from streamproof.properties.runner import run_recorded as run_recorded
    from streamproof.properties.runner import run_stream as run_stream
    from streamproof.properties.runs import SubjectRun as SubjectRun
    from streamproof.properties.runs import WordStep as WordStep
    from streamproof.properties.runs import micro_batches as micro_batches
    from streamproof.properties.runs import sliding as sliding
    from streamproof.properties.runs import tumbling as tumbling
    from streamproof.properties.streams import WindowedStream as WindowedStream
    from streamproof.properties.streams import recorded as recorded

_ROOMS = {
    "formula": "Formula FormulaError Verdict",
    "generators": "Gen exactly later of",
    "judgement": "Judgement PropertyFailed assert_holds judge",
    "runs": "SubjectRun WordStep micro_batches sliding tumbling",
    "matchers": "Match empty every exists forall has_count minus nonempty same subset",
    "monitoring": "Monitor VerdictChange monitor",
    "progress": "Progress evaluate safe_length",
    "report": "html_report",
    "proving": "prove",
    "runner": "run_function run_plan run_recorded run_stream",
    "streams": "WindowedStream recorded",
    "drawing": "windows",
    "operators": "always consume eventually implies next now release until",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}
__all__ = sorted(_ROOM_OF)  # noqa: PLE0605  # the names are listed once, above


def __getattr__(name: str) -> object:
    """A public name, loaded from its file on first use."""
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'streamproof.properties' has no attribute {name!r}")
    value = getattr(import_module(f"streamproof.properties.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
