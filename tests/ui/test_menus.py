"""Menus, keys, tools and gizmos; drawing and using them is tested in a window."""

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import bpy
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.faults import Limb
from tests.reliability.states import activate, disabled


def test_the_pie_menu_has_a_key() -> None:
    items: Any = bpy.context.window_manager.keyconfigs.addon.keymaps["Pose"].keymap_items
    (item,) = (own for own in items if getattr(own.properties, "name", "") == "IK_ADDON_MT_pie")
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
    panel = addon.module("ui.panels.folded").VIEW3D_PT_ik_addon_limits
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
    menus = addon.module("ui.menus")
    entries = [operator for group in menus.ENTRIES for operator in group]
    assert len(entries) == len(set(entries))
    # Blender's search does not list internal operators, which other buttons, keys and tools call.
    internal = {name for name, cls in known.items() if "INTERNAL" in cls.bl_options}
    assert set(entries) == known.keys() - internal
    assert {*menus.CHAIN, *menus.PIE} <= set(entries), "other menus have commands of the menu"
    assert set(menus.ICONS.values()) <= set(
        bpy.types.UILayout.bl_rna.functions["operator"].parameters["icon"].enum_items.keys()
    )


@pytest.mark.parametrize("mode", ["pose", "object"])
def test_the_search_finds_the_menu_in_object_and_pose_mode(addon: Addon, mode: str) -> None:
    menu: Any = getattr(bpy.types, f"VIEW3D_MT_{mode}")
    own = {getattr(draw, "__module__", "") for draw in menu._dyn_ui_initialize()}
    assert addon.module("ui.menus").__name__ in own


def test_the_button_that_snaps_a_range_opens_a_dialog_of_that_name(addon: Addon) -> None:
    snap = addon.module("ui.operators.controls")
    assert snap.IK_ADDON_OT_snap_target.title == "Targets to Pose (Range)"
    assert not snap.IK_ADDON_OT_apply_pose.title, "the operator's own label"


def test_labels_differ_from_blenders(addon: Addon) -> None:
    """Otherwise the search would list two entries with the same words."""
    rooms: Any = (bpy.ops.pose, bpy.ops.armature, bpy.ops.object, bpy.ops.anim, bpy.ops.transform)
    taken = {getattr(room, name).get_rna_type().name for room in rooms for name in dir(room)}
    entries = addon.module("ui.menus").ICONS
    labels = {getattr(bpy.ops.ik_addon, name.split(".")[1]).get_rna_type().name for name in entries}
    assert len(labels) == len(entries)
    assert len(taken) > 300
    assert labels.isdisjoint({label.removesuffix(" as Rest Pose") for label in taken})


# ---- tools in the toolbar of Pose Mode


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


def test_the_active_tool_draws_nothing_once_the_extension_is_off(
    addon: Addon, caplog: pytest.LogCaptureFixture
) -> None:
    """Blender goes on drawing the cursor of a tool that was active."""
    ob, _target = rigs.arm()
    activate(ob, "lower")
    bpy.ops.object.mode_set(mode="POSE")
    tool = addon.module("ui.toolbar").IKAddonPoseTool
    area = next(area for area in bpy.context.window.screen.areas if area.type == "VIEW_3D")
    with disabled(), bpy.context.temp_override(area=area, region=area.regions[-1]):
        tool.draw_cursor(bpy.context, None, (0, 0))
    assert not caplog.records


def test_the_text_beside_the_mouse_says_how_many_bones_follow(addon: Addon) -> None:
    follow = addon.module("ui.toolbar").follow
    assert [follow(count) for count in (0, 4)] == ["Bones: All", "Bones: 4"]


def test_the_tool_has_an_icon_and_gizmos(addon: Addon) -> None:
    tool = addon.module("ui.toolbar").IKAddonTool
    assert tool.bl_widget == addon.module("ui.toolbar").IK_ADDON_GGT_tool.bl_idname
    icons = Path(bpy.utils.system_resource("DATAFILES"), "icons")
    for each in (tool, addon.module("ui.toolbar").IKAddonPoseTool):
        assert (icons / f"{each.bl_icon}.dat").exists()


# ---- which targets and poles have gizmos


def grips(addon: Addon) -> list[tuple[str, str, str]]:
    """Return tip, role and object of everything that has a gizmo."""
    bpy.ops.object.mode_set(mode="POSE")
    return [(tip.name, role, ob.name) for tip, role, ob in addon.module("ui.toolbar").grips(bpy.context)]


def test_targets_and_poles_of_enabled_chains_have_gizmos(addon: Addon, limb: Limb) -> None:
    rigs.add_bones(limb.ob, [(2, 0, 0), (2, 0, 1)], ["other"])
    chain = limb.chain
    chain.pole = rigs.empty("Pole", (1.0, 2.0, 3.0))
    rigs.chain(limb.ob, "other", rigs.empty("Second", (2.0, 0.5, 0.5)))
    bpy.context.view_layer.update()
    both = [("lower", "target", limb.target.name), ("lower", "pole", "Pole")]
    assert grips(addon) == [*both, ("other", "target", "Second")]
    bpy.data.objects["Second"].hide_set(True)
    assert grips(addon) == both
    chain.pole = None
    assert grips(addon) == both[:1]
    chain.enabled = False
    assert grips(addon) == []


def test_every_armature_in_pose_mode_has_its_gizmos(addon: Addon) -> None:
    obs = [rigs.arm()[0] for _ in range(2)]
    for ob in obs:
        bpy.context.view_layer.objects.active = ob
        bpy.ops.object.mode_set(mode="POSE")
    bpy.context.view_layer.update()
    found = {(tip.id_data.name, ob.name) for tip, _role, ob in addon.module("ui.toolbar").grips(bpy.context)}
    assert found == {(ob.name, ob.pose.bones["lower"].ik_addon.target.name) for ob in obs}
    assert len(found) == 2


def test_target_bones_have_blenders_own_gizmo(addon: Addon, limb: Limb) -> None:
    rigs.add_bones(limb.ob, [(0.5, 0.5, 0.5), (0.5, 0.5, 0.8)], ["control"])
    chain = limb.chain
    chain.target, chain.target_bone = limb.ob, "control"
    assert grips(addon) == []


def test_gizmos_are_only_for_pose_mode(addon: Addon) -> None:
    gizmos = addon.module("ui.toolbar")
    rigs.arm()
    found = []
    for mode in ("OBJECT", "POSE", "EDIT"):
        bpy.ops.object.mode_set(mode=mode)
        found.append([cls.poll(bpy.context) for cls in (gizmos.IK_ADDON_GGT_rings, gizmos.IK_ADDON_GGT_tool)])
    assert found == [[False, False], [True, False], [False, False]], "without a window no tool is active"
    bpy.ops.object.mode_set(mode="POSE")
    bpy.context.scene.ik_addon.show_overlay = False
    assert not gizmos.IK_ADDON_GGT_rings.poll(bpy.context), "rings are a part of the overlay"
