"""Set the scene for tests and pictures, inside the Blender of a window: see `tools/window`."""

from __future__ import annotations

import importlib
import math
from typing import Any

import bpy
from mathutils import Euler, Vector

REPOSITORY = "user_default"
PACKAGE = f"bl_ext.{REPOSITORY}.ik_addon"

# Operator and view options that differ between versions, or that bpy's type stubs do not know.
OPERATORS: Any = bpy.ops


def install(package: str) -> bool:
    """Install the extension's zip as a user would; return whether it is now enabled."""
    addon_utils = importlib.import_module("addon_utils")
    addon_utils.enable("bl_pkg")
    OPERATORS.extensions.package_install_files(filepath=package, repo=REPOSITORY, enable_on_install=True)
    bpy.context.preferences.system.viewport_aa = "OFF"  # without a graphics card this draws three times as fast
    return is_enabled()


def is_enabled() -> bool:
    """Whether the extension is enabled."""
    return bool(importlib.import_module("addon_utils").check(PACKAGE)[1])


def viewport() -> dict[str, Any]:
    """Return the largest 3D viewport, as keyword arguments for `temp_override`."""
    window = bpy.context.window_manager.windows[0]
    areas = [area for area in window.screen.areas if area.type == "VIEW_3D"]
    area = max(areas, key=lambda area: area.width * area.height)
    region = next(region for region in area.regions if region.type == "WINDOW")
    return {"window": window, "area": area, "region": region}


def new_file() -> None:
    """Open an empty scene in Blender's default window, as File > New does."""
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True, load_ui=True)


def metarig() -> None:
    """Add a human metarig in Pose Mode, seen from the front, with its left forearm active."""
    OPERATORS.preferences.addon_enable(module="rigify")
    with bpy.context.temp_override(**viewport()):
        OPERATORS.object.armature_human_metarig_add()
        bpy.ops.object.mode_set(mode="POSE")
        OPERATORS.preferences.addon_disable(module="rigify")
        look_from_front(bpy.context.object)
        activate("forearm.L")
        bpy.ops.ed.undo_push(message="Metarig")
    # Rigify leaves a handler behind that fails on every file opened from then on.
    opened: Any = bpy.app.handlers.load_post
    for handler in [handler for handler in opened if handler.__module__.startswith("rigify")]:
        opened.remove(handler)


def look_from_front(ob: bpy.types.Object) -> None:
    """Turn and move the viewport so that the whole object is in view, left of any sidebar over it."""
    is_covered = bpy.context.preferences.system.use_region_overlap
    view = viewport()["area"].spaces.active.region_3d
    corners = [ob.matrix_world @ Vector(corner) for corner in ob.bound_box]
    low, high = (Vector([end(values) for values in zip(*corners, strict=True)]) for end in (min, max))
    view.view_perspective = "ORTHO"
    view.is_orthographic_side_view = False  # as keys of the numeric pad leave it: Ctrl then snaps to another grid
    view.view_rotation = Euler((math.radians(90.0), 0.0, 0.0)).to_quaternion()
    view.view_distance = (1.6 if is_covered else 1.1) * (high - low).length
    view.view_location = (low + high) / 2.0 + Vector((0.15 * view.view_distance * is_covered, 0.0, 0.0))


def activate(bone: str, select: bool = True) -> None:
    """Make a bone of the active armature the active one, and select it alone or nothing."""
    ob: Any = bpy.context.view_layer.objects.active  # a window that has just opened a file has no context.object
    for other in ob.pose.bones:
        # From 5.0 on, the pose bone holds the selection rather than its bone.
        (other if hasattr(other, "select") else other.bone).select = select and other.name == bone
    ob.data.bones.active = ob.data.bones[bone]


def choose_tool(name: str) -> None:
    """Choose a tool of the toolbar."""
    with bpy.context.temp_override(**viewport()):
        bpy.ops.wm.tool_set_by_id(name=name)
