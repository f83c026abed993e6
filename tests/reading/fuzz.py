"""A fuzzer that is guided by what the code does with its inputs (atheris), over everything that reads.

    python -m tests.reading.fuzz --seconds 60 --seed 1 json eql        two targets, a minute each
    python -m tests.reading.fuzz --runs 10000                          all targets

A finding is anything but an answer or an error of ours: another exception, a process that dies, more than two seconds
of CPU time. It is judged again alone, saved in tests/data/corpus/<target>/, and printed with a command.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from tests.reading.judge import judge, judge_apart, limit_memory, warmed
from tests.reading.mutate import tokens_changed
from tests.reading.targets import ANY, CORPUS, ROOT, TARGETS, Target

SOURCES: Final = ROOT / "src"
# Modules whose loops are compiled by Numba: it reads their bytecode, so that must stay as it is.
COMPILED: Final = tuple(
    ".".join(path.relative_to(SOURCES).with_suffix("").parts)
    for path in sorted(SOURCES.rglob("*.py"))
    if "njit" in path.read_text(encoding="utf-8")
)
LONGEST: Final = 20_000  # bytes of an input
HANGING: Final = 25  # seconds after which an input counts as one that does not end
KNOWN: Final = "STREAMPROOF_KNOWN"  # places of findings that are known: they stop nobody


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz; the exit code is 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.reading.fuzz")
    parser.add_argument("targets", nargs="*", help=f"all, or some of: {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, within its seconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given, rest = parser.parse_known_args(arguments)
    if given.child:
        return child(TARGETS[given.child], [*rest, *given.targets])
    names = [name for name in given.targets if name != "all"] or list(TARGETS)
    for name in names:
        if name not in TARGETS:
            parser.error(f"there is no target {name}; there are {', '.join(TARGETS)}")
    found = [path for name in names for path in fuzz(TARGETS[name], given.seconds, given.runs, given.seed)]
    print(f"{len(names)} targets, {len(found)} findings")
    return 1 if found else 0


def fuzz(target: Target, seconds: int, runs: int, seed: int) -> list[Path]:
    """Run a target in child processes until its time is up; each finding ends one, and the next goes on."""
    begun, done = time.monotonic(), 0
    known: list[str] = []
    found: list[Path] = []
    with tempfile.TemporaryDirectory() as folder:
        grown = Path(folder) / "corpus"
        grown.mkdir()
        while (left := int(seconds - (time.monotonic() - begun))) > 0 and (runs < 0 or done < runs) and len(found) < 20:
            executed, crash = _one_child(
                target, Path(folder), known, seconds=left, runs=runs - done if runs > 0 else -1, seed=seed
            )
            done, seed = done + executed, seed + 1
            if crash is None:
                break
            path = _saved(target, crash)
            verdict = judge_apart(target.name, path)
            if verdict.is_found:
                found.append(path)
                print(f"FOUND  {target.name}: {verdict.text}\n       {_command(target, path)}", flush=True)
            else:
                path.unlink()
                print(f"{target.name}: an input that ended the fuzzing is {verdict} alone", file=sys.stderr, flush=True)
            known.append(verdict.place or crash.name)
            crash.unlink(missing_ok=True)
    rate = done / max(time.monotonic() - begun, 1)
    print(f"{target.name}: {done:,} inputs, {rate:,.0f} a second, {len(found)} findings", flush=True)
    return found


def _one_child(target: Target, folder: Path, known: list[str], *, seconds: int, runs: int, seed: int) -> tuple[int, Path | None]:  # fmt: skip  # noqa: E501
    """How many inputs a child ran, and the one that ended it."""
    kept = [str(place) for place in (folder / "corpus", CORPUS / target.name, CORPUS / ANY)]
    options = [
        f"-max_total_time={seconds}", f"-runs={runs}", f"-seed={seed}", f"-max_len={LONGEST}", f"-timeout={HANGING}",
        "-rss_limit_mb=5000", f"-artifact_prefix={folder}/", "-print_final_stats=1",
    ]  # fmt: skip
    command = [sys.executable, "-m", "tests.reading.fuzz", "--child", target.name, *options, *kept]
    environment = {**os.environ, KNOWN: "\n".join(known)}
    with (folder / "log").open("w+") as log:
        try:
            subprocess.run(
                command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False, timeout=seconds + 600
            )
        except subprocess.TimeoutExpired:  # one input is ended sooner: the machine is too busy to start
            print(f"{target.name}: no end after {seconds + 600:,} seconds, given up", file=sys.stderr, flush=True)
        log.seek(0)
        text = log.read()
    count = [line.split()[-1] for line in text.splitlines() if line.startswith("stat::number_of_executed_units")]
    crashes = [path for path in folder.iterdir() if path.name.startswith(("crash-", "timeout-", "oom-", "leak-"))]
    if not count and not crashes:
        print(f"{target.name}: the fuzzer itself failed\n{text[-2000:]}", file=sys.stderr)
    return int(count[0]) if count else _last_count(text), crashes[0] if crashes else None


def _last_count(text: str) -> int:
    """Where a child died there are no statistics; its last progress line is the best that is known."""
    counts = [line[1:].split()[0] for line in text.splitlines() if line.startswith("#")]
    return int(counts[-1]) if counts and counts[-1].isdigit() else 0


def _saved(target: Target, crash: Path) -> Path:
    data = crash.read_bytes()
    place = CORPUS / target.name / f"found-{hashlib.sha256(data).hexdigest()[:10]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


def _command(target: Target, path: Path) -> str:
    return f".venv/bin/python -m tests.reading.judge {target.name} {path.relative_to(ROOT)}"


class Found(Exception):
    """What ends a child: libFuzzer saves the input that raised it."""


def child(target: Target, options: list[str]) -> int:
    """The fuzzing itself."""
    import atheris  # only who fuzzes needs it

    limit_memory()
    with atheris.instrument_imports(include=["streamproof"], exclude=list(COMPILED), enable_loader_override=False):
        import streamproof.cli.main
        import streamproof.language.eql
        import streamproof.language.sql  # noqa: F401
        from streamproof.engines import inputs, job  # noqa: F401
        from streamproof.qos import config, serve_config  # noqa: F401
        from streamproof.workbench import repro, suite  # noqa: F401
    known = set(os.environ.get(KNOWN, "").split("\n"))
    words = [*target.words.encode().split(), b" ", b"\n", b'"', b","]
    folder = Path(tempfile.mkdtemp(prefix="streamproof-reading-"))
    warmed(target, folder)

    def one(data: bytes) -> None:
        verdict = judge(target, data, folder)
        if verdict.is_found and verdict.place not in known:
            raise Found(str(verdict))

    def changed(data: bytes, size: int, seed: int) -> bytes:
        draw = Random(seed)
        if target.binary or draw.random() < 0.3:
            mutated: bytes = atheris.Mutate(data, size)
            return mutated
        return tokens_changed(data, words, draw)[:size]

    atheris.Setup([sys.argv[0], *options], one, custom_mutator=changed)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
