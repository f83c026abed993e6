"""Times of Arrow columns: every type that can mean an instant, and what is counted as unreadable."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamproof.disorder.analysis import analyze_file

MOMENTS = [datetime(2024, 5, 1, 12, 0, second) for second in (0, 5, 3)]


@pytest.mark.parametrize(
    ("array", "unit", "naive", "late"),
    [
        (pa.array(MOMENTS, pa.timestamp("us")), None, 3, 2_000_000),
        (pa.array([moment.replace(tzinfo=UTC) for moment in MOMENTS]), None, 0, 2_000_000),
        (pa.array(MOMENTS, pa.timestamp("ns")), "s", 3, 2),
        (pa.array([moment.isoformat() + "Z" for moment in MOMENTS]), "ms", 0, 2000),
        (pa.array([moment.isoformat() + "Z" for moment in MOMENTS]).dictionary_encode(), "ms", 0, 2000),
        (pa.array([0, 5, 3], pa.int32()), "s", 0, 2),
        (pa.array([0.0, 5.0, 3.0]), "s", 0, 2),
        (pa.array([date(2024, 5, 1), date(2024, 5, 6), date(2024, 5, 4)]), "s", 3, 2 * 86_400),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_types_that_can_mean_an_instant(
    array: pa.Array, unit: str | None, naive: int, late: int, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"x": [1, 2, 3], "t": array}), tmp_path / "s.parquet")
    found = analyze_file(tmp_path / "s.parquet", "t", unit=unit, batch_rows=1, delay="1s")
    assert found["spark"]["delay"] * 2 == late or "date" in str(array.type)
    assert (found["events"], found["out_of_order"], found["lateness"]["max"]) == (3, 1, late)
    assert found["zone_assumed"] == naive


def test_nulls_and_numbers_that_are_no_times_are_counted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1.0, None, 1.5, float("nan"), 1e300, 3.0]}), tmp_path / "s.parquet")
    found = analyze_file(tmp_path / "s.parquet", "t", unit="s", rejects=tmp_path / "bad.jsonl")
    assert (found["events"], found["nulls"], found["rejected"]) == (2, 1, 4)
    assert "1.5 is finer than 1 s" in (tmp_path / "bad.jsonl").read_text()


def test_pieces_of_row_groups_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(3):
        times = [number * 100 + (7 * n) % 100 for n in range(100)]
        pq.write_table(pa.table({"t": times, "k": ["a"] * 100}), folder / f"{number}.parquet", row_group_size=30)
    found = analyze_file(folder, "t", unit="s", key="k")
    times = [number * 100 + (7 * n) % 100 for number in range(3) for n in range(100)]
    assert found["out_of_order"] == sum(time < max(times[:n], default=time) for n, time in enumerate(times))
    assert found["keys"]["most_late"][0]["key"] == "a"
