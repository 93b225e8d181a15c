"""Pixels, exporters and all scenes show the solved pose, and rendering leaves the file unchanged; see `test_frames`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from numpy.typing import NDArray

from tests import rigs
from tests.live.characters import all_keyed
from tests.reliability.states import whole_file_unsolved
from tests.renders import Recorder, recorder, render, set_up

__all__ = ["recorder"]


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


# ---- exporters, background and second scenes, the sequencer


FRAMES = list(range(1, 13))
CLOSE = 1e-5
"""In scene units; the characters are two to four units high."""

Points = dict[float, NDArray[np.float64]]
"""World positions (n, 3) by frame."""


def character() -> tuple[bpy.types.Object, bpy.types.Object]:
    """A live armature with keyed hips, chest and limbs, chains on the limbs, and a skinned mesh."""
    ob = all_keyed()
    ends = [point for bone in ob.data.bones for point in (bone.head_local, bone.tail_local)]
    skin = rigs.mesh("Skin", ends, [(i, i + 1, i + 2) for i in range(len(ends) - 2)])
    rigs.deform(skin, ob, {bone.name: (2 * i, 2 * i + 1) for i, bone in enumerate(ob.data.bones)})
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = FRAMES[0], FRAMES[-1]
    bpy.context.scene.frame_set(1)
    return ob, skin


def on_all_frames(skin: bpy.types.Object) -> Points:
    return rigs.on_frames(FRAMES, lambda: rigs.vertices(skin))


def alembic(file: Path, evaluation: Any) -> None:
    bpy.ops.wm.alembic_export(
        filepath=str(file), start=FRAMES[0], end=FRAMES[-1], evaluation_mode=evaluation, as_background_job=False
    )


def usd(file: Path, evaluation: Any) -> None:
    bpy.ops.wm.usd_export(filepath=str(file), export_animation=True, export_armatures=False, evaluation_mode=evaluation)


EXPORTERS: dict[str, tuple[Callable[[Path, Any], None], Callable[[str], object]]] = {
    "abc": (alembic, lambda file: bpy.ops.wm.alembic_import(filepath=file, as_background_job=False)),
    "usdc": (usd, lambda file: bpy.ops.wm.usd_import(filepath=file)),
}


@pytest.mark.parametrize(("evaluation", "start"), [("VIEWPORT", 7), ("RENDER", 1)])
@pytest.mark.parametrize("kind", EXPORTERS)
def test_exported_meshes_have_the_solved_pose(kind: str, evaluation: str, start: int, tmp_path: Path) -> None:
    ob, skin = character()
    expected = on_all_frames(skin)
    assert np.abs(expected[1] - expected[12]).max() > 0.05
    bpy.context.scene.frame_set(start)
    before, channels = {start: rigs.pose(ob)}, rigs.channels(ob)
    export, load = EXPORTERS[kind]
    file = tmp_path / f"character.{kind}"
    export(file, evaluation)
    assert bpy.context.scene.frame_current == start
    assert np.array_equal(rigs.channels(ob), channels)
    assert not rigs.apart({start: rigs.pose(ob)}, before)
    rigs.new_file()
    load(str(file))
    skin = next(found for found in bpy.data.objects if found.type == "MESH")
    for frame, points in on_all_frames(skin).items():
        assert np.abs(points - expected[frame]).max() < CLOSE, f"frame {frame}"


def joints(ob: bpy.types.Object, depsgraph: bpy.types.Depsgraph) -> NDArray[np.float64]:
    """Return the world positions of elbow and tip as evaluated in a depsgraph."""
    done = ob.evaluated_get(depsgraph)
    bone = done.pose.bones["lower"]
    return np.array([done.matrix_world @ bone.head, done.matrix_world @ bone.tail])


def seen_in(ob: bpy.types.Object, scene: bpy.types.Scene) -> NDArray[np.float64]:
    """Return the world positions of elbow and tip as evaluated in a scene."""
    return joints(ob, scene.view_layers[0].depsgraph)


def tips(ob: bpy.types.Object, frames: list[int]) -> Points:
    """Return the world positions of elbow and tip in the current scene, by frame."""
    return rigs.on_frames(frames, lambda: joints(ob, bpy.context.evaluated_depsgraph_get()))


def test_two_scenes_show_an_armature_each_on_its_own_frame() -> None:
    ob, target = rigs.animated_arm()
    expected = tips(ob, [5, 20, 33])
    first = bpy.context.scene
    bpy.ops.scene.new(type="EMPTY")
    second = bpy.context.scene
    other = rigs.empty("Other")
    for own in (ob, target):
        second.collection.objects.link(own)
    for frame in (20, 33, 20):
        first.frame_set(5)
        assert np.abs(seen_in(ob, first) - expected[5]).max() < CLOSE
        second.frame_set(frame)
        assert np.abs(seen_in(ob, second) - expected[frame]).max() < CLOSE
        # As when a window that shows the first scene is redrawn.
        first.view_layers[0].update()
        assert np.abs(seen_in(ob, first) - expected[5]).max() < CLOSE
        other.location.x += 1.0
        second.view_layers[0].update()
        assert np.abs(seen_in(ob, second) - expected[frame]).max() < CLOSE


@pytest.mark.parametrize("shown", ["alone", "in the background"])
def test_a_scene_strip_in_the_sequencer_shows_the_solved_pose(
    recorder: type[Recorder], shown: str, tmp_path: Path
) -> None:
    ob, _target = rigs.animated_arm()
    expected = tips(ob, list(range(10, 21)))
    shot = bpy.context.scene
    if shown == "in the background":
        shot = bpy.data.scenes.new("Shot")
        shot.background_set = bpy.context.scene
    recorder.note = lambda depsgraph: joints(ob, depsgraph)
    set_up(shot, tmp_path)
    cut = bpy.data.scenes.new("Cut")
    set_up(cut, tmp_path)
    editor: Any = cut.sequence_editor_create()
    strips = editor.strips if hasattr(editor, "strips") else editor.sequences  # before 4.4
    strip = strips.new_scene(name="Shot", scene=shot, channel=1, frame_start=101)
    strip.scene_input = "CAMERA"
    shot.frame_start, shot.frame_end = 1, 50
    shot.frame_set(3)
    bpy.context.window.scene = cut
    cut.render.use_sequencer = True
    render(110, 112, cut)
    notes = [(int(frame), seen) for name, _layer, frame, seen in recorder.seen if name == shot.name]
    assert len({frame for frame, _ in notes}) == 3
    for frame, seen in notes:
        assert np.abs(seen - expected[frame]).max() < CLOSE, f"frame {frame}"
    assert shot.frame_current == 3
