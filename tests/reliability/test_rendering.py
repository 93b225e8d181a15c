"""Pixels show the solved pose, and rendering leaves the file unchanged; see `test_frames` on each frame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs
from tests.reliability.states import whole_file_unsolved
from tests.renders import render, set_up


def blade(ob: bpy.types.Object, bone: str) -> bpy.types.Object:
    """A glowing mesh of two triangles, skinned to a bone."""
    base = ob.data.bones[bone]
    a, b = base.head_local, base.tail_local
    corners = [(a.x, a.y - 0.3, a.z), (a.x, a.y + 0.3, a.z), (b.x, b.y, b.z), (b.x + 0.3, b.y, b.z)]
    skin: Any = rigs.deform(rigs.mesh("Blade", corners, [(0, 1, 2), (0, 1, 3)]), ob, {bone: range(4)})
    material = bpy.data.materials.new("Glow")
    if material.node_tree is None:  # before 5.0
        material.use_nodes = True
    nodes = material.node_tree.nodes
    nodes.clear()
    glow, output = nodes.new("ShaderNodeEmission"), nodes.new("ShaderNodeOutputMaterial")
    material.node_tree.links.new(glow.outputs[0], output.inputs[0])
    skin.data.materials.append(material)
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
    held = rigs.on_frames(frames, lambda: [bone.rotation_quaternion[:] for bone in ob.pose.bones])
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
    frames = [4, 5, 6]
    scene.frame_start, scene.frame_end = frames[0], frames[-1]
    before = whole_file_unsolved()
    live = rendered(frames)
    assert whole_file_unsolved() == before
    freeze(ob, [f + part for f in frames for part in ((-0.5, 0.0, 0.5) if blur else (0.0,))])
    frozen = rendered(frames)
    assert engine != "CYCLES" or live[0].max() > 0.5
    assert not np.array_equal(live[0], live[-1])
    for a, b in zip(live, frozen, strict=True):
        assert np.abs(a - b).max() < 0.01
