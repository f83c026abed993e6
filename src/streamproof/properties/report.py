"""The failure report: the stream window by window with inputs, outputs and the formula's state, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from streamproof.arguments import door
from streamproof.errors import as_shown
from streamproof.pictures.window_timeline import RowLane, RowMark, TimelineStep, timeline
from streamproof.properties.formula import Formula, Verdict
from streamproof.properties.judgement import Judgement, states
from streamproof.properties.rows import Window, row_text
from streamproof.properties.runs import instants, time_column
from streamproof.properties.streams import event_times
from streamproof.properties.text import show

ROWS, WIDTH = 4, 44  # of a window in the text, and the width of a column
PAGE_ROWS = 40  # of a window in HTML
WORDS = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.UNDECIDED: "undecided", Verdict.ERROR: "error"}


@dataclass(frozen=True)
class ReportLine:
    """One window of the report."""

    number: int
    time: str
    inputs: list[str]
    outputs: list[str]
    verdict: Verdict
    residual: Formula
    reasons: list[str]

    @property
    def quiet(self) -> bool:
        """Whether nothing went in and nothing came out."""
        return not self.inputs and not self.outputs


def lines(judgement: Judgement, most: int = ROWS) -> list[ReportLine]:
    """The windows of a judgement, up to the one that decides, or all."""
    found = []
    for number, (step, (verdict, residual, reasons)) in enumerate(zip(judgement.word, states(judgement), strict=True)):
        inputs, outputs = _rows(step.input, most), _rows(step.output, most)
        found.append(ReportLine(number, _time(step.time), inputs, outputs, verdict, residual, reasons))
    return found


def _time(moment: Any) -> str:
    return moment.strftime("%m-%d %H:%M:%S") if isinstance(moment, datetime) else f"batch {moment}"


def _rows(side: Any, most: int) -> list[str]:
    """The rows of a window; with two inputs or outputs, each row says which."""
    if isinstance(side, tuple):
        return [f"{n}: {text}" for n, window in enumerate(side) for text in _rows(window, most)]
    if not isinstance(side, Window):
        return [] if not side else [repr(side)]
    shown = [row_text(row) for row in side[:most]]
    return [*shown, f"… {len(side) - most:,} more"] if len(side) > most else shown


def text_report(judgement: Judgement) -> str:
    """The whole report for a terminal."""
    listed = lines(judgement)
    shown = listed[: judgement.decided_at + 1] if judgement.decided_at is not None else listed
    parts = [
        f"{judgement.run.subject}: {judgement.reason}",
        f"  property  {show(judgement.formula)}",
        "",
        *_table(shown),
        "",
        *(f"  because   {reason}" for line in shown[-1:] for reason in line.reasons),
        *(f"  {name:<9} {value}" for name, value in facts(judgement)),
    ]
    return "\n".join(parts)


def _table(shown: Sequence[ReportLine]) -> Iterator[str]:
    yield f"  {'window':<19} {'in':<{WIDTH}} {'out':<{WIDTH}} formula"
    quiet: list[ReportLine] = []
    for line in shown:
        last = line is shown[-1]
        if line.quiet and not last:
            quiet.append(line)
            continue
        yield from _quiet(quiet)
        quiet = []
        yield from _line(line)
    yield from _quiet(quiet)


def _quiet(windows: list[ReportLine]) -> Iterator[str]:
    if windows:
        first, last = windows[0].number, windows[-1].number
        label = f"{first}" if first == last else f"{first}–{last}"
        yield f"  {label:<19} {'–':<{WIDTH}} {'–':<{WIDTH}} {show(windows[-1].residual)}"


def _line(line: ReportLine) -> Iterator[str]:
    many = max(len(line.inputs), len(line.outputs), 1)
    for at in range(many):
        left = f"{line.number:<4} {line.time}" if at == 0 else ""
        given, found = (
            (side[at] if at < len(side) else "–" if at == 0 else "") for side in (line.inputs, line.outputs)
        )
        state = (WORDS[line.verdict].upper() if line.verdict.solved else show(line.residual)) if at == 0 else ""
        yield f"  {left:<19} {_cut(given):<{WIDTH}} {_cut(found):<{WIDTH}} {state}".rstrip()


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def facts(judgement: Judgement) -> Iterator[tuple[str, str]]:
    """What else is known: the residual, the watermark, late rows, how it ran, how to repeat it."""
    run = judgement.run
    if judgement.verdict is Verdict.UNDECIDED:
        yield "residual", show(judgement.residual)
    if judgement.vacuous:
        yield "vacuous", judgement.vacuous
    rows = " + ".join(f"{stream.count:,}" for stream in run.inputs)
    emitted = " + ".join(f"{output.table.num_rows:,}" for output in run.outputs)
    yield "rows", f"{rows} in, {emitted} out, {run.how}"
    if run.triggers:
        yield "watermark", f"{run.watermark or 'none'}, {run.late_rows} rows dropped as late"
    for note in run.notes:
        yield "note", note
    if run.reproduce:
        yield "repeat", run.reproduce


def html_fragment(judgement: Judgement) -> str:
    """The report for a notebook."""
    return _rendered(judgement, page=False)


@door
def html_report(judgement: Judgement, title: str = "streamproof") -> str:
    """The report as a page of its own: nothing is fetched."""
    return _rendered(judgement, page=True, title=title)


def _rendered(judgement: Judgement, *, page: bool, title: str = "") -> str:
    from jinja2 import Environment, FileSystemLoader  # noqa: PLC0415  # only those who look at pages pay

    folder = Path(__file__).parent / "templates"
    template = Environment(loader=FileSystemLoader(folder), autoescape=True, finalize=as_shown).get_template(
        "failure.html"
    )
    return template.render(
        page=page,
        title=title,
        judgement=judgement,
        verdict=WORDS[judgement.verdict],
        formula=show(judgement.formula),
        lines=lines(judgement, PAGE_ROWS),
        decided=judgement.decided_at,
        facts=list(facts(judgement)),
        picture=picture(judgement),
        show=show,
        words=WORDS,
    )


def picture(judgement: Judgement) -> str:
    """The windows as a drawing: inputs above, outputs below, the formula's state between."""
    run = judgement.run
    starts = [step.time for step in judgement.word]
    if not starts or not isinstance(starts[0], datetime):
        return ""
    origin = starts[0].timestamp()
    inputs = [
        RowLane(f"in {n}" if len(run.inputs) > 1 else "in", _marks(event_times(s.table, s.time), s.rows, origin))
        for n, s in enumerate(run.inputs)
    ]
    outputs = []
    for n, output in enumerate(run.outputs):
        on = time_column(output.table.schema, [stream.time for stream in run.inputs])
        if on is not None:
            name = f"out {n}" if len(run.outputs) > 1 else "out"
            outputs.append(RowLane(name, _marks(instants(output.table, on), output.rows, origin)))
    drawn = [
        TimelineStep(step.time.timestamp() - origin, WORDS[state[0]], f"{_time(step.time)}: {show(state[1])}")
        for step, state in zip(judgement.word, states(judgement), strict=True)
    ]
    width = drawn[1].start - drawn[0].start if len(drawn) > 1 else run.inputs[0].layout.size / 1e6
    return timeline(inputs, outputs, drawn, width, judgement.decided_at)


def _marks(times: Any, rows: Window, origin: float) -> list[RowMark]:
    listed = times.tolist()
    return [RowMark(at / 1e6 - origin, row_text(row)) for at, row in zip(listed[:2000], rows[:2000], strict=True)]
