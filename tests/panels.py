"""What panels draw."""

from collections.abc import Iterator
from typing import Any

import bpy
import pytest

PANELS = ("VIEW3D_PT_ik_addon", "VIEW3D_PT_ik_addon_chain", "VIEW3D_PT_ik_addon_bend")


class Layout:
    """Takes what panels draw, and notes texts, rows and controls: without a window there is no other layout."""

    def __init__(self, texts: list[str], beside: bool = False) -> None:
        self.__dict__.update(texts=texts, beside=beside, parts=[], controls=0)

    def __setattr__(self, name: str, value: object) -> None:
        pass

    @property
    def rows(self) -> int:
        """The rows that it takes: those of its highest part, or of all of them."""
        heights = [part.rows if isinstance(part, Layout) else part for part in self.parts]
        return max(heights, default=0) if self.beside else sum(heights)

    @property
    def whole(self) -> int:
        """The number of controls in it."""
        return self.controls + sum(part.whole for part in self.parts if isinstance(part, Layout))

    def __getattr__(self, kind: str) -> Any:
        def draw(*_positional: object, text: str = "", rows: int = 1, **_named: object) -> Layout:
            if text:
                self.texts.append(text)
            part = Layout(self.texts, kind in {"row", "split"})
            if kind in {"row", "split", "column", "box"}:
                self.parts.append(part)
            elif kind not in {"separator", "separator_spacer"}:
                self.parts.append(rows if kind == "template_list" else 1)
                self.__dict__["controls"] += kind != "label"
            return part  # for what is drawn in it, or the settings of an operator

        return draw


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
