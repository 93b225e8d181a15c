"""The texts that panels draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import bpy
import pytest

PANELS = ("VIEW3D_PT_ik_addon", "VIEW3D_PT_ik_addon_chain", "VIEW3D_PT_ik_addon_bend")


class Layout:
    """Takes what panels draw, and notes the texts: without a window there is no other layout."""

    def __init__(self, texts: list[str]) -> None:
        self.__dict__["texts"] = texts

    def __getattr__(self, _name: str) -> Any:
        def draw(*_positional: object, text: str = "", **_named: object) -> Layout:
            if text:
                self.texts.append(text)
            return Layout(self.texts)

        return draw

    def __setattr__(self, name: str, value: object) -> None:
        pass


class Panel:
    """Stands for an instance of a panel, which only Blender makes, and draws on a layout."""

    def __init__(self, cls: Any, layout: Any) -> None:
        self._cls, self.layout = cls, layout

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cls, name).__get__(self)


@pytest.fixture
def sidebar() -> Iterator[None]:
    """Run the test in the sidebar of a viewport."""
    window = bpy.context.window_manager.windows[0]
    area = window.screen.areas[0]
    area.type = "VIEW_3D"
    region = next(region for region in area.regions if region.type == "UI")
    with bpy.context.temp_override(window=window, area=area, region=region):
        yield


def drawn(*names: str) -> list[str]:
    """Draw panels as on a frame, by default the main ones, and return their texts; needs the fixture `sidebar`."""
    texts: list[str] = []
    for name in names or PANELS:
        cls: Any = getattr(bpy.types, name)
        if not hasattr(cls, "poll") or cls.poll(bpy.context):
            Panel(cls, Layout(texts)).draw(bpy.context)
    return texts
