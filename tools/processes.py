"""Starting a process that must not outlast its time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO

from tools.environments import ROOT

TIME_LIMIT = 20 * 60
"""Seconds that a process gets."""


def run(
    command: Sequence[str],
    variables: Mapping[str, str] | None = None,
    stdout: IO[str] | None = None,
    stderr: int | None = None,
    limit: int | None = TIME_LIMIT,
) -> int | None:
    """Run `command` in the project's root and return its exit code, None where its time was up and it was ended.

    Settings of the developer's own Blender are kept from it, and `variables` are added to its environment.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BLENDER_")}
    environment = {**kept, **(variables or {})}
    try:
        return subprocess.run(
            command, cwd=ROOT, env=environment, stdout=stdout, stderr=stderr, timeout=limit, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        return None
