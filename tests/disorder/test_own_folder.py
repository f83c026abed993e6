"""Data sets that are made once are kept where nobody else can put others into their place."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from streamproof.disorder.spark_sources import made_from


def test_a_folder_that_others_may_write_to_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "s.csv").write_text("t,x\n" + "".join(f"{n},a\n" for n in range(50)))
    source = {"file": str(tmp_path / "s.csv"), "time": {"timeIndex": "t", "sourceTimeUnit": "ms"}}
    experiment = {"targetOutOfOrderFactor": 20, "maxDelay": 50}
    config = json.dumps({"dataSource": source, "experimentDataConfigurations": [experiment]})
    first = made_from(config, 0)
    own = first.parents[1]
    assert own.name == f"streamproof-disorder-{os.getuid()}"
    assert made_from(config, 0) == first, "made once"
    first.write_text("ingestion_time,event_time,t,x\n1,1,1,forged\n")
    own.chmod(0o777)
    again = made_from(config, 0)
    assert again.parents[1] != own
    assert "forged" not in again.read_text()
