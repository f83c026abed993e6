"""What a reader may do with any bytes: read them, or refuse them with an error of ours, within two seconds of CPU time.

python -m tests.reading.judge TARGET FILE...     one line for each file: what came of it
python -m tests.reading.judge every              all inputs that are kept, through all targets
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from streamproof.errors import StreamproofError
from tests.reading.targets import ROOT, TARGETS, Target

CPU_SECONDS: Final = 2.0
MOST_MEMORY: Final = 6 << 30
READ: Final = "read"
EVERY: Final = "every"


@dataclass(frozen=True)
class Verdict:
    """What came of an input: read, an error of ours, or a finding."""

    text: str
    seconds: float
    is_found: bool
    place: str = ""  # where in our code it was, to tell findings apart

    def __str__(self) -> str:
        return f"{'FOUND ' if self.is_found else 'ok    '} {self.seconds:6.2f}s {self.text} {self.place}".rstrip()


def judge(target: Target, data: bytes, folder: Path) -> Verdict:
    """Read the bytes in this process."""
    begun = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.read(data, folder)
        text, place, is_found = READ, "", False
    except StreamproofError as error:
        text, place, is_found = _refusal(error), "", False
        is_found = not text
        text = text or f"{type(error).__name__} whose text cannot be shown"
    except MemoryError as error:
        text, place, is_found = f"MemoryError: {error}", place_of(error), True
    except Exception as error:
        text, place, is_found = f"{type(error).__name__}: {error}"[:200].replace("\n", " "), place_of(error), True
    seconds = time.process_time() - begun
    if seconds > CPU_SECONDS and not is_found:
        text, is_found = f"{seconds:.1f} CPU-seconds for {len(data):,} bytes", True
    return Verdict(text, seconds, is_found, place)


def _refusal(error: StreamproofError) -> str:
    """An error of ours, if it can be shown anywhere and says something; nothing if not."""
    try:
        str(error).encode()
    except UnicodeError:
        return ""
    return f"{type(error).__name__} {error.name}" if error.what else ""


def place_of(error: BaseException) -> str:
    """The innermost line of ours that an error came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "streamproof" in frame.filename]
    ours = [frame for frame in frames if "/src/" in frame.filename] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "?"


def judge_apart(name: str, path: Path, *, seconds: float = 60) -> Verdict:
    """Read a file in a process of its own, so that nothing that it does can end this one."""
    command = [sys.executable, "-m", "tests.reading.judge", name, str(path)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return Verdict(f"it does not end within {seconds:.0f} seconds", seconds, True, "timeout")
    if done.returncode in (0, 1) and done.stdout.strip():
        line = done.stdout.strip().splitlines()[-1]
        found = line.startswith("FOUND")
        _, _, rest = line.partition("s ")
        return Verdict(rest, 0.0, found, rest.rsplit(" ", 1)[-1] if found else "")
    return Verdict(
        f"the process died: exit {done.returncode}: {done.stderr[-300:]}", 0.0, True, f"exit{done.returncode}"
    )


def limit_memory() -> None:
    """An input that wants all memory gets a MemoryError, which is a finding."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def warmed(target: Target, folder: Path) -> None:
    """Read something first, so that imports and compilation count against no input."""
    for path in [one for one in target.corpus() if one.name.startswith("good")][:5]:
        judge(target, path.read_bytes(), folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge files, one line each."""
    parser = argparse.ArgumentParser(prog="python -m tests.reading.judge")
    parser.add_argument("target", choices=[*sorted(TARGETS), EVERY])
    parser.add_argument("files", nargs="*", type=Path, help="or else all that are kept")
    parser.add_argument("--from", dest="first", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    limit_memory()
    targets = list(TARGETS.values()) if given.target == EVERY else [TARGETS[given.target]]
    calls = [(target, path) for target in targets for path in given.files or target.corpus()]
    worst, warm = 0, ""
    with tempfile.TemporaryDirectory() as folder:
        for target, path in calls[given.first :]:
            place = Path(folder) / target.name  # some folders are read whole, so no target finds another's files
            if target.name != warm:
                place.mkdir()
                warmed(target, place)
                warm = target.name
            verdict = judge(target, path.read_bytes(), place)
            worst = max(worst, int(verdict.is_found))
            print(verdict, flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
