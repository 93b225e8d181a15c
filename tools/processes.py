"""Start a process with a time limit."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.environments import ROOT

TIME_LIMIT = 20 * 60
"""Default time limit, in seconds."""


def run(
    command: Sequence[str],
    variables: Mapping[str, str] | None = None,
    log: Path | None = None,
    *,
    live: bool = True,
    limit: int | None = TIME_LIMIT,
) -> int | None:
    """Run `command` in the project's root and return its exit code, or None if it ran out of time and was ended.

    The developer's own Blender settings are kept out of its environment, and `variables` are added. Its output goes to
    the terminal, or to the file `log` and, if `live`, to the terminal as well.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BLENDER_")}
    environment = {**kept, **(variables or {})}
    if log is None:
        try:
            return subprocess.run(command, cwd=ROOT, env=environment, timeout=limit, check=False).returncode
        except subprocess.TimeoutExpired:
            return None
    with log.open("w") as output, log.open(errors="replace") as said:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)
        end = time.monotonic() + (limit or float("inf"))
        try:
            while (code := process.poll()) is None and time.monotonic() < end:
                time.sleep(0.1)
                print(said.read() if live else "", end="", flush=True)
        finally:
            process.kill()
            process.wait()
        print(said.read() if live else "", end="", flush=True)
        return code
