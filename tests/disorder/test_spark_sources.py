"""What a source of Spark makes of a recording, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamproof.disorder.spark_sources import batches, schema_of
from streamproof.errors import InputError


def test_rows_that_cannot_be_read_are_not_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("ingestion_time,v\n1,2\n1\n5,3,4\n")
    with pytest.raises(InputError, match=r"2 rows of r\.csv cannot be read"):
        list(batches(path, schema_of(path), 0, path.stat().st_size))
    path.write_text("ingestion_time,v\n1,2\n\n5,3\n\n")
    found = list(batches(path, schema_of(path), 0, path.stat().st_size))
    assert [row for batch in found for row in batch.column(0).to_pylist()] == [1, 5]
