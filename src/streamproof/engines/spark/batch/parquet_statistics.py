"""A look at floats in small local Parquet files: Arrow has read them before Spark has planned a job that would.

Only of a DataFrame that is such files and nothing else, and of columns that the plan reads as they are. It says what a
job of Spark would say; where it cannot tell, it says nothing, and Spark is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.engines.spark.batch.statistics import GRIDS, LARGEST, RESTS, SMALL, Look, Looks, look_of
from streamproof.thresholds import STORED_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def look_at_files(frame: DataFrame, columns: Mapping[str, str]) -> Looks | None:
    """What the floats of these columns are like, by the names that they have in the plan.

    None if these are no such files, and if there are rests: conditions may have left them out of what is added up.
    """
    files = _files(frame)
    if not files or not set(columns.values()) <= set(frame.columns):
        return None
    try:
        seen = {name: _look_at([Path(file) for file in files], column) for name, column in columns.items()}
    except (OSError, pa.ArrowException, KeyError):
        return None
    return None if any(look.rests for look in seen.values()) else Looks(seen)


def _files(frame: DataFrame) -> list[str]:
    """The files that a DataFrame is, if they are local, small and Parquet; none otherwise."""
    jvm_frame: Any = getattr(frame, "_jdf", None)  # only what runs in this process has one
    if jvm_frame is None or frame.is_cached:  # what is cached need not be what the files have
        return []
    plan = jvm_frame.queryExecution().analyzed()
    if plan.getClass().getSimpleName() != "LogicalRelation":
        return []
    relation = plan.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation" or str(relation.fileFormat().toString()) != "Parquet":
        return []
    places = [urlsplit(str(place)) for place in relation.location().inputFiles()]
    if int(relation.sizeInBytes()) >= SMALL or any(place.scheme != "file" for place in places):
        return []
    return [unquote(place.path) for place in places]


def _look_at(files: Sequence[Path], column: str) -> Look:
    """All values of a column; KeyError if one of the files has no floats there."""
    rows, level, largest = 0, 0, 0.0
    for path in files:
        with pq.ParquetFile(path) as file:
            if file.schema_arrow.field(column).type != pa.float64():
                raise KeyError(column)
            rows += file.metadata.num_rows
            for batch in file.iter_batches(STORED_ROWS.now, columns=[column], use_threads=False):
                level, greatest = level_of(batch.column(0).drop_null().to_numpy(), level)
                largest = max(largest, greatest)
            if level == RESTS:
                break
    return look_of(rows, level, largest)


def level_of(values: np.ndarray[Any, np.dtype[np.float64]], least: int = 0) -> tuple[int, float]:
    """The first grid that all values are on, from a given one on, and the greatest size.

    >>> level_of(np.array([1.0, -3.0])), level_of(np.array([0.5])), level_of(np.array([0.5]), 2)
    ((0, 3.0), (1, 0.5), (2, 0.5))
    """
    largest = float(np.abs(values).max(initial=0.0))
    if not largest < LARGEST:
        return RESTS, largest
    for level, grid in enumerate((*GRIDS, 68)):  # up to NO_GRID: what limbs hold
        if level >= least:
            scaled = values * 2.0**grid
            if (scaled == np.rint(scaled)).all():
                return level, largest
    return RESTS, largest
