"""A running query: push into its sources, read what its output has become.

>>> import streamproof as sp
>>> query = sp.source("S").tumbling(10).aggregate(n=sp.count()).on("local").start({"S": {"v": "int64"}})
>>> query.push("S", [{"le": 1, "re": 2, "payload": {"v": 7}}, {"kind": "cti", "t": 10}])
>>> [(batch.rows.to_pylist(), batch.frontier) for batch in query.pull()]
[([{'le': 0, 're': 10, 'w': 1, 'n': 1}], 10)]
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from streamproof.arguments import Knows, door, often
from streamproof.engines.feed import Feed
from streamproof.engines.frames import Tabular
from streamproof.engines.html import query_page
from streamproof.engines.inputs import Input, Loaded
from streamproof.engines.local.graph import GraphStep
from streamproof.engines.local.inlet import Content, Inlet
from streamproof.engines.local.metrics import Metrics
from streamproof.engines.local.outlet import Outlet
from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.pictures.text import marbles
from streamproof.plan.check import Typed
from streamproof.plan.failures import DeadLetter
from streamproof.plan.nodes import Plan

if TYPE_CHECKING:
    from streamproof.engines.local.processor import Processor


@often
class RunningQuery(Tabular, Knows):
    """A query that runs on a processor, alone or beside others."""

    def __init__(
        self,
        processor: Processor,
        name: str,
        plan: Plan,
        typed: Typed,
        *,
        start_offsets: Mapping[str, int],
        keep_history: bool = True,
    ) -> None:
        """Made by `Processor.start` and `Job.start`."""
        self.processor, self.name, self.plan, self.typed = processor, name, plan, typed
        self.start_offsets = start_offsets  # from when on it reads each source
        self.outlet = Outlet(typed.schema, keep_history=keep_history)
        self.given: Mapping[str, Input | Loaded] = {}  # inputs that it was started with
        self._step: GraphStep | None = None

    @property
    def step(self) -> GraphStep:
        """Where its output is made."""
        assert self._step is not None, "the query is placed"
        return self._step

    @step.setter
    def step(self, step: GraphStep) -> None:
        self._step = step

    @property
    def schema(self) -> Schema:
        return self.typed.schema

    @property
    def sources(self) -> Mapping[str, Inlet]:
        """How far each source has come."""
        return self.processor.inlets

    # --- in -----------------------------------------------------------------------------------------------------------

    def push(self, source: str, content: Content) -> None:
        """New events: a Batch, a PhysicalStream, an Arrow table, events, or dicts in the JSON notation.

        They are checked as those of a file are. After an error it is as if they had not been pushed.
        """
        self._refuse_closed()
        self.processor.push(source, content)

    @door
    def finish(self, *sources: str) -> None:
        """These sources, or all, have ended: what they gave is complete."""
        self._refuse_closed()
        self.processor.finish(*sources)

    @door
    def over(
        self,
        inputs: Mapping[str, Input | Loaded | AsyncIterable[Any]] | None = None,
        *,
        most_rows: int | None = None,
        positions: Mapping[str, int] | None = None,
    ) -> Feed:
        """Run over whole inputs: iterate for the batches of output, with ``for`` or ``async for``.

        ``most_rows`` limits what is pushed at once; ``positions`` says how much of each input was pushed before.
        """
        return Feed(self, self.given if inputs is None else inputs, most_rows=most_rows, positions=positions)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.over())

    def __aiter__(self) -> AsyncIterator[Batch]:
        return aiter(self.over())

    # --- out ----------------------------------------------------------------------------------------------------------

    def pull(self) -> list[Batch]:
        """The batches of output since the last time."""
        self.processor.run_due()
        return self.outlet.pull()

    def events(self) -> PhysicalStream:
        """The inserts, retractions and CTIs of the output since the last time."""
        self.processor.run_due()
        return self.outlet.events()

    @property
    def history(self) -> History:
        """What the output adds up to so far."""
        self.processor.settle()
        return self.outlet.history

    @property
    def cti(self) -> int:
        """Up to where the output is sealed."""
        self.processor.settle()
        return self.outlet.frontier

    def take_late(self) -> dict[str, PhysicalStream]:
        """The events that advance_time dropped since the last call, by source; needs ``keep_late``."""
        return self.processor.take_late()

    def take_failures(self) -> list[DeadLetter]:
        """The calls of modules that failed since the last call, where ``on_module_error`` is dead_letter."""
        return self.processor.take_failures()

    # --- looking inside, and state ------------------------------------------------------------------------------------

    @property
    def metrics(self) -> Metrics:
        """The query in numbers."""
        self._refuse_closed()
        return self.processor.metrics(self.name)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about the run: late events, sources that sealed nothing."""
        return self.processor.notes()

    @door
    def picture(self, *, width: int = 100) -> str:
        """The output so far as a text timeline."""
        return marbles(self.history, width=width)

    def savepoint(self) -> bytes:
        """The whole state, with the output that was not read yet; those of queries beside it too."""
        return self.processor.savepoint()

    @door
    def restore(self, savepoint: bytes) -> None:
        """Go on where a savepoint of the same query was taken."""
        self.processor.load(savepoint)

    def close(self) -> None:
        """Stop. What the output became can still be read."""
        if self.is_running:
            self.processor.stop(self.name)

    @property
    def is_running(self) -> bool:
        return self.processor.queries.get(self.name) is self

    def _refuse_closed(self) -> None:
        if not self.is_running:
            raise InputError(f'the query "{self.name}" is closed', fix="start it again")

    def __enter__(self) -> RunningQuery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "running" if self.is_running else "closed"
        return f"RunningQuery({self.name}, {state}, {self.outlet.inserted - self.outlet.retracted} events)"

    def _repr_html_(self) -> str:
        return query_page(repr(self), self.history, str(self.metrics) if self.is_running else "")
