"""An engine of somebody else, declared here: histories, live pushes, growing tables, files as a stream, and SQL.

It keeps what comes and works the result out anew; what it lacks is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import streamproof as sp
from streamproof import extensions
from streamproof.engines.base import Capabilities, Settings, prepare
from streamproof.engines.feed import Feed
from streamproof.engines.inputs import Loaded, load
from streamproof.engines.job import on
from streamproof.engines.results import FileStream, Whole
from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.files import read
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.nodes import Plan
from streamproof.plan.rules import Rules
from streamproof.workbench.conformance import conformance
from tests.cli.conftest import Done, lay, run

__all__ = ["lay", "run"]
Run = Callable[..., Done]
EVENTS = [{"kind": "insert", "id": f"e{n}", "le": n, "re": n + 5, "payload": {"v": n}} for n in range(6)]
POINTS = sp.source("S").shift(2).to_point()


def source(typed: Typed, given: Mapping[str, History]) -> History:
    return given[typed.node.name]  # type: ignore[attr-defined]  # a source


def moved(typed: Typed, given: Mapping[str, History]) -> History:
    by = typed.node.by  # type: ignore[attr-defined]  # a shift
    rows = RULES[typed.inputs[0].node](typed.inputs[0], given).to_rows()
    shifted = [(r.le + by, r.re if r.re == FOREVER else r.re + by, r.payload) for r in rows]
    return History.from_rows(typed.schema, shifted)


def point(typed: Typed, given: Mapping[str, History]) -> History:
    rows = RULES[typed.inputs[0].node](typed.inputs[0], given).to_rows()
    return History.from_rows(typed.schema, [(r.le, r.le + 1, r.payload) for r in rows])


RULES: Any = Rules("the engine third", {nodes.Source: source, nodes.Shift: moved, nodes.ToPoint: point})


class Third:
    """An engine that can do everything, for three operators."""

    name = "third"

    def __init__(self, *, dsn: str | None = None) -> None:
        self.dsn = dsn

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            start=self.start, frames=self.batch, tables=self.stream, file_stream=self.stream_files,
            sql=lambda plan, settings: f"-- {type(plan.node).__name__} on {self.dsn}",
            options=frozenset(("dsn", "batch_size")), stream_options=frozenset(("checkpoint",)),
        )  # fmt: skip

    def supports(self) -> dict[str, bool | str]:
        return RULES.supports()

    def run(self, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Iterator[Batch]:
        schemas = {p.node.name: p.schema for p in leaves(plan)}
        yield computed(plan, {n: History.from_batches(s, inputs[n]) for n, s in schemas.items()}).to_batch()

    def start(
        self, plan: Plan, schemas: Mapping[str, Schema], settings: Settings, *, inputs: Mapping[str, Loaded], **_: Any
    ) -> Pushed:
        return Pushed(prepare(plan, schemas, settings), inputs, plan)

    def batch(self, plan: Plan, inputs: Mapping[str, Any], settings: Settings) -> Any:
        loaded = {name: load(name, table).history() for name, table in inputs.items()}
        return computed(prepare(plan, {n: h.schema for n, h in loaded.items()}, settings), loaded).expand()

    def stream(self, plan: Plan, inputs: Mapping[str, Any], settings: Settings, **options: Any) -> Iterator[Any]:
        """A table that grows is an iterable of tables here."""
        for tables in zip(*inputs.values(), strict=True):
            yield self.batch(plan, dict(zip(inputs, tables, strict=True)), settings)

    def stream_files(self, plan: Plan, what: FileStream, settings: Settings) -> Whole:
        loaded = {n: load(n, read(p, mapping=what.mappings.get(n))).history() for n, p in what.files.items()}
        found = Whole(computed(prepare(plan, {n: h.schema for n, h in loaded.items()}, settings), loaded))
        what.watch(len(found.history()))
        return found if what.emit == "cht" else Whole(found.events(), left_out=("nothing was left out",))


@dataclass
class Seen:
    """A source of a running query."""

    schema: Schema
    events: int = 0
    latest: int = BEGINNING
    frontier: int = BEGINNING
    ended: bool = False


class Pushed:
    """A running query: at the end of its sources it gives everything."""

    notes: tuple[str, ...] = ("everything came at the end",)

    def __init__(self, typed: Typed, inputs: Mapping[str, Loaded], plan: Plan) -> None:
        self.typed, self.schema, self.plan, self._inputs = typed, typed.schema, plan, inputs
        self.sources = {part.node.name: Seen(part.schema) for part in leaves(typed)}
        self._parts: dict[str, list[Batch]] = {name: [] for name in self.sources}
        self.cti, self._given = BEGINNING, False

    def push(self, source: str, content: Any) -> None:
        loaded = load(source, content, schema=self.sources[source].schema).checked()
        self._parts[source] += loaded.batches
        self.sources[source].events += 1

    def finish(self, *sources: str) -> None:
        for name in sources or self.sources:
            self.sources[name].ended = True

    def over(self, inputs: Mapping[str, Any] | None = None, **options: Any) -> Feed:
        return Feed(self, self._inputs if inputs is None else inputs, **options)  # type: ignore[arg-type]  # some of it

    @property
    def history(self) -> History:
        given = {n: History.from_batches(seen.schema, self._parts[n]) for n, seen in self.sources.items()}
        return computed(self.typed, given)

    def pull(self) -> list[Batch]:
        if self._given or not all(seen.ended for seen in self.sources.values()):
            return []
        self._given = True
        return [self.history.to_batch()]

    def events(self) -> sp.PhysicalStream:
        return Whole(self.history).events() if self.pull() else sp.PhysicalStream.empty(self.schema)


def leaves(typed: Typed) -> Sequence[Any]:
    return [typed] if isinstance(typed.node, nodes.Source) else [s for part in typed.inputs for s in leaves(part)]


def computed(typed: Typed, given: Mapping[str, History]) -> History:
    found: History = RULES[typed.node](typed, given)
    return found


@pytest.fixture(autouse=True)
def third(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package offers it."""
    plain = extensions._found

    def found(point: extensions.Point) -> dict[str, Any]:
        more = {"third": SimpleNamespace(name="third", module=__name__, load=lambda: Third)}
        return plain(point) | (more if point == "engines" else {})

    monkeypatch.setattr(extensions, "_found", found)
    monkeypatch.setattr(extensions, "_known", type("Known", (), {
        "__call__": staticmethod(found), "cache_clear": staticmethod(lambda: None),
    })())  # fmt: skip


@pytest.fixture
def wanted() -> History:
    return POINTS.on("duckdb").run({"S": EVENTS}).history


def test_a_job_runs_on_it_in_every_way(wanted: History, tmp_path: Path) -> None:
    job = POINTS.on("third", dsn="here")
    found = job.run({"S": EVENTS})
    assert (found.history, found.notes) == (wanted, ("everything came at the end",))
    query = job.start({"S": {"v": "int64"}})
    query.push("S", EVENTS[:2])
    assert query.pull() == []
    query.push("S", EVENTS[2:])
    query.finish()
    assert History.from_batches(query.schema, query.pull()) == wanted
    table = sp.source("S").on("duckdb").run({"S": EVENTS}).to_arrow()
    assert job.batch({"S": table}) == wanted.expand()
    assert list(job.stream({"S": [table, table[:0]]})) == [wanted.expand(), wanted.expand()[:0]]
    assert job.sql({"S": EVENTS}) == "-- ToPoint on here"
    file = sp.write(sp.source("S").on("duckdb").run({"S": EVENTS}).history, tmp_path / "S.parquet")
    streamed = job.stream_files({"S": file})
    assert streamed.history == wanted
    head, rows = streamed.head(2)
    assert (len(head), rows) == (2, 6)


@pytest.mark.parametrize(
    "more", ["", "--batch-size 2", "--emit events", "--mode stream", "--mode stream --emit events"]
)
def test_the_command_line_runs_on_it(more: str, run: Run, lay: Callable[..., Path], wanted: History) -> None:
    lay("p.json", {"op": "to_point", "in": {"op": "shift", "by": 2, "in": {"op": "source", "name": "S"}}})
    lay("S.jsonl", EVENTS)
    given = ("run", "p.json", "--input", "S=S.jsonl", "--json")
    done = run(*given, "--engine", "third", *more.split())
    assert done.code == 0, done
    on_another = run(*given, "--engine", "duckdb", *(more.split() if more == "--emit events" else ()))
    if "events" in more:
        events = [row for row in done.rows if row["kind"] == "insert"]
        assert [(row["le"], row["payload"]) for row in events] == [(row.le, row.payload) for row in wanted.to_rows()]
    else:
        assert done.rows == on_another.rows
    noted = "nothing was left out" if "stream" in more and "events" in more else "everything came at the end"
    assert (noted in done.err) == ("stream" not in more or "events" in more)


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ("--emission final", "--emission"), ("--savepoint s", "--savepoint"), ("--metrics", "--metrics"),
        ("--on-module-error dead-letter", "--on-module-error"), ("--mode stream --metrics", "--metrics"),
        ("--mode stream --checkpoint c --growing", "--growing"), ("--late-file l", "--late-file"),
    ],
)  # fmt: skip
def test_an_option_that_it_does_not_declare_is_refused(
    more: str, refused: str, run: Run, lay: Callable[..., Path]
) -> None:
    lay("p.json", {"op": "source", "name": "S"})
    done = run("run", "p.json", "--engine", "third", *more.split())
    assert done.code == 2
    assert f"{refused} would not be honoured here" in done.err


def test_what_it_is_made_with_comes_from_the_command_line(run: Run, lay: Callable[..., Path]) -> None:
    lay("p.json", {"op": "source", "name": "S"})
    lay("S.jsonl", EVENTS)
    done = run("run", "p.json", "--engine", "third", "--input", "S=S.jsonl", "--dsn", "there", "--show-sql")
    assert done.out == "-- Source on there\n"


def test_what_an_engine_does_not_declare_it_does_not_do() -> None:
    class Bare(Third):
        capabilities = Capabilities()  # type: ignore[assignment]  # as a plain record

    job = sp.Job(POINTS.plan, Bare(), Settings())
    assert len(job.run({"S": EVENTS}).history) == 6
    for call, text in (
        (lambda: job.start({"S": {"v": "int64"}}), "runs over whole inputs only"),
        (lambda: job.batch({}), "does not read DataFrames"), (lambda: job.stream({}), "does not read streaming tables"),
        (lambda: job.stream_files({}), "does not run files as a stream"), (lambda: job.sql({}), "does not use SQL"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=text):
            call()
    with pytest.raises(InputError, match="ends at a module's first error"):
        on(POINTS.plan, "third", on_module_error="dead_letter")


def test_it_conforms() -> None:
    found = conformance(Third(), cases=12)
    found.require()
    assert found.verdict == "holds"
    assert "Coalesce" in found.refused
