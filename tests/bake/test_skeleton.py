"""The deform skeleton alone plays what the armature plays, even after a round trip through glTF and FBX."""

import importlib
from contextlib import closing
from pathlib import Path
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from tests import rigs
from tests.conftest import Addon, Capture
from tests.feet import walker
from tests.reliability.states import activate, refused, snapshot

CLOSE = 1e-5
FRAMES = (1, 7, 20, 40)


def character(*, moved: bool = True) -> bpy.types.Object:
    """Build legs that walk live, with non-deforming bones between and beside them, and a mesh."""
    ob: Any = walker.figure("turn", excess=0.015, frames=FRAMES[-1])
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = FRAMES[0], FRAMES[-1]
    rigs.add_bones(ob, [(0.3, 0, 1), (0.3, 0, 1.3)], ["helper"], parent="hips", connect=False)
    rigs.add_bones(ob, [(0.3, 0, 1.3), (0.3, 0, 1.5)], ["pouch"], parent="helper")
    ob.data.bones["helper"].use_deform = False
    helper = ob.pose.bones["helper"]
    rigs.key(helper, "rotation_quaternion", {1: (1, 0, 0, 0), 40: (0.5, 0.5, 0.5, 0.5)})
    hips = ob.pose.bones["hips"]
    hips.rotation_mode = "XYZ"
    rigs.key(hips, "rotation_euler", {1: (0, 0, 0), 40: (0.1, 1.4, 0.2)})
    low = hips.location.y
    rigs.key(hips, "location", {1: (0, low, 0), 40: (0.05, low - 0.1, 0.1)})
    corners = [Vector(step) for step in ((0, 0, 0), (0.05, 0, 0), (0, 0, 0.05))]
    points = [tuple(bone.head_local + corner) for bone in ob.data.bones for corner in corners]
    triangles = {bone.name: (3 * i, 3 * i + 1, 3 * i + 2) for i, bone in enumerate(ob.data.bones)}
    skin = rigs.deform(rigs.mesh("Skin", points, list(triangles.values())), ob, triangles)
    skin.parent = ob
    if moved:
        ob.matrix_world = Matrix.Translation((1.0, 2.0, 0.3)) @ Matrix.Rotation(0.7, 4, "Z") @ Matrix.Scale(1.5, 4)
    bpy.context.view_layer.update()
    activate(ob, "shin.L")
    return ob


def heads(ob: bpy.types.Object, names: list[str], first: float = FRAMES[0]) -> Any:
    """Return the world positions (frames, bones, 3) of joints; `first` is the first frame of an imported skeleton."""

    def now() -> Any:
        seen = rigs.evaluated(ob)
        return [tuple(seen.matrix_world @ seen.pose.bones[name].head) for name in names]

    return np.array(list(rigs.on_frames([frame - FRAMES[0] + first for frame in FRAMES], now).values()))


def points(name: str) -> Any:
    """Return the world positions (frames, vertices, 3) of a mesh."""

    def now() -> Any:
        seen: Any = rigs.evaluated(bpy.data.objects[name])
        return [tuple(seen.matrix_world @ vertex.co) for vertex in seen.data.vertices]

    return np.array(list(rigs.on_frames(FRAMES, now).values()))


def bake(**options: Any) -> bpy.types.Object:
    assert bpy.ops.ik_addon.bake_skeleton(**options) == {"FINISHED"}
    made: Any = bpy.context.view_layer.objects.active
    return made


DEFORM = ["hips", "chest", "thigh.L", "shin.L", "foot.L", "toes.L", "thigh.R", "shin.R", "foot.R", "toes.R", "pouch"]


def test_the_deform_bones_alone_play_what_the_armature_plays() -> None:
    ob = character()
    before, skin = heads(ob, DEFORM), points("Skin")
    made = bake()
    assert made != ob
    assert sorted(bone.name for bone in made.data.bones) == sorted(DEFORM)
    assert made.data.bones["pouch"].parent.name == "hips", "the bone between deforms nothing"
    assert np.array_equal(np.array(made.matrix_world), np.eye(4))
    assert np.abs(heads(made, DEFORM) - before).max() < CLOSE
    assert all(tuple(bone.scale) == (1, 1, 1) for bone in made.pose.bones)
    own = [i for i, bone in enumerate(ob.data.bones) if bone.name in DEFORM for i in (3 * i, 3 * i + 1, 3 * i + 2)]
    assert np.abs(points("Skin Skeleton") - skin)[:, own].max() < CLOSE
    assert {other.name for other in bpy.context.selected_objects} == {made.name, "Skin Skeleton"}
    assert np.abs(heads(ob, DEFORM) - before).max() < 1e-9, "the armature is as it was"


def test_all_bones_and_no_meshes_on_request() -> None:
    character()
    made = bake(only_deform=False, meshes=False)
    assert "helper" in made.data.bones
    assert made.data.bones["pouch"].parent.name == "helper"
    assert not made.data.bones["helper"].use_deform
    assert "Skin Skeleton" not in bpy.data.objects


def test_the_root_follows_the_hips() -> None:
    ob = character()
    before = heads(ob, DEFORM)
    (hips,) = np.diff(before[[0, -1], 0], axis=0)
    cases = (("root", False, False), ("hips_root", False, True), ("hips_root", True, False), ("root", True, True))
    for root, turn, height in cases:
        activate(ob, "shin.L")
        made = bake(use_root=True, root=root, root_turn=turn, root_height=height)
        assert np.abs(heads(made, DEFORM) - before).max() < CLOSE, "all other joints play as before"
        assert [bone.name for bone in made.data.bones if bone.parent is None] == [root]
        (way,) = np.diff(heads(made, [root])[[0, -1], 0], axis=0)
        play: Any = walker.play(made)
        poses = play[:, list(made.pose.bones.keys()).index(root)]
        assert abs(poses[:, 2, 1]).max() < 1e-6, "it never tilts"
        angle = np.degrees(np.arctan2(-poses[-1, 0, 1], poses[-1, 1, 1]))
        assert bool(abs(angle) > 60.0) is turn
        assert abs(way[2] - (hips[2] if height else 0.0)) < CLOSE
        if not turn:
            assert np.abs(way[:2] - hips[:2]).max() < CLOSE


def test_an_existing_bone_can_be_the_root() -> None:
    ob = character()
    before = heads(ob, DEFORM)
    made = bake(use_root=True, root="hips")
    assert np.abs(heads(made, DEFORM[1:]) - before[:, 1:]).max() < CLOSE
    assert np.ptp(heads(made, ["hips"])[:, 0, 2]) < CLOSE
    activate(ob, "shin.L")
    assert bpy.ops.ik_addon.bake_skeleton(use_root=True, root="r" * 80) == {"FINISHED"}
    assert "r" * 63 in bpy.context.object.data.bones, "a long name is shortened as in Blender"
    activate(ob, "shin.L")
    with pytest.raises(RuntimeError, match=r"'shin\.L' can't be the root: it is below 'thigh\.L'"):
        bpy.ops.ik_addon.bake_skeleton(use_root=True, root="shin.L")


def test_deform_bones_are_parented_to_those_that_stand_in_for_controls() -> None:
    """As in generated rigs: each deform bone is below a control bone, which another deform bone follows."""
    ob = rigs.limb([(0, 0, 1), (0, 0, 1.5), (0, 0, 2)], ["spine", "neck"], name="Rig")
    for name, above in (("DEF-neck", "spine"), ("DEF-spine", "")):
        bone = ob.data.bones[name.removeprefix("DEF-")]
        ends = [tuple(bone.head_local), tuple(bone.tail_local)]
        rigs.add_bones(ob, ends, [name], **({"parent": above, "connect": False} if above else {}))
    for name in ("spine", "neck"):
        ob.data.bones[name].use_deform = False
    activate(ob, "spine")
    made = bake()
    parents = {bone.name: bone.parent and bone.parent.name for bone in made.data.bones}
    assert parents == {"DEF-spine": None, "DEF-neck": "DEF-spine"}


def test_omissions_are_reported(capfd: Capture) -> None:
    ob = character()
    rigs.key(ob.pose.bones["chest"], "scale", {1: (1, 1, 1), 40: (1, 1.5, 1)})
    ob.data.bones["pouch"].bbone_segments = 4
    before = heads(ob, DEFORM)
    made = bake()
    assert np.abs(heads(made, DEFORM) - before).max() < CLOSE
    said = capfd.readouterr().out
    assert "The scale of 'chest' was left out" in said
    assert "Bendy bone 'pouch' stays straight" in said


def posed_beside_another() -> tuple[bpy.types.Object, bpy.types.Object]:
    """Return a character and another armature, both selected and in Pose Mode, the character active."""
    ob = character()
    other = rigs.limb(rigs.straight(2), "ab", "Other")
    rigs.select(ob, other)
    activate(ob, "shin.L")
    bpy.ops.object.mode_set(mode="POSE")
    return ob, other


def assert_as_posed(ob: bpy.types.Object, other: bpy.types.Object) -> None:
    assert bpy.context.view_layer.objects.active == ob
    assert (ob.mode, other.mode, ob.select_get(), other.select_get()) == ("POSE", "POSE", True, True)


def test_nothing_changes_on_failure_or_cancelling(addon: Addon) -> None:
    ob, other = posed_beside_another()
    bpy.context.scene.frame_set(7)
    before = snapshot()
    module = addon.module("bake.skeleton")
    for most in (0.0, 0.5, 0.9):
        with closing(module.make_stepwise(bpy.context, ob, range(1, 41), module.Options())) as todo:
            for share in todo:
                if share > most:
                    break
        assert snapshot() == before
        assert_as_posed(ob, other)
    for bone in ob.data.bones:
        bone.use_deform = False
    before = snapshot()
    with pytest.raises(RuntimeError, match="has no deform bone"):
        bpy.ops.ik_addon.bake_skeleton()
    assert snapshot() == before


@pytest.mark.parametrize("frame", FRAMES)
def test_a_bone_hidden_on_a_frame_is_named_and_leaves_all_modes_and_the_selection(frame: int) -> None:
    ob, other = posed_beside_another()
    rigs.key(ob.pose.bones["foot.L"], "scale", {frame - 1: (1, 1, 1), frame: (0, 0, 0), frame + 1: (1, 1, 1)})
    with refused(f"Bone 'foot.L' has no rotation on frame {frame}: it, or a bone above it, is scaled to zero"):
        bpy.ops.ik_addon.bake_skeleton()
    assert_as_posed(ob, other)


# ---- through Blender's exporters


def enable(name: str) -> None:
    importlib.import_module("addon_utils").enable(name)


def imported(file: Path) -> bpy.types.Object:
    """Import an exported file into an empty one with the frame rate of this one; return its armature."""
    rate = bpy.context.scene.render.fps
    rigs.new_file()
    bpy.context.scene.render.fps = rate
    if file.suffix == ".glb":
        bpy.ops.import_scene.gltf(filepath=str(file))
    else:
        bpy.ops.import_scene.fbx(filepath=str(file), anim_offset=0.0)
    (found,) = (other for other in bpy.data.objects if other.type == "ARMATURE")
    return found


@pytest.mark.parametrize("kind", ["glb", "fbx"])
def test_a_round_trip_keeps_the_joints(tmp_path: Path, kind: str) -> None:
    ob = character()
    before = heads(ob, DEFORM)
    bake(use_root=True, root_turn=True)
    file = tmp_path / f"walk.{kind}"
    options: dict[str, Any] = {"filepath": str(file), "use_selection": True}
    if kind == "glb":
        enable("io_scene_gltf2")
        bpy.ops.export_scene.gltf(**options)
    else:
        enable("io_scene_fbx")
        bpy.ops.export_scene.fbx(**options, add_leaf_bones=False, bake_anim_simplify_factor=0.0)
    found = imported(file)
    first = found.animation_data.action.frame_range[0]
    assert np.abs(heads(found, DEFORM, first) - before).max() < CLOSE
    assert found.pose.bones["hips"].parent.name == "root"
