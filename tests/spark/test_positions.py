"""What Spark notes of the files that it has read is held against what lies there, before anything runs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from streamproof.engines.spark.positions import refuse_changed, refuse_gone, refuse_strange
from streamproof.errors import InputError


def noted(folder: Path, names: Sequence[str], *, log: str = "0", source: int = 1) -> Path:
    """Files, and Spark's note that it has read them; the checkpoint."""
    place = folder / "cp" / "sources" / str(source)
    place.mkdir(parents=True, exist_ok=True)
    lines = ["v1"]
    for name in names:
        file = folder / name
        if not file.exists():
            file.write_text(name)
        os.utime(file, (1e9, 1e9))
        path = f"file://{folder}/{name.replace(' ', '%20')}"
        lines.append(json.dumps({"path": path, "timestamp": 10**12, "batchId": 0}, separators=(",", ":")))
    (place / log).write_text("\n".join(lines))
    return folder / "cp"


def done(checkpoint: Path, **counts: int) -> None:
    """Spark's notes of micro-batches: two sources, each of which has read its first file in each of them."""
    for name, count in counts.items():
        (checkpoint / name).mkdir()
        for number in range(count):
            (checkpoint / name / str(number)).write_text('v1\n{}\n{"logOffset":0}\n{"logOffset":0}')


def test_a_file_that_was_written_to_is_named(tmp_path: Path) -> None:
    checkpoint = noted(tmp_path, ["a 1.parquet", "b.parquet"])
    (tmp_path / "b.parquet").write_text("half")
    refuse_changed(checkpoint)  # its micro-batch is not done
    done(checkpoint, offsets=1, commits=1)
    with pytest.raises(InputError, match=r"b\.parquet was written to"):
        refuse_changed(checkpoint)
    (tmp_path / "b.parquet").unlink()
    refuse_changed(checkpoint)  # what was read may go away
    (tmp_path / "a 1.parquet").write_text("grown")
    with pytest.raises(InputError, match=r"a 1\.parquet was written to since it was read") as raised:
        refuse_changed(checkpoint)
    assert "touch -d @1000000000.000" in str(raised.value.fix)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (["a.parquet"], ["c.parquet"], None),
        (["a.parquet"], ["e.parquet"], "e.parquet is noted as read"),
        (["a.parquet"], ["a.parquet"], "a.parquet is noted as read"),
    ],
)
def test_notes_of_files_that_were_never_taken_are_refused(
    first: list[str], second: list[str], words: str | None, tmp_path: Path
) -> None:
    """A bit of a name that is another one makes Spark read a file again."""
    checkpoint = noted(tmp_path, first)
    noted(tmp_path, second, log="1")
    known = {"a.parquet", "c.parquet"}
    if words is None:
        refuse_strange(checkpoint, known)
        noted(tmp_path, [*first, *second], log="1.compact")  # what is put together takes the place of what was
        refuse_strange(checkpoint, known)
        return
    with pytest.raises(InputError, match=words):
        refuse_strange(checkpoint, known)


def test_a_file_that_is_gone_is_named_while_it_is_needed(tmp_path: Path) -> None:
    checkpoint = noted(tmp_path, ["a.parquet"], source=0)
    (tmp_path / "a.parquet").unlink()
    done(checkpoint, offsets=1, commits=0)
    with pytest.raises(InputError, match=r"a\.parquet is gone, and a micro-batch that is not done yet needs it"):
        refuse_gone(checkpoint)
