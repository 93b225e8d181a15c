"""The tools in the toolbar of Pose Mode."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import bpy

from tests.conftest import Addon


def tools(mode: str) -> list[str]:
    """Return the names of the 3D viewport's tools in a mode, including those in groups."""
    toolbar: Any = importlib.import_module("bl_ui.space_toolsystem_toolbar").VIEW3D_PT_tools_active
    return [tool.idname for tool in flat(toolbar.tools_from_context(bpy.context, mode=mode)) if hasattr(tool, "idname")]


def flat(tools: Iterable[Any]) -> Iterator[Any]:
    """Yield the tools of a list with groups; a single tool is a named tuple."""
    for tool in tools:
        if isinstance(tool, tuple) and not hasattr(tool, "idname"):
            yield from flat(tool)
        else:
            yield tool


def test_the_tools_are_only_in_pose_mode(addon: Addon) -> None:
    module = addon.module("ui.toolbar")
    for name in (module.IKAddonTool.bl_idname, module.IKAddonPoseTool.bl_idname):
        assert tools("POSE").count(name) == 1
        assert "builtin.move" in tools("OBJECT")
        assert name not in tools("OBJECT")


def test_the_text_beside_the_mouse_says_how_many_bones_follow(addon: Addon) -> None:
    follow = addon.module("ui.toolbar").follow
    assert [follow(count) for count in (0, 4)] == ["Bones: All", "Bones: 4"]


def test_both_tools_have_something_in_the_header(addon: Addon) -> None:
    module = addon.module("ui.toolbar")
    assert all(callable(getattr(tool, "draw_settings", None)) for tool in (module.IKAddonTool, module.IKAddonPoseTool))


def test_the_tool_has_an_icon_and_gizmos(addon: Addon) -> None:
    tool = addon.module("ui.toolbar").IKAddonTool
    assert tool.bl_widget == addon.module("ui.gizmos").IK_ADDON_GGT_tool.bl_idname
    icons = Path(bpy.utils.system_resource("DATAFILES"), "icons")
    for each in (tool, addon.module("ui.toolbar").IKAddonPoseTool):
        assert (icons / f"{each.bl_icon}.dat").exists()
