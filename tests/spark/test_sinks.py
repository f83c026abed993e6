"""Sinks without Spark: what is in the folder adds up to the result, wherever a crash hits."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from streamproof.engines.spark.output import Content, Format, Step, read_output, read_state
from streamproof.engines.spark.sinks import CallSink, FileSink, Receiver, SinkContext
from streamproof.engines.spark.stream.bucket import Bucket
from streamproof.engines.spark.stream.wire import OUTPUT, record
from streamproof.errors import InputError, StreamproofError
from streamproof.events.files import read
from streamproof.events.history import History
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.events.validate import Validator
from streamproof.workbench.buckets import inputs_by_bucket
from tests.spark.stream.splitting import Subject, micro_batches
from tests.spark.stream.test_bucket import expected, random_subject


class Crash(Exception):
    """The driver is killed here."""


def outputs(subject: Subject, batches: int, seed: int) -> list[pa.Table]:
    """What a sink is given, micro-batch by micro-batch."""
    stage = subject.stage
    buckets = {number: Bucket(stage, number) for number in range(subject.count)}
    tables = []
    for table in micro_batches(subject, batches, seed):
        rows = []
        for number, parts in inputs_by_bucket(table).items():
            rows.append(record(0, number, buckets[number].process(parts)))
        tables.append(pa.Table.from_pylist(rows, schema=OUTPUT))
    return tables


def judged(seed: int, content: Content) -> tuple[Subject, History] | None:
    subject = random_subject(seed)
    emit = "events" if content == "events" else "rows"
    subject = Subject(subject.typed, subject.streams, subject.settings, subject.buckets, emit)
    wanted = expected(subject)
    return None if isinstance(wanted, str) else (subject, wanted)


@pytest.mark.parametrize("content", ["events", "rows", "cht"])
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_folder_adds_up_to_the_result_wherever_a_crash_hits(tmp_path: Path, content: Content, kind: Format) -> None:
    compared = 0
    for seed in range(16):
        found = judged(seed, content)
        if found is None:
            continue
        subject, wanted = found
        context = SinkContext(subject.typed.schema, subject.count, "run")
        folder = tmp_path / str(seed)
        choices = random.Random(seed)

        def crash_sometimes(step: Step, number: int, choices: random.Random = choices) -> None:
            if choices.random() < 0.3:
                raise Crash(step)

        for number, table in enumerate(outputs(subject, 4, seed)):
            delivered = False
            while not delivered:  # a new driver begins where the old one was killed
                try:
                    sink = FileSink(folder, content=content, format=kind, on_step=crash_sometimes)
                    Receiver(sink, context).take(number, table)
                    delivered = choices.random() < 0.8  # the micro-batch may come again even then
                except Crash:
                    pass
        assert read_output(folder) == wanted, f"case {seed}"
        state = read_state(folder)
        assert state is not None
        assert state.cti == FOREVER
        compared += 1
    assert compared > 10


def test_the_events_in_a_folder_are_a_legal_stream(tmp_path: Path) -> None:
    for seed in range(20):
        found = judged(seed, "events")
        if found is None:
            continue
        subject, wanted = found
        folder = tmp_path / str(seed)
        receiver = Receiver(FileSink(folder), SinkContext(subject.typed.schema, subject.count, "run"))
        for number, table in enumerate(outputs(subject, 4, seed)):
            receiver.take(number, table)
        validator = Validator()
        for file in sorted(folder.glob("batch-*")):
            validator.check(read(file, schema=wanted.schema).stream())
        assert validator.cti == FOREVER


def test_the_cti_is_the_least_of_all_buckets() -> None:
    schema = random_subject(3).typed.schema
    receiver = Receiver(CallSink(lambda batch: None, emit="rows"), SinkContext(schema, 3, "run"))

    def told(**ctis: int) -> int:
        blank = {name: None if name in ("dead", "rows") else 0 for name in OUTPUT.names}
        rows = [{**blank, "bucket": int(name[1:]), "cti": cti} for name, cti in ctis.items()]
        return receiver.take(0, pa.Table.from_pylist(rows, schema=OUTPUT)).cti

    assert told(b0=5, b1=9) == BEGINNING, "one bucket has not said anything yet"
    assert told(b2=7) == 5
    assert told(b0=8, b1=9) == 7
    assert told(b2=FOREVER) == 8


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    output = SinkContext(random_subject(3).typed.schema, 1, "run")
    with pytest.raises(InputError, match=r"is not empty: mine\.txt"):
        Receiver(FileSink(tmp_path), output)
    with pytest.raises(StreamproofError, match="holds no output of a streaming run"):
        read_output(tmp_path)
    with pytest.raises(InputError, match="unknown content 'table'"):
        FileSink(tmp_path, content="table")  # type: ignore[arg-type]
