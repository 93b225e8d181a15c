"""One switch between IK and FK: no jump, no change on frames before it, and keys preserve it."""

from __future__ import annotations

import math
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Vector

from tests import rigs
from tests.reliability.states import activate, add, joints, refused, said, turns
from tests.targets.test_snap import PLACED, animate, assert_same_pose, limb, size

Pose = tuple[Any, Any]


def played(ob: bpy.types.Object, frames: Any) -> dict[float, Pose]:
    """Return the poses that Blender evaluates on frames."""
    return rigs.on_frames(frames, lambda: (joints(ob), turns(ob)))


def assert_plays(ob: bpy.types.Object, before: dict[float, Pose], bones: int = 3) -> None:
    """Assert that frames show the same pose as before, for the first bones at least."""
    for frame, (places, turned) in before.items():
        now = played(ob, [frame])[frame]
        assert np.abs(now[0] - places)[:bones].max() < 1e-4 * size(ob), frame
        angles = [abs(a.rotation_difference(b).angle) for a, b in zip(turned, now[1], strict=True)]
        assert max(min(angle, 2.0 * math.pi - angle) for angle in angles[:bones]) < 1e-3, frame


def influence_keys(ob: bpy.types.Object, tip: str = "b") -> list[tuple[float, float, str]]:
    (own,) = rigs.fcurves(ob, f'pose.bones["{tip}"].ik_addon.influence')
    return [(*point.co, point.interpolation) for point in own.keyframe_points]


def shot(count: int = 2, *, live: bool = True) -> bpy.types.Object:
    """Return a limb whose bones and goals are animated."""
    ob = limb(count, PLACED)
    animate(ob)
    chain = ob.pose.bones["abc"[count - 1]].ik_addon
    for goal, frames in ((chain.target, (1, 12)), (chain.pole, (3, 9))):
        start = goal.location.copy()
        rigs.key(goal, "location", {frame: tuple(start + start.zxy * 0.1 * i) for i, frame in enumerate(frames)})
    ob.ik_addon.live = live
    bpy.context.scene.frame_set(1)
    return ob


FRAMES = (1, 2.5, 4, 4.5, 5)


@pytest.mark.parametrize("count", [2, 3])
def test_switching_from_ik_to_fk(count: int) -> None:
    ob = shot(count)
    before = played(ob, (*FRAMES, 6))
    assert bpy.ops.ik_addon.switch_ik_fk() == {"FINISHED"}
    tip = ob.pose.bones["abc"[count - 1]]
    assert tip.ik_addon.influence == 0.0
    assert_same_pose(ob, *before[6])
    assert_plays(ob, before)
    assert influence_keys(ob, tip.name) == [(5.0, 1.0, "CONSTANT"), (6.0, 0.0, "CONSTANT")]
    bpy.context.scene.frame_set(9)
    tip.ik_addon.target.location.x += 1.0
    held = played(ob, [9])[9]
    ob.ik_addon.live = False
    assert_plays(ob, {9: held})


@pytest.mark.parametrize("count", [2, 3])
def test_switching_from_fk_to_ik(count: int) -> None:
    ob = shot(count)
    tip: Any = ob.pose.bones["abc"[count - 1]]
    target: Any = tip.ik_addon.target
    tip.ik_addon.influence = 0.0

    def distance() -> float:
        return max(abs(a - b) for a, b in zip(rigs.tail(ob, tip.name), rigs.position(target), strict=True))

    before = played(ob, (*FRAMES, 6))
    assert bpy.ops.ik_addon.switch_ik_fk() == {"FINISHED"}
    assert tip.ik_addon.influence == 1.0
    assert_same_pose(ob, *before[6])
    assert_plays(ob, before)
    assert influence_keys(ob, tip.name) == [(5.0, 0.0, "CONSTANT"), (6.0, 1.0, "CONSTANT")]
    bpy.context.scene.frame_set(6)
    assert distance() < 1e-3
    target.location -= 0.1 * (Vector(rigs.tail(ob, tip.name).tolist()) - Vector(rigs.head(ob, "a").tolist()))
    bpy.context.view_layer.update()
    assert distance() < 1e-3, "it follows"


def test_switching_there_and_back_again() -> None:
    ob = shot()
    start = played(ob, FRAMES)
    for frame in (6, 8, 10):
        bpy.context.scene.frame_set(frame)
        here = joints(ob), turns(ob)
        bpy.ops.ik_addon.switch_ik_fk()
        assert_same_pose(ob, *here)
    assert [value for _frame, value, _held in influence_keys(ob)] == [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    assert_plays(ob, start)
    # On the same frame again, the switch is removed.
    bpy.context.scene.frame_set(10)
    bpy.ops.ik_addon.switch_ik_fk()
    assert_same_pose(ob, *here)
    assert [value for _frame, value, _held in influence_keys(ob)] == [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]


def test_switching_bones_without_keys() -> None:
    ob = limb()
    ob.ik_addon.live = True
    before = played(ob, (1, 9, 10))
    bpy.ops.ik_addon.switch_ik_fk(to="FK")
    assert_plays(ob, before)
    ob.pose.bones["b"].rotation_quaternion = Euler((0.5, 0.0, 0.0)).to_quaternion()
    ob.pose.bones["b"].keyframe_insert("rotation_quaternion", frame=20)
    assert_plays(ob, before)
    bpy.context.scene.frame_set(20)
    assert np.abs(joints(ob) - before[10][0]).max() > 0.1, "the keys of the bones play"


def test_a_disabled_chain_is_enabled_and_its_pose_stays() -> None:
    ob = limb()
    chain = ob.pose.bones["b"].ik_addon
    chain.enabled = False
    ob.ik_addon.live = True
    before = played(ob, (1, 9, 10))
    bpy.ops.ik_addon.switch_ik_fk()
    assert chain.enabled
    assert_plays(ob, before)
    chain.target.location.z -= 0.3
    bpy.context.view_layer.update()
    assert np.abs(joints(ob) - before[10][0]).max() > 0.1


@pytest.mark.parametrize("to", ["IK", "FK"])
def test_a_blended_switch_makes_no_jump(to: str) -> None:
    ob = shot()
    ob.pose.bones["b"].ik_addon.influence = 0.4 if to == "IK" else 0.6
    before = played(ob, (*FRAMES, 6))
    tip = rigs.tail(ob, "b")
    bpy.ops.ik_addon.switch_ik_fk(to=to)
    assert np.linalg.norm(rigs.tail(ob, "b") - tip) < 1e-3
    assert_plays(ob, {frame: pose for frame, pose in before.items() if frame < 5.5})


def test_switching_with_control_bones_and_a_hand_that_turns() -> None:
    ob = rigs.armature()
    rigs.add_bones(
        ob, [(0, 0, 0), (0.1, -0.3, 0.9), (0, 0.2, 1.8), (0.3, 0.2, 1.9)], ["upper_arm.L", "forearm.L", "hand.L"]
    )
    chain = add(ob, "forearm.L", controls="BONES", live=True)
    assert chain.use_end_rotation
    target = ob.pose.bones[chain.target_bone]
    target.location, target.rotation_quaternion = (0.2, -0.2, -0.3), Euler((0.3, 0.4, 0.1)).to_quaternion()
    before = played(ob, (1, 9, 10))
    bpy.ops.ik_addon.switch_ik_fk()
    assert_plays(ob, before)
    hand = ob.pose.bones["hand.L"]
    hand.rotation_quaternion = Euler((0.0, 0.7, 0.0)).to_quaternion()
    hand.keyframe_insert("rotation_quaternion", frame=15)
    before |= played(ob, (15,))
    bpy.ops.ik_addon.switch_ik_fk()
    assert_plays(ob, before)


def test_all_chains_switch_at_once_and_each_only_once(capfd: pytest.CaptureFixture[str]) -> None:
    ob = limb()
    rigs.add_arm(ob, 2, "de", "Second")
    ob.ik_addon.live = True
    before = played(ob, (1, 9, 10))
    assert "Switched 2 chains to FK" in said(capfd, bpy.ops.ik_addon.switch_ik_fk, chains="ALL", to="FK")
    assert_plays(ob, before)
    assert "Already in FK" in said(capfd, bpy.ops.ik_addon.switch_ik_fk, chains="ALL", to="FK")


def test_a_switch_without_live_gives_a_remark(capfd: pytest.CaptureFixture[str]) -> None:
    ob = shot(live=False)
    bpy.context.scene.frame_set(6)
    bpy.ops.ik_addon.solve()
    here = joints(ob), turns(ob)
    assert "Turn Live on" in said(capfd, bpy.ops.ik_addon.switch_ik_fk)
    assert_same_pose(ob, *here)


def test_a_switch_changes_nothing_when_keys_cannot_be_written() -> None:
    ob = limb()
    ob.ik_addon.live = True
    ob.driver_add('pose.bones["b"].ik_addon.influence')
    bpy.context.view_layer.update()
    with refused("A driver sets"):
        bpy.ops.ik_addon.switch_ik_fk(to="FK")
    ob.driver_remove('pose.bones["b"].ik_addon.influence')
    ob.pose.bones["a"].keyframe_insert("rotation_quaternion", frame=1)
    rigs.fcurves(ob)[2].lock = True
    with refused("is locked"):
        bpy.ops.ik_addon.switch_ik_fk(to="FK")
    ob.animation_data_clear()
    target = ob.pose.bones["b"].ik_addon.target
    ob.pose.bones["b"].ik_addon.influence = 0.0
    target.driver_add("location", 0)
    bpy.context.view_layer.update()
    with refused("A driver sets"):
        bpy.ops.ik_addon.switch_ik_fk(to="IK")
    assert ob.animation_data is None or ob.animation_data.action is None


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("live", [True, False], ids=["live", "solved"])
def test_a_pose_without_keys_is_kept_in_ik(count: int, live: bool) -> None:
    ob = shot(count, live=live)
    tip = "abc"[count - 1]
    activate(ob, tip)
    bpy.ops.ik_addon.switch_ik_fk(to="FK")
    bpy.context.scene.frame_set(10)
    for bone in ob.pose.bones:
        bone.rotation_quaternion = Euler((0.4, 0.1, 0.0)).to_quaternion() @ bone.rotation_quaternion
    bpy.context.view_layer.update()
    before = {10.0: (joints(ob), turns(ob))}
    bpy.ops.ik_addon.switch_ik_fk(to="IK")
    assert_plays(ob, before)
    assert ob.pose.bones[tip].ik_addon.influence == 1.0


@pytest.mark.parametrize("to", ["IK", "FK"])
def test_a_switch_keeps_other_edits_without_keys(to: str) -> None:
    ob = shot()
    root = rigs.empty("Other")
    for holder, field in ((ob, "location"), (root, "location")):
        rigs.key(holder, field, {1: (0.0, 0.0, 0.0), 20: (0.0, 0.0, 0.0)})
    activate(ob, "b")
    bpy.context.scene.frame_set(5)
    if to == "IK":
        bpy.ops.ik_addon.switch_ik_fk(to="FK")
        bpy.context.scene.frame_set(8)
    ob.location.x = 0.3
    root.location.x = 0.7
    bpy.context.view_layer.update()
    bpy.ops.ik_addon.switch_ik_fk(to=to)
    bpy.context.view_layer.update()
    assert (ob.location.x, root.location.x) == pytest.approx((0.3, 0.7))
