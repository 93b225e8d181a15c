from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Addon

WHITE = (1.0, 1.0, 1.0, 1.0)


@pytest.fixture
def geometry(addon: Addon) -> Any:
    return addon.module("ui.overlay.geometry")


@pytest.fixture
def limits(addon: Addon) -> Any:
    return addon.module("ui.overlay.geometry")


@pytest.fixture
def shown(addon: Addon) -> Any:
    return addon.module("ui.overlay.geometry")


@pytest.fixture
def palette(addon: Addon, shown: Any) -> Any:
    states = tuple((i / 10.0, 0.0, 0.0, 1.0) for i in range(len(shown.State)))
    colors = addon.module("ui.overlay.colors")
    return colors.Palette(states, swing=WHITE, twist=WHITE, at_limit=(1.0, 1.0, 0.0, 1.0), reach=WHITE, pin=WHITE)
