"""Install what `requirements.lock` names, hash by hash, and this project beside it; say now and then how far it is."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
EVERY = 5.0  # seconds between two lines


def main() -> None:
    """Install; the exit code is pip's."""
    lock = ROOT / "requirements.lock"
    packages = sum("==" in line for line in lock.read_text(encoding="utf-8").splitlines())
    run([*PIP, "install", "--progress-bar", "off", "--no-deps", "--require-hashes", "-r", str(lock)], packages)
    run([*PIP, "install", "--progress-bar", "off", "--no-deps", "--no-build-isolation", "-e", str(ROOT)], 1)
    run([*PIP, "check"], 0)


def run(command: list[str], packages: int) -> None:
    """Run a step of pip, and pass on how far it is; where it fails, all that it said."""
    said: list[str] = []
    done, last = 0, time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            said.append(line)
            if line.startswith(("Collecting", "Processing", "Requirement already satisfied")):
                done += 1
            if line.startswith("Installing collected") and packages > 1:
                print(f"  installing {packages} packages: half a minute of silence", flush=True)
            elif 0 < done < packages and time.monotonic() - last > EVERY:
                last = time.monotonic()
                print(f"  {done} of {packages} packages looked at", flush=True)
    if pip.returncode:
        sys.exit("".join(said[-40:]) + f"pip failed: {' '.join(command)}")


if __name__ == "__main__":
    main()
