"""Targets and poles that are control bones of the armature."""

from __future__ import annotations

import math
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from tests import rigs
from tests.chains.test_end_bone import body, body_poses
from tests.reliability.states import activate, add, snapshot
from tests.rig.test_ends import PLACE, TURN, turn_between, world

MATRICES = [
    Matrix.Identity(4),
    Matrix.LocRotScale((3, -2, 1), Euler((0.4, -1.1, 2.0)), (2.5, 2.5, 2.5)),
    Matrix.LocRotScale((0.5, 0.2, 0), Euler((0.3, 0.7, 1.0)), (-1.0, 1.0, 1.0)),
]


def contents() -> dict[str, Any]:
    """Return everything in a file that Add Chain could leave behind."""
    lists: Any = (bpy.data.objects, bpy.data.meshes, bpy.data.collections)
    bones = {ob.name: [b.name for b in ob.data.bones] for ob in bpy.data.objects if ob.type == "ARMATURE"}
    groups = {a.name: [group.name for group in a.collections] for a in bpy.data.armatures}
    return {"names": [sorted(own.keys()) for own in lists], "bones": bones, "groups": groups}


@pytest.mark.parametrize("mode", ["OBJECT", "POSE"])
@pytest.mark.parametrize("matrix", MATRICES, ids=["plain", "scaled", "mirrored"])
def test_the_pose_stays_and_the_foot_follows_its_bone(matrix: Matrix, mode: str) -> None:
    ob = body(matrix)
    for name in ("hips", "thigh.L", "foot.L"):
        ob.pose.bones[name].rotation_quaternion = Euler((0.2, 0.1, -0.1)).to_quaternion()
    bpy.ops.object.mode_set(mode=mode)
    bpy.context.view_layer.update()
    before = body_poses(ob)
    assert bpy.ops.ik_addon.chain_add(controls="BONES", live=True) == {"FINISHED"}
    assert ob.mode == mode
    assert np.abs(body_poses(ob) - before).max() < 2e-6
    chain = ob.pose.bones["shin.L"].ik_addon
    assert (chain.target, chain.target_bone) == (ob, "IK Target shin.L")
    assert (chain.pole, chain.pole_bone) == (ob, "IK Pole shin.L")
    assert chain.use_end_rotation
    control = ob.pose.bones["IK Target shin.L"]
    assert control.parent is None
    assert not control.bone.use_deform
    assert control.custom_shape is not None
    foot = world(ob, "foot.L")
    rigs.change(ob.pose.bones["hips"], location=(0.01, -0.05, 0.02))
    assert turn_between(world(ob, "foot.L"), foot) < TURN
    assert (world(ob, "foot.L").translation - foot.translation).length < 2.5 * PLACE
    rigs.change(control, rotation_quaternion=Euler((0.3, 0, 0)).to_quaternion())
    assert abs(turn_between(world(ob, "foot.L"), foot) - 0.3) < 1e-4


def test_a_second_chain_does_not_affect_the_first() -> None:
    ob = body()
    bpy.ops.ik_addon.chain_add(controls="BONES", live=True)
    rigs.change(ob.pose.bones["IK Target shin.L"], location=(0.02, 0.05, 0.03))
    before = body_poses(ob)
    add(ob, "shin.R", controls="BONES")
    bpy.context.view_layer.update()
    assert np.abs(body_poses(ob) - before).max() < 2e-6


@pytest.mark.parametrize("controls", ["EMPTIES", "BONES"])
@pytest.mark.parametrize("live", [False, True])
def test_remove_chain_leaves_no_trace(live: bool, controls: str) -> None:
    ob = body()
    ob.pose.bones["thigh.L"].rotation_quaternion = Euler((0.3, -0.4, 0.5)).to_quaternion()
    rigs.change(ob.ik_addon, live=live)
    before, data = contents(), snapshot()
    chain = add(ob, "shin.L", controls=controls, live=live)
    assert contents() != before
    chain.softness, chain.solver, chain.out_of_reach = 0.2, "FABRIK", "STRETCH"
    goal = ob.pose.bones[chain.target_bone] if controls == "BONES" else chain.target
    rigs.shift(goal, x=0.05)
    bpy.ops.ik_addon.solve()
    activate(ob, "shin.L")
    assert bpy.ops.ik_addon.chain_remove() == {"FINISHED"}
    assert contents() == before
    assert snapshot() == data


def key_it(ob: bpy.types.Object) -> None:
    ob.pose.bones["IK Target shin.L"].keyframe_insert("location", frame=1)


def hang_on_it(ob: bpy.types.Object) -> None:
    child = rigs.empty("Child")
    child.parent, child.parent_type, child.parent_bone = ob, "BONE", "IK Target shin.L"


def constrain_to_it(ob: bpy.types.Object) -> None:
    made: Any = rigs.empty("Follower").constraints.new("COPY_LOCATION")
    made.target, made.subtarget = ob, "IK Target shin.L"


@pytest.mark.parametrize("use", [key_it, hang_on_it, constrain_to_it])
def test_a_control_bone_in_use_is_kept(use: Any) -> None:
    ob = body()
    bpy.ops.ik_addon.chain_add(controls="BONES")
    use(ob)
    activate(ob, "shin.L")
    bpy.ops.ik_addon.chain_remove()
    assert "IK Target shin.L" in ob.pose.bones
    assert "IK Pole shin.L" not in ob.pose.bones


def test_the_mirrored_chain_gets_its_own_control_bones() -> None:
    ob = body()
    bpy.ops.ik_addon.chain_add(controls="BONES")
    count = len(ob.pose.bones)
    before = body_poses(ob)
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    image = ob.pose.bones["shin.R"].ik_addon
    assert (image.target_bone, image.pole_bone, image.end_bone) == ("IK Target shin.R", "IK Pole shin.R", "foot.R")
    assert len(ob.pose.bones) == count + 2
    rigs.go_live(ob)
    assert np.abs(body_poses(ob) - before).max() < 2e-6
    assert bpy.ops.ik_addon.mirror_chain() == {"FINISHED"}
    assert len(ob.pose.bones) == count + 2, "those that are there are taken"


def test_an_active_control_bone_makes_its_chain_active() -> None:
    ob = body()
    bpy.ops.ik_addon.chain_add(controls="BONES")
    activate(ob, "IK Target shin.L")
    assert bpy.ops.ik_addon.chain_remove() == {"FINISHED"}
    assert not ob.pose.bones["shin.L"].ik_addon.is_chain


def test_a_linked_armature_gets_empties(tmp_path: Any) -> None:
    ob = body()
    ob.data.name = "Linked"
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {ob.data})
    bpy.data.objects.remove(ob)
    bpy.data.armatures.remove(bpy.data.armatures["Linked"])
    own = bpy.data.objects.new("Own", rigs.from_library(path, "armatures", "Linked")[0])
    bpy.context.scene.collection.objects.link(own)
    bpy.context.view_layer.update()
    add(own, "shin.L", tip="shin.L", controls="BONES")
    assert own.pose.bones["shin.L"].ik_addon.target.type == "EMPTY"


def test_undo_removes_the_bones() -> None:
    ob = body()
    bpy.ops.ed.undo_push(message="start")
    before = contents()
    bpy.ops.ik_addon.chain_add(controls="BONES")
    bpy.ops.ed.undo_push(message="added")
    assert contents() != before
    bpy.ops.ed.undo()
    assert contents() == before
    bpy.ops.ed.redo()
    ob = bpy.data.objects["Rig"]
    assert ob.pose.bones["shin.L"].ik_addon.target_bone in ob.pose.bones
    assert math.isfinite(ob.pose.bones["shin.L"].ik_addon.pole_angle)


# ---- modes


def posed_and_not(*modes: str) -> list[bpy.types.Object]:
    """Return selected armatures in these modes; the first is active and has a tip as its active bone."""
    made = []
    for i, _mode in enumerate(modes):
        own = body() if i == 0 else rigs.armature(f"Other {i}")
        if i:
            rigs.add_bones(own, rigs.straight(2), ["a", "b"])
        made.append(own)
    for mode in ("POSE", "OBJECT"):
        for own in bpy.context.view_layer.objects:
            own.select_set(own in made and modes[made.index(own)] == "POSE")
        if mode == "POSE" and "POSE" in modes:
            bpy.context.view_layer.objects.active = made[modes.index("POSE")]
            bpy.ops.object.mode_set(mode="POSE")
    for own in made:
        own.select_set(True)
    activate(made[0], "shin.L")
    return made


@pytest.mark.parametrize("modes", [("POSE", "POSE"), ("OBJECT", "OBJECT", "OBJECT"), ("POSE", "OBJECT", "POSE")])
def test_all_armatures_stay_in_their_modes(modes: tuple[str, ...]) -> None:
    made = posed_and_not(*modes)

    def stands() -> bool:
        objects = bpy.context.view_layer.objects
        is_alike = tuple(own.mode for own in made) == modes and objects.active == made[0]
        return is_alike and all(own.select_get() for own in made)

    assert stands()
    assert bpy.ops.ik_addon.chain_add(controls="BONES") == {"FINISHED"}
    assert stands()
    assert bpy.ops.ik_addon.chain_remove() == {"FINISHED"}
    assert stands()
