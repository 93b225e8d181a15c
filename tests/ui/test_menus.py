"""Menus, keys and sub-panels; drawing them is tested in a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate


def keys() -> list[Any]:
    """Return the add-on's keymap items in Pose Mode."""
    keymaps = bpy.context.window_manager.keyconfigs.addon.keymaps
    items = keymaps["Pose"].keymap_items if "Pose" in keymaps else []
    return [item for item in items if item.idname == "wm.call_menu_pie" and item.properties.name == "IK_ADDON_MT_pie"]


def test_the_pie_menu_has_a_key() -> None:
    (item,) = keys()
    assert (item.type, item.shift, item.alt, item.ctrl) == ("I", True, True, False)


@pytest.mark.parametrize("name", ["blender_default", "industry_compatible_data"])
def test_the_key_is_unused_in_blenders_own_keymaps(name: str) -> None:
    paths = (Path(folder, "keymap_data", f"{name}.py") for folder in bpy.utils.preset_paths("keyconfig"))
    execute: Any = bpy.utils.execfile  # the stubs do not know its result
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
    panel = addon.module("ui.panels.limits").VIEW3D_PT_ik_addon_limits
    ob, _target = rigs.arm()
    activate(ob, None)
    assert not panel.poll(bpy.context)
    activate(ob, "upper")
    assert panel.poll(bpy.context)
    bpy.context.view_layer.objects.active = rigs.empty("Other")
    assert not panel.poll(bpy.context)


def test_every_command_is_in_the_menu(addon: Addon) -> None:
    kinds = (bpy.types.Operator, bpy.types.Macro)
    known = {cls.bl_idname: cls for cls in addon.module("registration").CLASSES if issubclass(cls, kinds)}
    entries = [operator for group in addon.module("ui.menus").ENTRIES for operator, _icon in group]
    assert len(entries) == len(set(entries))
    # Blender's search does not list internal operators, which other buttons, keys and tools call.
    internal = {name for name, cls in known.items() if "INTERNAL" in cls.bl_options}
    assert set(entries) == known.keys() - internal


@pytest.mark.parametrize("mode", ["pose", "object"])
def test_the_search_finds_the_menu_in_object_and_pose_mode(addon: Addon, mode: str) -> None:
    menu: Any = getattr(bpy.types, f"VIEW3D_MT_{mode}")
    own = {getattr(draw, "__module__", "") for draw in menu._dyn_ui_initialize()}
    assert addon.module("ui.menus").__name__ in own


def test_the_context_menu_has_commands_of_the_menu(addon: Addon) -> None:
    menus = addon.module("ui.menus")
    entries = {operator for group in menus.ENTRIES for operator, _icon in group}
    assert {operator for operator, _icon in (*menus.CHAIN, *menus.NEW_CHAIN)} <= entries


def test_the_button_that_snaps_a_range_opens_a_dialog_of_that_name(addon: Addon) -> None:
    snap = addon.module("ui.operators.controls")
    assert snap.IK_ADDON_OT_snap_target.title == "Targets to Pose (Range)"
    assert not snap.IK_ADDON_OT_apply_pose.title, "the operator's own label"


def test_icons_of_the_menu_exist_in_blender(addon: Addon) -> None:
    menus = addon.module("ui.menus")
    known = bpy.types.UILayout.bl_rna.functions["operator"].parameters["icon"].enum_items
    entries = [entry for group in (*menus.ENTRIES, menus.CHAIN, menus.NEW_CHAIN) for entry in group]
    assert [icon for _operator, icon in entries if icon not in known] == []


def test_labels_differ_from_blenders(addon: Addon) -> None:
    """Otherwise the search would list two entries with the same words."""
    rooms: Any = (bpy.ops.pose, bpy.ops.armature, bpy.ops.object, bpy.ops.anim, bpy.ops.transform)
    taken = {getattr(room, name).get_rna_type().name for room in rooms for name in dir(room)}
    entries = {operator for group in addon.module("ui.menus").ENTRIES for operator, _icon in group}
    labels = {getattr(bpy.ops.ik_addon, name.split(".")[1]).get_rna_type().name for name in entries}
    assert len(labels) == len(entries)
    assert len(taken) > 300
    assert labels.isdisjoint({label.removesuffix(" as Rest Pose") for label in taken})
