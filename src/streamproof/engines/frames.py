"""Results as data frames of libraries that may be installed."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import pyarrow as pa

from streamproof.arguments import doors
from streamproof.errors import InfrastructureError
from streamproof.events.history import History


@doors
class Tabular(Protocol):
    """Whatever has a history, as tables."""

    @property
    def history(self) -> History: ...

    def to_arrow(self) -> pa.Table:
        """The history as an Arrow table: le, re and the payload, one row per event."""
        return self.history.expand()

    def to_pandas(self) -> Any:
        """The history as a pandas data frame."""
        return to_frame(self.history, "pandas")

    def to_polars(self) -> Any:
        """The history as a Polars data frame."""
        return to_frame(self.history, "polars")


def to_frame(history: History, library: str) -> Any:
    """The events of a history as a data frame of pandas or Polars, which must be installed."""
    try:
        module = importlib.import_module(library)
    except ImportError:
        raise InfrastructureError(
            f"{library} is not installed", fix=f"pip install {library}, or use to_arrow()"
        ) from None
    table = history.expand()
    return table.to_pandas() if library == "pandas" else module.from_arrow(table)
