"""Frames of a rig whose FK pose stands still, played with edits between them."""

from __future__ import annotations

from collections.abc import Callable

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon

FRAMES = (3, 11, 27, 11, 40)


def spider() -> bpy.types.Object:
    """Three legs of two, three and four bones on a body, one with a pole, each with a target of its own."""
    rigs.empty("aside")
    ob = rigs.armature()
    rigs.add_bones(ob, [(0, 0, -1), (0, 0, 0)], ["body"])
    for leg, bones in enumerate((2, 3, 4)):
        names = [f"leg{leg}.{i}" for i in range(bones)]
        rigs.add_bones(ob, [(x + leg, y, z) for x, y, z in rigs.bent(bones, 1.0 / bones, 0.2)], names)
        bpy.ops.object.mode_set(mode="EDIT")
        ob.data.edit_bones[names[0]].parent = ob.data.edit_bones["body"]
        bpy.ops.object.mode_set(mode="OBJECT")
        target = rigs.empty(f"target{leg}")
        rigs.key(target, "location", {1: (leg + 0.3, 0.4, 0.5), 20: (leg - 0.4, 0.2, 0.6), 40: (leg, -0.4, 0.5)})
        extra = {"pole": rigs.empty("pole", (leg, 2.0, 0.3))} if leg == 1 else {}
        rigs.chain(ob, names[-1], target, bones, **extra)
    ob.pose.bones["body"].rotation_quaternion = (0.98, 0.1, 0.15, 0.05)
    ob.pose.bones["leg1.1"].rotation_quaternion = (0.95, 0.3, 0.0, 0.0)
    bpy.context.view_layer.update()
    ob.ik_addon.live = True
    return ob


def tips(ob: bpy.types.Object) -> list[str]:
    return [bone.name for bone in ob.pose.bones if bone.ik_addon.is_chain]


def misses(ob: bpy.types.Object) -> float:
    """Largest distance of a tip from its target."""
    targets = {tip: ob.pose.bones[tip].ik_addon.target for tip in tips(ob)}
    return max(float(np.linalg.norm(rigs.tail(ob, tip) - rigs.position(target))) for tip, target in targets.items())


def poses(ob: bpy.types.Object) -> dict[int, bytes]:
    found = {}
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        found[frame] = rigs.pose(ob).tobytes()
    return found


def edit_body(ob: bpy.types.Object) -> None:
    ob.pose.bones["body"].rotation_quaternion = (0.9, 0.0, 0.3, 0.3)


def shift_body(ob: bpy.types.Object) -> None:
    ob.pose.bones["body"].location = (0.1, 0.05, -0.1)


def scale_chain(ob: bpy.types.Object) -> None:
    ob.pose.bones["leg2.1"].scale = (0.9, 0.9, 0.9)


def change_mode(ob: bpy.types.Object) -> None:
    ob.pose.bones["leg2.1"].rotation_mode = "XYZ"


def ride_chain(ob: bpy.types.Object) -> None:
    """Parent the target of a chain to a bone that another chain moves."""
    target = bpy.data.objects["target0"]
    target.parent, target.parent_type, target.parent_bone = ob, "BONE", "leg2.3"


def edit_chain(ob: bpy.types.Object) -> None:
    ob.pose.bones["leg2.1"].rotation_quaternion = (0.9, 0.4, 0.0, 0.1)


def rename(ob: bpy.types.Object) -> None:
    ob.data.bones["leg0.0"].name = "thigh"


def parent_target(ob: bpy.types.Object) -> None:
    bpy.data.objects["target0"].parent = ob
    bpy.data.objects["target0"].parent_type = "BONE"
    bpy.data.objects["target0"].parent_bone = "body"


def constrain_target(_ob: bpy.types.Object) -> None:
    bpy.data.objects["target1"].constraints.new("COPY_LOCATION").target = bpy.data.objects["target0"]


def look_at_target(_ob: bpy.types.Object) -> None:
    """Constrain an object outside the rig to a target, which changes the order of evaluation."""
    bpy.data.objects["aside"].constraints.new("COPY_LOCATION").target = bpy.data.objects["target2"]


def key_chain(ob: bpy.types.Object) -> None:
    bone = ob.pose.bones["leg0.0"]
    for frame, x in ((1, 0.0), (40, 0.4)):
        bone.rotation_quaternion = (1.0 - x / 4, x, 0.0, 0.0)
        bone.keyframe_insert("rotation_quaternion", frame=frame)


def move_armature(ob: bpy.types.Object) -> None:
    ob.location, ob.rotation_euler.z = (0.1, -0.2, 0.1), 0.4


def soften(ob: bpy.types.Object) -> None:
    ob.pose.bones["leg1.2"].ik_addon.pole_angle = 0.7


def delete_target(_ob: bpy.types.Object) -> None:
    bpy.data.objects.remove(bpy.data.objects["target2"])


CHANGES = (
    edit_body,
    shift_body,
    scale_chain,
    change_mode,
    ride_chain,
    edit_chain,
    rename,
    parent_target,
    constrain_target,
    look_at_target,
    key_chain,
    move_armature,
    soften,
    delete_target,
)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("update", [False, True])
def test_a_change_between_frames_takes_effect_on_the_next_frame(
    addon: Addon, change: Callable[[bpy.types.Object], None], update: bool
) -> None:
    ob = spider()
    poses(ob)
    change(ob)
    if update:
        bpy.context.view_layer.update()
    after = poses(ob)
    # As in a file just opened: nothing is remembered.
    addon.module("live.registry").clear()
    assert {frame: np.frombuffer(pose, dtype=np.float32) for frame, pose in after.items()} == {
        frame: pytest.approx(np.frombuffer(pose, dtype=np.float32), abs=2e-6) for frame, pose in poses(ob).items()
    }


@pytest.mark.parametrize("field", ["location", "scale"])
@pytest.mark.parametrize("update", [False, True])
def test_keys_of_a_solved_bone_play_when_their_frame_is_set_again(field: str, update: bool) -> None:
    ob, _target = rigs.arm()
    rigs.go_live(ob)
    upper = ob.pose.bones["upper"]
    shown = getattr(upper, field).copy()
    rigs.key(upper, field, {1: (0.5, 0.6, 0.7), 20: (1.0, 1.0, 1.0)})
    setattr(upper, field, shown)
    if update:
        bpy.context.view_layer.update()
    bpy.context.scene.frame_set(1)
    assert tuple(getattr(upper, field)) == pytest.approx((0.5, 0.6, 0.7))
    again = rigs.pose(ob)
    for frame in (20, 1):
        bpy.context.scene.frame_set(frame)
    assert np.abs(rigs.pose(ob) - again).max() < rigs.SAME


def test_still_frames_have_the_same_pose_however_the_first_was_solved() -> None:
    ob = spider()
    for tip in tips(ob):
        ob.pose.bones[tip].ik_addon.target.animation_data_clear()
    for x in (0.31, 0.42, 0.53):
        ob.location.x = x  # the frame stays the same
        bpy.context.view_layer.update()
        bpy.context.scene.frame_set(3)
        first = rigs.channels(ob).tobytes()
        for frame in (4, 11, 3):
            bpy.context.scene.frame_set(frame)
            assert rigs.channels(ob).tobytes() == first


def test_turning_live_off_restores_the_fk_pose_exactly() -> None:
    ob = spider()
    ob.ik_addon.live = False
    fk = rigs.channels(ob).tobytes()
    ob.ik_addon.live = True
    poses(ob)
    ob.ik_addon.live = False
    assert rigs.channels(ob).tobytes() == fk
