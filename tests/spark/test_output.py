"""A folder of output over time: crashes at every step, damage to every file, lost and strange files, and growth."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import streamproof as sp
from streamproof.engines.sealed import sealed_json
from streamproof.engines.spark import output
from streamproof.engines.spark.output import KIND, STATE, VERSION, Content, Format, read_output, read_state
from streamproof.engines.spark.sinks import FileSink, OutputBatch, SinkContext
from streamproof.errors import InputError, StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.schema import Schema
from streamproof.thresholds import lowered

SCHEMA = Schema.of({"k": "string", "v": "int64"})


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory, where there is one: files are written through to the disk."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(prefix="streamproof-test-", dir=memory if memory.is_dir() else None))
    yield place
    shutil.rmtree(place, ignore_errors=True)


class Crash(Exception):
    """The driver is killed here."""


def micro_batch(number: int, content: Content) -> OutputBatch:
    """One row that stays, and of a history one that is taken back by the next micro-batch."""
    payload = {"k": "a\u2028b", "v": number}
    if content == "events":
        rows = sp.PhysicalStream.from_events([sp.Insert(f"{number}", number, number + 1, payload)], schema=SCHEMA).rows
    else:
        gone = {"k": None, "v": -number}
        before = [(number - 1, number + 9, -1, {"k": None, "v": 1 - number})] if number else []
        rows = Batch.from_rows(SCHEMA, [(number, number + 1, 1, payload), (number, number + 10, 1, gone), *before]).rows
    return OutputBatch(number, rows, number - 2, dead=b'{"number": %d}\n' % number)


def wanted(count: int, content: Content, folder: Path) -> sp.History:
    """What so many micro-batches add up to, written without a crash and without merging."""
    write(FileSink(folder, content=content, compact=False), 0, count)
    return read_output(folder)


def write(sink: FileSink, first: int, count: int, checkpoint: Path | None = None) -> None:
    sink.open(SinkContext(SCHEMA, 1, "run", checkpoint=checkpoint))
    for number in range(first, count):
        sink.write(micro_batch(number, sink.content), {0: number - 2})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files are merged two at a time, and lists hold three."""
    monkeypatch.setattr(output, "FANOUT", 2)
    with lowered({"output.listed": 3}):
        yield


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("content", "kind", "compact"),
    [("events", "jsonl", True), ("rows", "parquet", True), ("cht", "parquet", True), ("rows", "jsonl", False)],
)
def test_a_crash_at_any_step_changes_nothing(tmp_path: Path, content: Content, kind: Format, compact: bool) -> None:
    count, whole = 9, wanted(9, content, tmp_path / "whole")
    letters = b"".join(b'{"number": %d}\n' % number for number in range(count))
    for crash in range(10_000):
        folder, steps = tmp_path / str(crash), iter(range(10_000))

        def on_step(_step: str, _number: int, steps: Iterator[int] = steps, crash: int = crash) -> None:
            if next(steps) == crash:
                raise Crash

        sink = FileSink(folder, content=content, format=kind, compact=compact, on_step=on_step)
        try:
            write(sink, 0, count)
        except Crash:
            read_output(folder)  # at any moment it is whole
            state = read_state(folder)
            assert state is not None
            write(FileSink(folder, content=content, format=kind, compact=compact), max(state.batch, 0), count)
        else:
            break
        assert read_output(folder) == whole, crash
        assert b"".join(p.read_bytes() for p in sorted((folder / "_dead_letters").iterdir())) == letters
        assert len(list(folder.rglob("*"))) < (16 if compact else 30)
        shutil.rmtree(folder)
    assert crash > 35


@pytest.mark.parametrize("content", ["events", "rows", "cht"])
def test_the_number_of_files_is_bounded(tmp_path: Path, content: Content) -> None:
    sink = FileSink(tmp_path / "out", content=content)
    sizes = []
    sink.open(SinkContext(SCHEMA, 1, "run"))
    for number in range(520):
        sink.write(micro_batch(number, content), {0: number - 2})
        if number in (63, 519):
            sizes.append((tmp_path / "out" / STATE).stat().st_size)
    assert len([p for p in (tmp_path / "out").rglob("*") if p.is_file()]) < 50
    assert sizes[1] < 2 * sizes[0]
    assert len(read_output(tmp_path / "out")) == 520 + (content != "events")


@pytest.mark.usefixtures("small")
def test_lists_of_files_are_kept_apart_from_the_state(tmp_path: Path) -> None:
    whole = wanted(40, "rows", tmp_path / "out")
    state = read_state(tmp_path / "out")
    assert state is not None
    assert len(state.files) < 20
    assert len(whole) == 41
    assert [part.name for part in state.files][:1] == ["_files/files-000000000000-000000000002.json"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("content", "kind"), [("events", "parquet"), ("rows", "jsonl"), ("cht", "parquet")])
def test_no_damage_goes_unnoticed(tmp_path: Path, content: Content, kind: Format) -> None:
    folder, draw = tmp_path / "out", random.Random(content)
    write(FileSink(folder, content=content, format=kind, compact=content != "rows"), 0, 13)
    whole = read_output(folder)
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        data = file.read_bytes()
        for number in range(60):
            flipped = bytearray(data)
            flipped[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            file.write_bytes(data[: draw.randrange(len(data))] if number % 4 == 0 else bytes(flipped))
            with pytest.raises(InputError) as raised:
                read_output(folder)
            assert raised.value.fix
            if file.name == STATE:
                with pytest.raises(InputError):
                    FileSink(folder, content=content, format=kind).open(SinkContext(SCHEMA, 1, "run"))
        file.unlink()
        with pytest.raises(InputError):
            read_output(folder)
        with pytest.raises(InputError):
            FileSink(folder, content=content, format=kind).open(
                SinkContext(SCHEMA, 1, "run", checkpoint=spark(tmp_path, 12))
            )
        file.write_bytes(data)
    assert read_output(folder) == whole


def spark(folder: Path, done: int, noted: int | None = None) -> Path:
    """What Spark leaves in a checkpoint."""
    place = folder / "cp"
    shutil.rmtree(place, ignore_errors=True)
    for name, last in (("offsets", done if noted is None else noted), ("commits", done)):
        (place / name).mkdir(parents=True)
        for number in range(last + 1):
            (place / name / str(number)).write_text(f"v1\n{number}")
            (place / name / f".{number}.crc").write_text("sum")
    return place


@pytest.mark.parametrize(
    ("folder_ends", "done", "noted", "words"),
    [
        (None, 3, 3, "the output folder is gone or empty, and the checkpoint has done micro-batches up to 3"),
        (2, 3, 3, "the output folder is behind: it ends with micro-batch 2, the checkpoint with 3"),
        (5, 3, 3, "the checkpoint is behind: it ends with micro-batch 3, the output folder with 5"),
        (4, 3, 3, "the checkpoint is behind"),
        (5, 3, 4, "the checkpoint is behind"),
        (3, -1, -1, "the checkpoint is behind: it ends with nothing"),
        (4, 3, 4, None),
        (3, 3, 3, None),
        (3, 3, 4, None),
        (None, -1, 0, None),
    ],
)
def test_folder_and_checkpoint_are_of_one_moment(
    folder_ends: int | None, done: int, noted: int, words: str | None, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    if folder_ends is not None:
        sink = FileSink(folder)
        sink.open(SinkContext(SCHEMA, 1, "run", checkpoint=spark(tmp_path, -1)))
        for number in range(folder_ends + 1):
            spark(tmp_path, number - 1, number)
            sink.write(micro_batch(number, "events"), {})
    context = SinkContext(SCHEMA, 1, "run", checkpoint=spark(tmp_path, done, noted))
    if words is None:
        FileSink(folder).open(context)
        return
    with pytest.raises(InputError, match=words) as raised:
        FileSink(folder).open(context)
    assert "to rebuild the output, run over the same input with a new checkpoint" in str(raised.value.fix)


def test_what_went_another_way_is_refused(tmp_path: Path) -> None:
    folder, context = tmp_path / "out", SinkContext(SCHEMA, 1, "run", checkpoint=spark(tmp_path, -1, 0))
    sink = FileSink(folder)
    sink.open(context)
    sink.write(micro_batch(0, "events"), {})
    (tmp_path / "cp/offsets/0").write_text("v1\nanother run of the same copy")
    with pytest.raises(InputError, match="went different ways: micro-batch 0 is not the same"):
        FileSink(folder).open(context)


def lost(folder: Path) -> None:
    (folder / "batch-000000000001.parquet").unlink()


def foreign(folder: Path) -> None:
    shutil.copy(folder / "batch-000000000001.parquet", folder / "batch-000000000009.parquet")


def stranger(folder: Path) -> None:
    (folder / "mine.parquet").write_bytes(b"")


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def stateless(folder: Path) -> None:
    (folder / STATE).unlink()


def older(folder: Path) -> None:
    state = read_state(folder)
    assert state is not None
    old = {**state.as_dict(), "version": 1}
    (folder / STATE).write_text(json.dumps(old))


DAMAGE: dict[Callable[[Path], None], str] = {
    lost: "batch-000000000001.parquet",
    foreign: "holds a file that no run recorded",
    stranger: "holds a file that no run recorded",
    emptied: "is gone or empty, and the checkpoint has done micro-batches up to 3|holds no output",
    stateless: "has no _streamproof.json|holds no output of a streaming run",
    older: "the output has version 1, this program reads 2",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_lost_and_strange_files_are_named(damage: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write(FileSink(folder), 0, 4, spark(tmp_path, -1, 3))
    damage(folder)
    for use in (lambda: FileSink(folder).open(SinkContext(SCHEMA, 1, "run", checkpoint=spark(tmp_path, 3))),
                lambda: read_output(folder)):  # fmt: skip
        with pytest.raises(InputError, match=DAMAGE[damage]) as raised:
            use()
        assert raised.value.fix


def test_another_form_and_a_gap_are_refused(tmp_path: Path) -> None:
    write(FileSink(tmp_path, content="rows"), 0, 3)
    with pytest.raises(InputError, match='was taken with content="rows", this run has content="cht"'):
        FileSink(tmp_path, content="cht").open(SinkContext(SCHEMA, 1, "run"))
    with pytest.raises(InputError, match='format="parquet", this run has format="jsonl"'):
        FileSink(tmp_path, content="rows", format="jsonl").open(SinkContext(SCHEMA, 1, "run"))
    with pytest.raises(InputError, match="holds the output of another run"):
        FileSink(tmp_path, content="rows").open(SinkContext(SCHEMA, 1, "other"))
    sink = FileSink(tmp_path, content="rows")
    sink.open(SinkContext(SCHEMA, 1, "run"))
    with pytest.raises(InputError, match="micro-batch 7 comes, and the output ends with 2"):
        sink.write(micro_batch(7, "rows"), {})


@pytest.mark.parametrize(
    "name",
    [
        "../precious", "/etc/passwd", "batch-1.parquet", "open-000000000000.parquet/../../precious",
        "_dead_letters/../../precious", "open-000000000000.parquet\n", "batch-٠٠٠٠٠٠٠٠٠٠٠٠.parquet",
        "sealed-000000000000.parquet", "open-000000000009.parquet", "",
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["open", "files", "letters"])
def test_a_name_that_no_run_writes_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    """Somebody who can write the state can seal it too; still nothing outside is read or removed."""
    folder, precious = tmp_path / "out", tmp_path / "precious"
    precious.write_text("mine")
    write(FileSink(folder, content="cht"), 0, 2)
    state = read_state(folder)
    assert state is not None
    forged: dict[str, Any] = {**state.as_dict(), kind: [{"name": name, "size": 4, "digest": "", "level": 0}]}
    (folder / STATE).write_bytes(sealed_json(forged, kind=KIND, version=VERSION))
    for use in (
        lambda: FileSink(folder, content="cht").open(SinkContext(SCHEMA, 1, "run")),
        lambda: read_output(folder),
    ):
        with pytest.raises(StreamproofError):
            use()
    assert precious.read_text() == "mine"


def test_a_link_to_elsewhere_is_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    write(FileSink(folder), 0, 2)
    (folder / "_dead_letters").rename(elsewhere)
    (folder / "_dead_letters").symlink_to(elsewhere)
    with pytest.raises(InputError, match="leads elsewhere"):
        FileSink(folder).open(SinkContext(SCHEMA, 1, "run"))
    assert len(list(elsewhere.iterdir())) == 2


def test_a_reader_sees_a_moment_of_a_run_that_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = FileSink(tmp_path)
    write(sink, 0, 7)
    real, moved = output.missing, iter([True])

    def missing(folder: Path, state: output.OutputState) -> list[str]:
        if next(moved, False):
            write(sink, 7, 8)  # eight files become one
        return real(folder, state)

    monkeypatch.setattr(output, "missing", missing)
    assert len(read_output(tmp_path)) == 8
