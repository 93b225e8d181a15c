"""Start the real program, with and without a window. The driver that controls it is not part of the project.

The driver is a folder, named by BLENDER_WINDOW_RUNNER or `../shared/blenderbox` beside the project. Its `setup.sh`
prepares a Blender of a suite, and its `blender-run` starts it. `Session` in its `gui_drive.py` opens that Blender in a
virtual screen, moves the mouse, types, takes screenshots, and runs Python inside it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.environments import ROOT, ToolError, locked

RUNNER = "BLENDER_WINDOW_RUNNER"
SUITE = "BLENDER_WINDOW_SUITE"
SUITES = ("sid", "trixie")
"""The suites that Blenders come from, newest first."""
SIZE = "1000x700x24"
"""Width, height and color depth of the window. It is drawn without a graphics card, so a small one is fast."""
PATIENCE = 600
"""Time limit in seconds of a Blender without a window."""


@dataclass(frozen=True)
class Program:
    """A Blender that is ready to start."""

    driver: Path
    suite: str
    version: str

    def run(self, user: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run it without a window until it ends, with a folder for user files."""
        return _run(self.driver, self.suite, user, *arguments)

    def ask(self, user: Path, file: Path, module: Path, function: str, *arguments: Any) -> Any:
        """Call a function of a module, as `Inside` does, in a Blender without a window that has opened a file.

        Raises:
            ToolError: the function or Blender failed; the message is the output.
        """
        mark = "The answer is "
        code = (
            f"import json, sys; sys.path[:0] = {_folders(module)}; import {module.stem}; "
            f"print({mark!r} + json.dumps({module.stem}.{function}(*{arguments!r})), flush=True)"
        )
        ended = self.run(user, "-b", file, "--python-exit-code", "1", "--python-expr", code)
        answers = [line.removeprefix(mark) for line in ended.stdout.splitlines() if line.startswith(mark)]
        if ended.returncode or not answers:
            raise ToolError(ended.stdout + ended.stderr)
        return json.loads(answers[-1])

    @contextmanager
    def opened(self, user: Path, size: str = SIZE) -> Iterator[Any]:
        """Open it in a window of its own, with a folder for user files; yields the driver's `Session`."""
        if str(self.driver) not in sys.path:
            sys.path.insert(0, str(self.driver))
        gui_drive: Any = importlib.import_module("gui_drive")
        # The driver keeps its files in the project's folder, where two sessions would interfere with each other.
        with (
            locked(ROOT / "build" / "window.lock"),
            gui_drive.Session(str(ROOT), suite=self.suite, user=str(user), size=size) as session,
        ):
            yield session


class Inside:
    """Calls the functions of a module in the Blender of a session. Arguments and results must be plain data."""

    def __init__(self, session: Any, module: Path) -> None:
        """Make the module, and the project's `tools`, available in that Blender."""
        self._session, self._name = session, module.stem
        session.call(f"import sys\nsys.path[:0] = {_folders(module)}")

    def __getattr__(self, function: str) -> Callable[..., Any]:
        """Return a function of the module."""

        def call(*arguments: Any) -> Any:
            name = self._name
            return self._session.call(f"import {name}\nresult = {name}.{function}(*{arguments!r})")

        return call


def _folders(module: Path) -> list[str]:
    return [str(ROOT), str(module.parent)]


def driver() -> Path:
    """Return the driver's folder.

    Raises:
        ToolError: there is none.
    """
    named = os.environ.get(RUNNER)
    folder = Path(named) if named else ROOT.parent / "shared" / "blenderbox"
    if not (folder / "gui_drive.py").is_file():
        where = f"{RUNNER} names {named}" if named else f"{RUNNER} is not set, and ../shared/blenderbox is not there"
        raise ToolError(f"There is no driver for a Blender with a window: {where}.")
    return folder.resolve()


def chosen() -> dict[str, str]:
    """Return the environment variables that choose a driver and a Blender."""
    return {name: os.environ[name] for name in (RUNNER, SUITE) if name in os.environ}


def program(user: Path) -> Program:
    """Return the newest Blender that the driver has ready, or the one of the suite named by BLENDER_WINDOW_SUITE.

    Args:
        user: a folder for user files, to try it with.

    Raises:
        ToolError: there is none.
    """
    folder = driver()
    named = os.environ.get(SUITE)
    said = []
    for suite in (named,) if named else SUITES:
        answer = _run(folder, suite, user, "--version")
        if answer.returncode == 0 and answer.stdout.startswith("Blender "):
            return Program(folder, suite, answer.stdout.splitlines()[0].removeprefix("Blender "))
        said.append((answer.stderr.strip() or answer.stdout.strip() or "it said nothing").splitlines()[-1])
    raise ToolError(f"The driver in {folder.name} has no Blender ready, run its setup.sh: {'; '.join(said)}")


def _run(folder: Path, suite: str, user: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    options = ["--suite", suite, "--project", ROOT, "--user", user]
    command = [str(part) for part in (folder / "blender-run", *options, "--", *arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
