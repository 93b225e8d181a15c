"""Live solving, as the depsgraph evaluates it, Solve IK and Restore Pose."""

from collections.abc import Callable
from typing import Any

import bpy
import numpy as np
import pytest

from tests import rigs
from tests.conftest import Addon
from tests.reliability.states import activate, add, refused, said


def test_a_cancelled_gesture_leaves_the_fk_pose_unchanged() -> None:
    ob, _target = rigs.arm()
    before = rigs.channels(ob)
    rigs.go_live(ob)
    lower = ob.pose.bones["lower"]
    solved = lower.rotation_quaternion.copy()
    for step in (0.1, 0.2, 0.3):
        rigs.change(lower, rotation_quaternion=(1.0, 0.0, step, 0.0))
    lower.rotation_quaternion = solved  # what Esc restores
    bpy.context.view_layer.update()
    ob.ik_addon.live = False
    assert np.array_equal(rigs.channels(ob), before)


def test_a_bone_moved_while_a_setting_changes_leaves_the_keyed_fk_pose_unchanged() -> None:
    ob, _target = rigs.animated_arm()
    rigs.change(ob.ik_addon, live=False)
    before = ob.pose.bones["upper"].rotation_quaternion.copy()
    rigs.go_live(ob)
    ob.pose.bones["lower"].location = (0.0, 0.1, 0.0)
    ob.pose.bones["lower"].ik_addon.chain_length = 1
    rigs.change(ob.pose.bones["lower"].ik_addon, chain_length=2)
    ob.ik_addon.live = False
    assert np.array_equal(ob.pose.bones["upper"].rotation_quaternion, before)


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


def now(ob: bpy.types.Object) -> rigs.Poses:
    bpy.context.view_layer.update()
    return {0: rigs.pose(ob)}


@pytest.mark.parametrize("solver", ["AUTO", "FABRIK"])
def test_setting_the_iterations_takes_effect_at_once(addon: Addon, solver: str) -> None:
    ob = rigs.limb(rigs.bent(6), [f"bone.{i}" for i in range(6)])
    for bone in ob.pose.bones:
        rigs.limit(bone, x=(-52, 52), y=(0, 0), z=(0, 0))
    rigs.chain(ob, "bone.5", rigs.empty("Target", (0.0, 2.5, 1.0)), 6, solver=solver, iterations=1)
    rigs.go_live(ob)
    before = now(ob)
    ob.pose.bones["bone.5"].ik_addon.iterations = 100
    edited = now(ob)
    assert rigs.apart(edited, before)
    addon.module("live.registry").clear()
    bpy.context.scene.frame_set(1)
    assert not rigs.apart(now(ob), edited)


# ---- Solve IK and Restore Pose


def two_limbs() -> tuple[bpy.types.Object, bpy.types.Object, bpy.types.Object]:
    """Return an armature with the chains 'near', whose target is in reach, and 'far'."""
    ob = rigs.limb(rigs.bent(2), ["near root", "near"])
    rigs.add_bones(ob, [(3, 0, 0), (3, 0, 1), (3, 0, 2)], ["far root", "far"])
    near, far = rigs.empty("Near", (0.3, 0.4, 1.2)), rigs.empty("Far", (3, 0, 5))
    rigs.chain(ob, "near", near, 2)
    rigs.chain(ob, "far", far, 2)
    return ob, near, far


def reaches(ob: bpy.types.Object, tip: str) -> bool:
    """Return whether a tip is on its target."""
    target = ob.pose.bones[tip].ik_addon.target
    return bool(np.allclose(rigs.tail(ob, tip), rigs.position(target), atol=1e-4))


@pytest.mark.parametrize("mode", ["POSE", "OBJECT"])
def test_solves_in_object_and_pose_mode(mode: str, capfd: pytest.CaptureFixture[str]) -> None:
    ob, _target = rigs.arm()
    bpy.ops.object.mode_set(mode=mode)
    assert said(capfd, bpy.ops.ik_addon.solve) == "Info: 1 chain reached"
    assert reaches(ob, "lower")


SAID: dict[str, tuple[Callable[[], object], str]] = {
    "too far": (lambda: setattr(rigs.arm()[1], "location", (0, 0, 4)), "Warning: 'lower': Too far by 9"),
    "one of two too far": (two_limbs, "Warning: 1 of 2 chains reached. 'far': Too far by 150% of its length"),
    "no target": (
        lambda: setattr(two_limbs()[0].pose.bones["far"].ik_addon, "target", None),
        "Warning: 1 of 2 chains reached. 'far': No target. Pick an object for the tip to follow",
    ),
    "clamped": (
        lambda: setattr(rigs.arm()[0].pose.bones["lower"].ik_addon, "chain_length", 5),
        "1 chain reached. 'lower': Chain Length is 5, but only 2 bones are available",
    ),
}
"""What keeps chains from their targets, and how the report about it begins."""


@pytest.mark.parametrize("kind", SAID)
def test_solves_what_it_can_and_says_why_not_the_rest(kind: str, capfd: pytest.CaptureFixture[str]) -> None:
    make, words = SAID[kind]
    make()
    assert words in said(capfd, bpy.ops.ik_addon.solve)
    ob = bpy.data.objects["Rig"]
    assert "near" not in ob.pose.bones or reaches(ob, "near")


def test_solves_and_restores_only_the_active_chain() -> None:
    ob, _near, far = two_limbs()
    far.location = (3, 0.5, 1.3)
    activate(ob, "far root")
    bpy.ops.ik_addon.solve(chains="ACTIVE")
    assert (reaches(ob, "near"), reaches(ob, "far")) == (False, True)
    bpy.ops.ik_addon.solve()
    activate(ob, "far")
    bpy.ops.ik_addon.restore_pose(chains="ACTIVE")
    assert (reaches(ob, "near"), reaches(ob, "far")) == (True, False)


# ---- refusals


def test_refuses_without_a_chain() -> None:
    rigs.add_bones(rigs.armature(), rigs.straight(1), ["bone"])
    for operator in (bpy.ops.ik_addon.solve, bpy.ops.ik_addon.restore_pose):
        with refused("'Rig' has no chain. Select a bone and press Add Chain"):
            operator()


@pytest.mark.parametrize("operator", ["solve", "restore_pose"])
def test_refuses_without_an_active_chain(operator: str) -> None:
    ob, _target = rigs.arm()
    activate(ob, None)
    with refused("No chain is active. Select a bone of a chain"):
        getattr(bpy.ops.ik_addon, operator)(chains="ACTIVE")


# ---- restoring


def posed_arm() -> tuple[bpy.types.Object, np.ndarray[Any, np.dtype[np.float32]]]:
    """Return an arm that was posed by hand, and its channels."""
    ob, _target = rigs.arm()
    ob.pose.bones["upper"].rotation_quaternion = (0.9, 0.1, 0.3, -0.2)
    rigs.change(ob.pose.bones["lower"], rotation_quaternion=(0.95, 0.2, 0.0, 0.1))
    return ob, rigs.channels(ob)


def test_restores_the_pose_exactly(capfd: pytest.CaptureFixture[str]) -> None:
    ob, before = posed_arm()
    assert said(capfd, bpy.ops.ik_addon.restore_pose) == "Info: No chain is solved. The pose is unchanged"
    assert rigs.channels(ob).tobytes() == before.tobytes()
    bpy.ops.ik_addon.solve()
    assert not np.array_equal(rigs.channels(ob), before)
    assert said(capfd, bpy.ops.ik_addon.restore_pose) == "Info: Restored the FK pose of 2 bones"
    assert rigs.channels(ob).tobytes() == before.tobytes()


def test_switches_live_off_and_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    ob, before = posed_arm()
    rigs.go_live(ob)
    assert reaches(ob, "lower")
    assert "Live turned off" in said(capfd, bpy.ops.ik_addon.restore_pose)
    assert not ob.ik_addon.live
    assert rigs.channels(ob).tobytes() == before.tobytes()


# ---- with the target active, as after a drag


def test_works_while_the_target_is_active() -> None:
    ob = rigs.limb(rigs.bent(4), list("abcd"))
    for tip in ("b", "d"):
        activate(ob, tip)
        bpy.ops.ik_addon.chain_add(chain_length=2)
    target = ob.pose.bones["b"].ik_addon.target
    target.location.z -= 0.3
    bpy.context.view_layer.objects.active = target
    bpy.ops.ik_addon.solve(chains="ACTIVE")
    assert (reaches(ob, "b"), reaches(ob, "d")) == (True, False)
    bpy.ops.ik_addon.chain_select(tip="d")
    assert bpy.context.view_layer.objects.active == ob


def test_refuses_a_target_without_a_chain() -> None:
    ob = rigs.limb(rigs.bent(2), list("ab"))
    chain = add(ob, "b")
    bpy.context.view_layer.objects.active = chain.target
    chain.target = None
    with refused("Select an armature"):
        bpy.ops.ik_addon.solve()
