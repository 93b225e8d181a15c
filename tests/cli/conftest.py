"""The command `ik_bake`, called with its arguments as Blender calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Addon

Command = Callable[..., int]


@pytest.fixture
def ik_bake(addon: Addon) -> Command:
    """Return the command, which takes its arguments one by one."""
    main = addon.module("cli.command").main
    return lambda *arguments: main([str(argument) for argument in arguments])
