"""Start a process with a time limit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO

from tools.environments import ROOT

TIME_LIMIT = 20 * 60
"""Default time limit, in seconds."""


def run(
    command: Sequence[str],
    variables: Mapping[str, str] | None = None,
    stdout: IO[str] | None = None,
    stderr: int | None = None,
    limit: int | None = TIME_LIMIT,
) -> int | None:
    """Run `command` in the project's root and return its exit code, or None if it ran out of time and was ended.

    The developer's own Blender settings are kept out of its environment, and `variables` are added.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BLENDER_")}
    environment = {**kept, **(variables or {})}
    try:
        return subprocess.run(
            command, cwd=ROOT, env=environment, stdout=stdout, stderr=stderr, timeout=limit, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return None
