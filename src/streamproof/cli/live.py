"""``streamproof run --engine local``: part by part, with output as it comes, progress, and a way back after Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from streamproof.cli import savepoint, stopping
from streamproof.cli.live_options import LiveOptions, Output
from streamproof.cli.screen import counted, err, note
from streamproof.cli.sinks import LettersFile, event_sink
from streamproof.cli.warm_up import is_cold
from streamproof.engines.claims import Claim, plain
from streamproof.engines.inputs import Input
from streamproof.engines.job import Job, Run
from streamproof.engines.local.feed import Feed
from streamproof.engines.local.query import RunningQuery
from streamproof.events.files import Reader
from streamproof.events.files.writer import Append
from streamproof.events.time import BEGINNING, show_moment
from streamproof.events.validate import Validator


class LiveRun:
    """One run: the query, and where everything that comes out of it goes."""

    def __init__(
        self,
        job: Job,
        inputs: Mapping[str, Input],
        validators: Mapping[str, Validator],
        *,
        options: LiveOptions,
        output: Output,
        files: Mapping[str, Path],
    ) -> None:
        self.options, self.output, self.files = options, output, files
        if is_cold() and not options.quiet:
            note("warming up (compiling kernels, once per installation)")
        for name, validator in validators.items():
            reader = inputs.get(name)
            validator.forgetful = isinstance(reader, Reader) and reader.makes_ids
        self._readers = {name: reader for name, reader in inputs.items() if isinstance(reader, Reader)}
        self.query: RunningQuery = job.start(
            inputs,
            validators=validators,
            keep_history=output.emit == "cht",
            keep_late=options.late_file is not None,
        )
        self.claim = claim_of(inputs, output)
        positions: dict[str, int] = {}
        written: dict[str, int] = {}
        if options.from_savepoint is not None:
            interrupted = savepoint.load(options.from_savepoint, claim=self.claim, files=files)
            savepoint.restore(self.query, interrupted, options.from_savepoint)
            positions, written = interrupted.positions, interrupted.written
            for reader in self._readers.values():
                if str(reader.rejects) in written:
                    reader.go_on()
        self.feed = Feed(self.query, self.query.given, most_rows=options.batch_size, positions=positions)
        self.late, self.failures = (
            LettersFile(path, after=written.get(str(path))) for path in (options.late_file, options.module_letters)
        )
        self.interrupted = False

    def run(self) -> Run | None:
        """Run to the end; None where Ctrl-C ended it before, and the state is in a file."""
        started = perf_counter()
        if self.output.emit == "events":
            with event_sink(self.output.out, self.query.schema, overwrite=self.output.overwrite) as sink:
                self._run(sink)
        else:
            self._run(None)
        if self.interrupted:
            self._leave()
            return None
        kept = (self.query.history.to_batch(),) if self.output.emit == "cht" else ()
        return Run(self.query.plan, self.query.schema, kept, perf_counter() - started)

    def _run(self, sink: Append | None) -> None:
        with _patient(catch=self.options.savepoint is not None) as asked, self._progress() as show:
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
        for source, events in self.query.processor.take_late().items():
            self.late.events(source, events)
        self.failures.documents([letter.as_dict() for letter in self.query.processor.take_failures()])

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
        assert self.options.savepoint is not None
        written = {str(file.path): file.size for file in (self.late, self.failures) if file.path is not None}
        written |= {str(reader.rejects): 0 for reader in self._readers.values() if reader.rejected}
        savepoint.save(
            self.options.savepoint, self.query, claim=self.claim, positions=self.feed.positions, written=written,
            files=self.files,
        )  # fmt: skip
        pushed = counted(sum(self.feed.positions.values()), "event")
        note(f"interrupted after {pushed}; the same command with --from-savepoint {self.options.savepoint} goes on")
        if self.output.emit == "events" and self.output.out is not None:
            note(f"what came out so far is in {self.output.out}; give another --out for the rest")

    @contextmanager
    def _progress(self) -> Iterator[Callable[[int], None]]:
        """Rows, batches, the output's CTI and its lag on standard error, where that is a terminal."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        disable = self.options.quiet or not err.is_terminal
        with Progress(*columns, console=err, transient=True, disable=disable) as bar:
            task = bar.add_task("running", total=None)
            yield lambda number: None if disable else bar.update(task, description=self._state(number))

    def _state(self, number: int) -> str:
        inlets, cti = self.query.processor.inlets.values(), self.query.cti
        rows = sum(inlet.events for inlet in inlets)
        latest = max(inlet.latest for inlet in inlets)
        unit = self.query.schema.unit
        sealed = "no CTI yet" if cti == BEGINNING else f"CTI {show_moment(cti, unit)}, lag {max(0, latest - cti):,}"
        return f"{counted(rows, 'event')}, {counted(number, 'batch').replace('batchs', 'batches')}, {sealed}"


def claim_of(inputs: Mapping[str, Input], output: Output) -> Claim:
    """What the output of a run depends on, beside what its query claims: how its inputs are read, and what it emits."""
    readers = {name: reader.claim for name, reader in inputs.items() if isinstance(reader, Reader)}
    return {"emit": output.emit, "inputs": plain(readers)}


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
