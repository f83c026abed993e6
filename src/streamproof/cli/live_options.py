"""The options of ``run`` that only the local engine knows. Nothing here loads that engine before it is needed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from streamproof.cli.screen import err, note, print_line
from streamproof.engines.inputs import Input
from streamproof.engines.job import Job
from streamproof.events.validate import Validator

Emit = Literal["cht", "events"]
Emission = Literal["speculative", "eager", "final"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """How a run goes on part by part."""

    emission: Emission = "speculative"
    batch_size: int | None = None
    savepoint: Path | None = None  # where the state goes if the run is interrupted
    from_savepoint: Path | None = None
    late_file: Path | None = None
    on_module_error: Literal["fail", "dead-letter"] = "fail"
    module_letters: Path | None = None
    metrics: bool = False
    quiet: bool = False

    def engine_options(self, engine: str) -> dict[str, Any]:
        """What the engine is made with."""
        if engine == "local":
            return {"emission": self.emission, "on_module_error": self.on_module_error.replace("-", "_")}
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What of the result goes where."""

    emit: Emit
    out: Path | None
    overwrite: bool


def live_run(
    job: Job,
    readers: Mapping[str, Input],
    validators: Mapping[str, Validator],
    *,
    options: LiveOptions,
    output: Output,
    files: Mapping[str, Path],
) -> Any:
    """The run, about to begin: a `streamproof.cli.live.LiveRun`."""
    live = importlib.import_module("streamproof.cli.live")
    return live.LiveRun(job, readers, validators, options=options, output=output, files=files)


def report(run: Any, options: LiveOptions, *, as_json: bool) -> None:
    """What there is to say about a run that is over."""
    for text in [] if options.quiet else run.notes():
        note(text)
    if options.metrics and as_json:
        print_line(f'{{"metrics": {run.query.metrics.to_json()}}}')
    elif options.metrics:
        err.print(str(run.query.metrics), markup=False)
