"""``streamproof run`` on an engine that takes events as they come: part by part, with output and progress on the way.

Ctrl-C ends a run in a state from which it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from streamproof.cli import savepoint, stopping
from streamproof.cli.screen import counted, err, note
from streamproof.cli.sinks import LettersFile, event_sink
from streamproof.engines.claims import Claim, plain
from streamproof.engines.job import Job
from streamproof.engines.results import Emit, Run, Whole
from streamproof.events.files import Reader
from streamproof.events.files.writer import Append
from streamproof.events.time import BEGINNING, show_moment

if TYPE_CHECKING:
    from streamproof.cli.run import Asked, Inputs


class LiveRun:
    """One run: the query, and where everything that comes out of it goes."""

    def __init__(self, job: Job, inputs: Inputs, asked: Asked) -> None:
        self.asked, self.files = asked, inputs.files
        self._readers = inputs.opened()
        self.query = job.start(
            self._readers,
            validators=inputs.validators,
            keep_history=asked.emit == "cht",
            keep_late=asked.late_file is not None,
        )
        self._offered = job.engine.capabilities.options
        self.claim = claim_of(self._readers, asked.emit)
        positions: dict[str, int] = {}
        written: dict[str, int] = {}
        if asked.from_savepoint is not None:
            interrupted = savepoint.load(asked.from_savepoint, claim=self.claim, files=self.files)
            savepoint.restore(self.query, interrupted, asked.from_savepoint)
            positions, written = interrupted.positions, interrupted.written
            for reader in self._readers.values():
                if str(reader.rejects) in written:
                    reader.continues()
        self.feed = self.query.over(most_rows=asked.batch_size, positions=positions)
        self.late, self.failures = (
            LettersFile(path, after=written.get(str(path))) for path in (asked.late_file, asked.module_letters)
        )
        self.interrupted = False

    def run(self) -> Run | None:
        """Run to the end; None where all output has gone out, or where Ctrl-C came and the state is in a file."""
        started = perf_counter()
        if self.asked.emit == "events":
            with event_sink(self.asked.out, self.query.schema, overwrite=self.asked.overwrite) as sink:
                self._run(sink)
        else:
            self._run(None)
        if self.interrupted:
            self._leave()
        if self.interrupted or self.asked.emit == "events":
            return None
        return Run(self.query.plan, Whole(self.query.history), perf_counter() - started)

    def _run(self, sink: Append | None) -> None:
        with _patient(catch=self.asked.savepoint is not None) as asked, self._progress() as show:
            for number, _ in enumerate(self.feed.steps(), start=1):
                self._pass_on(sink)
                show(number)
                self.interrupted = asked()
                if self.interrupted:
                    break

    def _pass_on(self, sink: Append | None) -> None:
        """What came out of one push."""
        if sink is not None:
            stream = self.query.events()
            if len(stream):
                sink(stream)
        else:
            self.query.pull()
        if self.asked.late_file is not None:
            for source, events in self.query.take_late().items():
                self.late.events(source, events)
        if "on_module_error" in self._offered:
            self.failures.documents([letter.as_dict() for letter in self.query.take_failures()])

    def notes(self) -> list[str]:
        """What was left out, and what is worth knowing."""
        found = [] if self.interrupted else list(self.query.notes)
        if self.late.count:
            found.append(f"{counted(self.late.count, 'late event')} in {self.late.path}")
        if self.failures.count:
            where = (
                f"; they are in {self.failures.path}" if self.failures.path else "; --module-letters FILE keeps them"
            )
            found.append(f"{counted(self.failures.count, 'call')} of modules failed and were left out{where}")
        return found

    def _leave(self) -> None:
        """Write down how far the run came, and say how to go on."""
        assert self.asked.savepoint is not None
        written = {str(file.path): file.size for file in (self.late, self.failures) if file.path is not None}
        written |= {str(reader.rejects): 0 for reader in self._readers.values() if reader.rejected}
        savepoint.save(
            self.asked.savepoint, self.query, claim=self.claim, positions=self.feed.positions, written=written,
            files=self.files,
        )  # fmt: skip
        pushed = counted(sum(self.feed.positions.values()), "event")
        note(f"interrupted after {pushed}; the same command with --from-savepoint {self.asked.savepoint} goes on")
        if self.asked.emit == "events" and self.asked.out is not None:
            note(f"what came out so far is in {self.asked.out}; give another --out for the rest")

    @contextmanager
    def _progress(self) -> Iterator[Callable[[int], None]]:
        """Rows, batches, the output's CTI and its lag on standard error, where that is a terminal."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        disable = self.asked.quiet or not err.is_terminal
        with Progress(*columns, console=err, transient=True, disable=disable) as bar:
            task = bar.add_task("running", total=None)
            yield lambda number: None if disable else bar.update(task, description=self._state(number))

    def _state(self, number: int) -> str:
        sources, cti = self.query.sources.values(), self.query.cti
        rows = sum(source.events for source in sources)
        latest = max(source.latest for source in sources)
        unit = self.query.schema.unit
        sealed = "no CTI yet" if cti == BEGINNING else f"CTI {show_moment(cti, unit)}, lag {max(0, latest - cti):,}"
        return f"{counted(rows, 'event')}, {counted(number, 'batch').replace('batchs', 'batches')}, {sealed}"


def claim_of(readers: Mapping[str, Reader], emit: Emit) -> Claim:
    """What the output of a run depends on, beside what its query claims: how its inputs are read, and what it emits."""
    return {"emit": emit, "inputs": plain({name: reader.claim for name, reader in readers.items()})}


@contextmanager
def _patient(*, catch: bool) -> Iterator[Callable[[], bool]]:
    """Lets a signal wait until the part at hand is done, so that the state is whole; a second one does not wait."""
    asked = False

    def remember() -> None:
        nonlocal asked
        asked = True

    if not catch:
        yield lambda: False
        return
    with stopping.instead(remember):
        yield lambda: asked
