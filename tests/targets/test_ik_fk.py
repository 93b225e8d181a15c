"""One switch between IK and FK: no jump, no change on frames before it, and keys preserve it."""

import math
from typing import Any

import bpy
import numpy as np
import pytest
from mathutils import Euler, Vector

from tests import rigs
from tests.conftest import Capture
from tests.reliability.states import activate, add, joints, refused, said, turns
from tests.targets.test_snap import PLACED, animate, assert_same_pose, limb, same_pose, size

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
@pytest.mark.parametrize("to", ["FK", "IK"])
def test_switching_keeps_the_pose_and_what_was_before(to: str, count: int) -> None:
    ob = shot(count)
    tip: Any = ob.pose.bones["abc"[count - 1]]
    target: Any = tip.ik_addon.target
    start, end = (1.0, 0.0) if to == "FK" else (0.0, 1.0)
    tip.ik_addon.influence = start
    before = played(ob, (*FRAMES, 6))
    assert bpy.ops.ik_addon.switch_ik_fk() == {"FINISHED"}
    assert tip.ik_addon.influence == end
    assert_same_pose(ob, *before[6])
    assert_plays(ob, before)
    assert influence_keys(ob, tip.name) == [(5.0, start, "CONSTANT"), (6.0, end, "CONSTANT")]
    if to == "FK":
        bpy.context.scene.frame_set(9)
        target.location.x += 1.0
        held = played(ob, [9])
        ob.ik_addon.live = False
        assert_plays(ob, held)
    else:
        bpy.context.scene.frame_set(6)
        assert rigs.miss(ob, tip.name) < 1e-3
        target.location -= 0.1 * (Vector(rigs.tail(ob, tip.name).tolist()) - Vector(rigs.head(ob, "a").tolist()))
        assert rigs.miss(ob, tip.name) < 1e-3, "it follows"


def test_switching_there_and_back_again() -> None:
    ob = shot()
    start = played(ob, FRAMES)
    for frame in (6, 8, 10):
        bpy.context.scene.frame_set(frame)
        with same_pose(ob):
            bpy.ops.ik_addon.switch_ik_fk()
    assert [value for _frame, value, _held in influence_keys(ob)] == [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]
    assert_plays(ob, start)
    # On the same frame again, the switch is removed.
    bpy.context.scene.frame_set(10)
    with same_pose(ob):
        bpy.ops.ik_addon.switch_ik_fk()
    assert [value for _frame, value, _held in influence_keys(ob)] == [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]


def test_switching_bones_without_keys() -> None:
    ob = limb()
    ob.ik_addon.live = True
    before = played(ob, (1, 9, 10))
    bpy.ops.ik_addon.switch_ik_fk(to="FK")
    assert_plays(ob, before)
    rigs.key(ob.pose.bones["b"], "rotation_quaternion", {20: Euler((0.5, 0.0, 0.0)).to_quaternion()})
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
    points = [(0, 0, 0), (0.1, -0.3, 0.9), (0, 0.2, 1.8), (0.3, 0.2, 1.9)]
    ob = rigs.limb(points, ["upper_arm.L", "forearm.L", "hand.L"])
    chain = add(ob, "forearm.L", controls="BONES", live=True)
    assert chain.use_end_rotation
    target = ob.pose.bones[chain.target_bone]
    target.location, target.rotation_quaternion = (0.2, -0.2, -0.3), Euler((0.3, 0.4, 0.1)).to_quaternion()
    before = played(ob, (1, 9, 10))
    bpy.ops.ik_addon.switch_ik_fk()
    assert_plays(ob, before)
    rigs.key(ob.pose.bones["hand.L"], "rotation_quaternion", {15: Euler((0.0, 0.7, 0.0)).to_quaternion()})
    before |= played(ob, (15,))
    bpy.ops.ik_addon.switch_ik_fk()
    assert_plays(ob, before)


def test_all_chains_switch_at_once_and_each_only_once(capfd: Capture) -> None:
    ob = limb()
    rigs.add_arm(ob, 2, "de", "Second")
    ob.ik_addon.live = True
    before = played(ob, (1, 9, 10))
    assert "Switched 2 chains to FK" in said(capfd, bpy.ops.ik_addon.switch_ik_fk, chains="ALL", to="FK")
    assert_plays(ob, before)
    assert "Already in FK" in said(capfd, bpy.ops.ik_addon.switch_ik_fk, chains="ALL", to="FK")


def test_a_switch_without_live_gives_a_remark(capfd: Capture) -> None:
    ob = shot(live=False)
    bpy.context.scene.frame_set(6)
    bpy.ops.ik_addon.solve()
    with same_pose(ob):
        assert "Turn Live on" in said(capfd, bpy.ops.ik_addon.switch_ik_fk)


def test_a_switch_changes_nothing_when_keys_cannot_be_written() -> None:
    ob = limb()
    ob.ik_addon.live = True
    chain, influence = ob.pose.bones["b"].ik_addon, 'pose.bones["b"].ik_addon.influence'
    ob.driver_add(influence)
    with refused("A driver sets"):
        bpy.ops.ik_addon.switch_ik_fk(to="FK")
    ob.driver_remove(influence)
    ob.pose.bones["a"].keyframe_insert("rotation_quaternion", frame=1)
    rigs.fcurves(ob)[2].lock = True
    with refused("is locked"):
        bpy.ops.ik_addon.switch_ik_fk(to="FK")
    ob.animation_data_clear()
    chain.influence = 0.0
    chain.target.driver_add("location", 0)
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
    for holder in (ob, root):
        rigs.key(holder, "location", {1: (0.0, 0.0, 0.0), 20: (0.0, 0.0, 0.0)})
    activate(ob, "b")
    bpy.context.scene.frame_set(5)
    if to == "IK":
        bpy.ops.ik_addon.switch_ik_fk(to="FK")
        bpy.context.scene.frame_set(8)
    ob.location.x = 0.3
    rigs.change(root.location, x=0.7)
    bpy.ops.ik_addon.switch_ik_fk(to=to)
    bpy.context.view_layer.update()
    assert (ob.location.x, root.location.x) == pytest.approx((0.3, 0.7))
