"""Every frame and sub-frame renders in the solved pose, and rendering leaves the file unchanged."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs
from tests.live.test_handlers import animated_arm, poses_at
from tools.environments import ROOT

PARTS = (0.0, -0.25, 0.25, 0.4)
"""Offsets from a frame that the engine below samples."""


class _Notes(bpy.types.RenderEngine):
    """Renders nothing; records the pose of the rig on the frame and its sub-frames, as motion blur samples them."""

    bl_idname = "IK_TEST_NOTES"
    bl_label = "Pose Notes"
    bl_use_preview = False

    seen: list[tuple[str, str, float, bytes]]
    """Scene, view layer, frame, pose matrices."""

    def render(self, depsgraph: bpy.types.Depsgraph) -> None:
        """Record the poses."""
        frame = depsgraph.scene.frame_current_final
        for part in PARTS:
            whole = math.floor(frame + part)
            self.frame_set(whole, frame + part - whole)
            rig = next(ob for ob in depsgraph.scene.objects if ob.type == "ARMATURE")
            bones = rig.evaluated_get(depsgraph).pose.bones
            values = np.empty(16 * len(bones), dtype=np.float32)
            bones.foreach_get("matrix", values)
            layer = depsgraph.view_layer.name
            type(self).seen.append((depsgraph.scene.name, layer, frame + part, values.tobytes()))
        self.frame_set(math.floor(frame), frame - math.floor(frame))


def set_up(scene: bpy.types.Scene, engine: Any, size: int = 8) -> None:
    """Make a scene render with an engine, at a small size."""
    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.location, camera.rotation_euler = (6.0, 0.0, 1.0), (math.pi / 2, 0.0, math.pi / 2)
    scene.collection.objects.link(camera)
    scene.camera = camera
    scene.render.engine = engine
    scene.render.resolution_x = scene.render.resolution_y = size


@pytest.fixture
def notes() -> Iterator[type[_Notes]]:
    """The engine above, set up in the scene."""
    bpy.utils.register_class(_Notes)
    set_up(bpy.context.scene, _Notes.bl_idname)
    _Notes.seen = []
    yield _Notes
    others: Any = "CYCLES"
    for scene in bpy.data.scenes:
        scene.render.engine = others
    bpy.utils.unregister_class(_Notes)


def in_all_parts(frames: Sequence[float]) -> list[float]:
    return [frame + part for frame in frames for part in PARTS]


def state() -> tuple[Any, ...]:
    """Return everything in the scene that a render must not change."""
    scene = bpy.context.scene
    objects = [(ob.name, [list(row) for row in ob.matrix_world], ob.location[:]) for ob in scene.objects]
    armatures = [ob for ob in scene.objects if ob.type == "ARMATURE"]
    keys = [
        [ob.name, *(tuple(point.co) for path in sorted(curves) for point in curves[path])]
        for ob in armatures
        if (curves := points(ob))
    ]
    return (
        (scene.name, scene.frame_current, scene.frame_subframe),
        objects,
        {ob.name: rigs.channels(ob).tobytes() for ob in armatures},
        {ob.name: rigs.pose(ob).tobytes() for ob in armatures},
        keys,
    )


def points(ob: bpy.types.Object) -> dict[tuple[str, int], list[Any]]:
    """The keys of an object, by data path and array index."""
    data: Any = ob.animation_data
    if data is None or data.action is None:
        return {}
    bags = [data.action] if hasattr(data.action, "fcurves") else list(data.action.layers[0].strips[0].channelbags)
    return {(c.data_path, c.array_index): list(c.keyframe_points) for bag in bags for c in bag.fcurves}


KINDS = {"still": [17], "still on a sub-frame": [17.5], "animation": [8, 9, 10], "backwards": [10, 9, 8]}


@pytest.mark.parametrize("kind", KINDS)
def test_every_frame_renders_the_solved_pose_and_the_file_stays(notes: type[_Notes], kind: str, tmp_path: Path) -> None:
    scene, frames = bpy.context.scene, KINDS[kind]
    scene.render.filepath = str(tmp_path / "frame")
    ob, _target = animated_arm()
    ob.ik_addon.live = False
    scene.frame_set(17)
    fk = rigs.channels(ob).tobytes()
    ob.ik_addon.live = True
    expected = poses_at(ob, in_all_parts(frames))
    scene.frame_set(17, subframe=0.5 if kind == "still on a sub-frame" else 0.0)
    before = state()
    if kind.startswith("still"):
        bpy.ops.render.render()
    else:
        for first, last in [(8, 10)] if kind == "animation" else [(frame, frame) for frame in frames]:
            scene.frame_start, scene.frame_end = first, last
            bpy.ops.render.render(animation=True)
    assert {frame: pose for _scene, _layer, frame, pose in notes.seen} == expected
    assert state() == before
    scene.frame_set(17)
    ob.ik_addon.live = False
    assert rigs.channels(ob).tobytes() == fk


@pytest.mark.parametrize("way", ["driver", "partial constraint"])
def test_a_chain_that_depends_on_another_indirectly_renders_as_it_plays(
    notes: type[_Notes], way: str, tmp_path: Path
) -> None:
    """What depends on the leader's pose in playback depends on the same pose in a render."""
    scene = bpy.context.scene
    scene.render.filepath = str(tmp_path / "frame")
    follower = rigs.armature("Follower")
    rigs.add_bones(follower, [(0, 0, -1), (0, 0, 0), (0, -0.2, 1), (0, 0, 2)], ["base", "upper", "lower"])
    rigs.chain(follower, "lower", rigs.empty("Goal", (0.8, 0.3, 1.2)), 2)
    leader, target = rigs.arm()
    target.location = (1.4, 0.3, 0.5)
    rigs.key(leader, "location", {1: (0.0, 0.0, 0.0), 20: (0.9, -0.6, 0.4)})
    hand = rigs.empty("Hand")
    hand.parent, hand.parent_type, hand.parent_bone = leader, "BONE", "lower"
    base = follower.pose.bones["base"]
    if way == "driver":
        base.rotation_mode = "XYZ"
        curve = base.driver_add("rotation_euler", 0)
        variable = curve.driver.variables.new()
        curve.driver.type, variable.type, variable.targets[0].id = "SUM", "TRANSFORMS", hand
    else:
        constraint = base.constraints.new("DAMPED_TRACK")
        constraint.target, constraint.influence = hand, 0.5
    leader.ik_addon.live = follower.ik_addon.live = True
    frames = in_all_parts([11, 6])
    expected = {}
    for frame in [1.0, *sorted(frames), 20.0]:
        scene.frame_set(math.floor(frame), subframe=frame % 1.0)
        bones = follower.evaluated_get(bpy.context.view_layer.depsgraph).pose.bones
        expected[frame] = np.array([bone.matrix.transposed() for bone in bones])
    for frame in (11, 6):
        scene.frame_start = scene.frame_end = frame
        bpy.ops.render.render(animation=True)
    assert [frame for _scene, _layer, frame, _pose in notes.seen] == frames
    for _scene, _layer, frame, pose in notes.seen:
        assert np.abs(np.frombuffer(pose, dtype=np.float32).reshape(-1, 4, 4) - expected[frame]).max() < 1e-6


def test_every_view_layer_has_the_solved_pose(notes: type[_Notes], tmp_path: Path) -> None:
    ob, _target = animated_arm()
    scene = bpy.context.scene
    scene.render.filepath = str(tmp_path / "frame")
    expected = poses_at(ob, in_all_parts([5, 6]))
    scene.view_layers.new("Second")
    off = scene.view_layers.new("Off")
    off.use = False
    scene.frame_set(3)
    before = state()
    scene.frame_start, scene.frame_end = 5, 6
    bpy.ops.render.render(animation=True)
    assert {layer for _scene, layer, _frame, _pose in notes.seen} == {scene.view_layers[0].name, "Second"}
    for layer in (scene.view_layers[0].name, "Second"):
        assert {frame: pose for _scene, name, frame, pose in notes.seen if name == layer} == expected
    assert state() == before


def test_a_view_layer_without_the_target_does_not_disturb_the_other(notes: type[_Notes], tmp_path: Path) -> None:
    ob, target = animated_arm()
    scene = bpy.context.scene
    scene.render.filepath = str(tmp_path / "frame")
    controls = bpy.data.collections.new("Controls")
    scene.collection.children.link(controls)
    scene.collection.objects.unlink(target)
    controls.objects.link(target)
    expected = poses_at(ob, in_all_parts([5, 6]))
    second = scene.view_layers.new("Second")
    second.layer_collection.children["Controls"].exclude = True
    scene.frame_set(3)
    before = state()
    scene.frame_start, scene.frame_end = 5, 6
    bpy.ops.render.render(animation=True)
    first = scene.view_layers[0].name
    assert {frame: pose for _scene, name, frame, pose in notes.seen if name == first} == expected
    assert state() == before


@pytest.mark.parametrize("kind", ["LINK_COPY", "FULL_COPY"])
def test_every_scene_has_the_solved_pose(notes: type[_Notes], kind: str, tmp_path: Path) -> None:
    animated_arm()
    first = bpy.context.scene
    bpy.ops.scene.new(type=kind)
    second = bpy.context.scene
    rig = next(ob for ob in second.objects if ob.type == "ARMATURE")
    expected = poses_at(rig, in_all_parts([12, 13]))
    bpy.context.window.scene = first
    first.frame_set(3)
    before = state()
    second.render.filepath = str(tmp_path / "frame")
    second.frame_start, second.frame_end = 12, 13
    bpy.ops.render.render(scene=second.name, animation=True)
    assert {frame: pose for _scene, _layer, frame, pose in notes.seen} == expected
    assert first.frame_current == 3
    first.frame_set(3)
    assert state() == before


# ---- pixels


def blade(ob: bpy.types.Object, bone: str) -> bpy.types.Object:
    """A glowing mesh of two triangles, skinned to a bone."""
    mesh = bpy.data.meshes.new("Blade")
    base = ob.data.bones[bone]
    a, b = base.head_local, base.tail_local
    corners = [(a.x, a.y - 0.3, a.z), (a.x, a.y + 0.3, a.z), (b.x, b.y, b.z), (b.x + 0.3, b.y, b.z)]
    mesh.from_pydata(corners, [], [(0, 1, 2), (0, 1, 3)])
    skin = bpy.data.objects.new("Blade", mesh)
    bpy.context.scene.collection.objects.link(skin)
    skin.vertex_groups.new(name=bone).add(range(4), 1.0, "REPLACE")
    skin.modifiers.new("Armature", "ARMATURE").object = ob
    material = bpy.data.materials.new("Glow")
    if material.node_tree is None:  # before 5.0
        material.use_nodes = True
    nodes = material.node_tree.nodes
    nodes.clear()
    glow, output = nodes.new("ShaderNodeEmission"), nodes.new("ShaderNodeOutputMaterial")
    material.node_tree.links.new(glow.outputs[0], output.inputs[0])
    mesh.materials.append(material)
    return skin


def pixels(path: Path) -> NDArray[np.float32]:
    image = bpy.data.images.load(str(path))
    values = np.empty(image.size[0] * image.size[1] * 4, dtype=np.float32)
    stored: Any = image.pixels
    stored.foreach_get(values)
    bpy.data.images.remove(image)
    return values


def rendered(folder: Path, frames: Sequence[int]) -> list[NDArray[np.float32]]:
    """Render these consecutive frames as an animation; return their pixels."""
    scene = bpy.context.scene
    scene.render.filepath = str(folder / "####")
    scene.frame_start, scene.frame_end = frames[0], frames[-1]
    bpy.ops.render.render(animation=True)
    return [pixels(folder / f"{frame:04}.png") for frame in frames]


def freeze(ob: bpy.types.Object, frames: Sequence[float]) -> None:
    """Key the solved poses of frames and sub-frames, and turn Live off."""
    scene = bpy.context.scene
    held: dict[float, list[tuple[float, ...]]] = {}
    for frame in frames:
        scene.frame_set(math.floor(frame), subframe=frame - math.floor(frame))
        held[frame] = [bone.rotation_quaternion[:] for bone in ob.pose.bones]
    ob.ik_addon.live = False
    ob.animation_data_clear()
    for frame, rotations in held.items():
        for bone, rotation in zip(ob.pose.bones, rotations, strict=True):
            bone.rotation_quaternion = rotation
            bone.keyframe_insert("rotation_quaternion", frame=frame)


@pytest.mark.parametrize("blur", [False, True])
def test_cycles_renders_the_solved_pose(blur: bool, tmp_path: Path) -> None:
    set_up(bpy.context.scene, "CYCLES", size=24)
    scene = bpy.context.scene
    scene.cycles.samples, scene.cycles.device, scene.cycles.seed = 2, "CPU", 3
    scene.render.use_motion_blur, scene.render.motion_blur_shutter = blur, 1.0
    ob, target = animated_arm()
    rigs.key(target, "location", {1: (0.6, -0.9, 1.0), 12: (-0.5, 1.2, 0.8)})
    blade(ob, "lower")
    scene.frame_set(2)
    before = state()
    frames = [4, 5, 6]
    live = rendered(tmp_path, frames)
    assert state() == before
    freeze(ob, [f + part for f in frames for part in ((-0.5, 0.0, 0.5) if blur else (0.0,))])
    frozen = rendered(tmp_path, frames)
    assert live[0].max() > 0.5
    assert not np.array_equal(live[0], live[-1])
    for a, b in zip(live, frozen, strict=True):
        assert np.array_equal(a, b)


def test_workbench_renders_the_solved_pose(tmp_path: Path) -> None:
    set_up(bpy.context.scene, "BLENDER_WORKBENCH", size=24)
    ob, target = animated_arm()
    rigs.key(target, "location", {1: (0.6, -0.9, 1.0), 12: (-0.5, 1.2, 0.8)})
    blade(ob, "lower")
    bpy.context.scene.frame_set(2)
    before = state()
    frames = [4, 5, 6]
    live = rendered(tmp_path, frames)
    assert state() == before
    freeze(ob, frames)
    frozen = rendered(tmp_path, frames)
    assert not np.array_equal(live[0], live[-1])
    for a, b in zip(live, frozen, strict=True):
        assert np.array_equal(a, b)


# ---- farms


def test_two_processes_render_the_same_bits_in_another_order(package: Path, tmp_path: Path) -> None:
    ob, _target = animated_arm()
    scene = bpy.context.scene
    set_up(scene, "CYCLES", size=24)
    scene.cycles.samples, scene.cycles.device = 2, "CPU"
    scene.render.use_motion_blur = True
    blade(ob, "lower")
    file = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(file))
    orders = ([3, 30, 12], [12, 3, 30])
    folders = [tmp_path / f"process {i}" for i in range(len(orders))]
    script = Path(__file__).with_name("render_frames.py")
    runs = [
        subprocess.Popen(
            [sys.executable, str(script), str(package), str(file), str(folder), *map(str, order)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for folder, order in zip(folders, orders, strict=True)
    ]
    for run in runs:
        try:
            printed, _ = run.communicate(timeout=120)
        finally:
            run.kill()
        assert run.returncode == 0, printed
        assert "Traceback" not in printed
    for frame in orders[0]:
        assert pixels(folders[0] / f"{frame}.png").tobytes() == pixels(folders[1] / f"{frame}.png").tobytes()
        first, second = ((folder / f"{frame}.pose").read_bytes() for folder in folders)
        assert first == second
        scene.frame_set(frame)
        assert first == rigs.pose(ob).tobytes()
