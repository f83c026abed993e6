"""Times that no tick can hold are rejected row by row, whatever column and type they stand in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamproof.events.files import ColumnMapping, read
from streamproof.events.time import FOREVER

FAR = (2**62 + 1, -(2**62) - 1, 2**63 - 1, -(2**63))
MOMENT = pa.timestamp("s", tz="UTC")


def columns() -> list[Any]:
    """A good time, one beyond all ticks, and a good one."""
    whole = [pytest.param(pa.array([5, far, 7]), id=f"int64 {far}") for far in FAR]
    texts = [pytest.param(pa.array(["5", str(far), "7"]), id=f"text {far}") for far in (*FAR, 10**30)]
    unsigned = [pytest.param(pa.array([5, 2**64 - 1, 7], pa.uint64()), id="uint64")]
    moments = [pytest.param(pa.array([5, far, 7]).cast(MOMENT), id=f"moment {far}") for far in (2**40, -(2**40))]
    return [*whole, *texts, *unsigned, *moments]


@pytest.mark.parametrize("column", columns())
@pytest.mark.parametrize("role", ["start", "end"])
def test_a_time_beyond_all_ticks_is_rejected(tmp_path: Path, column: pa.Array, role: str) -> None:
    unit: Any = "ns" if pa.types.is_timestamp(column.type) else "s"
    early = pa.array([-10, -10, -10]) if unit == "s" else pa.array([-10, -10, -10]).cast(MOMENT)
    late = pa.array([20, 20, 20]) if unit == "s" else pa.array([20, 20, 20]).cast(MOMENT)
    table = {"a": column if role == "start" else early, "b": column if role == "end" else late, "v": [1, 2, 3]}
    pq.write_table(pa.table(table), tmp_path / "f.parquet")
    reader = read(tmp_path / "f.parquet", mapping=ColumnMapping(start="a", end="b", unit=unit))
    rows = reader.history().to_rows()
    assert [row.payload["v"] for row in rows] == [1, 3]
    assert reader.rejected == 1
    assert all(-FOREVER <= row.le < row.re <= FOREVER for row in rows)
    assert "lies outside ±2^62 ticks" in reader.first_rejects[0].why


def test_instants_of_all_years_that_have_ticks(tmp_path: Path) -> None:
    ends = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
    pq.write_table(pa.table({"t": pa.array(ends, pa.timestamp("us", tz="UTC"))}), tmp_path / "f.parquet")
    reader = read(tmp_path / "f.parquet", mapping=ColumnMapping(start="t", unit="us"))
    assert len(reader.history().to_rows()) == 2
    assert reader.rejected == 0
