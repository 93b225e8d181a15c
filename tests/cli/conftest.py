"""The command `ik_bake`, called with its arguments as Blender calls it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.conftest import Addon


@dataclass(frozen=True)
class Command:
    """The command, which takes its arguments one by one."""

    main: Callable[[list[str]], int]
    capfd: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object) -> int:
        """Return the exit code."""
        return self.main([str(argument) for argument in arguments])

    def errors(self, code: int, *arguments: object) -> str:
        """Return what the command writes to stderr; assert that it ends with this exit code."""
        self.capfd.readouterr()
        assert self(*arguments) == code, arguments
        return self.capfd.readouterr().err


@pytest.fixture
def ik_bake(addon: Addon, capfd: pytest.CaptureFixture[str]) -> Command:
    """Return the command."""
    return Command(addon.module("cli.command").main, capfd)
