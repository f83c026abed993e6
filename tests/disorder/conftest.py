"""The one Spark session of these tests, started when a test first needs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamproof.disorder.config import Configuration, configuration_of
from tests.spark.sessions import FAST


@pytest.fixture(scope="package")
def spark() -> Any:
    from streamproof.engines.spark.session import active, session

    return active() or session(**FAST)


@pytest.fixture
def configured(tmp_path: Path) -> Callable[..., Configuration]:
    """A configuration of one source and some experiments: ``configured(path, "t", {"targetOutOfOrderFactor": 5})``."""

    def make(
        path: Path,
        time: int | str,
        *experiments: dict[str, Any],
        unit: str | None = "ms",
        modules: tuple[str, ...] = (),
        **source: Any,
    ) -> Configuration:
        described = {"timeIndex": time, **({} if unit is None else {"sourceTimeUnit": unit})}
        if "zone" in source:
            described["zone"] = source.pop("zone")
        if "arrival" in source:
            described["arrivalIndex"] = source.pop("arrival")
        return configuration_of(
            {
                "dataSource": {"file": str(path), "time": described, **source},
                "experimentDataConfigurations": [{"targetOutOfOrderFactor": 20, **each} for each in experiments],
            },
            modules=modules,
        )

    return make


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, Any], Path]:
    """A file of this text, these bytes, or this JSON."""

    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write
