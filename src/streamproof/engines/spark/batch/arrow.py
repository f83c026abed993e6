"""Functions of whole Arrow arrays as Spark columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas.functions import arrow_udf

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType


def in_arrow(function: Callable[..., Any], result: DataType | str, *args: Column, deterministic: bool = True) -> Column:
    """The function of Arrow arrays over columns, run by Python workers batch by batch."""
    maker: Any = arrow_udf  # it sees by the hints of the function that it takes and gives arrays
    udf = maker(function, result)
    column: Column = (udf if deterministic else udf.asNondeterministic())(*args)
    return column
