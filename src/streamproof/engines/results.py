"""What a run gives, wherever its output lies: in this process, in the data frames of an engine, in files.

>>> from streamproof.events.history import History
>>> history = History.from_rows(Schema.of({"v": "int64"}), [(1, 5, {"v": 7}), (2, 3, {"v": 8})])
>>> found, rows = Whole(history).head(1)
>>> found.to_rows(), rows
([Row(le=1, re=5, payload={'v': 7})], 2)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from streamproof.arguments import Knows, doors
from streamproof.engines.frames import Tabular
from streamproof.engines.html import query_page
from streamproof.events.batch import Batch
from streamproof.events.files import ColumnMapping, write
from streamproof.events.history import History
from streamproof.events.physical import from_batches, to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.validate import Policy
from streamproof.pictures.text import marbles
from streamproof.plan.nodes import Plan

Emit: TypeAlias = Literal["cht", "events"]
"""What of an output is asked for: the canonical history, or inserts, retractions and CTIs."""


class Metrics(Protocol):
    """A run in numbers, as text and as one JSON object."""

    def to_json(self) -> str: ...

    def __str__(self) -> str: ...


class Output(Protocol):
    """The output of a run. Nothing of it comes into this process before it is asked for."""

    @property
    def schema(self) -> Schema: ...

    @property
    def metrics(self) -> Metrics | None: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about the run."""
        ...

    @property
    def left_out(self) -> tuple[str, ...]:
        """What an engine that reads files itself could not let in, counted by name; others leave it to readers."""
        ...

    def batches(self) -> tuple[Batch, ...]:
        """All of it, as signed rows."""
        ...

    def history(self) -> History:
        """What it adds up to."""
        ...

    def events(self) -> PhysicalStream:
        """All of it, as inserts, retractions and CTIs."""
        ...

    def head(self, most: int) -> tuple[History, int]:
        """The first rows of the history, and the number of all."""
        ...

    def write(self, path: Path, *, emit: Emit, overwrite: bool) -> int:
        """Write it to a file, whose name tells the format, and give the number of rows or events."""
        ...


class _Here:
    """An output in the memory of this process."""

    def history(self) -> History:
        raise NotImplementedError

    def events(self) -> PhysicalStream:
        raise NotImplementedError

    def head(self, most: int) -> tuple[History, int]:
        history = self.history()
        return History(history.schema, history.rows.slice(0, min(most, history.rows.num_rows))), len(history)

    def write(self, path: Path, *, emit: Emit, overwrite: bool) -> int:
        content = self.history() if emit == "cht" else self.events()
        write(content, path, overwrite=overwrite)
        return len(content)


@dataclass(frozen=True, eq=False)
class Whole(_Here):
    """A result that came as a whole: a history, or the stream that an engine gave."""

    content: History | PhysicalStream
    metrics: Metrics | None = None
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        return self.content.schema

    def batches(self) -> tuple[Batch, ...]:
        return (self.history().to_batch(),)

    def history(self) -> History:
        return self.content if isinstance(self.content, History) else to_history([self.content], schema=self.schema)

    def events(self) -> PhysicalStream:
        if isinstance(self.content, PhysicalStream):
            return self.content
        return from_batches(self.batches(), schema=self.schema)


@dataclass(frozen=True, eq=False)
class InBatches(_Here):
    """A result that came batch by batch."""

    schema: Schema
    parts: tuple[Batch, ...]
    metrics: Metrics | None = None
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def batches(self) -> tuple[Batch, ...]:
        return self.parts

    def history(self) -> History:
        return History.from_batches(self.schema, self.parts)

    def events(self) -> PhysicalStream:
        return from_batches(self.parts, schema=self.schema)


@doors
@dataclass(frozen=True, eq=False)
class Run(Tabular, Knows):
    """The result of a run: the canonical history, the physical events, the batches, a picture."""

    plan: Plan
    output: Output
    seconds: float

    @property
    def schema(self) -> Schema:
        return self.output.schema

    @property
    def metrics(self) -> Metrics | None:
        """The run in numbers, where the engine counts."""
        return self.output.metrics

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing: late events, sources that sealed nothing, inputs that went through this process."""
        return self.output.notes

    @property
    def left_out(self) -> tuple[str, ...]:
        """What an engine that reads files itself could not let in, counted by name."""
        return self.output.left_out

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        """All output, as signed rows."""
        return self.output.batches()

    @cached_property
    def history(self) -> History:
        """The canonical history: the sum of all output."""
        return self.output.history()

    @cached_property
    def events(self) -> PhysicalStream:
        """The output as inserts, retractions and CTIs."""
        return self.output.events()

    def head(self, most: int) -> tuple[History, int]:
        """The first rows of the history, and the number of all; the others stay where they are."""
        return self.output.head(most)

    def write(self, path: str | Path, *, emit: Emit = "cht", overwrite: bool = False) -> int:
        """Write the output to a file, whose name tells the format, and give the number of rows or events.

        An engine that works elsewhere writes it there, and takes a folder too.
        """
        return self.output.write(Path(path), emit=emit, overwrite=overwrite)

    def picture(self, *, width: int = 100) -> str:
        """The output as a text timeline."""
        return marbles(self.history, width=width)

    def _repr_html_(self) -> str:
        title = f"{len(self.history):,} events in {self.seconds:.2f} s"
        return query_page(title, self.history, "" if self.metrics is None else str(self.metrics))

    def __repr__(self) -> str:
        return f"Run({len(self.history)} events in {self.seconds:.2f} s)\n{self.picture()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStream:
    """Files, or folders of files, that are to be run as a stream, and how."""

    files: Mapping[str, Path]
    mappings: Mapping[str, ColumnMapping] = field(default_factory=dict)
    checkpoint: Path | None = None  # without one, the run cannot be continued
    out: Path | None = None  # the folder of its output; without one, the output comes into this process
    emit: Emit = "cht"
    emission: str = "speculative"
    on_error: Policy = "fail"
    final: bool = True  # the files are all there is: at their end, history is complete
    watch: Callable[[int], None] = lambda _events: None  # is told now and then how many events came
