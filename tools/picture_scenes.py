"""Scenes for `tools/window_pictures.py`, set up inside the Blender of a window: see `tools.window.Inside`."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from typing import Any

import bpy
from mathutils import Euler, Vector

from tests import rigs_named
from tools.inside import OPERATORS, PACKAGE, activate, choose_tool, install, metarig, new_file, viewport

__all__ = ["activate", "choose_tool", "install", "metarig", "new_file"]

LIMITS = {
    "upper_arm.L": {"x": (-80, 60), "z": (-40, 70), "y": (-45, 60)},
    "forearm.L": {"x": (0, 130), "z": (0, 0), "y": (-60, 20)},
}
"""Limits in degrees, by bone and axis."""
GOALS = {
    "shin.R": (-0.05, -0.35, 0.3),
    "forearm.R": (-0.3, -0.2, 0.25),
    "shin.L": (0.0, 0.0, 0.0),
    "forearm.L": (-0.22, -0.16, 0.1),
}
"""Offsets of the targets, by tip."""
STRIDE = {
    "foot.L": (0.0, -0.3, 0.02),
    "foot.R": (0.0, 0.25, 0.06),
    "hand.L": (-0.1, 0.15, 0.0),
    "hand.R": (0.1, -0.25, 0.1),
    "spine": (0.0, 0.0, -0.05),
}
"""Offsets of joints, in the order in which they are dragged."""

SWING = 0.5
"""How far thighs and upper arms of a keyed walk swing, in radians."""

_TURNS = itertools.count()


def begin(open_panels: Sequence[str]) -> None:
    """Open an empty file in which the tab's panels with these labels will be open."""
    registration: Any = sys.modules[f"{PACKAGE}.ik_addon.registration"]
    panels = [cls for cls in registration.CLASSES if issubclass(cls, bpy.types.Panel) and hasattr(cls, "bl_category")]
    labels = {panel.bl_label for panel in panels}
    unknown = set(open_panels) - labels
    if unknown:
        raise LookupError(f"No panel is called {unknown}; there are {labels}.")
    # Blender cannot open a panel from Python. But a panel with a label it has not seen before opens as its class says.
    turn = next(_TURNS)
    for panel in reversed(panels):
        bpy.utils.unregister_class(panel)
    for panel in panels:
        closed = panel.bl_label not in open_panels and hasattr(panel, "bl_parent_id")
        panel.bl_options = {"DEFAULT_CLOSED"} if closed else set()
        for name in ("bl_idname", "bl_parent_id"):
            if hasattr(panel, name):
                setattr(panel, name, f"{getattr(panel, name).split('_turn_')[0]}_turn_{turn}")
        bpy.utils.register_class(panel)
    new_file()


def open_sample(path: str, bone: str, frame: int, mode: str) -> None:
    """Open a sample in the current window, with its armature active in a mode."""
    bpy.ops.wm.open_mainfile(filepath=path, load_ui=False)
    bpy.context.scene.frame_set(frame)
    rig = next(ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE")
    for ob in bpy.context.scene.objects:
        ob.select_set(ob == rig)
        ob.hide_set(ob.type in {"CAMERA", "LIGHT"} or ob.name == "Floor")
    bpy.context.view_layer.objects.active = rig
    activate(bone, select=False)
    with bpy.context.temp_override(**viewport()):
        OPERATORS.object.mode_set(mode=mode)


def look(turn: Sequence[float], place: Sequence[float], distance: float) -> None:
    """Point the view at a place, showing only bones and meshes."""
    view = viewport()["area"].spaces.active
    view.show_region_toolbar = view.show_region_tool_header = view.show_gizmo_navigate = False
    overlay = view.overlay
    overlay.show_cursor = overlay.show_floor = overlay.show_axis_x = overlay.show_axis_y = overlay.show_text = False
    view.shading.type, view.shading.color_type = "SOLID", "MATERIAL"
    view.region_3d.view_perspective = "PERSP"
    view.region_3d.view_rotation = Euler(turn).to_quaternion()
    view.region_3d.view_location = Vector(place)
    view.region_3d.view_distance = distance


def hide_face() -> None:
    """Hide the bones of a metarig's or a generated rig's face."""
    data: Any = bpy.context.object.data
    for collection in data.collections_all:
        if collection.name.startswith("Face"):
            collection.is_visible = False


def select_goal(tip: str) -> None:
    """Make the target of a chain the only selected object."""
    goal = bpy.context.object.pose.bones[tip].ik_addon.target
    with bpy.context.temp_override(**viewport()):
        bpy.ops.object.mode_set(mode="OBJECT")
    for ob in bpy.context.view_layer.objects:
        ob.select_set(ob == goal)
    bpy.context.view_layer.objects.active = goal


def four_chains() -> None:
    """Add four chains to the metarig: the left arm has limits, the right arm is out of reach."""
    rig = bpy.context.object
    for tip, offset in GOALS.items():
        activate(tip)
        with bpy.context.temp_override(**viewport()):
            OPERATORS.ik_addon.chain_add()
        target = rig.pose.bones[tip].ik_addon.target
        target.location = [a + b for a, b in zip(target.location, offset, strict=True)]
    for name, axes in LIMITS.items():
        bone = rig.pose.bones[name]
        for axis, (low, high) in axes.items():
            setattr(bone, f"lock_ik_{axis}", low == high)
            setattr(bone, f"use_ik_limit_{axis}", True)
            setattr(bone, f"ik_min_{axis}", math.radians(low))
            setattr(bone, f"ik_max_{axis}", math.radians(high))
    rig.ik_addon.live = True
    activate("forearm.L", select=False)


def set_up() -> None:
    """Set up the whole metarig; its left arm has a chain already."""
    with bpy.context.temp_override(**viewport()):
        OPERATORS.ik_addon.chain_add(controls="BONES")
        OPERATORS.ik_addon.character_setup()


def stride() -> None:
    """Pose the metarig as in the middle of a step."""
    for bone, offset in STRIDE.items():
        with bpy.context.temp_override(**viewport()):
            OPERATORS.ik_addon.pose_body(bone=bone, offset=offset)
    activate("spine")


def pin_feet() -> None:
    """Pin the feet of the figure."""
    with bpy.context.temp_override(**viewport()):
        OPERATORS.ik_addon.pin(which="FEET")


def hinder() -> None:
    """Let a constraint conflict with the chain of the two-bone arm."""
    bone = bpy.context.object.pose.bones["upper_arm"]
    bone.constraints.new("COPY_ROTATION").target = bpy.data.objects["Pole"]
    bpy.context.view_layer.update()


# ---- for the recipes


def run(operator: str, **properties: object) -> None:
    """Run an operator of Blender or of the extension in the viewport, as `room.name`."""
    room, name = operator.split(".")
    with bpy.context.temp_override(**viewport()):
        getattr(getattr(OPERATORS, room), name)(**properties)


def generated() -> None:
    """Replace the metarig by the rig that Rigify generates from it, in Pose Mode."""
    metarig_object = bpy.context.object
    OPERATORS.preferences.addon_enable(module="rigify")
    run("pose.rigify_generate")
    metarig_object.hide_set(True)
    if bpy.context.object.mode != "POSE":
        run("object.mode_set", mode="POSE")
    hide_face()


def named_rig(name: str) -> None:
    """Build a character with the bone names of a kind of rig, in Pose Mode."""
    rigs_named.build(rigs_named.RIGS[name])
    run("object.mode_set", mode="POSE")


def walk(thighs: Sequence[str], shins: Sequence[str], arms: Sequence[str], hips: str) -> None:
    """Key a walk on the spot of 24 frames; left before right."""
    rig: Any = bpy.context.object
    for frame in range(1, 26, 4):
        phase = (frame - 1) / 24.0 * math.tau
        turns = {hips: (0.0, 0.0, 0.05 * math.sin(phase))}
        for side, sign in enumerate((1.0, -1.0)):
            turns[thighs[side]] = (SWING * sign * math.sin(phase), 0.0, 0.0)
            turns[shins[side]] = (SWING * (1.0 + sign * math.cos(phase)), 0.0, 0.0)
            turns[arms[side]] = (0.0, 0.0, SWING * math.sin(phase))
        for name, turn in turns.items():
            bone = rig.pose.bones[name]
            bone.rotation_mode = "XYZ"
            bone.rotation_euler = turn
            bone.keyframe_insert("rotation_euler", frame=frame)
    bpy.context.scene.frame_end = 25
    bpy.context.scene.frame_set(7)


def mmd_legs() -> None:
    """Give the legs IK as mmd_tools imports it, with its constraint on the knee muted."""
    rig: Any = bpy.context.object
    run("object.mode_set", mode="EDIT")
    for side in "左右":
        rig.data.edit_bones[f"{side}足ＩＫ"].parent = None
    run("object.mode_set", mode="POSE")
    for side in "左右":
        knee = rig.pose.bones[f"{side}ひざ"]
        override = knee.constraints.new("LIMIT_ROTATION")
        override.name, override.mute = "mmd_ik_limit_override", True
        ik = knee.constraints.new("IK")
        ik.target, ik.subtarget, ik.chain_count = rig, f"{side}足ＩＫ", 2


def lower_hands(hands: Sequence[str]) -> None:
    """Bring the left and the right hand down and forward from a T-pose."""
    for side, bone in zip((1.0, -1.0), hands, strict=True):
        run("ik_addon.pose_body", bone=bone, offset=(-0.2 * side, -0.2, -0.35))


def move(bone: str, offset: Sequence[float]) -> None:
    """Move a bone of the active armature, in its parent's axes."""
    channels: Any = bpy.context.object.pose.bones[bone]
    channels.location = [a + b for a, b in zip(channels.location, offset, strict=True)]
    activate(bone)
