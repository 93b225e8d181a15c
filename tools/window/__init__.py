"""Blender itself, which Debian's packages bring (see `debian`): started without a window, or opened in one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.environments import ROOT, ToolError
from tools.window import debian
from tools.window.session import Session

SUITE = "WINDOW_SUITE"
"""The variable that names the suite to use, of `debian.SUITES`."""
SIZE = "1000x700x24"
"""Width, height and color depth of the window. It is drawn without a graphics card, so a small one is fast."""
PATIENCE = 600
"""Time limit in seconds of a Blender without a window."""


@dataclass(frozen=True)
class Program:
    """A Blender that is ready to start."""

    suite: str
    version: str

    def run(self, user: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run it without a window until it ends, with a folder for user files."""
        return _run(self.suite, user, *arguments)

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

    def opened(self, user: Path, size: str = SIZE) -> Session:
        """Open it in a window on a screen of its own, with a folder for user files."""
        user.mkdir(parents=True, exist_ok=True)

        def command(arguments: Sequence[str | Path], display: str) -> list[str]:
            return _command(self.suite, user, {"DISPLAY": display}, *arguments)

        return Session(command, size, user.with_suffix(".log"))


class Inside:
    """Calls the functions of a module in the Blender of a session. Arguments and results must be plain data."""

    def __init__(self, session: Session, module: Path) -> None:
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


def program() -> Program:
    """Return the newest Blender that is set up, or the one of the suite named by WINDOW_SUITE.

    Raises:
        ToolError: there is none.
    """
    suites = [os.environ[SUITE]] if SUITE in os.environ else debian.SUITES
    for suite in suites:
        if debian.is_installed(suite):
            answer = _run(suite, ROOT / "build", "--version")
            if answer.returncode == 0 and answer.stdout.startswith("Blender "):
                return Program(suite, answer.stdout.splitlines()[0].removeprefix("Blender "))
            raise ToolError(f"Blender from Debian {suite} does not start: {answer.stdout}{answer.stderr}")
    raise ToolError(f"There is no Blender with a window from Debian {' or '.join(suites)}: run `make window`.")


def set_up() -> Program:
    """Install Blender from the first suite that has one, unless one is there, and return it.

    Raises:
        ToolError: that failed for all of them.
    """
    for suite in debian.SUITES:
        try:
            debian.install(suite)
            return program()
        except ToolError as error:
            print(error, flush=True)
    raise ToolError("No Blender with a window could be set up: see above.")


def _run(suite: str, user: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = _command(suite, user, {}, *arguments)
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def _command(suite: str, user: Path, variables: dict[str, str], *arguments: str | Path) -> list[str]:
    user.mkdir(parents=True, exist_ok=True)
    own = {"HOME": str(user), "BLENDER_USER_RESOURCES": str(user), **variables}
    return debian.command(suite, (ROOT, user), own, *arguments)
