"""Every frame and sub-frame renders in the solved pose, and rendering leaves the file unchanged."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs
from tests.renders import Recorder, recorder, render, set_up
from tools.environments import ROOT

__all__ = ["recorder"]
PARTS = (0.0, -0.25, 0.25, 0.4)
"""Offsets from a frame that are sampled, as for motion blur."""


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
        {ob.name: np.round(rigs.pose(ob), 5).tolist() for ob in armatures},
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
def test_every_frame_renders_the_solved_pose_and_the_file_stays(
    recorder: type[Recorder], kind: str, tmp_path: Path
) -> None:
    scene, frames = bpy.context.scene, KINDS[kind]
    set_up(scene, tmp_path)
    recorder.parts = PARTS
    ob, _target = rigs.animated_arm()
    ob.ik_addon.live = False
    scene.frame_set(17)
    fk = rigs.channels(ob)
    ob.ik_addon.live = True
    expected = rigs.poses_at(ob, [frame + part for frame in frames for part in PARTS])
    scene.frame_set(17, subframe=0.5 if kind == "still on a sub-frame" else 0.0)
    before = state()
    if kind.startswith("still"):
        bpy.ops.render.render()
    else:
        for first, last in [(8, 10)] if kind == "animation" else [(frame, frame) for frame in frames]:
            render(first, last)
    assert not rigs.apart({frame: pose for _scene, _layer, frame, pose in recorder.seen}, expected)
    assert state() == before
    scene.frame_set(17)
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), fk)


@pytest.mark.parametrize("way", ["driver", "partial constraint"])
def test_a_chain_that_depends_on_another_indirectly_renders_as_it_plays(
    recorder: type[Recorder], way: str, tmp_path: Path
) -> None:
    """What depends on the leader's pose in playback depends on the same pose in a render."""
    scene = bpy.context.scene
    set_up(scene, tmp_path)
    recorder.parts = PARTS
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
    recorder.note = lambda depsgraph: rigs.pose(follower, depsgraph)
    frames = [frame + part for frame in (11, 6) for part in PARTS]
    expected = {}
    for frame in [1.0, *sorted(frames), 20.0]:
        scene.frame_set(math.floor(frame), subframe=frame % 1.0)
        expected[frame] = rigs.pose(follower, bpy.context.view_layer.depsgraph)
    for frame in (11, 6):
        render(frame, frame)
    found = {frame: pose for _scene, _layer, frame, pose in recorder.seen}
    assert not rigs.apart(found, {frame: expected[frame] for frame in frames})


@pytest.mark.parametrize("kind", ["LINK_COPY", "FULL_COPY"])
def test_every_scene_has_the_solved_pose(recorder: type[Recorder], kind: str, tmp_path: Path) -> None:
    set_up(bpy.context.scene, tmp_path)
    rigs.animated_arm()
    first = bpy.context.scene
    bpy.ops.scene.new(type=kind)
    second = bpy.context.scene
    rig = next(ob for ob in second.objects if ob.type == "ARMATURE")
    expected = rigs.poses_at(rig, [12, 13])
    bpy.context.window.scene = first
    first.frame_set(3)
    before = state()
    render(12, 13, second)
    assert not rigs.apart({frame: pose for _scene, _layer, frame, pose in recorder.seen}, expected)
    assert first.frame_current == 3
    first.frame_set(3)
    assert state() == before


@pytest.mark.parametrize("by", ["action", "strip", "meta strip"])
def test_all_other_animation_of_the_rig_renders_at_the_right_frame(
    recorder: type[Recorder], tmp_path: Path, by: str
) -> None:
    set_up(bpy.context.scene, tmp_path)
    ob, target = rigs.arm()
    rigs.add_bones(ob, [(2, 0, 0), (2, 0, 1)], ["a.b"])
    rigs.key(target, "location", {1: (0.6, 0.5, 1.0), 20: (-0.5, 0.9, 0.8)})
    rigs.key(ob, "location", {1: (0, 0, 0), 20: (0, 0, 1)})
    bone = ob.pose.bones["a.b"]
    rigs.key(bone, "location", {1: (0, 0, 0), 20: (1, 0, 0)})
    constraint = bone.constraints.new("COPY_ROTATION")
    constraint.target = target
    for frame, value in ((1, 0.0), (20, 1.0)):
        constraint.influence = ob["its [own]"] = bone["own"] = value
        ob.keyframe_insert('["its [own]"]', frame=frame)
        ob.keyframe_insert('pose.bones["a.b"]["own"]', frame=frame)
        ob.keyframe_insert('pose.bones["a.b"].constraints["Copy Rotation"].influence', frame=frame)
    if by != "action":
        rigs.into_strip(ob, meta=by == "meta strip")
    driver = bone.driver_add("scale", 0).driver
    driver.type = "SUM"
    variable = driver.variables.new()
    variable.targets[0].id = ob
    variable.targets[0].data_path = '["its [own]"]'

    def numbers(depsgraph: bpy.types.Depsgraph) -> list[float]:
        done = ob.evaluated_get(depsgraph)
        other = done.pose.bones["a.b"]
        held = other.constraints[0].influence
        own = [held, done["its [own]"], other["own"], other.scale.x]
        return [*other.location[:], *other.head[:], *done.location[:], *done.matrix_world.translation[:], *own]

    recorder.note = numbers
    ob.ik_addon.live = True
    bpy.context.scene.frame_set(3)
    before = numbers(bpy.context.evaluated_depsgraph_get())
    render(10, 11)
    assert numbers(bpy.context.evaluated_depsgraph_get()) == before
    for _scene, _layer, at, seen in recorder.seen:
        bpy.context.scene.frame_set(int(at))
        assert seen == numbers(bpy.context.evaluated_depsgraph_get())
        assert seen != before
    assert len(recorder.seen) == 2


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


def rendered(frames: Sequence[int]) -> list[NDArray[np.float32]]:
    """Render these consecutive frames as an animation; return their pixels."""
    render(frames[0], frames[-1])
    return [pixels(Path(bpy.context.scene.render.filepath).parent / f"{frame:04}.png") for frame in frames]


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


@pytest.mark.parametrize("kind", ["CYCLES", "CYCLES with motion blur", "BLENDER_WORKBENCH"])
def test_pixels_show_the_solved_pose(kind: str, tmp_path: Path) -> None:
    scene, engine, blur = bpy.context.scene, kind.split()[0], "blur" in kind
    set_up(scene, tmp_path, engine, size=24)
    scene.cycles.samples, scene.cycles.device, scene.cycles.seed = 2, "CPU", 3
    scene.render.use_motion_blur, scene.render.motion_blur_shutter = blur, 1.0
    ob, target = rigs.animated_arm()
    rigs.key(target, "location", {1: (0.6, -0.9, 1.0), 12: (-0.5, 1.2, 0.8)})
    blade(ob, "lower")
    scene.frame_set(2)
    before = state()
    frames = [4, 5, 6]
    live = rendered(frames)
    assert state() == before
    freeze(ob, [f + part for f in frames for part in ((-0.5, 0.0, 0.5) if blur else (0.0,))])
    frozen = rendered(frames)
    assert engine != "CYCLES" or live[0].max() > 0.5
    assert not np.array_equal(live[0], live[-1])
    for a, b in zip(live, frozen, strict=True):
        assert np.abs(a - b).max() < 0.01


def test_another_process_renders_the_same_poses_in_another_order(package: Path, tmp_path: Path) -> None:
    ob, _target = rigs.animated_arm()
    scene = bpy.context.scene
    set_up(scene, tmp_path, "CYCLES")
    scene.cycles.samples, scene.cycles.device = 1, "CPU"
    file = tmp_path / "shot.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(file))
    frames = [30, 3, 12]
    script = Path(__file__).with_name("render_frames.py")
    run = subprocess.run(
        [sys.executable, str(script), str(package), str(file), str(tmp_path), *map(str, frames)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "Traceback" not in run.stdout
    found: rigs.Poses = {frame: np.fromfile(tmp_path / f"{frame}.pose", dtype=np.float32) for frame in frames}
    assert not rigs.apart(found, rigs.poses_at(ob, frames))
