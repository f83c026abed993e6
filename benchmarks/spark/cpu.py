"""CPU seconds of a process and all that it started: Python, Java and the Python workers."""

from __future__ import annotations

import os
from pathlib import Path


def tree_cpu() -> float:
    """CPU seconds of this process and all its descendants, ended ones included."""
    children: dict[int, list[int]] = {}
    times: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
            times[int(entry.name)] = sum(int(field) for field in fields[11:15])
    waiting, total = [os.getpid()], 0
    while waiting:
        process = waiting.pop()
        total += times.get(process, 0)
        waiting += children.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")
