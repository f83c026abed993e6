"""A real Spark cluster on this machine: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pyspark

from streamproof.engines.spark.java import java_home

HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextmanager
def cluster(folder: Path, *, workers: int = 2) -> Iterator[str]:
    """The address of the master, while the cluster runs."""
    port, page = free_port(), free_port()
    address = f"spark://{HOST}:{port}"
    master = ["master.Master", "--host", HOST, "--port", str(port), "--webui-port", str(page)]
    processes = [_start(folder, "master", master)]
    try:
        for number in range(workers):
            place = folder / f"worker{number}"
            command = ["worker.Worker", "--host", HOST, "--cores", "1", "--memory", "1g"]
            command += ["--webui-port", str(free_port()), "--work-dir", str(place), address]
            processes.append(_start(folder, place.name, command))
        _await_workers(page, workers)
        yield address
    finally:
        for process in reversed(processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(folder: Path, name: str, command: list[str]) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "JAVA_HOME": str(java_home())}
    script, (kind, *rest) = str(home / "bin/spark-class"), command
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [script, f"org.apache.spark.deploy.{kind}", *rest],
            env=environment, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip


def _await_workers(page: int, count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            with urlopen(f"http://{HOST}:{page}/json/") as answer:  # our own master
                if answer.read().count(b'"state" : "ALIVE"') >= count:
                    return
        except OSError:
            pass
        time.sleep(0.5)
    raise TimeoutError(f"the cluster on page {page} has not {count} workers")


def executors(application: str) -> list[int]:
    """The processes of an application's executors."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and application.encode() in command and b"java" in command:
                found.append(int(entry.name))
    return sorted(found)
