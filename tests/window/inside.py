"""Functions of the window tests that run inside the real program; see `tools.window.Inside`."""

import contextlib
import importlib
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import bpy
import numpy as np
from bpy.app.handlers import persistent
from bpy_extras import view3d_utils
from mathutils import Quaternion, Vector

from tests import rigs
from tools.inside import (
    PACKAGE,
    activate,
    choose_tool,
    install,
    is_enabled,
    look_from_front,
    metarig,
    new_file,
    viewport,
)

__all__ = ["activate", "choose_tool", "install", "is_enabled", "metarig", "new_file"]

OPERATORS: Any = bpy.ops


def rig() -> bpy.types.Object:
    """The armature of the scene, up to date: a request may come when an operator has just changed it by an event."""
    bpy.context.view_layer.update()
    return next(ob for ob in bpy.context.scene.objects if ob.type == "ARMATURE")


def version() -> str:
    """The version of Blender, and whether it runs in the background."""
    return f"{bpy.app.version_string}{' in the background' if bpy.app.background else ''}"


def draw_quickly(sidebar_over_viewport: bool = False) -> None:
    """Leave out what takes longest to draw without a graphics card; factory settings bring it back.

    By default the sidebar lies beside the viewport, not over it, so that either is drawn without the other.
    """
    system: Any = bpy.context.preferences.system
    wanted = {"viewport_aa": "OFF", "use_overlay_smooth_wire": False, "use_region_overlap": sidebar_over_viewport}
    for name, value in wanted.items():
        if getattr(system, name) != value:  # setting it redraws everything
            setattr(system, name, value)
    bpy.context.preferences.view.smooth_view = 0


# ---- files


def open_file(path: str, mode: str = "POSE", load_ui: bool = False) -> None:
    """Open a file in the current window, or in its own one with `load_ui`, with its armature active."""
    bpy.ops.wm.open_mainfile(filepath=path, load_ui=load_ui)
    with bpy.context.temp_override(**viewport()):
        bpy.context.view_layer.objects.active = rig()
        rig().select_set(True)
        bpy.ops.object.mode_set(mode=mode)
        look_from_front(rig())
        bpy.ops.ed.undo_push(message="Opened")


def step(name: str) -> None:
    """End an undo step."""
    with bpy.context.temp_override(**viewport()):
        bpy.ops.ed.undo_push(message=name)


def save_file(path: str) -> None:
    """Save the file to a path."""
    bpy.ops.wm.save_as_mainfile(filepath=path)


# ---- state


def state() -> dict[str, Any]:
    """All data of the scene's armature, its targets and poles that the extension or a user may change."""
    ob = rig()
    goals = [goal for bone in ob.pose.bones for goal in _goals(bone.ik_addon).values()]
    return {
        "objects": sorted(bpy.data.objects.keys()),
        "live": ob.ik_addon.live,
        "chains": {bone.name: _settings(bone) for bone in ob.pose.bones if bone.ik_addon.is_chain},
        "channels": {bone.name: _channels(bone) for bone in ob.pose.bones},
        "bases": [bone.name for bone in ob.pose.bones if bone.ik_addon.base.stored],
        "goals": {bone or goal.name: list(_place(goal, bone)) for goal, bone in goals},
        "keys": keys(ob),
        "frame": bpy.context.scene.frame_current,
    }


def _goals(chain: Any) -> dict[str, tuple[Any, str]]:
    """Object and bone of the target and pole that a chain has."""
    every = {role: (getattr(chain, role), getattr(chain, f"{role}_bone")) for role in ("target", "pole")}
    return {role: (goal, bone) for role, (goal, bone) in every.items() if goal is not None}


def _place(goal: Any, bone: str) -> Any:
    """Location of an object or its bone, in world space."""
    return (goal.matrix_world @ goal.pose.bones[bone].matrix if bone else goal.matrix_world).translation


def _settings(bone: bpy.types.PoseBone) -> dict[str, Any]:
    chain = bone.ik_addon
    names = ("enabled", "chain_length", "influence", "use_limits")
    found = {**{name: getattr(chain, name) for name in names}, "bend_side": list(chain.bend_side)}
    goals = {"target": None, "pole": None} | {role: bone or goal.name for role, (goal, bone) in _goals(chain).items()}
    return {**found, **goals, "limits": limits(bone.name)}


def _channels(bone: Any) -> list[float]:
    return [*bone.location, *bone.rotation_quaternion, *bone.rotation_euler, *bone.scale]


def keys(ob: bpy.types.Object) -> dict[str, list[list[float]]]:
    """Keyframes of an object, by data path and index."""
    return {f"{c.data_path}[{c.array_index}]": [list(k.co) for k in c.keyframe_points] for c in rigs.fcurves(ob)}


def pose() -> dict[str, list[float]]:
    """Evaluated matrix of each bone, in armature space."""
    return {bone.name: [value for row in bone.matrix for value in row] for bone in rigs.evaluated(rig()).pose.bones}


def poses(frames: list[int]) -> list[dict[str, list[float]]]:
    """The pose on each of these frames; returns to the current frame."""
    before = bpy.context.scene.frame_current
    found = rigs.on_frames(frames, pose)
    bpy.context.scene.frame_set(before)
    return list(found.values())


def misses() -> dict[str, float]:
    """Distance from tip to target of each chain, in chain lengths."""
    ob = rig()
    found = {}
    for bone in ob.pose.bones:
        chain = bone.ik_addon
        if chain.is_chain and chain.enabled and chain.target:
            bones = [bone, *bone.parent_recursive]
            length = sum(b.bone.length for b in bones[: chain.chain_length or len(bones)])
            off = ob.matrix_world @ bone.tail - _place(chain.target, chain.target_bone)
            found[bone.name] = off.length / length
    return found


def has_tab_in_front(name: str) -> bool:
    """Whether the viewport's sidebar is open and shows this tab."""
    area = viewport()["area"]
    sidebar = next(region for region in area.regions if region.type == "UI")
    return bool(area.spaces.active.show_region_ui and sidebar.active_panel_category == name)


def overlay() -> bool:
    """Whether the extension's overlay is on."""
    return bool(bpy.context.scene.ik_addon.show_overlay)


# ---- user actions without a mouse


def select_goal(bone: str) -> None:
    """Make the target of a chain the only selected object, in Object Mode, or the only selected bone, in Pose Mode."""
    chain = rig().pose.bones[bone].ik_addon
    if chain.target_bone:
        activate(chain.target_bone)
    else:
        with bpy.context.temp_override(**viewport()):
            bpy.ops.object.mode_set(mode="OBJECT")
        for ob in bpy.context.view_layer.objects:
            ob.select_set(ob == chain.target)
        bpy.context.view_layer.objects.active = chain.target
    step("Select")


def move_goal(bone: str, by: list[float]) -> None:
    """Move the target of a chain by an offset."""
    goal = rig().pose.bones[bone].ik_addon.target
    goal.location = [a + b for a, b in zip(goal.location, by, strict=True)]
    bpy.context.view_layer.update()


def set_live(on: bool) -> None:
    """Turn Live on or off, as one undo step."""
    rig().ik_addon.live = on
    bpy.context.view_layer.update()
    step("Live")


def edit_curves(bone: str) -> None:
    """Key the rotation of a bone and show the Graph Editor in place of the viewport, with these keys selected."""
    rig().pose.bones[bone].keyframe_insert("rotation_quaternion")
    set_live(True)
    for curve in rigs.fcurves(rig()):
        curve.select = curve.data_path.startswith(f'pose.bones["{bone}"].')
        for key in curve.keyframe_points:
            key.select_control_point = curve.select
    viewport()["area"].type = "GRAPH_EDITOR"


def areas() -> list[bpy.types.Area]:
    """The areas of the window."""
    return list(bpy.context.window_manager.windows[0].screen.areas)


def redraw() -> None:
    """Let Blender draw all areas again."""
    for area in areas():
        area.tag_redraw()


def show_viewport() -> None:
    """Show the viewport where another editor took its place."""
    for area in areas():
        if area.type in {"GRAPH_EDITOR", "PREFERENCES"}:
            area.type = "VIEW_3D"


def clear_pole(tip: str) -> None:
    """Take the pole away from a chain, as one undo step."""
    rig().pose.bones[tip].ik_addon.pole = None
    set_live(True)


def auto_key(on: bool) -> None:
    """Turn Auto Keying on or off."""
    bpy.context.scene.tool_settings.use_keyframe_insert_auto = on


def fk() -> dict[str, dict[str, list[float]]]:
    """The FK pose of each bone, by channel; Live is turned off and on again."""
    rig().ik_addon.live = False
    bpy.context.view_layer.update()
    names = ("location", "rotation_quaternion", "rotation_euler", "scale")
    found = {bone.name: {name: list(getattr(bone, name)) for name in names} for bone in rig().pose.bones}
    set_live(True)
    return found


def keyed(bone: str) -> dict[str, list[float]]:
    """The values of the first key of each channel of a bone."""
    found: dict[str, list[float]] = {}
    start = f'pose.bones["{bone}"].'
    for curve in rigs.fcurves(rig(), start):
        found.setdefault(curve.data_path.removeprefix(start), []).append(curve.keyframe_points[0].co.y)
    return found


def keys_of(name: str = "") -> dict[str, list[list[float]]]:
    """Keyframes of an object, by default the armature, by data path and index."""
    return keys(bpy.data.objects[name] if name else rig())


def set_overlay(on: bool) -> None:
    """Turn the extension's overlay on or off."""
    bpy.context.scene.ik_addon.show_overlay = on
    viewport()["area"].tag_redraw()


def set_frames(first: int, last: int) -> None:
    """Set the frame range of the scene."""
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = first, last


def key_targets(tips: list[str], last: int) -> None:
    """Key the targets of chains: a step forward, before and after which they slide a little."""
    for tip in tips:
        target = rig().pose.bones[tip].ik_addon.target
        first = target.location.copy()
        for frame in range(1, last + 1):
            way = min(max((frame - 15) / 8.0, 0.0), 1.0)
            target.location = first
            target.location.y -= 0.1 * way + 0.0002 * frame
            target.location.z += 0.2 * way * (1.0 - way)
            target.keyframe_insert("location", frame=frame)
            target.keyframe_insert("rotation_euler", frame=frame)
    set_frames(1, last)
    go_to(last // 2)
    step("Key Targets")


def set_range(frames: int) -> None:
    """Set how many frames edits reach."""
    bpy.context.scene.ik_addon.edit_range = frames


def key_pose(last: int) -> None:
    """Key all bones of the armature, as they are, on frames 1 to `last`; go to the middle."""
    for frame in range(1, last + 1):
        for bone in rig().pose.bones:
            bone.keyframe_insert("location", frame=frame)
            bone.keyframe_insert("rotation_quaternion", frame=frame)
    set_frames(1, last)
    go_to(last // 2)
    step("Key Pose")


def adjust_range(frames: int, falloff: str = "SMOOTH") -> None:
    """Repeat the last drag or transform with another range, as Adjust Last Operation does."""
    last: Any = bpy.context.window_manager.operators[-1]
    settings, prefix = (last.macros[0].properties, "") if last.macros else (last.properties, "edit_")
    setattr(settings, f"{prefix}range", frames)
    setattr(settings, f"{prefix}falloff", falloff)
    with bpy.context.temp_override(**viewport()):
        bpy.ops.ed.undo_redo()


def open_panel(name: str) -> None:
    """Open a panel: register it again under a new name, for which Blender uses the class's default state."""
    panel = getattr(bpy.types, name)
    bpy.utils.unregister_class(panel)
    panel.bl_idname, panel.bl_options = f"{name}_opened", set()
    bpy.utils.register_class(panel)
    viewport()["area"].tag_redraw()


def select_bones() -> None:
    """Select all bones, as one undo step."""
    with bpy.context.temp_override(**viewport()):
        bpy.ops.pose.select_all(action="SELECT")
        bpy.ops.ed.undo_push(message="Select")


def create_pose_asset() -> None:
    """Create a pose asset from all bones, in this file."""
    select_bones()
    with bpy.context.temp_override(**viewport()):
        OPERATORS.poselib.create_pose_asset("EXEC_DEFAULT", True, pose_name="Pose", asset_library_reference="LOCAL")


def place_of_first_asset() -> list[int]:
    """Show the viewport's asset shelf; return the middle of its first asset, in pixels from the top left."""
    where = viewport()
    view: Any = where["area"].spaces.active
    view.show_region_asset_shelf = True
    bpy.ops.wm.redraw_timer(type="DRAW_WIN_SWAP", iterations=1)
    shelf = next(region for region in where["area"].regions if region.type == "ASSET_SHELF")
    return [shelf.x + shelf.height // 2, where["window"].height - (shelf.y + shelf.height // 2)]


def hide_assets() -> None:
    """Hide the viewport's asset shelf."""
    view: Any = viewport()["area"].spaces.active
    view.show_region_asset_shelf = False


def set_influence(tip: str, influence: float) -> None:
    """Set the influence of the chain on a bone."""
    rig().pose.bones[tip].ik_addon.influence = influence


def start(operator: str, options: dict[str, Any] | None = None) -> None:
    """Invoke an operator in the viewport, as a menu or a shortcut does."""
    module, name = operator.split(".")
    with bpy.context.temp_override(**viewport()):
        getattr(getattr(bpy.ops, module), name)("INVOKE_DEFAULT", **(options or {}))


def running() -> list[str]:
    """Names of the window's running modal operators."""
    return [operator.bl_idname for operator in bpy.context.window_manager.windows[0].modal_operators]


def place_of(name: str) -> list[int]:
    """Position of an object's origin on the screen, in pixels from the top left."""
    return _on_screen(bpy.data.objects[name].matrix_world.translation)


def add_rig_beside(offset: float) -> list[str]:
    """Copy the armature and its targets along X and pose both; return the names of the armature and one target."""
    context, ob = bpy.context, rig()
    other: Any = ob.copy()
    other.data = ob.data.copy()
    copies = {}
    for goal in {goal for bone in ob.pose.bones for goal, _bone in _goals(bone.ik_addon).values() if goal is not None}:
        copies[goal] = goal.copy()
    for made in (other, *copies.values()):
        context.scene.collection.objects.link(made)
        made.location.x += offset
    for bone in other.pose.bones:
        for role in ("target", "pole"):
            setattr(bone.ik_addon, role, copies.get(getattr(bone.ik_addon, role)))
    with context.temp_override(window=context.window_manager.windows[0]):
        OPERATORS.object.mode_set(mode="OBJECT")
        other.select_set(True)
        ob.select_set(True)
        OPERATORS.object.mode_set(mode="POSE")
    return [other.name, next(made.name for goal, made in copies.items() if goal.name == "Target")]


def active_object() -> str:
    """The name of the active object."""
    return bpy.context.view_layer.objects.active.name


def place_of_bone(name: str, share: float = 0.5) -> list[int]:
    """Position on the screen of a place along a bone, from its head (0) to its tail (1); by default its middle."""
    bone = rig().pose.bones[name]
    return _on_screen(rig().matrix_world @ bone.head.lerp(bone.tail, share))


def looks_along(x: float, y: float, z: float) -> bool:
    """Whether the viewport shows the scene along a direction, and has been redrawn so."""
    view: Any = viewport()["area"].spaces.active
    seen = view.region_3d.view_matrix.to_3x3().row[2]  # of the last redraw, as places on the screen are
    return bool(view.region_3d.view_perspective == "ORTHO" and (seen + Vector((x, y, z))).length < 1e-4)


def place_of_frame(frame: int) -> list[int]:
    """Position on the screen of a frame in the ruler of the timeline."""
    (window,) = bpy.context.window_manager.windows
    area = next(area for area in window.screen.areas if area.type == "DOPESHEET_EDITOR")
    region: Any = next(region for region in area.regions if region.type == "WINDOW")
    x, _y = region.view2d.view_to_region(frame, 0.0, clip=False)
    scale = bpy.context.preferences.system.ui_scale
    return [round(region.x + x), round(window.height - region.y - region.height + 10.0 * scale)]


def _on_screen(point: Any) -> list[int]:
    where = viewport()
    view: Any = where["area"].spaces.active
    found = view3d_utils.location_3d_to_region_2d(where["region"], view.region_3d, point)
    return [round(where["region"].x + found.x), round(where["window"].height - where["region"].y - found.y) - 1]


def heads() -> dict[str, list[float]]:
    """World positions of the bones' heads."""
    return {bone.name: list((rig().matrix_world @ bone.head).to_tuple()) for bone in rig().pose.bones}


def turns() -> dict[str, list[float]]:
    """World rotations of the bones, as quaternions."""
    world = rig().matrix_world
    rotations: dict[str, Any] = {bone.name: (world @ bone.matrix).to_quaternion() for bone in rig().pose.bones}
    return {name: [*rotation] for name, rotation in rotations.items()}


def turned_bones() -> list[str]:
    """Names of the bones that are not in the rest pose."""
    return [bone.name for bone in rig().pose.bones if not np.allclose(bone.matrix_basis, np.eye(4), atol=1e-5)]


def pins() -> dict[str, list[str]]:
    """What is pinned on each pinned bone: location, rotation or both."""
    return {bone.name: sorted(bone.ik_addon.pin) for bone in rig().pose.bones if bone.ik_addon.pin}


def tool_setting(operator: str, name: str, value: Any = None) -> Any:
    """Return a setting of a tool's operator; first set it if a value is given."""
    tool: Any = bpy.context.workspace.tools.from_space_view3d_mode("POSE")
    settings = tool.operator_properties(operator)
    if value is not None:
        setattr(settings, name, value)
    return getattr(settings, name)


def active_tool() -> str:
    """The tool of Pose Mode that is active."""
    tool: Any = bpy.context.workspace.tools.from_space_view3d_mode("POSE")
    return "" if tool is None else str(tool.idname)


def active_bone() -> str:
    """The name of the active bone."""
    return rig().data.bones.active.name


def goal_rotation(name: str) -> list[float]:
    """World rotation of a target or pole, as a quaternion."""
    rotation: Any = bpy.data.objects[name].matrix_world.to_quaternion()
    return [*rotation]


def rotation_since(name: str, before: list[float]) -> list[float]:
    """Rotation of a target or pole in world space since an earlier one, as a quaternion."""
    turn: Any = Quaternion(goal_rotation(name)) @ Quaternion(before).inverted()
    return [*turn]


def cursor() -> list[float]:
    """Location and rotation of the 3D cursor."""
    found: Any = bpy.context.scene.cursor
    return [*found.location, *found.rotation_euler]


def adjust(value: Any = None) -> None:
    """Repeat the last drag, as Adjust Last Operation does, with another distance or angle if given."""
    if value is not None:
        bpy.context.window_manager.operators[-1].macros[1].properties.value = value
    with bpy.context.temp_override(**viewport()):
        bpy.ops.ed.undo_redo()


def is_playing() -> bool:
    """Whether the animation plays."""
    return any(window.screen.is_animation_playing for window in bpy.context.window_manager.windows)


def limits(bone: str) -> list[float]:
    """The limits of a bone in radians: minimum and maximum of x, y and z."""
    found = rig().pose.bones[bone]
    return [getattr(found, f"ik_{end}_{axis}") for axis in "xyz" for end in ("min", "max")]


def go_to(frame: int) -> None:
    """Go to a frame."""
    bpy.context.scene.frame_set(frame)


# ---- playback

_played: list[tuple[int, dict[str, list[float]]]] = []


def record_playback() -> None:
    """Start recording the channels on each frame that Blender plays."""
    _played.clear()
    bpy.app.handlers.frame_change_post.append(_note_frame)


def _note_frame(scene: bpy.types.Scene, _depsgraph: bpy.types.Depsgraph) -> None:
    _played.append((scene.frame_current, _all_channels()))


def _all_channels() -> dict[str, list[float]]:
    return {bone.name: _channels(bone) for bone in rig().pose.bones}


def played() -> list[int]:
    """The frames recorded so far."""
    return [frame for frame, _channels in _played]


def stop_recording() -> list[tuple[int, dict[str, list[float]]]]:
    """Stop recording; return the recorded frames with their channels."""
    bpy.app.handlers.frame_change_post.remove(_note_frame)
    return list(_played)


def channels_on(frames: list[int]) -> list[dict[str, list[float]]]:
    """The channels on each of these frames."""
    return [rigs.on_frames([frame], _all_channels)[frame] for frame in frames]


# ---- rendering

FRAMES = (10, 14)
"""First and last frame of the small scene."""


def make_small_scene(path: str) -> None:
    """Make the open sample small and quick to render, key a bone of its chain, and save to a path."""
    scene, bone = bpy.context.scene, rig().pose.bones["upper_arm"]
    bone.rotation_mode = "QUATERNION"
    for frame, angle in ((1, -0.4), (40, 0.6)):
        bone.rotation_quaternion = Quaternion((0.0, 1.0, 0.0), angle)
        bone.keyframe_insert("rotation_quaternion", frame=frame)
    scene.frame_start, scene.frame_end = FRAMES
    scene.frame_set(1)
    scene.render.resolution_x, scene.render.resolution_y, scene.render.resolution_percentage = 160, 120, 100
    scene.render.use_lock_interface = True
    scene.render.image_settings.file_format = "PNG"
    scene.cycles.samples, scene.cycles.use_denoising = 8, False
    scene.eevee.taa_render_samples, scene.eevee.use_shadows = 1, False
    for mesh in bpy.data.meshes:
        mesh.materials.clear()  # without a graphics card EEVEE takes half a minute to compile materials
    bpy.ops.wm.save_as_mainfile(filepath=path)


def choose_engine(name: str) -> None:
    """Choose a render engine by part of its name, as the full name differs between versions."""
    known = bpy.types.RenderSettings.bl_rna.properties["engine"]
    render: Any = bpy.context.scene.render
    choices = ["BLENDER_WORKBENCH", "BLENDER_EEVEE_NEXT", "BLENDER_EEVEE", "CYCLES", *known.enum_items.keys()]
    for choice in choices:
        if name in choice:
            with contextlib.suppress(TypeError):  # this version has no such engine
                render.engine = choice
                return
    raise LookupError(name)


def render_stills(pictures: dict[str, list[Any]]) -> None:
    """Render stills and wait for them; `pictures` maps paths to an engine and a frame."""
    scene = bpy.context.scene
    for path, (engine, frame) in pictures.items():
        choose_engine(engine)
        scene.frame_set(frame)
        scene.render.filepath = path
        bpy.ops.render.render(write_still=True)


def save_render(path: str) -> None:
    """Save the last rendered image."""
    bpy.data.images["Render Result"].save_render(path)


_ended: list[str] = []


def count_renders() -> int:
    """Number of renders completed since the first call; 0 while one is running."""
    handlers: Any = bpy.app.handlers.render_complete
    if _note_end not in handlers:
        handlers.append(persistent(_note_end))
    is_running: Any = bpy.app.is_job_running  # the stubs declare no result
    return 0 if is_running("RENDER") else len(_ended)


def _note_end(scene: bpy.types.Scene, _unused: object) -> None:
    _ended.append(scene.name)


def set_output(path: str) -> None:
    """Set the output path of animations."""
    bpy.context.scene.render.filepath = path


def close_other_windows() -> None:
    """Close every window but the first, such as a render window."""
    for window in list(bpy.context.window_manager.windows)[1:]:
        with bpy.context.temp_override(window=window):
            bpy.ops.wm.window_close()


_rendered: dict[float, dict[str, list[float]]] = {}


class Recorder(bpy.types.RenderEngine):
    """Renders nothing; records the pose on each frame and half a frame later."""

    bl_idname = "IK_TEST_RECORDER"
    bl_label = "Recorder"

    def render(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Record the pose."""
        frame = depsgraph.scene.frame_current
        for subframe in (0.0, 0.5):
            self.frame_set(frame, subframe)
            ob = next(ob for ob in depsgraph.objects if ob.type == "ARMATURE")
            _rendered[frame + subframe] = {b.name: [value for row in b.matrix for value in row] for b in ob.pose.bones}


def choose_recorder() -> None:
    """Make the next render only record the poses."""
    if not Recorder.is_registered:
        bpy.utils.register_class(Recorder)
    _rendered.clear()
    render: Any = bpy.context.scene.render  # the stubs know one engine
    render.engine = Recorder.bl_idname


def recorded() -> list[tuple[float, dict[str, list[float]], dict[str, list[float]]]]:
    """For each recorded frame and half-frame: the frame, the rendered pose, and the pose in the viewport."""
    scene, found = bpy.context.scene, []
    for frame, pose_there in sorted(_rendered.items()):
        scene.frame_set(int(frame), subframe=frame % 1.0)
        found.append((frame, pose_there, pose()))
    return found


# ---- handlers and callbacks of the extension


def handlers() -> dict[str, int]:
    """Number of the extension's handlers in each of Blender's lists."""
    found = {}
    for name in dir(bpy.app.handlers):
        entries = getattr(bpy.app.handlers, name)
        if isinstance(entries, list):
            found[name] = sum(_is_ours(function.__module__) for function in entries if hasattr(function, "__module__"))
    return {name: number for name, number in found.items() if number}


def _is_ours(module: str | None) -> bool:
    return module is not None and module.startswith(PACKAGE)


def entries(playing: bool) -> dict[str, int]:
    """Count Blender's calls of each function of the extension while it redraws, or while it goes to the next frame.

    This reveals what Blender keeps no list of, such as leftover draw callbacks.
    """
    found: Counter[str] = Counter()
    home = importlib.import_module(PACKAGE).__file__ if PACKAGE in sys.modules else None
    folder = str(Path(home).parent) if home else PACKAGE.replace(".", "/")

    def is_ours(frame: FrameType | None) -> bool:
        return frame is not None and (folder in frame.f_code.co_filename or is_ours(frame.f_back))

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and folder in code.co_filename and not is_ours(frame.f_back):
            found[f"{Path(code.co_filename).name}:{code.co_qualname}"] += 1

    scene = bpy.context.scene
    sys.setprofile(note)
    try:
        if playing:
            scene.frame_set(scene.frame_current + 1)
        else:
            viewport()["area"].tag_redraw()
            with bpy.context.temp_override(**viewport()):
                bpy.ops.wm.redraw_timer(type="DRAW_WIN", iterations=1)
    finally:
        sys.setprofile(None)
    if playing:
        scene.frame_set(scene.frame_current - 1)
    return dict(found)


def enable(on: bool) -> None:
    """Enable or disable the extension, as in the preferences."""
    operators = OPERATORS.preferences
    (operators.addon_enable if on else operators.addon_disable)(module=PACKAGE)


def factory_settings() -> None:
    """Load the factory settings, as File > Defaults does."""
    bpy.ops.wm.read_factory_settings()


# ---- preferences


def own_preferences() -> Any:
    """The preferences of the extension."""
    return bpy.context.preferences.addons[PACKAGE].preferences


def prefer(settings: dict[str, Any]) -> None:
    """Set some of the extension's preferences."""
    for name, value in settings.items():
        setattr(own_preferences(), name, value)
    redraw()


def reset_preferences() -> None:
    """Reset all of the extension's preferences and keys, and show the viewport again."""
    show_viewport()
    names = [name for name in own_preferences().bl_rna.properties.keys() if name not in {"rna_type", "bl_idname"}]  # noqa: SIM118
    for name in names:
        own_preferences().property_unset(name)
    prefer({"tab": "IK"})
    restore_keys()


def show_preferences() -> None:
    """Show the preferences of the extension in place of the 3D viewport."""
    area = viewport()["area"]
    area.type = "PREFERENCES"
    preferences: Any = bpy.context.preferences
    preferences.active_section = "ADDONS"
    bpy.context.window_manager.addon_search = "IK Chains"
    addon_utils = importlib.import_module("addon_utils")
    module = next(module for module in addon_utils.modules() if module.__name__ == PACKAGE)
    if not addon_utils.module_bl_info(module)["show_expanded"]:
        with bpy.context.temp_override(window=bpy.context.window_manager.windows[0], area=area):
            OPERATORS.preferences.addon_expand(module=PACKAGE)
    area.tag_redraw()


def _keys() -> list[tuple[Any, Any]]:
    keymap = importlib.import_module(f"{PACKAGE}.ik_addon.core.preferences")
    return list(keymap.of_user(bpy.context))


def keys_shown() -> list[str]:
    """Operators of the shortcuts that the preferences show."""
    return [item.idname for _keymap, item in _keys()]


def assign_key(operator: str, key: str) -> None:
    """Assign a shortcut to an operator, as in the preferences."""
    next(item for _keymap, item in _keys() if item.idname == operator).type = key


def remove_key(operator: str) -> None:
    """Remove the shortcut of an operator, as the cross in the preferences does."""
    keymap, item = next(found for found in _keys() if found[1].idname == operator)
    keymap.keymap_items.remove(item)


def restore_keys() -> None:
    """Restore the keymap of the shortcuts, as the button in the preferences does."""
    bpy.context.window_manager.keyconfigs.user.keymaps["Pose"].restore_to_default()


def has_all_keys() -> bool:
    """Whether the preferences offer no restoring of shortcuts."""
    keymap = importlib.import_module(f"{PACKAGE}.ik_addon.core.preferences")
    return bool(keymap.is_complete(bpy.context))


# ---- progress


def status_text() -> str | None:
    """The extension's text in the status bar; None if Blender draws its own status bar."""
    steps = importlib.import_module(f"{PACKAGE}.ik_addon.ui.operators.progress")
    progress = steps.running()
    drawn = importlib.import_module("bl_ui.space_statusbar").STATUSBAR_HT_header.draw
    assert (progress is not None) == (drawn is steps.draw_status)
    return None if progress is None else str(progress.text)


def status_bar() -> str:
    """The module that draws the status bar."""
    return str(importlib.import_module("bl_ui.space_statusbar").STATUSBAR_HT_header.draw.__module__)


def show_sidebar(tab: str) -> None:
    """Show a tab of the sidebar; with an empty name, hide the sidebar."""
    area = viewport()["area"]
    area.spaces.active.show_region_ui = bool(tab)
    for region in area.regions:
        if region.type == "UI" and tab:
            region.active_panel_category = tab


# ---- languages


def speak(language: str) -> bool:
    """Choose a language, as in the preferences; return whether Blender has it."""
    view: Any = bpy.context.preferences.view
    names = [name for name in (language, f"{language}_{language.upper()}") if name in bpy.app.translations.locales]
    if names:
        view.language = names[0]
        view.use_translate_interface = view.use_translate_tooltips = view.use_translate_reports = True
        redraw()
    return bool(names)


def said(sentence: str, fields: dict[str, str]) -> str:
    """A sentence as the extension translates and formats it."""
    sentences = importlib.import_module(f"{PACKAGE}.ik_addon.core.translation.sentences")
    return str(sentences.say(sentence, **fields))


def label(operator: str) -> str:
    """The label of an operator's button, translated."""
    translations: Any = bpy.app.translations
    name = getattr(OPERATORS.ik_addon, operator.split(".")[1]).get_rna_type().name
    return str(translations.pgettext_iface(name, "Operator"))


def title(module: str, panel: str) -> str:
    """The title of a panel, translated. `open_panel` may have registered it under another name."""
    shown = getattr(importlib.import_module(f"{PACKAGE}.ik_addon.ui.panels.{module}"), panel)
    return _translated(shown.bl_label, shown.bl_rna.translation_context)


def names_of_setting(name: str) -> list[str]:
    """The names of a chain's setting and of its choices, translated."""
    setting: Any = rig().pose.bones[0].ik_addon.bl_rna.properties[name]
    names = [setting.name, *(item.name for item in getattr(setting, "enum_items", ()))]
    return [_translated(text, setting.translation_context) for text in names]


def _translated(text: str, context: str) -> str:
    translations: Any = bpy.app.translations
    return str(translations.pgettext_iface(text, context))


# ---- operators, as the search lists them


def commands(all_of_them: bool = False) -> dict[str, str]:
    """Labels, by class name, of the operators in the extension's menu: all, or only those available now."""
    menus = importlib.import_module(f"{PACKAGE}.ik_addon.ui.menus")
    names = [operator.split(".") for group in menus.ENTRIES for operator in group]
    operators = [getattr(getattr(bpy.ops, module), name) for module, name in names]
    with bpy.context.temp_override(**viewport()):
        types = [operator.get_rna_type() for operator in operators if all_of_them or operator.poll()]
    return {rna.identifier: rna.name for rna in types}


def started() -> list[str]:
    """Class names of operators that have finished or are running."""
    manager: Any = bpy.context.window_manager
    return [*(operator.bl_idname for operator in manager.operators), *running()]


def leave_pose_mode() -> None:
    """Go to Object Mode, the mode of a newly added armature."""
    with bpy.context.temp_override(**viewport()):
        bpy.ops.object.mode_set(mode="OBJECT")
        bpy.ops.ed.undo_push(message="Object Mode")
