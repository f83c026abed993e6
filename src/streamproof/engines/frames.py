"""Results as data frames of libraries that may be installed."""

from __future__ import annotations

import importlib
from typing import Any

from streamproof.errors import InfrastructureError
from streamproof.events.history import History


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
