"""Compiling everything that measuring, making and replaying disorder runs, on a stream of a few rows."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from streamproof.disorder.analysis import analyze_file
from streamproof.disorder.config import configuration_of
from streamproof.disorder.generate import generate_disorder
from streamproof.disorder.replaying import Recording, Replay
from streamproof.disorder.targets import StdoutTarget

_ROWS = [(0, "a"), (40, "b"), (20, "a"), (50, "b"), (50, "a"), (70, "a"), (65, "b"), (90, "a")]
_EXPERIMENTS = [
    {"targetOutOfOrderFactor": 60, "maxDelay": 40},
    {"targetOutOfOrderFactor": 50, "maxDelay": 30, "clockSkew": {"a": 5}},
    {"targetOutOfOrderFactor": 60, "maxDelay": 40, "output": {"path": "made.parquet"}},
]


def warm_up() -> None:
    """Run every compiled function once."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "s.csv").write_text("t,k\n" + "".join(f'{t},"{k}"\n' for t, k in _ROWS))
        (folder / "s.jsonl").write_text("".join(f'{{"t": {t}, "k": "{k}"}}\n' for t, k in _ROWS))
        for name in ("s.csv", "s.jsonl"):
            source = {"file": name, "time": {"timeIndex": "t", "sourceTimeUnit": "ms"}, "key": "k"}
            document = {"dataSource": source, "experimentDataConfigurations": _EXPERIMENTS}
            made = generate_disorder(configuration_of(document, folder), out=folder, overwrite=True, on="here")
            analyze_file(folder / name, "t", unit="ms", key="k", more=True, on="here")
            Replay(Recording(made[0].path), StdoutTarget(b"", io.BytesIO()), speed=None).run()
