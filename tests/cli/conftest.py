"""The command `ik_bake`, called with its arguments as Blender calls it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Addon, Capture


@dataclass(frozen=True)
class Command:
    """The command, which takes its arguments one by one."""

    main: Callable[[list[str]], int]
    capfd: Capture
    folder: Path
    """Where reports go."""

    def __call__(self, *arguments: object) -> int:
        """Return the exit code."""
        return self.main([str(argument) for argument in arguments])

    def said(self, code: int, *arguments: object) -> tuple[str, str]:
        """Return what the command writes to stdout and stderr; assert that it ends with this exit code."""
        self.capfd.readouterr()
        assert self(*arguments) == code, arguments
        found = self.capfd.readouterr()
        return found.out, found.err

    def errors(self, code: int, *arguments: object) -> str:
        """Return what the command writes to stderr; assert that it ends with this exit code."""
        return self.said(code, *arguments)[1]

    def report(self, code: int, *arguments: object) -> Any:
        """Return the report of the command; assert that it ends with this exit code."""
        path = self.folder / "report.json"
        assert self("--report", path, *arguments) == code, arguments
        return json.loads(path.read_text())

    def plant(self, *arguments: object, code: int = 0) -> Any:
        """Return what the report says of planting the feet of the only armature."""
        return self.report(code, "--plant", *arguments)["armatures"][0]["plant"]


@pytest.fixture
def ik_bake(addon: Addon, capfd: Capture, tmp_path: Path) -> Command:
    """Return the command."""
    return Command(addon.module("cli.command").main, capfd, tmp_path)
