"""Temporal streaming queries on Spark, and the workbench that proves them right.

>>> import streamproof as sp
>>> busy = sp.source("S").tumbling(10).aggregate(n=sp.count())
>>> events = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 7}}]
>>> busy.on("duckdb").run({"S": events}).history.to_rows()
[Row(le=0, re=10, payload={'n': 1})]

Every public name is loaded when it is first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import os
from importlib import import_module

TYPE_CHECKING = False  # what type checkers take for true, without loading `typing` while a program starts
if TYPE_CHECKING:
    from streamproof.disorder.analysis import Analysis as Analysis
    from streamproof.disorder.api import analyze as analyze
    from streamproof.disorder.api import make_disorder as make_disorder
    from streamproof.disorder.api import register_sources as register_sources
    from streamproof.engines.job import Job as Job
    from streamproof.engines.job import on as on
    from streamproof.engines.local.metrics import Metrics as Metrics
    from streamproof.engines.local.processor import Processor as Processor
    from streamproof.engines.local.query import RunningQuery as RunningQuery
    from streamproof.engines.local.trace import trace as trace
    from streamproof.engines.results import Run as Run
    from streamproof.errors import InfrastructureError as InfrastructureError
    from streamproof.errors import InputError as InputError
    from streamproof.errors import PlanError as PlanError
    from streamproof.errors import RunError as RunError
    from streamproof.errors import StreamproofError as StreamproofError
    from streamproof.events.batch import Batch as Batch
    from streamproof.events.compare import explain_difference as explain_difference
    from streamproof.events.compare import same_bag as same_bag
    from streamproof.events.compare import same_snapshots as same_snapshots
    from streamproof.events.event import Cti as Cti
    from streamproof.events.event import Insert as Insert
    from streamproof.events.event import Retract as Retract
    from streamproof.events.files import ColumnMapping as ColumnMapping
    from streamproof.events.files import read as read
    from streamproof.events.files import write as write
    from streamproof.events.history import History as History
    from streamproof.events.physical import from_batches as from_batches
    from streamproof.events.physical import to_batches as to_batches
    from streamproof.events.physical import to_history as to_history
    from streamproof.events.schema import Schema as Schema
    from streamproof.events.stream import PhysicalStream as PhysicalStream
    from streamproof.events.time import BEGINNING as BEGINNING
    from streamproof.events.time import FOREVER as FOREVER
    from streamproof.events.validate import Validator as Validator
    from streamproof.generate.describe import describe as describe
    from streamproof.generate.facets import Facets as Facets
    from streamproof.generate.speculative import make_duplicates as make_duplicates
    from streamproof.generate.speculative import make_speculative as make_speculative
    from streamproof.generate.stream import generated as generated
    from streamproof.kernels.modulecheck import check_module as check_module
    from streamproof.pictures.text import marbles as marbles
    from streamproof.plan.failures import DeadLetter as DeadLetter
    from streamproof.plan.modules import Event as Event
    from streamproof.plan.modules import Parameter as Parameter
    from streamproof.plan.modules import Properties as Properties
    from streamproof.plan.modules import Registry as Registry
    from streamproof.plan.modules import uda as uda
    from streamproof.plan.modules import udf as udf
    from streamproof.plan.modules import udo as udo
    from streamproof.qos.arrivals import TokenBucket as TokenBucket
    from streamproof.qos.arrivals import from_trace as from_trace
    from streamproof.qos.server import QueryServer as QueryServer
    from streamproof.qos.service import QoS as QoS
    from streamproof.query import functions as functions
    from streamproof.query.aggregates import avg as avg
    from streamproof.query.aggregates import count as count
    from streamproof.query.aggregates import count_distinct as count_distinct
    from streamproof.query.aggregates import count_values as count_values
    from streamproof.query.aggregates import first as first
    from streamproof.query.aggregates import last as last
    from streamproof.query.aggregates import max as max
    from streamproof.query.aggregates import median as median
    from streamproof.query.aggregates import min as min
    from streamproof.query.aggregates import percentile as percentile
    from streamproof.query.aggregates import stdev_pop as stdev_pop
    from streamproof.query.aggregates import stdev_samp as stdev_samp
    from streamproof.query.aggregates import sum as sum
    from streamproof.query.aggregates import var_pop as var_pop
    from streamproof.query.aggregates import var_samp as var_samp
    from streamproof.query.column import asc as asc
    from streamproof.query.column import call as call
    from streamproof.query.column import col as col
    from streamproof.query.column import desc as desc
    from streamproof.query.column import left as left
    from streamproof.query.column import lit as lit
    from streamproof.query.column import right as right
    from streamproof.query.column import sql as sql
    from streamproof.query.column import when as when
    from streamproof.query.eql import arrive as arrive
    from streamproof.query.eql import becomes as becomes
    from streamproof.query.eql import changes as changes
    from streamproof.query.eql import clock as clock
    from streamproof.query.eql import eql as eql
    from streamproof.query.eql import lasting as lasting
    from streamproof.query.stream import Stream as Stream
    from streamproof.query.stream import group_input as group_input
    from streamproof.query.stream import let as let
    from streamproof.query.stream import ref as ref
    from streamproof.query.stream import source as source

_ROOMS = {
    "disorder.analysis": "Analysis",
    "disorder.api": "analyze make_disorder register_sources",
    "engines.job": "Job on",
    "engines.local.metrics": "Metrics",
    "engines.local.processor": "Processor",
    "engines.local.query": "RunningQuery",
    "engines.local.trace": "trace",
    "engines.results": "Run",
    "errors": "InfrastructureError InputError PlanError RunError StreamproofError",
    "events.batch": "Batch",
    "events.compare": "explain_difference same_bag same_snapshots",
    "events.files": "ColumnMapping read write",
    "events.event": "Cti Insert Retract",
    "events.history": "History",
    "events.physical": "from_batches to_batches to_history",
    "events.schema": "Schema",
    "events.stream": "PhysicalStream",
    "events.time": "BEGINNING FOREVER",
    "events.validate": "Validator",
    "pictures.text": "marbles",
    "generate.describe": "describe",
    "generate.facets": "Facets",
    "generate.speculative": "make_duplicates make_speculative",
    "generate.stream": "generated",
    "kernels.modulecheck": "check_module",
    "plan.failures": "DeadLetter",
    "plan.modules": "Event Parameter Properties Registry uda udf udo",
    "qos.arrivals": "TokenBucket from_trace",
    "qos.server": "QueryServer",
    "qos.service": "QoS",
    "query": "functions",
    "query.aggregates": (
        "avg count count_distinct count_values first last max median min percentile"
        " stdev_pop stdev_samp sum var_pop var_samp"
    ),
    "query.eql": "arrive becomes changes clock eql lasting",
    "query.column": "asc call col desc left lit right sql when",
    "query.stream": "Stream group_input let ref source",
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}
__all__ = sorted(_ROOM_OF)  # noqa: PLE0605  # the names are listed once, above


def __getattr__(name: str) -> object:
    """A public name, loaded from its room on first use; ``__version__`` is that of the installed package."""
    if name == "__version__":
        globals()[name] = import_module("importlib.metadata").version("streamproof")
        return globals()[name]
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'streamproof' has no attribute {name!r}")
    room = import_module(f"streamproof.{_ROOM_OF[name]}")
    value = import_module(f"streamproof.query.{name}") if name == "functions" else getattr(room, name)
    globals()[name] = value
    return value


def _find_room_for_compiled_code() -> None:
    """Where neither the installation nor the home can be written to, keep compiled code in a temporary folder.

    What is kept there will be run, so the folder must be the user's own, and closed to everybody else.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    usual = (os.path.dirname(__file__), home if os.path.isdir(home) else os.path.dirname(home))
    if "NUMBA_CACHE_DIR" in os.environ or any(os.access(place, os.W_OK) for place in usual):
        return
    os.environ["NUMBA_CACHE_DIR"] = _own_folder("compiled")


def _own_folder(purpose: str) -> str:
    """A temporary folder for things that are trusted when they are found again: the user's own, and closed to others.

    Where somebody else has taken its name, it is a new one.
    """
    tempfile = import_module("tempfile")
    user = os.getuid() if hasattr(os, "getuid") else 0
    place = os.path.join(tempfile.gettempdir(), f"streamproof-{purpose}-{user}")
    try:
        os.mkdir(place, 0o700)
    except FileExistsError:
        found = os.lstat(place)
        if found.st_uid != user or found.st_mode & 0o170777 != 0o040700:
            return str(tempfile.mkdtemp(prefix=f"streamproof-{purpose}-"))
    return place


if hasattr(os, "getuid"):
    _find_room_for_compiled_code()


def __dir__() -> list[str]:
    return [*globals(), *__all__]
