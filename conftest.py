"""The names that examples in docstrings may use without importing them."""

from __future__ import annotations

import pytest

from streamproof.query import aggregates, column, stream


@pytest.fixture(autouse=True)
def _names_for_examples(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace.update({name: getattr(stream, name) for name in ("source", "let", "ref", "group_input")})
    names = ("col", "lit", "sql", "when", "call", "asc", "desc", "left", "right")
    doctest_namespace.update({name: getattr(column, name) for name in names})
    doctest_namespace.setdefault("count", aggregates.count)
