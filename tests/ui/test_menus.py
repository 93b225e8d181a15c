"""Menus, keys and sub-panels; that they can be drawn is seen in a window only."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import bpy
import pytest

from tests import rigs
from tests.operators.states import activate

if TYPE_CHECKING:
    from tests.conftest import Addon


def keys() -> list[Any]:
    """The add-on's keys in Pose Mode."""
    keymaps = bpy.context.window_manager.keyconfigs.addon.keymaps
    items = keymaps["Pose"].keymap_items if "Pose" in keymaps else []
    return [item for item in items if item.idname == "wm.call_menu_pie" and item.properties.name == "IK_ADDON_MT_pie"]


def test_the_pie_menu_has_a_key() -> None:
    (item,) = keys()
    assert (item.type, item.shift, item.alt, item.ctrl) == ("I", True, True, False)


@pytest.mark.parametrize("name", ["blender_default", "industry_compatible_data"])
def test_the_key_is_free_in_blenders_own_keymaps(name: str) -> None:
    paths = (Path(folder, "keymap_data", f"{name}.py") for folder in bpy.utils.preset_paths("keyconfig"))
    execute: Any = bpy.utils.execfile  # the stubs know of no result
    module = execute(str(next(path for path in paths if path.exists())))
    parameters = module.Params(use_mouse_emulate_3_button=False) if hasattr(module, "Params") else module.Params()
    taken = [
        (keymap, operator)
        for keymap, _, contents in module.generate_keymaps(parameters)
        if keymap in {"Pose", "3D View", "3D View Generic", "Window", "Screen", "Object Non-modal", "Animation"}
        for operator, event, _ in contents["items"]
        if event["type"] == "I" and event.get("shift") and event.get("alt")
    ]
    assert taken == []


def test_limits_are_shown_for_the_active_bone(addon: Addon) -> None:
    panel = addon.module("ui.limits").VIEW3D_PT_ik_addon_limits
    ob, _target = rigs.arm()
    activate(ob, None)
    assert not panel.poll(bpy.context)
    activate(ob, "upper")
    assert panel.poll(bpy.context)
    bpy.context.view_layer.objects.active = rigs.empty("Other")
    assert not panel.poll(bpy.context)
