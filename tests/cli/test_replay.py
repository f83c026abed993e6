"""``streamproof replay``: to standard output and into a folder, resumable, with its figures as JSON."""

from __future__ import annotations

import json
from pathlib import Path


def test_to_standard_output(run, lay) -> None:
    path = lay("s.csv", "ingestion_time,x\n" + "".join(f"{n},a\n" for n in range(50)))
    done = run("replay", path, "--as-fast-as-possible")
    assert done.code == 0
    assert done.out == path.read_text()
    assert "50 rows in" in done.err


def test_into_a_folder_and_on_from_there(run, lay, tmp_path: Path) -> None:
    path = lay("s.jsonl", [{"ingestion_time": n} for n in range(10)])
    wanted = (
        "replay",
        path,
        "--to",
        "out",
        "--as-fast-as-possible",
        "--rows-per-file",
        4,
        "--resume",
        "place.json",
        "--json",
    )
    first = json.loads(run(*wanted, "--limit", 6).out)
    assert (first["rows"], first["finished"]) == (6, False)
    assert json.loads(run(*wanted).out)["finished"]
    text = "".join(file.read_text() for file in sorted((tmp_path / "out").iterdir()))
    assert text == path.read_text()


def test_mistakes(run, lay) -> None:
    path = lay("s.csv", "ingestion_time\n1\n")
    for arguments, what in (
        ((path, "--to", "ftp://x"), "ftp:// is not known"),
        ((path, "--speed", 0), "never arrives"),
        ((path, "--time", "due"), 'there is no column "due"'),
        (("none.csv",), "there is no file none.csv"),
    ):
        done = run("replay", *arguments)
        assert done.code == 2
        assert what in done.err
